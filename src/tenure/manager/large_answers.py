"""Large answers: how many ranges one token is told of over HTTP, whoever else may ask.

To tell of all ranges of the largest table takes the manager a third of a second, and an owner of
any pool may make its own as large. Whoever asked for it on many connections at once would keep all
others from renewing. So the answers to one token come one after the other, and share an allowance.
A request beyond it waits.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tenure.base.instants import in_seconds
from tenure.manager.http_errors import HttpRefusal
from tenure.protocol.lease.limits import RANGES_PER_TABLE
from tenure.runtime.clock import boot_clock
from tenure.transport.rate_bound import MOST_REMEMBERED, RateBound

RANGES_A_SECOND = RANGES_PER_TABLE // 4
"""They take a tenth of the manager's time. A gateway may ask every second for 500 owners of 64
ranges."""
MOST_WAITING = 64
"""The most requests of one token that wait. A page and a command have a handful."""
Spend = Callable[[int], object]


class _Share:
    """The answers to one token."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.bound = RateBound(RANGES_A_SECOND, RANGES_PER_TABLE)
        self.waiting = 0

    def spend(self, ranges: int) -> None:
        self.bound.rest_ns(boot_clock(), ranges)


class LargeAnswers:
    """The answers to all tokens, or to all addresses where no tokens are asked for."""

    def __init__(self) -> None:
        self._shares: dict[str, _Share] = {}
        """By name; whoever has not asked for longest is the first."""

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[Spend]:
        """Wait until the name may be told more. Call what this yields with how many ranges it was
        told of. Raises HttpRefusal if too many of its requests wait.
        """
        share = self._shares.pop(name) if name in self._shares else _Share()
        self._shares[name] = share
        if len(self._shares) > MOST_REMEMBERED:
            del self._shares[next(iter(self._shares))]
        if share.waiting >= MOST_WAITING:
            raise HttpRefusal(
                429,
                f"{MOST_WAITING} requests of this token wait for tables of pools",
                "ask for one after the other, or for what has changed, with since=LSN",
            )
        share.waiting += 1
        try:
            async with share.turn:
                await asyncio.sleep(in_seconds(share.bound.rest_ns(boot_clock(), 0)))
                yield share.spend
        finally:
            share.waiting -= 1
