"""Channels within one process, for tests: the contract of the real ones, without a socket.

Each side may have an event loop of its own; what is under way is as bounded as over a socket.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from tenure.transport.channels import Channel, ChannelLost, Serve

MESSAGES_UNDER_WAY = 8
"""Sent and not received: a socket's buffers, or so."""
NEIGHBOUR = "this process"
"""The host of every peer."""


class MemoryChannelNetwork:
    """Who listens where, and every channel that is open."""

    def __init__(self) -> None:
        self._listening: dict[str, tuple[Serve, asyncio.AbstractEventLoop]] = {}
        self._open: set[_End] = set()
        self._listened = 0
        self.carried = 0
        """Grows with each message."""
        self.on_message: Callable[[bytes], None] = _pass
        """Called before each message is sent: a test may cut, or raise ChannelLost, there."""

    def channels(self) -> "MemoryChannels":
        """Those of one owner."""
        return MemoryChannels(self)

    def cut(self) -> int:
        """Break every channel that is open; how many those were."""
        ends = list(self._open)
        for end in ends:
            end.lose("the connection broke")
        return len(ends) // 2

    def listen(self, serve: Serve) -> str:
        """Listen in the running event loop; the URL."""
        self._listened += 1
        url = f"http://hand-off-{self._listened}.test"
        self._listening[url] = serve, asyncio.get_running_loop()
        return url

    def fall_silent(self, url: str) -> None:
        """Listen no more."""
        self._listening.pop(url, None)

    def connect(self, url: str) -> "_End":
        """The near end of a channel."""
        found = self._listening.get(url)
        if found is None:
            raise ChannelLost(f"{url}: connection refused: nothing listens there")
        serve, loop = found
        near, far = _End(self, asyncio.get_running_loop(), url), _End(self, loop, NEIGHBOUR)
        near.other, far.other = far, near
        self._open |= {near, far}
        asyncio.run_coroutine_threadsafe(_serve(serve, far), loop)
        return near

    def forget(self, end: "_End") -> None:
        """It is closed."""
        self._open.discard(end)


async def _serve(serve: Serve, end: "_End") -> None:
    try:
        await serve(end)
    finally:
        await end.close()


class _End:
    other: "_End"

    def __init__(
        self, network: MemoryChannelNetwork, loop: asyncio.AbstractEventLoop, peer: str
    ) -> None:
        self.peer = peer
        self._network = network
        self._loop = loop
        self._arrived: deque[bytes] = deque()
        self._moved = asyncio.Event()
        self._why = ""

    async def send(self, data: bytes) -> None:
        while not self._why and len(self.other._arrived) >= MESSAGES_UNDER_WAY:  # noqa: SLF001
            await self._wait()
        self._network.on_message(data)
        if self._why:
            raise ChannelLost(self._why)
        self._network.carried += 1
        self.other._arrived.append(data)  # noqa: SLF001
        self.other.wake()

    async def receive(self) -> bytes:
        while not self._arrived:
            if self._why:
                raise ChannelLost(self._why)
            await self._wait()
        data = self._arrived.popleft()
        self.other.wake()
        return data

    async def close(self) -> None:
        self.lose("closed")

    def lose(self, why: str) -> None:
        self._network.forget(self)
        for end in (self, self.other):
            if not end._why:  # noqa: SLF001
                end._why = why if end is self else "the other side closed the connection"  # noqa: SLF001
            end.wake()

    def wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._moved.set)
        except RuntimeError:  # its loop is closed, and whoever ran in it is gone
            self._network.forget(self)

    async def _wait(self) -> None:
        await self._moved.wait()
        self._moved.clear()


class MemoryChannels:
    """`Channels` within one process. `where` does not matter."""

    def __init__(self, network: MemoryChannelNetwork) -> None:
        self._network = network
        self._url = ""
        self._mine: list[_End] = []

    async def listen(self, where: str, serve: Serve) -> str:
        """See `Channels.listen`."""
        del where

        async def keep(channel: Channel) -> None:
            assert isinstance(channel, _End)
            self._mine.append(channel)
            await serve(channel)

        self._url = self._network.listen(keep)
        return self._url

    async def connect(self, url: str) -> Channel:
        """See `Channels.connect`."""
        end = self._network.connect(url)
        self._mine.append(end)
        return end

    async def close(self) -> None:
        """See `Channels.close`."""
        self._network.fall_silent(self._url)
        for end in self._mine:
            await end.close()


def _pass(data: bytes) -> None:
    """Let every message pass."""
