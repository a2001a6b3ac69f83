"""A door, and clients that mean harm: what each may cost the process in which it is."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import TypeAlias
from urllib.parse import urlsplit

import pytest
from aiohttp import WSCloseCode

from tenure.base.instants import Instant, seconds
from tenure.transport import frame_socket, websocket_door
from tenure.transport.doors import Connection
from tenure.transport.fair_turns import FRAMES_A_TURN, TURN_NS
from tenure.transport.unread_answers import UNREAD_BYTES
from tenure.transport.websocket_door import LINES_AT_ONCE, WebSocketDoor
from tenure.transport.websocket_frames import BINARY, CLOSE, MOST_PIECES, PIECE, PING, PONG, frame
from tests.patience import DEADLINE_SECONDS
from tests.unit.transport.test_frame_socket import ASKED, heard, raw
from tests.unit.transport.test_websocket_frames import sent

pytestmark = pytest.mark.asyncio
MIB = 1 << 20


class Counting:
    """Counts what it is told, says nothing, and takes its time."""

    def __init__(self, takes_ns: int = 0) -> None:
        self.count = 0
        self.spent_ns = 0
        self._takes_ns = takes_ns

        self.names: list[str] = []

    def connected(self, connection: Connection) -> None:
        self.names.append(connection.whose)

    def disconnected(self, connection: Connection) -> None: ...

    def received(self, connection: Connection, data: bytes) -> None:
        self.count += 1
        self.spent_ns += self._takes_ns

    def clock(self) -> Instant:
        return Instant(seconds(1_000) + self.spent_ns)


Client: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def opened(
    listener: Counting,
    count: int = 1,
    is_list: Callable[[bytes], bool] | None = None,
    weigh: Callable[[bytes], int] | None = None,
) -> AsyncIterator[tuple[list[Client], WebSocketDoor]]:
    """A door, and clients that it has let in."""
    door = WebSocketDoor("/ws", most_bytes=17 * MIB, is_list=is_list, weigh=weigh)
    url = await door.open("127.0.0.1:0", listener)
    where = urlsplit(url).netloc.encode()
    asked = ASKED.replace(b"localhost", where).replace(b"b, a", b"tenure.3")
    try:
        async with asyncio.timeout(DEADLINE_SECONDS), AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(raw(f"{url}/ws")) for _ in range(count)]
            for reader, writer in clients:
                writer.write(asked)
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
            yield clients, door
    finally:
        await door.close("it is over")


async def test_a_large_piece_and_then_nothing_for_ever_ends_the_connection() -> None:
    async with opened(Counting()) as ([(reader, writer)], _):
        writer.write(sent(bytes(15 * MIB), mask=bytes(4), first=0))
        writer.write(sent(b"", PIECE, first=0) * 200_000)
        code, said = await heard(reader)
        assert code == CLOSE
        assert said[:2] == WSCloseCode.POLICY_VIOLATION.to_bytes(2, "big")
        assert said[2:].decode() == f"a message in more than {MOST_PIECES} pieces"


async def test_clients_that_are_cut_off_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    unmasked = b"\x82\x00"
    async with opened(Counting(), LINES_AT_ONCE + 20) as (clients, _):
        for _, writer in clients:
            writer.write(unmasked)
        for reader, _ in clients:
            assert (await reader.read())[:1] == b"\x88", "each is told"
    said = [each for each in caplog.records if "closed the connection" in each.message]
    assert LINES_AT_ONCE <= len(said) < LINES_AT_ONCE + 20


async def test_a_flood_has_a_few_messages_of_each_pass_of_the_loop() -> None:
    listener, counts = Counting(), [0]
    async with opened(listener) as ([(_, writer)], _):
        writer.write(sent(b"a") * 8_000)
        while counts[-1] < 8_000:
            await asyncio.sleep(0)
            counts.append(listener.count)
    assert max(after - before for before, after in pairwise(counts)) <= 2 * FRAMES_A_TURN


async def test_who_sends_faster_than_any_of_ours_is_read_more_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket_door, "MESSAGES_A_SECOND", 0.001)
    monkeypatch.setattr(websocket_door, "MESSAGES_AT_ONCE", 2)
    listener = Counting()
    async with opened(listener) as ([(_, writer)], door):
        writer.write(sent(b"a") * 6)
        [socket] = door._open
        assert socket.transport is not None
        while listener.count < 3:  # noqa: ASYNC110 - it can only be looked at
            await asyncio.sleep(0)
        assert not socket.transport.is_reading(), "the rest comes a quarter of an hour later"
        assert listener.count == 3


async def test_many_that_flood_have_no_more_of_a_pass_than_one() -> None:
    listener = Counting()
    async with opened(listener, 20) as (_, door):
        for socket in door._open:
            socket.data_received(sent(b"a") * FRAMES_A_TURN)
        assert 0 < listener.count <= FRAMES_A_TURN
        while listener.count < 20 * FRAMES_A_TURN:
            before = listener.count
            await asyncio.sleep(0)
            assert listener.count - before <= 2 * FRAMES_A_TURN


async def test_a_turn_ends_by_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 frames that take long would hold up everything else in the process."""
    listener = Counting(takes_ns=TURN_NS // 2)
    async with opened(listener, 2) as (_, door):
        monkeypatch.setattr(frame_socket, "boot_clock", listener.clock)
        first, second = door._open
        first.data_received(sent(b"a") * FRAMES_A_TURN)
        second.data_received(sent(b"a"))
        assert listener.count == 2
        counts = [2]
        while listener.count <= FRAMES_A_TURN:
            await asyncio.sleep(0)
            counts.append(listener.count)
        assert max(after - before for before, after in pairwise(counts)) <= 4


async def test_sockets_that_have_one_slow_frame_each_share_a_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listener = Counting(takes_ns=TURN_NS // 2)
    async with opened(listener, 20) as (_, door):
        monkeypatch.setattr(frame_socket, "boot_clock", listener.clock)
        for socket in door._open:
            socket.data_received(sent(b"a"))
        assert listener.count == 2
        while listener.count < 20:  # noqa: ASYNC110 - it can only be looked at
            await asyncio.sleep(0)


async def test_a_client_is_counted_by_its_token_only_where_tokens_are_looked_at() -> None:
    """Otherwise each connection could show another one, and be somebody else."""

    class Gate:
        def admits(self, shown: str) -> bool:
            return shown in ("Bearer a", "Bearer b")

        may_look = admits

    for gate, names in ((None, 1), (Gate(), 2)):
        listener = Counting()
        door = WebSocketDoor("/ws", gate=gate)
        url = await door.open("127.0.0.1:0", listener)
        for token in "aab":
            shown = f"\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
            asked = ASKED.replace(b"localhost", urlsplit(url).netloc.encode())
            async with asyncio.timeout(DEADLINE_SECONDS), raw(f"{url}/ws") as (reader, writer):
                writer.write(asked.replace(b"b, a", b"tenure.3").replace(b"\r\n\r\n", shown))
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        await door.close("it is over")
        assert len(listener.names) == 3
        assert len(set(listener.names)) == names
        assert not any("Bearer" in name for name in listener.names)


async def test_pings_are_answered_and_a_flood_of_them_waits_unread() -> None:
    async with opened(Counting()) as ([(reader, writer)], door):
        writer.write(sent(b"", PING) * 100_000)
        for _ in range(1_000):
            assert await heard(reader) == (PONG, b"")
        [socket] = door._open
        assert not socket.transport.is_reading()


async def test_frames_that_never_end_keep_only_so_much_of_one_address() -> None:
    async with opened(Counting(), 8) as (clients, door):
        head = sent(bytes(15 * MIB), mask=bytes(4))[:-1]
        for _, writer in clients:
            writer.write(head)
        while len(door._open) > 4:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert sum(socket._frames.unfinished for socket in door._open if socket._frames) <= 64 * MIB


class Unsent:
    """A transport whose peer reads nothing."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.size = 0

    def write(self, data: bytes) -> None:
        self.size += len(data)

    def get_write_buffer_size(self) -> int:
        return self.size

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)


async def test_answers_that_many_connections_of_one_client_do_not_read_are_bounded() -> None:
    async with opened(Counting(), 40) as (_, door):
        sockets = list(door._open)
        for each in sockets:
            each.transport = Unsent(each.transport)  # type: ignore[assignment]
            each.send(bytes(12 * MIB))
        kept = [each for each in sockets if not each.transport.is_closing()]
        assert sum(each.unread_bytes for each in kept) <= UNREAD_BYTES
        assert len(kept) == UNREAD_BYTES // (12 * MIB)


async def test_answers_of_one_turn_of_the_loop_go_out_in_one_piece_and_before_the_end() -> None:
    async with opened(Counting()) as ([(reader, _)], door):
        [socket] = door._open
        transport = socket.transport
        socket.transport = Unsent(transport)  # type: ignore[assignment]
        socket.send(b"a")
        socket.send(b"b")
        assert socket.unread_bytes == 0
        await asyncio.sleep(0)
        assert socket.unread_bytes == 2 * len(frame(b"a"))
        socket.transport = transport
        socket.send(b"c")
        socket.close("the last")
        socket.send(b"too late")
        assert await heard(reader) == (BINARY, b"c")
        assert await heard(reader) == (CLOSE, (1002).to_bytes(2, "big") + b"the last")


async def test_whoever_asks_and_closes_at_once_is_answered_before_the_end() -> None:
    class Answering(Counting):
        def received(self, connection: Connection, data: bytes) -> None:
            connection.send(data)

    async with opened(Answering()) as ([(reader, writer)], _):
        writer.write(sent(b"asked") + sent(b"", CLOSE))
        assert [await heard(reader) for _ in range(2)] == [
            (BINARY, b"asked"),
            (CLOSE, WSCloseCode.OK.to_bytes(2, "big")),
        ]


async def test_a_frame_that_does_not_go_on_ends_its_connection() -> None:
    async with opened(Counting()) as ([(reader, writer)], door):
        writer.write(sent(bytes(MIB))[:-1])
        [socket] = door._open
        while not len(door._unfinished):  # noqa: ASYNC110
            await asyncio.sleep(0)
        socket.is_there(Instant(socket.heard_at + seconds(100)), seconds(1000))
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)


async def test_a_large_message_that_was_read_in_its_turn_counts_no_more() -> None:
    listener = Counting()
    async with opened(listener) as (_, door):
        [socket] = door._open
        socket.data_received(sent(b"a") * 2 * FRAMES_A_TURN)
        socket.data_received(sent(bytes(MIB)))
        assert len(door._unfinished) == 1
        while listener.count <= 2 * FRAMES_A_TURN:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert len(door._unfinished) == 0
