"""Handshakes of WebSockets that stop half way, that offer compression, or are answered oddly."""

import asyncio
import gc

import pytest

from tenure.gateway.held_socket import GONE
from tenure.transport.unfinished_messages import UnfinishedMessages
from tenure.transport.websocket_frames import close_frame
from tests.patience import DEADLINE_SECONDS
from tests.unit.gateway.front import OK, Behind, front
from tests.unit.gateway.test_held_socket import held

pytestmark = pytest.mark.asyncio
KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
HANDSHAKE = (
    b"GET /room HTTP/1.1\r\nHost: shop\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\n" + KEY
)
DEFLATE = b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"


class Says(Behind):
    """Answers a handshake with this, and notes whether the gateway has closed the connection."""

    def __init__(self, said: bytes) -> None:
        super().__init__()
        self._said = said
        self.is_left = asyncio.Event()
        self.got = b""

    async def answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(self._said)
        self.got = await reader.read()
        self.is_left.set()
        writer.close()


async def left(behind: Says) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        await behind.is_left.wait()


async def test_a_client_that_goes_takes_the_connection_along() -> None:
    behind = Says(SWITCHED + b"\r\n")
    async with front(behind) as it:
        client = await it.client()
        client.say(HANDSHAKE + b"\r\n")
        await client.head()
        client.writer.close()
        await left(behind)


async def test_an_answer_for_a_client_that_has_gone_meanwhile_ends_the_connection() -> None:
    go_on = asyncio.Event()
    errors: list[dict[str, object]] = []  # of tasks, too, for which nobody waits
    asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))

    class Late(Says):
        async def answer(
            self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            await go_on.wait()
            await super().answer(head, reader, writer)

    behind = Late(SWITCHED + b"\r\n")
    async with front(behind) as it:
        client = await it.client()
        client.say(HANDSHAKE + b"\r\n")
        await behind.came.wait()
        client.writer.close()
        async with asyncio.timeout(DEADLINE_SECONDS):
            while it.gateway.connections:  # noqa: ASYNC110
                await asyncio.sleep(0)
        go_on.set()
        await left(behind)
    gc.collect()  # what ended with an error and nobody has heard of says so
    assert errors == []


async def test_a_client_that_ends_its_side_only_is_let_go() -> None:
    behind = Says(SWITCHED + b"\r\n")
    async with front(behind) as it:
        client = await it.client()
        client.say(HANDSHAKE + b"\r\n")
        await client.head()
        client.say(b"frames")
        client.writer.write_eof()
        assert await client.all() == b""
        await left(behind)
    assert behind.got == b"frames"


async def test_half_a_handshake_reaches_nobody() -> None:
    behind = Behind()
    async with front(behind) as it:
        client = await it.client()
        client.say(HANDSHAKE)
        client.writer.write_eof()
        assert await client.all() == b""
    assert behind.heads == []


async def test_a_server_that_does_not_answer_a_handshake_is_given_up() -> None:
    behind = Says(b"")
    async with front(behind, answer_seconds=0.1, deadline=0.1) as it:
        client = await it.client()
        client.say(HANDSHAKE + b"\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 50")
        await left(behind)


async def test_a_handshake_that_is_refused_leaves_a_whole_answer() -> None:
    class Refuses(Behind):
        async def answer(
            self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            writer.write(OK)

    async with front(Refuses()) as it:
        got = await it.answer(HANDSHAKE + b"\r\n" + b"frames before the answer")
    assert got.startswith(b"HTTP/1.1 200 ")
    assert got.endswith(b"ok")


async def test_compression_is_for_the_application_to_agree_on_where_its_socket_passes() -> None:
    behind = Says(SWITCHED + DEFLATE + b"\r\n")
    async with front(behind) as it:
        client = await it.client()
        client.say(HANDSHAKE + DEFLATE + b"\r\n")
        assert DEFLATE.lower().strip() in (await client.head()).lower()
    assert DEFLATE.lower().strip() in behind.heads[0].lower()


async def test_compression_is_not_agreed_on_where_a_socket_ends_at_the_gateway() -> None:
    connection, socket = held(UnfinishedMessages(), "10.0.0.1")
    connection.request.scope["headers"] += [
        (b"sec-websocket-key", b"a" * 22 + b"=="),
        (b"sec-websocket-extensions", b"permessage-deflate"),
    ]
    await socket.accept()
    assert b"101" in connection.written
    assert b"extensions" not in connection.written
    connection.request.add(b"\xc1\x81" + bytes(4) + b"x")
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert await socket.receive() == GONE
    assert connection.written.endswith(close_frame(1002, "reserved bits must be 0"))
    socket.end()


@pytest.mark.parametrize("code", [0, 999, 1005, 1006, 5000, 1 << 40])
async def test_a_code_that_nobody_may_close_with_is_said_as_1011(code: int) -> None:
    connection, socket = held(UnfinishedMessages(), "10.0.0.1")
    await socket.close(code=code)
    assert connection.written == close_frame(1011, "")
    socket.end()
