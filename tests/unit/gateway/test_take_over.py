"""A gateway takes sockets from its own user only, and only those that listen where it was told."""

import asyncio
import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tenure.errors import ConfigurationError, TenureError
from tenure.gateway import take_over
from tenure.gateway.client_connection import GivenConnection
from tenure.gateway.passed_connection import PassedConnection
from tenure.gateway.passing import Passing
from tenure.gateway.take_over import (
    MOST_SOCKETS,
    SERVES,
    TAKES,
    FormerGateway,
    GatewaySuccession,
    user_at,
)
from tests.patience import DEADLINE_SECONDS, until

STRANGER = 54_321


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[socket.socket]:
    """A Unix socket at `path_of` which somebody who is no gateway has bound."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
        made.settimeout(DEADLINE_SECONDS)
        yield made


@pytest.fixture
def clients() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def path_of(waiting: socket.socket) -> Path:
    return Path(waiting.getsockname())


def list_dir(path: Path) -> list[str]:
    return [each.name for each in path.iterdir()]


def passed(
    waiting: socket.socket, said: bytes, given: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> FormerGateway | None:
    """What becomes of a gateway that is passed these."""
    waiting.listen()
    real = take_over.received

    def received(connection: socket.socket) -> dict[str, socket.socket]:
        accepted, _ = waiting.accept()
        with accepted:
            socket.send_fds(accepted, [said], [each.fileno() for each in given])
        return real(connection)

    monkeypatch.setattr(take_over, "received", received)
    return FormerGateway.at(path_of(waiting))


def test_the_kernel_says_whose_process_is_at_the_other_end() -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert user_at(one) == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can listen as another user")
def test_nothing_is_taken_from_another_user_that_waits_at_the_path(waiting: socket.socket) -> None:
    """A gateway of root does not take what a stranger offers at a path that it can write."""
    os.seteuid(STRANGER)
    waiting.listen()
    os.seteuid(0)
    said = f"a process of user {STRANGER} waits there, and this one is of user 0: end that process"
    with pytest.raises(ConfigurationError, match=said):
        FormerGateway.at(path_of(waiting))


def test_a_file_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    """Somebody has confused two options."""
    (tmp_path / "routes.toml").write_text("routes")
    for path in (tmp_path / "routes.toml", tmp_path):
        with pytest.raises(ConfigurationError, match="is a file of something else"):
            FormerGateway.at(path)


@pytest.mark.asyncio
async def test_a_path_that_cannot_be_had_is_named_and_nothing_is_left_beside_it(
    tmp_path: Path, clients: socket.socket
) -> None:
    """As one where another user's gateway has waited, in a directory that all may write."""
    (tmp_path / "taken" / "by others").mkdir(parents=True)
    succession = GatewaySuccession({"clients": clients}, nobody)
    with pytest.raises(ConfigurationError, match=f"--take-over {tmp_path}/taken: "):
        succession.open(tmp_path / "taken")
    await succession.close()
    assert list_dir(tmp_path) == ["taken"]


