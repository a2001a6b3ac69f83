"""The faults of owners: one is killed and started again, another is stopped past its term.

The two take turns, with pauses in which the service is well, until the time is up. A stopped owner
is the harder case: it comes back, and does not know that it was away.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tenure.base.instants import Instant, in_seconds, seconds
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.reports import OwnerReport
from tenure.cli.demo.scenario import Scenario
from tenure.runtime.clock import boot_clock

LONGEST_PAUSE_SECONDS = 3.0
"""The longest pause even with long leases, so that viewers are not bored."""
CALM_SECONDS = 0.5
"""Longer than two reports of a frontend: if none republishes for this long, all have finished."""
HOLDS_FOR_A_FAULT = 2
"""The least time, in holds, before the end at which a fault is begun: it must be over by then."""
TAKEOVER_SECONDS = 5.0
"""How much time of the demo must be left for a failover: one whose end is not seen shows
nothing."""

Turn: TypeAlias = tuple[Callable[[], Awaitable[None]], Instant]
"""A fault, and the time until which it may begin."""


class OwnerFaults(Scenario):
    """Kills and stops owners, in turns."""

    async def play(self, end: Instant) -> None:
        hold = in_seconds(self._service.settings.timing.hold_ns)
        turns, pause = self._turns(end), min(hold, LONGEST_PAUSE_SECONDS)
        await asyncio.sleep(pause)
        while any(boot_clock() <= latest for _, latest in turns):
            for make, latest in turns:
                if boot_clock() <= latest:
                    await make()
                    await asyncio.sleep(pause)

    def _turns(self, end: Instant) -> list[Turn]:
        latest = Instant(end - HOLDS_FOR_A_FAULT * self._service.settings.timing.hold_ns)
        return [(self._kill_one, latest), (self._stop_one, latest)]

    def _to_kill(self) -> OwnerPlace:
        return self._random.choice(self._service.owners)

    def _to_stop(self) -> OwnerPlace:
        return self._random.choice(self._service.owners)

    # --- killing ---

    async def _kill_one(self) -> None:
        place = self._to_kill()
        share, address, republished = self._share(place), place.address, self._republished()
        self._service.kill(place)
        self.counts["owner_kills"] += 1
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
        place = self._to_stop()
        share, address, republished = self._share(place), place.address, self._republished()
        refused, lapsed = place.total(_refused), place.total(_lapsed)
        began = boot_clock()
        self._service.stop(place)
        self.counts["owner_stops"] += 1
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
            f"lease, it refused {place.total(_refused) - refused} late requests"
        )
        await self._told_of_republishing(republished)

    # --- what comes of it ---

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


class BrokenOwner(OwnerFaults):
    """Owner 1 never asks whether it has a lease, and is stopped, so that the record convicts it."""

    def _turns(self, end: Instant) -> list[Turn]:
        return super()._turns(end)[::-1]  # only an owner that was stopped can be found out

    def _to_kill(self) -> OwnerPlace:
        return self._random.choice(self._service.owners[1:])

    def _to_stop(self) -> OwnerPlace:
        return self._service.owners[0]


class LeaderFaults(OwnerFaults):
    """Faults with kills of the manager that leads, now and then, and the time until another leads.
    Owners and frontends are to notice nothing of them. Managers and owners take turns, so that no
    owner is down when a leader dies: a new leader holds what it inherits for a whole hold (P19),
    and with a new leader every few seconds a dead owner's keys would never come free.
    """

    measures = "takeover"

    def _turns(self, end: Instant) -> list[Turn]:
        failover = self._kill_leader, Instant(end - seconds(TAKEOVER_SECONDS))
        return [each for turn in super()._turns(end) for each in (failover, turn)]

    async def _kill_leader(self) -> None:
        managers = self._service.managers
        self._tell(f"killing {managers.leader.name} (kill -9), which leads")
        killed, leader, took = await managers.kill_leader()
        self.times.append(took)
        self.counts["leader_kills"] += 1
        self._tell(f"{leader.name} leads, {took:.2f} s later; leases and requests go on")
        await managers.restart(killed)
        self._tell(f"{killed.name} is back, and stands by")


def _lapsed(report: OwnerReport) -> int:
    return report.lapsed


def _refused(report: OwnerReport) -> int:
    return report.refused + report.voided
