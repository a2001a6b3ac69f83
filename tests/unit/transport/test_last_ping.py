"""A ping that arrives with the end of its connection can no longer be answered."""

import asyncio
import base64
import hashlib
import re

import pytest

from tenure.transport.channels import ChannelLost
from tenure.transport.socket_channel import SocketChannel
from tenure.transport.websocket_channels import WebSocketChannels

ACCEPTING = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What a server adds to a client's key (RFC 6455, 4.2.2)."""
PING = b"\x89\x00"


@pytest.mark.asyncio
async def test_a_ping_at_the_end_of_a_connection_is_its_end() -> None:
    """What is raised here is heard by nobody but the loop."""

    async def ping_and_leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = re.search(rb"(?i)sec-websocket-key: (.*)\r\n", await reader.readuntil(b"\r\n\r\n"))
        assert found
        key = base64.b64encode(hashlib.sha1(found[1] + ACCEPTING).digest())  # noqa: S324  # as said
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + key + b"\r\n\r\n" + PING
        )
        writer.close()

    server = await asyncio.start_server(ping_and_leave, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    channels = WebSocketChannels()
    channel = await channels.connect(f"http://127.0.0.1:{port}")
    assert isinstance(channel, SocketChannel)
    while not channel.transport.is_closing():  # noqa: ASYNC110  # the end of the connection is heard in some turns of the loop
        await asyncio.sleep(0)
    with pytest.raises(ChannelLost):
        await channel.receive()
    await channels.close()
    server.close()
    await server.wait_closed()