def test_a_stranger_is_refused_before_anything_of_it_is_read(
    waiting: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.listen()
    monkeypatch.setattr(take_over, "user_at", lambda _: STRANGER)
    with pytest.raises(ConfigurationError, match=f"--take-over .*user {STRANGER} waits there"):
        FormerGateway.at(path_of(waiting))


async def nobody(_: Passing) -> bool:
    return False


@pytest.mark.asyncio
async def test_nothing_is_passed_to_another_user(
    tmp_path: Path,
    clients: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(take_over, "user_at", lambda _: STRANGER)
    succession = GatewaySuccession({"clients": clients}, nobody)
    succession.open(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.setblocking(False)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await loop.sock_connect(stranger, str(tmp_path / "socket"))
            said = None
            with suppress(ConnectionError):
                said = await loop.sock_recv(stranger, 1)
    assert not said
    assert f"a process of user {STRANGER} may not take over" in caplog.text
    await succession.close()


@pytest.mark.asyncio
async def test_without_a_file_for_it_a_successor_is_heard_later(
    tmp_path: Path,
    clients: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(take_over, "ACCEPT_AGAIN_SECONDS", 0.01)
    succession = GatewaySuccession({"clients": clients}, nobody)
    succession.open(tmp_path / "socket")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket(socket.AF_UNIX) as successor:
        successor.setblocking(False)
        loop = asyncio.get_running_loop()
        resource.setrlimit(resource.RLIMIT_NOFILE, (first_free(), hard))
        try:
            await loop.sock_connect(successor, str(tmp_path / "socket"))
            await until(lambda: "a successor cannot be heard yet: Too many" in caplog.text)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await loop.sock_recv(successor, 100) == b'["clients"]'
    await succession.close()


@pytest.mark.asyncio
async def test_after_a_mistake_while_connections_are_passed_another_successor_is_heard(
    tmp_path: Path, clients: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    """The first learns at once that nothing follows, and the mistake is in the log."""
    mistakes = [AssertionError("a mistake in the passing")]

    async def pass_open(passing: Passing) -> bool:
        if mistakes:
            raise mistakes.pop()
        passing.close()
        return True

    succession = GatewaySuccession({"clients": clients}, pass_open)
    succession.open(tmp_path / "socket")
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(DEADLINE_SECONDS):
        for _ in range(2):
            assert not succession.is_over.is_set()
            with socket.socket(socket.AF_UNIX) as successor:
                successor.setblocking(False)
                await loop.sock_connect(successor, str(tmp_path / "socket"))
                assert await loop.sock_recv(successor, 100) == b'["clients"]'
                await loop.sock_sendall(successor, SERVES + TAKES)
                assert await loop.sock_recv(successor, 100) == b""
        await succession.is_over.wait()
    assert "AssertionError: a mistake in the passing" in caplog.text
    await succession.close()


class Nobody:
    """See `GoesOn`: nothing is passed to it."""

    def may_go_on(self, passed: PassedConnection) -> bool:
        raise AssertionError(passed)

    def go_on(self, given: GivenConnection) -> None:
        raise AssertionError(given)


@pytest.mark.asyncio
async def test_a_predecessor_that_stays_is_named_and_leaves_its_successor_the_path(
    tmp_path: Path, clients: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "socket"

    async def refuse(_: Passing) -> bool:
        return False

    first = GatewaySuccession({"clients": clients}, refuse)
    first.open(path)
    before = await asyncio.to_thread(FormerGateway.at, path)
    assert before is not None
    async with asyncio.timeout(DEADLINE_SECONDS):
        await before.relieve(Nobody(), lambda: None)
    for each in before._listening.values():
        each.close()
    assert f"process {os.getpid()}, has not said that it passed its clients on" in caplog.text
    second = GatewaySuccession({"clients": clients}, refuse)
    second.open(path)
    await first.close()
    assert path.is_socket()
    await second.close()
    assert not path.exists()


def first_free() -> int:
    """The number that the next file would have."""
    found = os.dup(0)
    os.close(found)
    return found


def opened() -> int:
    """How many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def udp() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    return made


def unlistened() -> socket.socket:
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    return made


def unix() -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind("")  # the kernel names it
    made.listen()
    return made


@pytest.mark.parametrize("made", [udp, unlistened, unix])
def test_what_is_no_listening_tcp_socket_is_refused(
    made: Callable[[], socket.socket], waiting: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made() as odd, pytest.raises(TenureError, match="is no TCP socket that listens"):
        passed(waiting, b'["clients"]', [odd], monkeypatch)


@pytest.mark.parametrize(
    ("said", "count"),
    [
        (b"[" * 4096, 1),
        (b'["' + b"x" * 9000 + b'"]', 1),
        (b'{"clients": 0}', 1),
        (b"[[0]]", 1),
        (b'["clients", "admin"]', 1),
        (b'["clients", "clients"]', 2),
        (b'["clients"]', MOST_SOCKETS + 1),
        (b"\xff", 1),
    ],
)
def test_what_does_not_name_the_sockets_is_refused_and_closed(
    said: bytes,
    count: int,
    waiting: socket.socket,
    clients: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = opened()
    with pytest.raises(TenureError, match="has not passed its sockets"):
        passed(waiting, said, [clients] * count, monkeypatch)
    assert opened() == before


def test_a_socket_is_taken_for_the_address_at_which_it_listens(
    waiting: socket.socket, clients: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = passed(waiting, b'["clients"]', [clients], monkeypatch)
    assert former is not None
    port = clients.getsockname()[1]
    found = former.listening("clients", f"127.0.0.1:{port}")
    assert found is not None
    assert found.getsockname() == clients.getsockname()
    assert former.listening("clients", "127.0.0.1:0") is found
    assert former.listening("admin", "127.0.0.1:0") is None
    for where in (f"0.0.0.0:{port}", f"[::1]:{port}", "127.0.0.1:1"):
        with pytest.raises(ConfigurationError, match=f"listens on port {port} of 127.0.0.1, not"):
            former.listening("clients", where)
    found.close()
    former.close()
