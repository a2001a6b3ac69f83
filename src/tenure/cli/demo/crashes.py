"""Owners killed (kill -9) again and again, and for how long their keys are dark.

A key of the dead is served again when a client's request for it is answered. So requests for all
of them are sent at the moment of the kill, by a router as the frontends have it, and the last
answer is the end.
"""

import asyncio
from collections.abc import Callable
from random import Random

import aiohttp

from tenure.base.instants import Instant, in_seconds
from tenure.cli.demo.routing import Request, Router
from tenure.cli.demo.service import Service
from tenure.runtime.clock import boot_clock

HOLDS_FOR_A_CRASH = 2
"""A crash that would not be over before the end is not begun."""


class Crashes:
    """Makes them, and tells of them."""

    def __init__(self, service: Service, tell: Callable[[str], None], random: Random) -> None:
        self.dark: list[float] = []
        """The seconds from each kill until every key of the dead owner was served again."""
        self.kills = 0
        self._service = service
        self._tell = tell
        self._random = random

    async def until(self, end: Instant) -> None:
        """Kill one after another until it is nearly `end`."""
        hold_ns = self._service.settings.timing.hold_ns
        latest = end - HOLDS_FOR_A_CRASH * hold_ns
        assert self._service.lookup is not None
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            router = Router(session, self._service.lookup, hold_ns, self._random)
            try:
                while boot_clock() <= latest:
                    await self._kill_one(router)
            finally:
                await router.close()

    async def _kill_one(self, router: Router) -> None:
        service, lookup = self._service, self._service.lookup
        assert lookup is not None
        place = self._random.choice(service.owners)
        keys = [user for user in service.settings.users if lookup.find(user) == place.address]
        began = boot_clock()
        service.kill(place)
        self.kills += 1
        self._tell(f"killed owner {place.number} (kill -9), which had {len(keys)} of the keys")
        await asyncio.gather(*(_served(router, user) for user in keys))
        took = in_seconds(boot_clock() - began)
        self.dark.append(took)
        self._tell(f"all of them are served again, {took:.2f} s after the kill")
        await service.restart(place)
        self._tell(f"owner {place.number} is back, and serves")


async def _served(router: Router, user: str) -> None:
    while await router.do(Request(user)) is None:
        pass
