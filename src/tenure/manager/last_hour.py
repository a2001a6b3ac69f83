"""What a leader remembers of the last hour, so that a page shows what was a minute ago.

Every ten seconds it writes down what each pool's owners had to do, how many ranges changed hands,
how many owners died, and how slow its journal was. A new leader begins with nothing: what the one
before it saw is gone with it.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import NamedTuple

import msgspec
from aiohttp import web

from tenure.base.noted import Noted
from tenure.manager.api import HOUR_PATH, Api, ranges_of
from tenure.manager.http_errors import as_json
from tenure.manager.steering_api import with_any_name
from tenure.protocol.lease.answers import Owners, Pools
from tenure.protocol.lease.leader.events import ListOwners, ListPools
from tenure.protocol.lease.leader.noted import LeaderKind

EVERY_SECONDS = 10.0
SAMPLES = 360
MOST_POOLS = 64
"""Pools beyond these are not remembered: an hour of one takes some 40 KB."""
MOST_RANGES = 1 << 15
"""Nor are pools with more ranges: reading their owners holds everything up for 0.1 s or more."""
MOVED = (LeaderKind.HANDED_OVER,)
DIED = (LeaderKind.EXPIRED, LeaderKind.ATTESTED)
PARTS_OF_A_LOAD = 10
"""A load is kept to a tenth."""


class PoolHour(msgspec.Struct, frozen=True, kw_only=True):
    """The last hour of a pool, the oldest first; all lists are equally long."""

    pool: str
    every_seconds: float
    until: float
    """When the last sample was taken, in seconds since 1970, by the manager's clock."""
    owners: tuple[int, ...]
    load: tuple[float, ...]
    """The requests a second for all keys."""
    busiest: tuple[float, ...]
    """Those for the keys of the busiest owner."""
    moved: tuple[int, ...]
    """How many ranges were handed over with their state."""
    died: tuple[int, ...]
    """How many owners died, or were not heard of for too long."""
    journal_ms: tuple[float, ...]
    """The longest that the manager's journal took."""
    at: tuple[float, ...]
    """When each sample was taken. A busy manager is late, and one that was stopped leaves a gap."""


class Moment(NamedTuple):
    """One sample of a pool."""

    owners: int
    load: float
    busiest: float
    moved: int
    died: int
    journal_ms: float
    at: float


class LastHour:
    """The hours of all pools of a leader."""

    def __init__(self, api: Api, wall: Callable[[], float]) -> None:
        self._api = api
        self._engine = api.engine
        self._wall = wall
        self._until = 0.0
        self._moments: dict[str, deque[Moment]] = {}
        self._since: Counter[tuple[str, bool]] = Counter()
        """What happened since the last sample, by pool, and whether it was a death."""
        self._engine.observer.subscribe(self._on_noted)

    def add_routes(self, app: web.Application) -> None:
        """Put the answer under its path."""
        app.router.add_get(with_any_name(HOUR_PATH), self.show)
        app.cleanup_ctx.append(self._sampling)

    async def show(self, request: web.Request) -> web.Response:
        """The last hour of a pool."""
        pool = request.match_info["pool"]
        async with self._api.turn(request) as spend:
            # Refused where there is no such pool.
            spend(ranges_of(await self._api.ask(ListOwners(pool), Owners)))
        columns = tuple(zip(*self._moments.get(pool, ()), strict=True))
        return as_json(
            PoolHour(
                pool=pool,
                every_seconds=EVERY_SECONDS,
                until=self._until,
                **dict(zip(Moment._fields, columns or ((),) * len(Moment._fields), strict=True)),
            )
        )

    # --- samples ---

    def _on_noted(self, noted: Noted) -> None:
        if noted.kind in MOVED or noted.kind in DIED:
            self._since[noted.pool, noted.kind in DIED] += 1

    async def _sampling(self, app: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(self._sample_often())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def _sample_often(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            await self.sample()

    async def sample(self) -> None:
        """Write down how all pools are now."""
        view = self._engine.view
        since, self._since = self._since, Counter()
        slowest = self._engine.metrics.journal.take_slowest()
        if not view.leads:
            self._moments.clear()
            return
        with suppress(TimeoutError):  # it is deposed, or its journal hangs
            watched = await self._watched()
            for gone in self._moments.keys() - set(watched):
                del self._moments[gone]
            for pool in watched:
                await asyncio.sleep(0)  # others have their turns in between
                found = await self._engine.ask(ListOwners(pool))
                if isinstance(found, Owners):
                    moments = self._moments.setdefault(pool, deque(maxlen=SAMPLES))
                    moments.append(_moment(found, since, slowest, self._wall()))
        self._until = round(self._wall(), 3)

    async def _watched(self) -> list[str]:
        listed = await self._engine.ask(ListPools())
        pools = listed.pools if isinstance(listed, Pools) else ()
        return [each.name for each in pools if each.ranges <= MOST_RANGES][:MOST_POOLS]


def _moment(found: Owners, since: Counter[tuple[str, bool]], slowest: float, at: float) -> Moment:
    loads = [owner.load for owner in found.owners]
    return Moment(
        owners=len(found.owners),
        load=_rounded(sum(loads)),
        busiest=_rounded(max(loads, default=0.0)),
        moved=since[found.pool, False],
        died=since[found.pool, True],
        journal_ms=_rounded(1000 * slowest),
        at=round(at, 3),
    )


def _rounded(value: float) -> float:
    return round(value * PARTS_OF_A_LOAD) / PARTS_OF_A_LOAD
