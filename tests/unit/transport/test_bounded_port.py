"""A port accepts connections one by one, with small buffers, and accepts again when there are
files.
"""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

import pytest

from tenure.transport import bounded_port
from tenure.transport.bounded_port import BoundedPort, Refused
from tenure.transport.connection_limits import BUFFER_BYTES, ConnectionLimits
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
LIMITS = ConnectionLimits()


class Taken(asyncio.Protocol):
    """A connection, which is closed with its port."""

    def __init__(self, made: Callable[[], object]) -> None:
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
        self._made()


def nobody(peer: str, why: str) -> None:
    """Is told which peers were refused, and ignores it."""


@asynccontextmanager
async def opened(
    listening: socket.socket,
    made: Callable[[], object] = lambda: None,
    refused: Refused = nobody,
    limits: ConnectionLimits = LIMITS,
) -> AsyncIterator[None]:
    """A port there, which calls `made` when it has taken a connection."""
    port = BoundedPort(lambda: Taken(made), lambda _: None, refused, nobody, limits)
    port.open(listening, None)
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield
    finally:
        await port.close()


def listener(kind: type[socket.socket] = socket.socket) -> socket.socket:
    found = kind(socket.AF_INET, socket.SOCK_STREAM)
    found.bind(("127.0.0.1", 0))
    found.listen(100)
    return found


async def test_the_kernel_keeps_little_of_a_connection_unless_it_is_told_otherwise() -> None:
    for limits, is_less in ((LIMITS, True), (ConnectionLimits(buffer_bytes=None), False)):
        listening = listener()
        before = listening.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        assert before > 2 * BUFFER_BYTES
        async with opened(listening, limits=limits):
            size = listening.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            assert size == (2 * BUFFER_BYTES if is_less else before)  # Linux shows twice as much


async def test_without_a_file_left_it_waits_for_one_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel still has the connection, so it says the same again at once."""
    monkeypatch.setattr(bounded_port, "ACCEPT_AGAIN_SECONDS", 0.01)
    files, asked, told, taken = asyncio.Event(), 0, list[str](), asyncio.Event()

    class Full(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            nonlocal asked
            asked += 1
            assert asked < 1000, "nobody else had a turn"
            if not files.is_set():
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    def refused(peer: str, why: str) -> None:
        told.append(why)
        asyncio.get_running_loop().call_soon(files.set)

    listening = listener(Full)
    async with opened(listening, taken.set, refused):
        with socket.create_connection(listening.getsockname()):
            await taken.wait()
    assert told == ["no connection can be taken: Too many open files"]


async def test_where_many_come_the_others_have_a_turn_between_two() -> None:
    listening, turns, taken_at = listener(), 0, list[int]()
    with ExitStack() as stack:
        for _ in range(50):  # the kernel has them all before the first is taken
            stack.enter_context(socket.create_connection(listening.getsockname()))
        arrived = asyncio.Event()

        class Counting(socket.socket):
            def accept(self) -> tuple[socket.socket, object]:
                taken_at.append(turns)
                return super().accept()

        counting = Counting(fileno=listening.detach())
        async with opened(counting, arrived.set):
            while len(taken_at) < 50:
                turns += 1
                await asyncio.sleep(0)
    assert len(set(taken_at[:50])) == 50


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_that_comes_as_the_port_closes_is_taken_or_left_to_a_successor(
    turns: int,
) -> None:
    """Both listen at the same socket. One that was taken and has no protocol would be cut off."""
    made, listening = list[int](), listener()
    with listening.dup() as successor:
        async with opened(listening, lambda: made.append(1)):
            await asyncio.sleep(0)
            with socket.create_connection(successor.getsockname()):
                for _ in range(turns):
                    await asyncio.sleep(0)
        successor.setblocking(False)
        try:
            successor.accept()[0].close()
        except BlockingIOError:
            assert made == [1]
        else:
            assert made == []
