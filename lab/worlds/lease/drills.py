"""Drills in a healthy world: how long recovery from one trouble takes when there is no other.

While everything fails at once, a loss may take long to be signalled. Users count on other promises:
if an owner crashes in a healthy pool, every lookup has signalled the loss within its hold and two
seconds. A lookup that was cut off, in a pool where nothing changes, finds every key again once it
is back. And changes are pushed to all lookups at once, before they happen to ask.

In some worlds a journal is lost, and its managers are started as if there had been none before.
They must hear the only owner that still believes, before a new owner is given its ranges.
"""

from lab.worlds.lease.checkers import Checkers
from lab.worlds.lease.processes import OwnerSite
from tenure.base.instants import MILLISECOND_NS, SECOND_NS, in_seconds
from tenure.protocol.lease.owner.events import CloseRequested
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.clocks import MILLION

CHANCE = 0.3
"""The chance of a drill, each time that all is well."""
CRASH_BEYOND_HOLD_NS = 2 * SECOND_NS
RETURN_NS = 5 * SECOND_NS
"""How long a lookup that can reach a manager may take to find again: more than twice the longest
pause of a search.
"""

PUSHED_BEYOND_NS = 100 * MILLISECOND_NS
"""How long a change may take beside the time that changes are gathered: for the journal's answer,
the way, and the clocks.
"""


class Drills:
    """Tries one trouble at a time."""

    def __init__(self, site: OwnerSite, checkers: Checkers, *, first_starts: bool) -> None:
        self.site = site
        self.checkers = checkers
        self.drills = [self._crash, self._cut_off, self._leave]
        if first_starts:
            self.drills.append(self._first_start)
        self.random = site.random

    def perform(self, quiet_ns: int) -> None:
        """Perhaps hold a drill, if nothing has gone wrong for long enough."""
        if self.random.random() >= CHANCE:
            return
        site = self.site
        site.run_until(site.now + quiet_ns)
        if site.not_well() is not None:
            return  # an owner that was asked to leave long ago has left, or one has just joined
        self.random.choice(self.drills)()

    def _crash(self) -> None:
        site = self.site
        holders = [owner for owner in site.owners() if owner.alive and owner.holdings.leases]
        slowest = min(manager.clock.rate for manager in site.managers())
        if not holders:
            return
        owner, crashed_at = self.random.choice(holders), site.now
        site.count_note("drill: crash")
        lost = self.checkers.losses.relied_on_at(owner)
        owner.kill()
        hold_ns = site.timing.hold_ns * MILLION // slowest
        site.run_until(crashed_at + hold_ns + CRASH_BEYOND_HOLD_NS)
        self.checkers.losses.check_crash(lost, crashed_at)
        site.restart_later(owner.slot, 0)

    def _leave(self) -> None:
        """An owner leaves, and others are given what it had: each change is pushed."""
        site = self.site
        holders = [owner for owner in site.owners() if owner.alive and owner.holdings.leases]
        within_ns = site.timing.push_ns + PUSHED_BEYOND_NS
        if not holders:
            return
        owner = self.random.choice(holders)
        site.count_note("drill: leave")
        owner.post(CloseRequested())
        ends_at = site.now + 3 * site.timing.renew_ns
        while site.now < ends_at:
            site.run_until(site.now + PUSHED_BEYOND_NS // 4)
            for lookup in site.lookups():
                self.checkers.check_pushed(lookup, within_ns)
        site.restart_later(owner.slot, 0)

    def _first_start(self) -> None:
        site = self.site
        holders = [owner for owner in site.owners() if owner.alive and owner.holdings.leases]
        if not holders:
            return
        holder = self.random.choice(holders)
        site.count_note("drill: first start")
        for manager in site.managers():
            site.network.lose_connections(manager)  # the holder hears that they are gone
        for process in site.processes():
            if process is not holder:
                process.kill()
        # The holder looks for a leader more and more rarely, and believes for a while yet.
        site.run_until(site.now + self.random.randrange(site.timing.term_ns))
        site.begin_journal(None)
        site.is_first_start = True
        for slot in list(site.slots):
            site.restart_later(slot, 0)
        site.run_until(site.now + 1)
        site.is_first_start = False
        site.run_until(site.now + site.timing.hold_ns)

    def _cut_off(self) -> None:
        site = self.site
        lookups = [lookup for lookup in site.lookups() if lookup.alive]
        lookup = self.random.choice(lookups)
        site.count_note("drill: cut off")
        site.tell(lookup.slot, "cut off")
        lasts_ns = round(site.timing.contact_ns * (1.2 + self.random.random()))
        for manager in site.managers():
            site.network.cut(lookup.slot, manager.slot, lasts_ns, both_ways=True)
        site.run_until(site.now + lasts_ns)
        if lookup.routes is not None and lookup.routes.in_contact:
            raise Violation(
                "S2: finds without contact",
                f"{lookup.slot}, cut off for {in_seconds(lasts_ns):.1f} s",
            )
        # Only the lookup is judged: meanwhile an owner may lapse, or a range may be changing hands.
        by = site.now + RETURN_NS
        while (missing := self.checkers.unknown_to(lookup)) is not None:
            if site.now >= by:
                raise Violation(
                    "L1", f"{in_seconds(RETURN_NS):g} s after {lookup.slot} could return: {missing}"
                )
            site.run_until(site.now + RETURN_NS // 50)
