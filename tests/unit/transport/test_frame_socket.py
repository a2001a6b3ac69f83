"""WebSockets that are taken from aiohttp when it has agreed to them."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.test_utils import make_mocked_request

from tenure.base.instants import Instant, seconds
from tenure.transport import frame_socket
from tenure.transport.bounded_port import log_refused
from tenure.transport.fair_turns import FairTurns
from tenure.transport.frame_socket import WAITING_BYTES, FrameSocket
from tenure.transport.handshakes import NoHandshake, answer_handshake
from tenure.transport.http_listener import HttpListener
from tenure.transport.rate_bound import TIMES_OF_NOTHING, RateBound
from tenure.transport.websocket_frames import BINARY, CLOSE, PIECE, PING, PONG, frame
from tests.patience import DEADLINE_SECONDS
from tests.sessions import client_session
from tests.unit.transport.test_websocket_frames import sent

pytestmark = pytest.mark.asyncio
ASKED = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: b, a\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Echo(FrameSocket):
    """Says what it is told."""

    count = 0

    def on_message(self, data: bytes) -> None:
        self.count += 1
        if data == b"a fault":
            raise ZeroDivisionError
        self.send_frame(frame(data))

    def on_flood(self) -> None:
        self.end(1008, "too much")


class Place:
    """A listener, and whom it has accepted."""

    def __init__(self, options: Callable[[], dict[str, Any]]) -> None:
        app = web.Application()
        app.router.add_get("/ws", self._accept)
        never = seconds(60 * DEADLINE_SECONDS)
        self.listener = HttpListener(app, log_refused, log_refused, silent_ns=never)
        self.sockets: list[Echo] = []
        self.requests: list[weakref.ref[web.Request]] = []
        self.url = ""
        self._turns, self._options = FairTurns(), options

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        try:
            transport = answer_handshake(request, "a")
        except NoHandshake as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        bounds = {"turns": self._turns, "most_bytes": 1 << 20, "lag_bytes": 1 << 20}
        options: dict[str, Any] = bounds | self._options()
        socket = Echo(transport, 1, **options)
        self.sockets.append(socket)
        self.requests.append(weakref.ref(request))
        return self.listener.hand_over(request, socket)


@asynccontextmanager
async def place(options: Callable[[], dict[str, Any]] = dict) -> AsyncIterator[Place]:
    made = Place(options)
    port = await made.listener.listen("127.0.0.1", 0, None)
    made.url = f"http://127.0.0.1:{port}/ws"
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield made
    finally:
        await made.listener.close()


@asynccontextmanager
async def client(url: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with client_session() as session, session.ws_connect(url, protocols=["a"]) as socket:
        yield socket


@asynccontextmanager
async def raw(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def heard(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first, size = await reader.readexactly(2)
    return first & 0x0F, await reader.readexactly(size)


async def test_messages_go_both_ways_whatever_their_size() -> None:
    async with place() as at, client(at.url) as socket:
        assert socket.protocol == "a"
        for size in (0, 1, 125, 126, 300, 70_000, 1 << 20):
            said = bytes([size % 251]) * size
            await socket.send_bytes(said)
            assert await socket.receive_bytes() == said


async def test_protocols_that_are_not_ours_are_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Strangers offer as many as they like, as often as they like."""
    async with place() as made, client_session() as session:
        for offered, agreed in ((["x" * 1000, "b"], None), (["b", "a"], "a")):
            async with session.ws_connect(made.url, protocols=offered) as socket:
                assert socket.protocol == agreed
    assert "xxx" not in caplog.text


async def test_nothing_of_aiohttp_is_kept() -> None:
    def handlers() -> list[web.RequestHandler]:
        return [each for each in gc.get_objects() if isinstance(each, web.RequestHandler)]

    earlier = handlers()  # those of other tests in this process
    async with place() as at, client(at.url) as socket:
        await socket.send_bytes(b"a")
        assert await socket.receive_bytes() == b"a"
        await asyncio.sleep(0)
        gc.collect()
        assert [each() for each in at.requests] == [None]
        assert not [each for each in handlers() if all(each is not other for other in earlier)]
        assert len(at.listener) == 1
        await socket.close()
        await at.sockets[0].gone()
        assert len(at.listener) == 0


async def test_what_comes_with_the_request_is_read() -> None:
    async with place() as at, raw(at.url) as (reader, writer):
        writer.write(ASKED + sent(b"hasty"))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head, "as in the RFC"
        assert b"Sec-WebSocket-Protocol: a\r\n" in head
        assert await heard(reader) == (BINARY, b"hasty")


