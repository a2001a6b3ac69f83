"""A gateway takes over from another under traffic, and no client is refused."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.integration.gateway.gateway_process import GatewayProcess, gateway
from tests.integration.processes import run
from tests.patience import DEADLINE_SECONDS


class Behind(BaseHTTPRequestHandler):
    """A server of which one path is answered when it is told to."""

    protocol_version = "HTTP/1.1"
    has_come, may_answer = threading.Event(), threading.Event()

    def do_GET(self) -> None:
        if self.path == "/slow":
            self.has_come.set()
            assert self.may_answer.wait(DEADLINE_SECONDS)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
        """Nobody reads it."""


@pytest.fixture
def behind() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Behind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"--rest=http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def asking(url: str) -> Iterator[list[object]]:
    """Clients that ask again and again, each time over a connection of their own; what they got."""
    found: list[object] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            try:
                found.append(status(url))
            except OSError as error:
                found.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for each in threads:
        each.start()
    try:
        yield found
    finally:
        is_over.set()
        for each in threads:
            each.join()


def status(url: str) -> int:
    """That of an answer, over a connection of its own."""
    with urlopen(url, timeout=DEADLINE_SECONDS) as answer:  # noqa: S310  # our own gateway
        return int(answer.status)


def ended(it: GatewayProcess) -> int:
    return it.process.wait(DEADLINE_SECONDS)


def test_no_client_is_refused_while_gateways_take_over(behind: str, tmp_path: Path) -> None:
    options = (behind, f"--take-over={tmp_path / 'socket'}")
    with ExitStack() as stack:
        first = present = stack.enter_context(gateway(*options, access_log=False))
        with asking(first.url) as found:
            for _ in range(3):
                follower = stack.enter_context(gateway(*options, access_log=False))
                assert (follower.url, follower.admin) == (first.url, first.admin)
                assert ended(present) == 0
                present = follower
        assert set(found) == {200}
        assert present.stop() == 0
    assert list(tmp_path.iterdir()) == []


def test_what_has_begun_is_answered_by_the_gateway_that_began_it(
    behind: str, tmp_path: Path
) -> None:
    options = (behind, f"--take-over={tmp_path / 'socket'}")
    Behind.has_come.clear()
    Behind.may_answer.clear()
    with gateway(*options) as first:
        answers: list[int] = []

        def ask() -> None:
            answers.append(status(f"{first.url}/slow"))

        thread = threading.Thread(target=ask)
        thread.start()
        assert Behind.has_come.wait(DEADLINE_SECONDS)
        with gateway(*options) as follower:
            assert status(follower.url) == 200
            assert first.process.poll() is None
            Behind.may_answer.set()
            thread.join()
            assert answers == [200]
            assert ended(first) == 0


def test_a_successor_that_fails_leaves_the_old_one_serving(behind: str, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    options = (behind, f"--take-over={path}")
    with gateway(*options) as first:
        wrong = run("gateway", "--take-over", str(path), "--listen", "127.0.0.1:1", "--route", "/x")
        assert wrong.returncode != 0
        elsewhere = run("gateway", *options, "--listen", "127.0.0.1:1")
        assert "end it first, or take over with its port" in elsewhere.stderr
        first.until_logged("this gateway goes on")
        nobody = ("--route=/a/{a}=a", "--manager=http://127.0.0.1:1", "--deadline=0.2")
        late = run("gateway", *options, *nobody, "--listen", "127.0.0.1:0")
        assert "no owner in pool a is known" in late.stderr
        first.until_logged("this gateway goes on")
        with socket.socket(socket.AF_UNIX) as dies:
            dies.connect(str(path))
            said, given, _, _ = socket.recv_fds(dies, 4096, 8)
            assert json.loads(said) == ["clients", "admin"]
            for each in given:
                socket.socket(fileno=each).close()
        first.until_logged("this gateway goes on")
        assert status(first.url) == 200
        with gateway(*options) as follower:
            assert ended(first) == 0
            assert status(follower.url) == 200


def test_a_path_that_nobody_can_wait_at_is_refused(behind: str, tmp_path: Path) -> None:
    where = str(tmp_path / "no" / "socket")
    said = run("gateway", behind, "--listen=127.0.0.1:0", "--take-over", where)
    assert said.returncode != 0
    assert "--take-over" in said.stderr


def test_a_port_of_sockets_that_two_gateways_would_need_is_refused(
    behind: str, tmp_path: Path
) -> None:
    sockets = ("--route=/a/{a}=a", "--manager=http://127.0.0.1:1", "--sockets=a")
    taken = ("--sockets-listen=127.0.0.1:7777", f"--take-over={tmp_path / 'socket'}")
    said = run("gateway", behind, *sockets, *taken)
    assert said.returncode == 2
    assert "with --take-over say port 0" in " ".join(said.stderr.split())


def test_only_the_same_user_can_take_over(behind: str, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with gateway(behind, f"--take-over={path}"):
        assert path.stat().st_mode & 0o777 == 0o600
