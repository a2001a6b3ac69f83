"""A port for channels, and peers that mean harm: what each may cost the process in which it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeAlias
from urllib.parse import urlsplit

import pytest

from tenure.base.instants import Instant, seconds
from tenure.protocol.lease.limits import CHUNK_BYTES
from tenure.transport import websocket_channels
from tenure.transport.channels import Channel
from tenure.transport.fair_turns import FRAMES_A_TURN
from tenure.transport.socket_channel import WAITING_MESSAGES, SocketChannel
from tenure.transport.unfinished_messages import KEPT_BYTES
from tenure.transport.websocket_channels import PATH, WebSocketChannels
from tests.patience import DEADLINE_SECONDS
from tests.unit.transport.test_frame_socket import ASKED, raw
from tests.unit.transport.test_websocket_frames import sent

pytestmark = pytest.mark.asyncio
Client: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Serving:
    """Receives from each channel when it may, and counts."""

    def __init__(self) -> None:
        self.count = 0
        self.may_read = asyncio.Event()
        self.channels: list[SocketChannel] = []

    async def __call__(self, channel: Channel) -> None:
        assert isinstance(channel, SocketChannel)
        self.channels.append(channel)
        await self.may_read.wait()
        while True:
            await channel.receive()
            self.count += 1


@asynccontextmanager
async def opened(serving: Serving, count: int = 1) -> AsyncIterator[list[Client]]:
    """A port for channels, and peers that it has let in."""
    channels = WebSocketChannels()
    url = await channels.listen("127.0.0.1:0", serving)
    asked = ASKED.replace(b"localhost", urlsplit(url).netloc.encode()).replace(
        b"/ws", PATH.encode()
    )
    try:
        async with asyncio.timeout(DEADLINE_SECONDS), AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(raw(url + PATH)) for _ in range(count)]
            for reader, writer in clients:
                writer.write(asked)
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
            yield clients
    finally:
        await channels.close()


def kept(channels: list[SocketChannel]) -> int:
    """The bytes that are kept of their unfinished messages."""
    there = [each for each in channels if not each.transport.is_closing()]
    return sum(each._frames.unfinished for each in there if each._frames)


async def test_of_messages_that_never_end_one_address_has_only_so_many_kept() -> None:
    serving, many = Serving(), 2 * KEPT_BYTES // CHUNK_BYTES
    async with opened(serving, many) as clients:
        for _, writer in clients:
            writer.write(sent(bytes(CHUNK_BYTES))[:-1])
        ended = asyncio.Event()

        async def until_let_go(reader: asyncio.StreamReader) -> None:
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            ended.set()

        waiting = [asyncio.ensure_future(until_let_go(reader)) for reader, _ in clients]
        await ended.wait()
        while sum(each.done() for each in waiting) < many // 3:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert kept(serving.channels) <= KEPT_BYTES + CHUNK_BYTES
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)


async def test_what_nobody_receives_is_not_read() -> None:
    serving = Serving()
    async with opened(serving) as [(_, writer)]:
        writer.write(sent(b"a") * 10 * WAITING_MESSAGES)
        while not (serving.channels and serving.channels[0]._is_held):  # noqa: ASYNC110
            await asyncio.sleep(0)
        [channel] = serving.channels
        channel.read_on()  # as after a rest
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(channel._waiting) == WAITING_MESSAGES
        channel.is_there(Instant(channel.heard_at + seconds(1000)), seconds(4))
        assert not channel.transport.is_closing(), "it is this side that does not hear"
        serving.may_read.set()
        while serving.count < 10 * WAITING_MESSAGES:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_one_that_sends_much_is_read_a_few_messages_at_a_time() -> None:
    """With everything else in the process in between."""
    serving = Serving()
    serving.may_read.set()
    async with opened(serving) as [(_, writer)]:
        while not serving.channels:  # noqa: ASYNC110
            await asyncio.sleep(0)
        [channel] = serving.channels
        channel.data_received(sent(b"a") * 10 * FRAMES_A_TURN)
        most = before = 0
        while serving.count < 10 * FRAMES_A_TURN:
            await asyncio.sleep(0)
            most, before = max(most, serving.count - before), serving.count
        assert most <= FRAMES_A_TURN
        writer.write(sent(b"the last"))
        while serving.count == 10 * FRAMES_A_TURN:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_who_sends_faster_than_any_of_ours_is_read_more_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket_channels, "MESSAGES_A_SECOND", 0.001)
    monkeypatch.setattr(websocket_channels, "MESSAGES_AT_ONCE", 2)
    serving = Serving()
    serving.may_read.set()
    async with opened(serving) as [(_, writer)]:
        writer.write(sent(b"a") * 6)
        while serving.count < 3:  # noqa: ASYNC110 - it can only be looked at
            await asyncio.sleep(0)
        [channel] = serving.channels
        assert channel.transport is not None
        assert not channel.transport.is_reading(), "the rest comes a quarter of an hour later"
        assert serving.count == 3
