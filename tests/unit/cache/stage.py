# ruff: noqa: ANN401  # values are whatever a test makes them
"""A server and its caches in one process, by a clock that is turned: no socket, and no waiting."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from tenure.cache.cache import Cache
from tenure.cache.cache_server import CacheServer
from tenure.cache.volume import Volume
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster
from tenure.transport.in_process import MemoryNetwork

T = TypeVar("T")
URL = "http://127.0.0.1:7500"


class Stage:
    """The world of one test."""

    def __init__(self, cluster: InProcessCluster, clock: TurnedClock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.rows: dict[Any, Any] = {"a": "old", "b": "old b"}
        self.loads: list[Any] = []
        self.fences: list[int] = []
        self._within = AsyncExitStack()

    @property
    def network(self) -> MemoryNetwork:
        return self.cluster.network

    def environment(self) -> ClusterEnvironment:
        return ClusterEnvironment(self.cluster)

    def load(self, key: Any) -> Any:
        self.loads.append(key)
        return self.rows.get(key)

    def store(self, key: Any, value: Any, fence: int) -> None:
        self.fences.append(fence)
        self.rows[key] = value

    def volume(self, **options: Any) -> Volume[Any]:
        options = {"load": self.load, "store": self.store, "value_type": str, **options}
        return Volume(**options)

    def server(self, volume: Volume[Any], **options: Any) -> CacheServer:
        return CacheServer(volume, _environment=self.environment(), **options)

    def cache(self, **options: Any) -> Cache[Any]:
        options = {"value_type": str, **options}
        return Cache(URL, _environment=self.environment(), **options)

    async def serve(self, volume: Volume[Any] | None = None, **options: Any) -> Volume[Any]:
        """A server until the end of the test, past its quiet."""
        volume = volume or self.volume()
        await self._within.enter_async_context(self.server(volume, **options))
        await self.turn(3.5)
        return volume

    async def enter(self, **options: Any) -> Cache[Any]:
        """A cache until the end of the test."""
        return await self._within.enter_async_context(self.cache(**options))

    def cut_all(self) -> None:
        """Break every connection to the server; clients with something to say connect again."""
        listening = self.network._listening[URL]
        self.network.fall_silent(URL)
        self.network._listening[URL] = listening

    async def turn(self, seconds: float) -> None:
        await self.cluster.turn(seconds)

    async def after(self, seconds: float, what: Awaitable[T]) -> T:
        """Return the result of something that takes at most this long, by the turned clock."""
        task = asyncio.ensure_future(what)
        await self.turn(seconds)
        assert task.done(), f"not within {seconds} s"
        return await task

    async def end(self) -> None:
        closing = asyncio.ensure_future(self._within.aclose())
        while not closing.done():
            await self.turn(1)
        await closing


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    clock = TurnedClock()
    async with InProcessCluster(clock=clock) as cluster:
        it = Stage(cluster, clock)
        try:
            yield it
        finally:
            await it.end()
