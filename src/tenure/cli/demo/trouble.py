"""The trouble that is made: an owner killed and started again, another stopped past its term.

In turns, with pauses in which the service is well, until the time is up. A stopped owner is the
harder case of the two: it comes back, and does not know that it was away.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeAlias

from tenure.base.instants import Instant, in_seconds, seconds
from tenure.cli.demo.failovers import ENOUGH_SECONDS, Failovers
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.reports import OwnerReport
from tenure.cli.demo.service import Service
from tenure.runtime.clock import boot_clock

LONGEST_PAUSE_SECONDS = 3.0
"""With long leases, not to bore whoever watches."""
CALM_SECONDS = 0.5
"""Longer than two reports of a frontend: when so long nothing was republished, all is."""
HOLDS_FOR_A_TROUBLE = 2
"""A trouble that would not be over before the end is not begun."""

Turn: TypeAlias = tuple[Callable[[], Awaitable[None]], Instant]


class Trouble:
    """Makes it, and tells of it."""

    def __init__(
        self,
        service: Service,
        failovers: Failovers,
        tell: Callable[[str], None],
        random: Random,
    ) -> None:
        self.kills = 0
        self.stops = 0
        self.lapsed = 0
        """Ranges whose lease ran out because their owner was stopped."""
        self._service = service
        self._failovers = failovers
        self._tell = tell
        self._random = random
        self._hold = in_seconds(service.settings.timing.hold_ns)
        self._pause = min(self._hold, LONGEST_PAUSE_SECONDS)

    async def until(self, end: Instant) -> None:
        """Make trouble until it is nearly `end`."""
        turns = self._turns(end)
        await asyncio.sleep(self._pause)
        while any(boot_clock() <= latest for _, latest in turns):
            for make, latest in turns:
                if boot_clock() <= latest:
                    await make()
                    await asyncio.sleep(self._pause)

    def _turns(self, end: Instant) -> list[Turn]:
        """What is made, in which order, and until when it may be begun."""
        latest = Instant(end - HOLDS_FOR_A_TROUBLE * self._service.settings.timing.hold_ns)
        turns: list[Turn] = [(self._kill_one, latest), (self._stop_one, latest)]
        if self._service.settings.break_owner:
            turns.reverse()  # only an owner that was stopped has a chance to be found out
        if not self._service.settings.kill_leader:
            return turns
        failover = self._failovers.kill_leader, Instant(end - seconds(ENOUGH_SECONDS))
        return [each for turn in turns for each in (failover, turn)]

    # --- killing ---

    async def _kill_one(self) -> None:
        place = self._random.choice(self._service.owners[self._service.settings.break_owner :])
        share, address, republished = self._share(place), place.address, self._republished()
        self._service.kill(place)
        self.kills += 1
        self._tell(
            f"killed owner {place.number} (kill -9): its {share:.0%} of the keys wait until "
            "another owner has seen that it is gone"
        )
        await self._taken_over(place, address, "killed")
        await self._told_of_republishing(republished)
        republished = self._republished()
        await self._service.restart(place)
        self._tell(
            f"restarted owner {place.number}: it takes over keys from the others, with their state"
        )
        await self._told_of_republishing(republished)

    # --- stopping ---

    async def _stop_one(self) -> None:
        owners = self._service.owners
        place = owners[0] if self._service.settings.break_owner else self._random.choice(owners)
        share, address, republished = self._share(place), place.address, self._republished()
        refused, lapsed = place.total(_refused), place.total(_lapsed)
        began = boot_clock()
        self._service.stop(place)
        self.stops += 1
        self._tell(
            f"stopped owner {place.number} (SIGSTOP): its {share:.0%} of the keys wait until its "
            "lease ends"
        )
        await self._taken_over(place, address, "stopped")
        await self._told_of_republishing(republished)
        republished = self._republished()
        self._service.wake(place)
        woke = boot_clock()
        await place.next_report(Instant(woke + seconds(CALM_SECONDS)))
        self.lapsed += place.total(_lapsed) - lapsed
        self._tell(
            f"woke owner {place.number} after {in_seconds(woke - began):.1f} s: without a "
            f"lease, it answered 421 to {place.total(_refused) - refused} late requests"
        )
        await self._told_of_republishing(republished)

    # --- what comes of it ---

    def _share(self, place: OwnerPlace) -> float:
        return self._service.shares().get(place.address, 0.0)

    def _republished(self) -> int:
        return self._service.frontends.totals.keys_republished

    async def _taken_over(self, place: OwnerPlace, address: str | None, what: str) -> None:
        await self._service.taken_over(address)
        took = in_seconds(boot_clock() - place.since)
        self._tell(f"its keys are free, {took:.2f} s after it was {what}: others serve them")

    async def _told_of_republishing(self, before: int) -> None:
        last, now = -1, self._republished()
        while last != now:
            await asyncio.sleep(CALM_SECONDS)
            last, now = now, self._republished()
        if now > before:
            self._tell(
                f"the frontends were told what was lost, and republished {now - before} keys"
            )


def _lapsed(report: OwnerReport) -> int:
    return report.lapsed


def _refused(report: OwnerReport) -> int:
    return report.refused + report.voided
