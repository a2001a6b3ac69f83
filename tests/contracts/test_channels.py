"""The contract of `transport.channels`, kept by sockets and by the channels in memory that tests
use.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tenure.protocol.lease.limits import CHUNK_BYTES
from tenure.testing.clock import come_to_rest
from tenure.transport import connection_limits, websocket_channels
from tenure.transport.channels import Channel, ChannelLost, Channels, Serve
from tenure.transport.in_process_channels import MemoryChannelNetwork
from tenure.transport.socket_channel import SocketChannel
from tenure.transport.websocket_channels import PATH, WebSocketChannels
from tenure.wire.limits import HAND_OFF_BYTES
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.manager.serving import go_before_the_answer

pytestmark = pytest.mark.asyncio
Test = Callable[[Channel], Awaitable[None]]
MORE_THAN_BUFFERS = 64


@pytest.fixture(params=["memory", "websocket"])
def make(request: pytest.FixtureRequest) -> Callable[[], Channels]:
    if request.param == "memory":
        return MemoryChannelNetwork().channels
    return WebSocketChannels


async def between(make: Callable[[], Channels], serve: Serve, test: Test) -> None:
    """Run `test` with a channel to whom `serve` serves."""
    here, there = make(), make()
    url = await there.listen("127.0.0.1:0", serve)
    try:
        await test(await here.connect(url))
    finally:
        await here.close()
        await there.close()


async def echo(channel: Channel) -> None:
    while True:
        await channel.send(await channel.receive())


async def test_messages_arrive_whole_and_in_order(make: Callable[[], Channels]) -> None:
    async def test(channel: Channel) -> None:
        for message in (b"", b"a", bytes(CHUNK_BYTES), b"z"):
            await channel.send(message)
            assert await channel.receive() == message

    await between(make, echo, test)


async def test_who_sends_waits_while_nobody_reads(make: Callable[[], Channels]) -> None:
    may_read = asyncio.Event()

    async def serve(channel: Channel) -> None:
        await may_read.wait()
        for _ in range(MORE_THAN_BUFFERS):
            await channel.receive()
        await channel.send(b"all")

    async def test(channel: Channel) -> None:
        sent = 0

        async def send() -> None:
            nonlocal sent
            for _ in range(MORE_THAN_BUFFERS):
                await channel.send(bytes(CHUNK_BYTES))
                sent += 1

        sending = asyncio.create_task(send())
        done, _ = await asyncio.wait([sending], timeout=0.2)
        assert not done
        assert sent < MORE_THAN_BUFFERS / 2
        may_read.set()
        await sending
        assert await channel.receive() == b"all"

    await between(make, serve, test)


async def test_when_serving_ends_the_other_side_is_told(make: Callable[[], Channels]) -> None:
    async def serve(channel: Channel) -> None:
        await channel.send(b"last")

    async def test(channel: Channel) -> None:
        assert await channel.receive() == b"last"
        with pytest.raises(ChannelLost):
            await channel.receive()

    await between(make, serve, test)


async def test_when_one_side_closes_the_other_is_told(make: Callable[[], Channels]) -> None:
    told = asyncio.Event()

    async def serve(channel: Channel) -> None:
        try:
            await channel.receive()
        except ChannelLost:
            told.set()

    async def test(channel: Channel) -> None:
        await channel.close()
        await channel.close()
        await told.wait()

    await between(make, serve, test)


async def test_where_nobody_listens_there_is_no_channel(make: Callable[[], Channels]) -> None:
    channels = make()
    with pytest.raises(ChannelLost):
        await channels.connect("http://127.0.0.1:1")
    await channels.close()


async def test_who_has_closed_connects_no_more(make: Callable[[], Channels]) -> None:
    """Otherwise nobody would close that connection."""

    async def serve(channel: Channel) -> None:
        raise AssertionError("somebody has connected")

    here, there = make(), make()
    url = await there.listen("127.0.0.1:0", serve)
    await here.close()
    with pytest.raises(ChannelLost, match="these channels were closed"):
        await here.connect(url)
    await there.close()


async def test_a_close_that_is_cancelled_closes_all_the_same(make: Callable[[], Channels]) -> None:
    """Wherever it waits: it ends its connections by itself, before anything collects them."""
    ended = asyncio.Queue[None]()

    async def serve(channel: Channel) -> None:
        try:
            await channel.receive()
        finally:
            ended.put_nowait(None)

    there = make()
    url = await there.listen("127.0.0.1:0", serve)
    for steps in range(1, 12):
        here = make()
        channels = [await here.connect(url) for _ in range(3)]
        closing = asyncio.ensure_future(here.close())
        for _ in range(steps):
            await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        for _ in channels:
            await ended.get()
    await there.close()


async def test_a_message_that_is_too_large_ends_the_channel() -> None:
    async def test(channel: Channel) -> None:
        with pytest.raises(ChannelLost):
            await refused(channel)

    async def refused(channel: Channel) -> None:
        await channel.send(bytes(HAND_OFF_BYTES + 1))  # which may notice already
        await channel.receive()

    await between(WebSocketChannels, echo, test)


async def test_what_nobody_reads_is_not_kept_when_the_channel_is_closed() -> None:
    never = asyncio.Event()

    async def serve(channel: Channel) -> None:
        await never.wait()

    async def send(channel: Channel) -> None:
        for _ in range(MORE_THAN_BUFFERS):
            await channel.send(bytes(CHUNK_BYTES))

    async def test(channel: Channel) -> None:
        assert isinstance(channel, SocketChannel)
        transport = channel.transport
        sending = asyncio.create_task(send(channel))
        await until(transport.get_write_buffer_size)
        assert not sending.done()
        sending.cancel()
        await channel.close()
        await come_to_rest()
        assert transport.get_write_buffer_size() == 0
        assert transport.get_extra_info("socket").fileno() == -1, "it is still connected"

    await between(WebSocketChannels, serve, test)


async def test_whoever_connects_and_opens_no_channel_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket_channels, "SILENCE_SECONDS", 0.05)
    here, there = WebSocketChannels(), WebSocketChannels()
    url = await there.listen("127.0.0.1:0", echo)
    speaking = await here.connect(url)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await reader.read() == b""
        await speaking.send(b"still there")
        assert await speaking.receive() == b"still there"
    finally:
        writer.close()
        await here.close()
        await there.close()


async def test_whoever_opens_many_connections_and_no_channel_keeps_nobody_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor takes the files that this process may open."""
    monkeypatch.setattr(connection_limits, "silent_of_a_peer", lambda: 2)
    here, there = WebSocketChannels(), WebSocketChannels()
    url = await there.listen("127.0.0.1:0", echo)
    port = int(url.rpartition(":")[2])
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await silent[0][0].read() == b""
            channel = await here.connect(url)
            await channel.send(b"heard")
            assert await channel.receive() == b"heard"
    finally:
        for _, writer in silent:
            writer.close()
        await here.close()
        await there.close()


async def test_each_side_knows_where_the_other_is() -> None:
    peers: list[str] = []

    async def serve(channel: Channel) -> None:
        peers.append(channel.peer)

    async def test(channel: Channel) -> None:
        with pytest.raises(ChannelLost):
            await channel.receive()
        assert channel.peer.startswith("http://127.0.0.1:")

    await between(WebSocketChannels, serve, test)
    assert peers == ["127.0.0.1"]


async def test_whoever_goes_before_it_is_answered_leaves_no_error_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    there = WebSocketChannels()
    url = await there.listen("127.0.0.1:0", echo)
    try:
        await go_before_the_answer(url, PATH)
    finally:
        await there.close()
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == []
