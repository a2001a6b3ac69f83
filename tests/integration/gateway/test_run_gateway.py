"""`tenure run --gateway` before each web server: requests and sockets go straight to the workers
that have their keys, by routes that nobody has written but the application's author.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from websockets.sync.client import connect

from tenure.cli.demo.ports import free_ports
from tests.integration.member.conftest import WORKERS
from tests.integration.member.servers import COMMANDS
from tests.integration.processes import command, run
from tests.patience import DEADLINE_SECONDS
from tests.repo.reading import ROOT

KEYS = [f"user-{i}" for i in range(40)]
STRAIGHT = re.compile(r'tenure_gateway_answers_total\{status="(\d+)",target="([^"]+)"\} (\S+)')


class Beside:
    """A command with a gateway."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stderr is not None
        self.manager = process.stderr.readline().split()[-1]
        said = re.search(r"gateway at (\S+), its admin port at (\S+)", process.stderr.readline())
        assert said is not None
        self.url, self.admin = said.groups()
        self.log = ""

    def wait(self, workers: int) -> None:
        """Wait until this many workers have keys, and the gateway asks them."""
        until = time.monotonic() + DEADLINE_SECONDS
        while self._owners() < workers or "carts" not in self.answers():
            assert self.process.poll() is None
            assert time.monotonic() < until
            httpx.get(f"{self.url}/carts/ann/pid", timeout=DEADLINE_SECONDS)

    def _owners(self) -> int:
        found = httpx.get(f"{self.manager}/v1/pools/carts/owners", timeout=DEADLINE_SECONDS)
        owners = found.json()["owners"] if found.status_code == 200 else []
        return sum(bool(each["ranges"]) for each in owners)

    def answers(self) -> dict[str, int]:
        """How many requests went to each target."""
        page = httpx.get(f"{self.admin}/metrics", timeout=DEADLINE_SECONDS).text
        counts: dict[str, int] = {}
        for _, target, count in STRAIGHT.findall(page):
            counts[target] = counts.get(target, 0) + int(float(count))
        return counts


@contextmanager
def beside(*said: str) -> Iterator[Beside]:
    process = subprocess.Popen(
        command("run", "--gateway", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", *said),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Beside(process)
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_SECONDS)


@pytest.mark.parametrize("kind", list(COMMANDS))
def test_requests_and_sockets_go_straight_to_the_worker_of_their_key(kind: str) -> None:
    if kind == "granian":
        pytest.importorskip("granian")
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    words = [each.format(port=port) for each in COMMANDS[kind]]
    with beside("--rest", url, "--", sys.executable, *words) as it:
        it.wait(WORKERS[kind])
        before = it.answers()
        with httpx.Client(base_url=it.url, timeout=DEADLINE_SECONDS) as client:
            pids = {key: int(client.get(f"/carts/{key}/pid").text) for key in KEYS}
            assert len(set(pids.values())) == WORKERS[kind]
            for key in KEYS[:4]:
                path = f"/carts/{key}/talk"
                with connect(it.url.replace("http", "ws") + path) as socket:
                    assert json.loads(socket.recv(DEADLINE_SECONDS)) == pids[key]
            after = it.answers()
            assert after["carts"] - before["carts"] == len(KEYS) + 4
            assert after.get(url, 0) == before.get(url, 0), "the shared port was not asked"
            assert client.get("/health").text.isdigit(), "what has no key goes there"
        it.process.terminate()
        assert it.process.wait(DEADLINE_SECONDS) in (0, 128 + 15)


def test_options_of_a_gateway_need_one() -> None:
    ended = run("run", "--listen", "127.0.0.1:0", "--", "true")
    assert ended.returncode != 0
    assert "--listen=127.0.0.1:0 is for a gateway" in ended.stderr


def test_a_gateway_that_cannot_start_runs_no_command() -> None:
    ended = run(
        "run", "--gateway", "--listen", "127.0.0.1:0", "--route", "/x=", "--", "echo", "ran"
    )
    assert ended.returncode != 0
    assert "'/x=' is no route" in ended.stderr
    assert "the command was not run" in ended.stderr
    assert "ran" not in ended.stdout


def test_without_its_gateway_the_command_is_ended() -> None:
    with beside("--", sys.executable, "-c", "import time; time.sleep(60)") as it:
        found = subprocess.run(
            ["pgrep", "-P", str(it.process.pid), "-f", "tenure gateway"],
            check=True,
            capture_output=True,
            text=True,
        )
        subprocess.run(["kill", "-9", found.stdout.strip()], check=True)
        assert it.process.wait(DEADLINE_SECONDS) == 1
        assert it.process.stderr is not None
        assert "the gateway has ended" in it.process.stderr.read()