async def test_a_ping_is_answered_and_a_close_too() -> None:
    async with place() as at, raw(at.url) as (reader, writer):
        writer.write(ASKED + sent(b"you?", PING) + sent(b"\x03\xe8", CLOSE))
        await reader.readuntil(b"\r\n\r\n")
        assert await heard(reader) == (PONG, b"you?")
        assert await heard(reader) == (CLOSE, b"\x03\xe8")
        assert await reader.read() == b""


async def test_whoever_is_ended_is_told_why_and_nothing_after_it() -> None:
    async with place() as at, raw(at.url) as (reader, writer):
        writer.write(ASKED + sent(b"a"))
        await reader.readuntil(b"\r\n\r\n")
        await heard(reader)
        [socket] = at.sockets
        socket.end(1001, "it is over")
        socket.end(1002, "not said")
        writer.write(sent(b"b") + sent(b"\x03\xe9", CLOSE))
        assert await heard(reader) == (CLOSE, b"\x03\xe9it is over")
        assert await reader.read() == b""
        await socket.gone()


@pytest.mark.parametrize("unread", [0, 8 << 20], ids=["answers nothing", "reads nothing"])
async def test_whoever_does_not_answer_that_it_is_ended_is_let_go(
    unread: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_socket, "CLOSE_SECONDS", 0.01)
    async with place() as at, raw(at.url) as (reader, writer):
        writer.write(ASKED)
        await reader.readuntil(b"\r\n\r\n")
        [socket] = at.sockets
        socket.transport.write(bytes(unread))
        socket.end(1001, "it is over")
        await socket.gone()


async def test_what_cannot_be_read_ends_its_connection() -> None:
    async with place() as at, raw(at.url) as (reader, writer):
        writer.write(ASKED + sent(b"text", 1) + sent(b"more"))
        await reader.readuntil(b"\r\n\r\n")
        said = (1003).to_bytes(2, "big") + b"a text frame, where messages are binary"
        assert await heard(reader) == (CLOSE, said)
        writer.write_eof()
        assert await reader.read() == b""


async def test_whoever_is_silent_is_asked_and_then_let_go() -> None:
    async with place() as at, raw(at.url) as (reader, writer):
        writer.write(ASKED + sent(b"a"))
        await reader.readuntil(b"\r\n\r\n")
        await heard(reader)
        [socket] = at.sockets
        for after, ends in ((9, False), (10, False), (15, True)):
            socket.is_there(Instant(socket.heard_at + seconds(after)), seconds(10))
            assert socket.transport.is_closing() is ends
        assert await heard(reader) == (PING, b"")


async def test_a_peer_is_asked_before_it_is_let_go_even_if_this_process_was_stopped() -> None:
    """What it has said meanwhile may be there to be read."""
    async with place() as at, raw(at.url) as (reader, writer):
        writer.write(ASKED)
        await reader.readuntil(b"\r\n\r\n")
        [socket] = at.sockets
        much_later = Instant(socket.heard_at + seconds(1000))
        socket.is_there(much_later, seconds(10))
        assert await heard(reader) == (PING, b"")
        assert not socket.transport.is_closing()
        socket.is_there(much_later, seconds(10))
        assert socket.transport.is_closing()
        assert socket.why == "it has not answered a ping"


async def test_whoever_is_gone_although_its_transport_does_not_say_so_is_gone() -> None:
    """The loop may refuse to write to a handle that it has closed. A server that let this pass
    would log two stacks for each client that loses patience with a busy manager.
    """
    transport = Mock(asyncio.Transport)
    transport.is_closing.return_value = False
    transport.write.side_effect = RuntimeError("the handler is closed")
    protocol = Mock(web.RequestHandler)
    headers = dict(line.split(": ") for line in ASKED.decode().splitlines()[1:] if line)
    request = make_mocked_request(
        *("GET", "/ws", headers), transport=transport, protocol=protocol, payload=EMPTY_PAYLOAD
    )
    with pytest.raises(ConnectionError, match="the client has gone"):
        answer_handshake(request, "a")
    protocol.force_close.assert_called_once_with()


async def test_whoever_sends_much_is_read_in_turns_and_in_order() -> None:
    async with place() as at, raw(at.url) as (reader, writer), client(at.url) as other:
        many = [bytes([number]) for number in range(200)]
        writer.write(ASKED + b"".join(map(sent, many)))
        await reader.readuntil(b"\r\n\r\n")
        await heard(reader)
        await other.send_bytes(b"other")
        assert await other.receive_bytes() == b"other"
        assert [(await heard(reader))[1] for _ in many[1:]] == many[1:]


