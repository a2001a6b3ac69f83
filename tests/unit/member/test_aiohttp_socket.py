"""A WebSocket that aiohttp serves for a member refuses floods of frames that carry nothing."""

import asyncio

import pytest
from aiohttp import web

from tenure.member.aiohttp.socket import AiohttpSocket
from tenure.member.asgi import Message
from tenure.transport.message_watch import IDLE_AT_ONCE
from tenure.transport.websocket_frames import PIECE, PING
from tests.patience import DEADLINE_SECONDS
from tests.unit.transport.test_message_watch import frame

pytestmark = pytest.mark.asyncio
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)
POLICY = (1008).to_bytes(2, "big")


@pytest.mark.parametrize(
    "flood",
    [
        frame(b"", PING) * (2 * IDLE_AT_ONCE),
        frame(b"x", is_last=False) + frame(b"", PIECE, is_last=False) * (2 * IDLE_AT_ONCE),
        frame(b"x", is_last=False) + frame(b"x", PIECE, is_last=False) * 2000,
    ],
)
@pytest.mark.parametrize("is_with_handshake", [False, True])
async def test_a_flood_is_refused_with_a_code(flood: bytes, *, is_with_handshake: bool) -> None:
    got: list[Message] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        socket = AiohttpSocket(request)
        await socket.accept()
        while not got or got[-1]["type"] == "websocket.receive":
            got.append(await socket.receive())
        return socket.response

    server = await asyncio.get_running_loop().create_server(web.Server(handle), "127.0.0.1", 0)
    async with server, asyncio.timeout(DEADLINE_SECONDS):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        before = frame(b"before")
        if is_with_handshake:
            writer.write(HANDSHAKE + before + flood)
        else:
            writer.write(HANDSHAKE + before)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(flood)
        said = await reader.read()
        writer.close()
    assert POLICY in said
    assert got[0] == {"type": "websocket.receive", "bytes": b"before"}
    assert [each["type"] for each in got[1:]] == ["websocket.disconnect"]
