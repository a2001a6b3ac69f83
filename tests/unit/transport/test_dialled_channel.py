"""A channel that this process has opened, to a server that means harm, or dies at a bad time."""

import asyncio
import base64
import hashlib
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from tenure.transport import frame_socket, websocket_channels
from tenure.transport.channels import ChannelLost
from tenure.transport.credentials import Credentials
from tenure.transport.socket_channel import WAITING_MESSAGES, SocketChannel
from tenure.transport.tls import ServerTls
from tenure.transport.websocket_channels import WebSocketChannels
from tenure.transport.websocket_frames import CLOSE, frame
from tests.certificates import Authority
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
ACCEPTING = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What a server adds to a client's key (RFC 6455, 4.2.2)."""
Server: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def asked(reader: asyncio.StreamReader) -> bytes:
    """The agreement to the WebSocket that is asked for."""
    found = re.search(rb"(?i)sec-websocket-key: (.*)\r\n", await reader.readuntil(b"\r\n\r\n"))
    assert found
    key = base64.b64encode(hashlib.sha1(found[1] + ACCEPTING).digest())  # noqa: S324  # as said
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + key + b"\r\n\r\n"
    )


@asynccontextmanager
async def serving(server: Server, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The URL at which `server` answers, until the block ends."""
    ends: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends.append(writer)
        await server(reader, writer)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    scheme = "http" if tls is None else "https"
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        for each in ends:
            each.transport.abort()
        listening.close()
        await listening.wait_closed()


async def opened(channels: WebSocketChannels, url: str) -> SocketChannel:
    channel = await channels.connect(url)
    assert isinstance(channel, SocketChannel)
    return channel


def stop_reading(writer: asyncio.StreamWriter) -> None:
    assert isinstance(writer.transport, asyncio.Transport)
    writer.transport.pause_reading()


@pytest.mark.parametrize("says_so", [True, False])
async def test_a_server_that_leaves_and_reads_nothing_is_let_go(
    monkeypatch: pytest.MonkeyPatch, says_so: bool
) -> None:
    """Whether it sends a close frame, or only the end of its stream."""
    monkeypatch.setattr(frame_socket, "CLOSE_SECONDS", 0.01)

    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await asked(reader))
        stop_reading(writer)
        await may_leave.wait()
        if says_so:
            writer.write(frame(b"", CLOSE))
        else:
            writer.write_eof()

    may_leave, channels = asyncio.Event(), WebSocketChannels()
    async with serving(leave) as url:
        channel = await opened(channels, url)
        unread = asyncio.ensure_future(channel.send(bytes(32 << 20)))
        while not channel.transport.get_write_buffer_size():  # noqa: ASYNC110  # it can only be looked at
            await asyncio.sleep(0)
        may_leave.set()
        while not channel.transport.is_closing():  # noqa: ASYNC110
            await asyncio.sleep(0)
        await channel.close()
        with pytest.raises(ChannelLost):
            await unread
        await channels.close()


async def test_what_nobody_receives_is_not_read_even_if_it_came_with_the_handshake() -> None:
    few, many = WAITING_MESSAGES, 100 * WAITING_MESSAGES

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await asked(reader) + frame(bytes(100)) * few)
        writer.write(frame(bytes(1000)) * many)

    channels = WebSocketChannels()
    async with serving(flood) as url:
        channel = await opened(channels, url)
        while not channel._is_held:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert not channel.transport.is_reading()
        for _ in range(few + many):
            assert await channel.receive()
        await channels.close()


async def read_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Agree to a WebSocket, and be silent."""
    writer.write(await asked(reader))
    stop_reading(writer)


async def test_a_server_with_tls_that_answers_nothing_is_let_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Closing TLS would wait for its answer for half a minute."""
    monkeypatch.setattr(frame_socket, "CLOSE_SECONDS", 0.01)
    authority = Authority(tmp_path)
    channels = WebSocketChannels(Credentials(ca=authority.file))
    async with serving(read_nothing, ServerTls(*authority.sign("server")).context()) as url:
        channel = await opened(channels, url)
        async with asyncio.timeout(20):
            await channel.close()
        await channels.close()


async def test_a_channel_that_is_made_while_all_are_closed_is_closed_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frame_socket, "CLOSE_SECONDS", 0.3)

    async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        agreed = await asked(reader)
        is_asked.set()
        await may_answer.wait()
        writer.write(agreed)

    is_asked, may_answer, channels = asyncio.Event(), asyncio.Event(), WebSocketChannels()
    async with serving(read_nothing) as silent, serving(answer_late) as late:
        await channels.connect(silent)
        connecting = asyncio.ensure_future(channels.connect(late))
        await is_asked.wait()
        closing = asyncio.ensure_future(channels.close())
        await asyncio.sleep(0)  # the silent one keeps it
        may_answer.set()
        with pytest.raises(ChannelLost, match="closed"):
            await connecting
        await closing
        assert not channels._open


async def test_a_channel_that_is_not_yet_asked_for_when_all_are_closed_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def prove(*_: object) -> dict[str, str]:
        await channels.close()
        return {}

    monkeypatch.setattr(websocket_channels, "proof_for", prove)
    channels = WebSocketChannels()
    async with serving(read_nothing) as url:
        with pytest.raises(ChannelLost, match="closed"):
            await channels.connect(url)