async def test_no_more_is_read_while_more_waits_for_its_turn_than_is_said_at_once() -> None:
    async with place() as at, raw(at.url) as (reader, writer):
        writer.write(ASKED)
        await reader.readuntil(b"\r\n\r\n")
        [socket] = at.sockets
        many = WAITING_BYTES // len(sent(b"a"))
        for times in (many // 2, many // 2, many):  # as the loop does; the first waits for its turn
            assert socket.transport.is_reading()
            socket.data_received(sent(b"a") * times)
        assert not socket.transport.is_reading()
        for _ in range(many // 2 * 2 + many):
            assert await heard(reader) == (BINARY, b"a")
        assert socket.transport.is_reading()


async def test_a_fault_ends_its_connection_and_the_others_are_read_on() -> None:
    said: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    async with place() as at, raw(at.url) as one, raw(at.url) as two:
        for (_, writer), last in ((one, b"a fault"), (two, b"c")):
            writer.write(ASKED + sent(b"a") + sent(b"b") + sent(last))
        for reader, _ in (one, two):
            await reader.readuntil(b"\r\n\r\n")
            assert [(await heard(reader))[1] for _ in range(2)] == [b"a", b"b"]
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await heard(one[0])
        assert await heard(two[0]) == (BINARY, b"c")
    assert len(said) == 1


async def test_more_than_its_rate_allows_is_not_read() -> None:
    async with place(lambda: {"rate": RateBound(0.001, 2)}) as at, raw(at.url) as (reader, writer):
        writer.write(ASKED + b"".join(map(sent, (b"a", b"b", b"c", b"d"))))
        await reader.readuntil(b"\r\n\r\n")
        assert [(await heard(reader))[1] for _ in range(2)] == [b"a", b"b"]
        assert await heard(reader) == (CLOSE, (1008).to_bytes(2, "big") + b"too much")


async def test_a_flood_has_a_few_frames_of_each_pass_of_the_loop() -> None:
    async with place(lambda: {"turns": FairTurns(free=16)}) as at, raw(at.url) as (reader, writer):
        writer.write(ASKED)
        await reader.readuntil(b"\r\n\r\n")
        [socket] = at.sockets
        counts = [0]

        async def look() -> None:
            while counts[-1] < 4000:
                await asyncio.sleep(0)
                counts.append(socket.count)

        looking = asyncio.create_task(look())
        writer.write(sent(b"a") * 4000)
        for _ in range(4000):
            assert await heard(reader) == (BINARY, b"a")
        await looking
        passes = [after - before for before, after in pairwise(counts)]
        assert max(passes) <= 2 * 16, "a turn, and what came before anything waited for one"


async def test_what_comes_faster_than_its_pace_waits_unread_and_is_not_lost() -> None:
    slow = RateBound(0.001, 2)
    async with place(lambda: {"pace": slow}) as at, raw(at.url) as (reader, writer):
        many = [bytes([number]) for number in range(6)]
        writer.write(ASKED + b"".join(map(sent, many)))
        await reader.readuntil(b"\r\n\r\n")
        assert [(await heard(reader))[1] for _ in range(3)] == many[:3]
        [socket] = at.sockets
        for each in many[3:]:
            assert socket.count == each[0]
            assert not socket.transport.is_reading()
            socket.take_turn()  # as its timer does, a quarter of an hour later
            assert await heard(reader) == (BINARY, each)


@pytest.mark.parametrize("nothing", [sent(b"", PING), sent(b"", PIECE, first=0)])
async def test_what_carries_nothing_counts_for_many_messages(nothing: bytes) -> None:
    few = partial(RateBound, 0.001, 2 * TIMES_OF_NOTHING)
    async with place(lambda: {"rate": few()}) as at, raw(at.url) as (reader, writer):
        begun = sent(b"", first=0) if nothing[0] == PIECE else nothing
        writer.write(ASKED + begun + nothing * 2)
        await reader.readuntil(b"\r\n\r\n")
        while (said := await heard(reader)) == (PONG, b""):
            pass
        assert said == (CLOSE, (1008).to_bytes(2, "big") + b"too much")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"Upgrade: websocket\r\n", b""),
        (b"Connection: Upgrade\r\n", b""),
        (b"Version: 13", b"Version: 12"),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"dGhl"),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"\xff"),
        (b"\r\n\r\n", b"\r\nContent-Length: 1\r\n\r\na"),
    ],
)
async def test_a_request_that_begins_no_websocket_is_refused(before: bytes, after: bytes) -> None:
    async with place() as at, raw(at.url) as (reader, writer):
        writer.write(ASKED.replace(before, after))
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
        assert at.sockets == []
