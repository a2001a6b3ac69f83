"""Owners are killed (kill -9) again and again, and the time is measured for which keys are dark.

A key of a dead owner is served again when a client's request for it is answered. So requests like
those of the frontends are sent for all of these keys at the moment of the kill, and the last
answer ends the measurement.
"""

import asyncio

from tenure.base.instants import Instant, in_seconds
from tenure.cli.demo.operations import Operations, PresenceRequest, operations
from tenure.cli.demo.scenario import Scenario
from tenure.runtime.clock import boot_clock

HOLDS_FOR_A_CRASH = 2
"""The least time, in holds, before the end at which a crash is begun: it must be over by then."""


class Crashes(Scenario):
    """Kills one owner after another, and measures until all keys of each are served again."""

    measures = "dark"

    async def play(self, end: Instant) -> None:
        hold_ns = self._service.settings.timing.hold_ns
        latest = end - HOLDS_FOR_A_CRASH * hold_ns
        assert self._service.lookup is not None
        async with operations(self._service.lookup, hold_ns) as does:
            while boot_clock() <= latest:
                await self._kill_one(does)

    async def _kill_one(self, does: Operations) -> None:
        service, lookup = self._service, self._service.lookup
        assert lookup is not None
        place = self._random.choice(service.owners)
        keys = [user for user in service.settings.users if lookup.find(user) == place.address]
        began = boot_clock()
        service.kill(place)
        self.counts["owner_kills"] += 1
        self._tell(f"killed owner {place.number} (kill -9), which had {len(keys)} of the keys")
        await asyncio.gather(*(_served(does, user) for user in keys))
        took = in_seconds(boot_clock() - began)
        self.times.append(took)
        self._tell(f"all of them are served again, {took:.2f} s after the kill")
        await service.restart(place)
        self._tell(f"owner {place.number} is back, and serves")


async def _served(does: Operations, user: str) -> None:
    while await does.do(PresenceRequest(user)) is None:
        pass
