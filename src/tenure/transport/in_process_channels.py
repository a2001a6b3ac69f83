"""Channels within one process, for tests: the contract of the real ones, without a socket.

Each side may have an event loop of its own; the amount under way is as bounded as over a socket.
The network decides how a message, or the news of an end, gets from one side to the other: here it
arrives at once. The simulator has a network of its own, in which that takes time, or fails.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tenure.transport.channels import Channel, ChannelLost, Serve

MESSAGES_UNDER_WAY = 8
"""The most messages that were sent and not yet received, about as many as a socket's buffers hold.
"""
NEIGHBOUR = "this process"
"""The host of every peer."""


class MemoryChannelNetwork:
    """The listeners by address, and every open channel."""

    def __init__(self) -> None:
        self._listening: dict[str, _ListeningAt] = {}
        self._open: dict[ChannelEnd, None] = {}
        self._listened = 0
        self.carried = 0
        """How many messages were carried."""
        self.on_message: Callable[[bytes], None] = _pass
        """Called before each message is sent. A test may cut channels here, or raise ChannelLost.
        """

    def channels(self, place: object = None) -> "MemoryChannels":
        """The channels of one process, which its place identifies."""
        return MemoryChannels(self, place)

    def cut(self) -> int:
        """Break every open channel, and return how many there were."""
        ends = list(self._open)
        for end in ends:
            end.lose("the connection broke")
        return len(ends) // 2

    def break_off(self, place: object) -> None:
        """The process is gone: break all its channels, and stop listening where it listens."""
        for end in [end for end in self._open if end.place is place]:
            end.lose("the connection broke")
        for url in [url for url, each in self._listening.items() if each.place is place]:
            self.fall_silent(url)

    def listen(self, serve: Serve, place: object = None, url: str = "") -> str:
        """Listen in the running event loop, at the given URL or a new one, and return the URL."""
        self._listened += 1
        url = url or f"http://hand-off-{self._listened}.test"
        self._listening[url] = _ListeningAt(serve, asyncio.get_running_loop(), place)
        return url

    def fall_silent(self, url: str) -> None:
        """Stop listening."""
        self._listening.pop(url, None)

    async def connect(self, url: str, place: object = None) -> "ChannelEnd":
        """Open a channel and return its near end."""
        found = self._listening.get(url)
        if found is None:
            raise ChannelLost(f"{url}: connection refused: nothing listens there")
        near = ChannelEnd(self, asyncio.get_running_loop(), url, place)
        far = ChannelEnd(self, found.loop, NEIGHBOUR, found.place)
        near.other, far.other = far, near
        self._open |= {near: None, far: None}
        asyncio.run_coroutine_threadsafe(_serve(found.serve, far), found.loop)
        return near

    def carry(self, to: "ChannelEnd", data: bytes) -> None:
        """A message was sent to this end."""
        self.carried += 1
        to.arrive(data)

    def carry_end(self, to: "ChannelEnd") -> None:
        """The other side of this end has ended."""
        to.hear_of_end()

    def forget(self, end: "ChannelEnd") -> None:
        """The end is closed."""
        self._open.pop(end, None)


class _ListeningAt(NamedTuple):
    serve: Serve
    loop: asyncio.AbstractEventLoop
    place: object


async def _serve(serve: Serve, end: "ChannelEnd") -> None:
    try:
        await serve(end)
    finally:
        await end.close()


class ChannelEnd:
    """One end of a channel; see `Channel`."""

    other: "ChannelEnd"

    def __init__(
        self,
        network: MemoryChannelNetwork,
        loop: asyncio.AbstractEventLoop,
        peer: str,
        place: object,
    ) -> None:
        self.peer = peer
        self.place = place
        """The process that has this end."""
        self._network = network
        self._loop = loop
        self._arrived: deque[bytes] = deque()
        self._moved = asyncio.Event()
        self._why = ""

    async def send(self, *messages: bytes) -> None:
        while not self._why and len(self.other._arrived) >= MESSAGES_UNDER_WAY:  # noqa: SLF001
            await self._wait()
        for each in messages:
            self._network.on_message(each)
            if self._why:
                raise ChannelLost(self._why)
            self._network.carry(self.other, each)

    def arrive(self, data: bytes) -> None:
        """A message has arrived."""
        self._arrived.append(data)
        self.wake()

    async def receive(self) -> bytes:
        while not self._arrived:
            if self._why:
                raise ChannelLost(self._why)
            await self._wait()
        data = self._arrived.popleft()
        if len(self._arrived) >= MESSAGES_UNDER_WAY - 1:
            self.other.wake()  # the other end may be waiting to send
        return data

    async def close(self) -> None:
        self.lose("closed")

    def lose(self, why: str) -> None:
        """End the channel from this side."""
        if not self._end(why):
            return
        self._network.carry_end(self.other)

    def hear_of_end(self) -> None:
        """The other side ended the channel; earlier messages are still received."""
        self._end("the other side closed the connection")

    def _end(self, why: str) -> bool:
        self._network.forget(self)
        is_new, self._why = not self._why, self._why or why
        self.wake()
        return is_new

    def wake(self) -> None:
        """Let a waiting task look again."""
        try:
            self._loop.call_soon_threadsafe(self._moved.set)
        except RuntimeError:  # its loop is closed, and its tasks are gone
            self._network.forget(self)

    async def _wait(self) -> None:
        await self._moved.wait()
        self._moved.clear()


class MemoryChannels:
    """`Channels` within one process. `where` does not matter."""

    def __init__(self, network: MemoryChannelNetwork, place: object = None) -> None:
        self._network = network
        self._place = place
        self._url = ""
        self._mine: list[ChannelEnd] = []
        self._is_closed = False

    async def listen(self, where: str, serve: Serve, address: str | None = None) -> str:

        async def keep(channel: Channel) -> None:
            assert isinstance(channel, ChannelEnd)
            self._mine.append(channel)
            await serve(channel)

        self._url = self._network.listen(keep, self._place)
        return self._url

    async def connect(self, url: str) -> Channel:
        if self._is_closed:
            raise ChannelLost(f"{url}: these channels were closed")
        end = await self._network.connect(url, self._place)
        self._mine.append(end)
        return end

    async def close(self) -> None:
        self._is_closed = True
        self._network.fall_silent(self._url)
        for end in self._mine:
            await end.close()


def _pass(data: bytes) -> None:
    """Let every message pass."""
