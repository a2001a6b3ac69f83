"""A WebSocket that ends at the gateway keeps no more of one client than any other port."""

import asyncio
from contextlib import suppress

import pytest

from tenure.gateway.client_request import ClientRequest
from tenure.gateway.held_socket import GONE, HeldSocket
from tenure.gateway.request_reader import RequestHead
from tenure.member.asgi import MESSAGE_BYTES, Message
from tenure.transport import unfinished_messages
from tenure.transport.message_watch import FRAMES_A_PASS
from tenure.transport.unfinished_messages import UnfinishedMessages
from tenure.transport.websocket_frames import PIECE, PING, close_frame
from tests.patience import DEADLINE_SECONDS
from tests.unit.transport.test_message_watch import frame

pytestmark = pytest.mark.asyncio
MIB = 1 << 20


class Connection:
    """See `Carrier`: a connection that keeps what is written, and which can be lost."""

    def __init__(self) -> None:
        self.request: ClientRequest
        self.is_aborted = False
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    async def drained(self) -> None:
        pass

    def read_on(self, *, goes_on: bool) -> None:
        pass

    def switched(self) -> None:
        pass

    def close(self) -> None:
        pass

    def finished(self, request: ClientRequest) -> None:
        pass

    def break_off(self) -> None:
        self.is_aborted = True
        self.request.lose()


def held(
    unfinished: UnfinishedMessages, address: str, token: bytes = b""
) -> tuple[Connection, HeldSocket]:
    headers = [(b"authorization", token)] if token else []
    head = RequestHead("GET", b"/", headers, "1.1", False, False, True, b"websocket")
    connection = Connection()
    connection.request = ClientRequest(head, connection, (address, 1), "http")
    return connection, HeldSocket(connection.request, unfinished)


async def test_of_its_handshake_an_open_socket_keeps_the_token_alone() -> None:
    sent = [(b"host", b"x"), (b"sec-websocket-key", b"x" * 24), (b"authorization", b"Bearer one")]
    head = RequestHead("GET", b"/a?b", sent, "1.1", False, False, True, b"websocket")
    connection = Connection()
    request = connection.request = ClientRequest(head, connection, ("10.0.0.1", 1), "http")
    await HeldSocket(request, UnfinishedMessages()).accept()
    assert connection.written.startswith(b"HTTP/1.1 101 ")
    assert request.head == head._replace(headers=sent[2:])
    assert request.scope == {"client": ("10.0.0.1", 1), "headers": sent[2:]}


@pytest.mark.parametrize("token", [b"", b"Bearer one"])
async def test_unfinished_messages_of_one_address_or_token_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch, token: bytes
) -> None:
    monkeypatch.setattr(unfinished_messages, "KEPT_BYTES", 4 * MIB)
    unfinished = UnfinishedMessages()
    address = "10.0.0.{}" if token else "10.0.0.1"
    sockets = [held(unfinished, address.format(at), token) for at in range(20)]
    other, at_other = held(unfinished, "10.0.1.1", b"Bearer another")
    readings = []
    for connection, socket in [*sockets, (other, at_other)]:
        readings.append(asyncio.ensure_future(socket.receive()))
        connection.request.add(frame(b"x" * MIB)[:-1])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    kept = [not connection.is_aborted for connection, _ in sockets]
    assert kept == [False] * 17 + [True] * 3
    assert not other.is_aborted
    assert [await each for each in readings[:17]] == [GONE] * 17
    other.request.add(b"x")
    assert await readings[-1] == {"type": "websocket.receive", "bytes": b"x" * MIB}
    for connection, _ in sockets[17:]:
        connection.request.lose()
    await asyncio.gather(*readings)
    for _, socket in sockets:
        socket.end()
    at_other.end()
    assert len(unfinished) == 0


TEXT = 1
PINGS = frame(b"", PING) * 40_000
PIECES = frame(b"x", is_last=False) + frame(b"", PIECE, is_last=False) * 40_000
ONE_BYTE_PIECES = frame(b"x", is_last=False) + frame(b"x", PIECE, is_last=False) * 40_000


@pytest.mark.parametrize(
    ("sent", "code", "why"),
    [
        (PINGS, 1008, "too many frames that carry nothing"),
        (PIECES, 1008, "too many frames that carry nothing"),
        (ONE_BYTE_PIECES, 1008, "a message in more than 1024 pieces"),
        (frame(b"\xff", TEXT), 1007, "a text is UTF-8"),
    ],
)
async def test_a_client_that_sends_what_it_may_not_is_told_why(
    sent: bytes, code: int, why: str
) -> None:
    connection, socket = held(UnfinishedMessages(), "10.0.0.1")
    connection.request.add(sent)
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert await socket.receive() == GONE
        assert await socket.receive() == GONE, "it is read no more"
    assert connection.written.endswith(close_frame(code, why))
    socket.end()


async def test_everybody_else_has_turns_while_one_read_of_many_messages_is_parsed() -> None:
    connection, socket = held(UnfinishedMessages(), "10.0.0.1")
    count, turns = 10_000, 0
    connection.request.add(frame(b"") * count)

    def turn() -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(turn)

    loop = asyncio.get_running_loop()
    loop.call_soon(turn)
    for _ in range(count):
        assert await socket.receive() == {"type": "websocket.receive", "bytes": b""}
    assert turns >= count // FRAMES_A_PASS
    connection.request.lose()
    assert await socket.receive() == GONE
    socket.end()


LARGE = b"x" * 300
SAID = b"".join(
    [
        frame(b"one", TEXT),
        frame(b"h\xc3", TEXT, is_last=False),
        frame(b"", PING),
        frame(b"\xa4lf", PIECE, is_last=False),
        frame(b"", PIECE),
        frame(LARGE),
        frame(b"end", TEXT),
    ]
)
MESSAGES = ["one", "hälf", LARGE, "end"]


def content(message: Message) -> str | bytes:
    text: str | None = message.get("text")
    return message["bytes"] if text is None else text


@pytest.mark.parametrize("has_answer", [True, False])
async def test_wherever_a_socket_is_passed_on_each_message_comes_once(has_answer: bool) -> None:
    """At every byte; the message that was received last is answered by the entity, or not."""
    for at in range(len(SAID) + 1):
        connection, socket = held(UnfinishedMessages(), "10.0.0.1")
        connection.request.add(SAID[:at])
        came = []
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(0):
                    came.append(content(await socket.receive()))
        unanswered = None if has_answer or not came else came.pop()
        connection.request.add(SAID[at:][:5])  # after the last reading
        unread = socket.unread(unanswered)
        socket.end()
        follower, next_socket = held(UnfinishedMessages(), "10.0.0.1")
        follower.request.add(unread + SAID[at:][5:])
        while len(came) < len(MESSAGES):
            came.append(content(await next_socket.receive()))
        assert came == MESSAGES
        next_socket.end()


async def test_a_frame_over_the_limit_is_refused_before_it_has_come() -> None:
    connection, socket = held(UnfinishedMessages(), "10.0.0.1")
    head = bytes([0x82, 0x80 | 127]) + (MESSAGE_BYTES + 100_000).to_bytes(8, "big") + bytes(4)
    connection.request.add(head + b"some of it")
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert await socket.receive() == GONE
    why = f"a message of more than {MESSAGE_BYTES} bytes"
    assert connection.written.endswith(close_frame(1009, why))
    socket.end()


async def test_a_control_frame_over_the_limit_is_refused_before_it_has_come() -> None:
    connection, socket = held(UnfinishedMessages(), "10.0.0.1")
    connection.request.add(bytes([0x89, 0x80 | 127]) + (1 << 40).to_bytes(8, "big") + bytes(4))
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert await socket.receive() == GONE
    assert connection.written.endswith(close_frame(1002, "a control frame of more than 125 bytes"))
    socket.end()
