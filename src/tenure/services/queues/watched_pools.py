"""Losses of other pools, for queues that rely on their keys (PRS 3.2).

A process has a `Lookup` for each of these pools, and never calls `find`. A queue keeps, with each
key that it watches, the standing that the key had. So it does not matter which process had the
queue when the loss was signalled: the present one compares.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeAlias

import msgspec

from tenure import KeyRange, KeyStanding, Lookup
from tenure.errors import ServiceRefusal

AT_ONCE = 64
"""How many queues at a time are asked to look for losses."""
AGAIN_SECONDS = 1.0
"""After how long queues are asked again that could not look, for example because too many calls
waited for them.
"""
logger = logging.getLogger("tenure.services")


class WatchedKey(msgspec.Struct, frozen=True, array_like=True):
    """A key of another pool that a client relies on."""

    key: str
    standing: KeyStanding


Watched: TypeAlias = Mapping[str, tuple[WatchedKey, ...]]
"""The watched keys of each pool."""


class WatchedPools:
    """The pools that one process watches. `check` makes a queue look for losses."""

    def __init__(
        self,
        managers: str | None,
        pools: Iterable[str],
        check: Callable[[str], Awaitable[object]],
    ) -> None:
        self._lookups = {each: Lookup(managers, pool=each, on_loss=self._on_loss) for each in pools}
        self._check = check
        self._queues: dict[str, None] = {}
        """The queues that watch keys, and are used here."""
        self._asking: dict[asyncio.Task[None], None] = {}

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Follow the pools. Raises PoolError for one that does not exist."""
        async with AsyncExitStack() as stack:
            for each in self._lookups.values():
                await stack.enter_async_context(each)
            stack.callback(self._end)
            yield

    def _end(self) -> None:
        for each in self._asking:
            each.cancel()

    def add(self, queue: str) -> None:
        """Make this queue look when something is lost."""
        self._queues[queue] = None

    def drop(self, queue: str) -> None:
        """The queue has gone, and no longer looks."""
        self._queues.pop(queue, None)

    async def _on_loss(self, ranges: tuple[KeyRange, ...]) -> None:
        queues, self._queues = list(self._queues), {}  # queues that still exist register again
        failed = await self._asked(queues)
        if failed:
            asking = asyncio.create_task(self._ask_again(failed))
            self._asking[asking] = None
            asking.add_done_callback(self._asking.pop)

    async def _asked(self, queues: list[str]) -> list[str]:
        """Make the queues look; return those that could not."""
        failed = []
        for first in range(0, len(queues), AT_ONCE):
            some = queues[first : first + AT_ONCE]
            found = await asyncio.gather(*map(self._check, some), return_exceptions=True)
            for queue, each in zip(some, found, strict=True):
                if isinstance(each, Exception):
                    logger.info("%.100r looks for losses later: %s", queue, each)
                    failed.append(queue)
        return failed

    async def _ask_again(self, queues: list[str]) -> None:
        """Ask again until each has looked: otherwise nobody would learn of a loss."""
        while queues:
            await asyncio.sleep(AGAIN_SECONDS)
            queues = await self._asked(queues)

    async def watched(self, keys: Mapping[str, list[str]]) -> Watched:
        """The standings of the keys. Raises ServiceRefusal for a pool that is not watched here."""
        found = {}
        for pool, those in keys.items():
            lookup = self._lookups.get(pool)
            if lookup is None:
                known = ", ".join(self._lookups) or "none"
                raise ServiceRefusal(
                    422, "pool", f"losses of the pool {pool!r:.100} are not watched; of {known} are"
                )
            standings = await asyncio.wrap_future(lookup.standings(those))
            pairs = zip(those, standings, strict=True)
            found[pool] = tuple(WatchedKey(key, it) for key, it in pairs if it is not None)
            if len(found[pool]) < len(those):
                raise ServiceRefusal(503, "contact", "the managers are out of reach")
        return found

    async def lost(self, watched: Watched) -> tuple[dict[str, list[str]], Watched]:
        """The keys among these that have lost their state, and the present standings of all."""
        lost: dict[str, list[str]] = {}
        now: dict[str, tuple[WatchedKey, ...]] = {}
        for pool, before in watched.items():
            now[pool] = before
            lookup = self._lookups.get(pool)
            if lookup is None:  # the process was started without this pool
                continue
            standings = await asyncio.wrap_future(lookup.standings([it.key for it in before]))
            gone = {
                was.key: it
                for was, it in zip(before, standings, strict=True)
                if it is not None and it.has_lost(was.standing)
            }
            if gone:
                lost[pool] = list(gone)
                now[pool] = tuple(
                    WatchedKey(was.key, gone.get(was.key, was.standing)) for was in before
                )
        return lost, now
