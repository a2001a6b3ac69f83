"""A hot room, read at four frontends while it is renamed and while it moves.

    python examples/hot_room.py

Everything is in one process here, by a clock that is turned by hand. In production the owners, and
each frontend, are processes of their own; nothing else is different.
"""

import asyncio
from contextlib import AsyncExitStack

from tenure import Cache, KeyedState, Owner, Volume
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster

ROOM = "room-42"
FRONTENDS = 4
READS = 1000


class Rooms:
    """An owner of rooms; what it owns, caches read."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self.names: KeyedState[str] = KeyedState(value_type=str)
        self.loads = 0
        self.volume: Volume[str] = Volume(self.load, value_type=str, term=0.3)
        self.owner: Owner = cluster.owner(hand_off=self.names, volume=self.volume)

    def load(self, room: str) -> str | None:
        """How a cache's question is answered."""
        self.loads += 1
        return self.names.get(room)

    async def rename(self, room: str, name: str) -> None:
        """Rename a room. From when the body begins, no frontend shows the old name."""
        async with self.volume.write(room):
            self.names[room] = name


async def read(cache: Cache[str]) -> set[str | None]:
    """Return what a frontend shows to a thousand visitors."""
    return {await cache.get(ROOM) for _ in range(READS)}


async def main() -> None:
    """Show it."""
    async with (
        InProcessCluster(["rooms"], clock=TurnedClock()) as cluster,
        AsyncExitStack() as all_,
    ):
        first, second = Rooms(cluster), Rooms(cluster)
        await all_.enter_async_context(first.owner)
        await cluster.turn(1)
        await first.rename(ROOM, "Lobby")
        caches: list[Cache[str]] = []
        for _ in range(FRONTENDS):
            lookup = await all_.enter_async_context(cluster.lookup())
            cache: Cache[str] = Cache(
                lookup, value_type=str, _environment=ClusterEnvironment(cluster)
            )
            caches.append(await all_.enter_async_context(cache))
        shown = [await read(cache) for cache in caches]
        print(f"{FRONTENDS * READS} reads, {first.loads} asked the owner: {shown[0]}")

        await first.rename(ROOM, "Garden")
        print(f"renamed: {set().union(*[await read(cache) for cache in caches])}")

        await all_.enter_async_context(second.owner)
        moving = asyncio.ensure_future(_closed(first.owner))
        while not moving.done():
            await cluster.turn(0.1)
        await cluster.turn(1)
        print(f"moved: {set().union(*[await read(cache) for cache in caches])}")
        await second.rename(ROOM, "Terrace")
        print(f"renamed by the next owner: {await read(caches[0])}")


async def _closed(owner: Owner) -> None:
    await owner.close()


if __name__ == "__main__":
    asyncio.run(main())
