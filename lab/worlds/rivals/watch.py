"""Judges a world with two masters: by what its owners believe, and what is written down.

Until somebody sees that there are two, both grant; that is not promised away. From the time on at
which both journals have it in writing, no key has two owners, whatever happens then.
"""

from collections.abc import Sequence

from lab.worlds.lease.processes import LookupProcess
from lab.worlds.rivals.processes import RivalsSite
from tenure.base.instants import Instant
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.records import State
from tenure.sim.kernel.checkers import Violation
from tenure.sim.lease.processes import ManagerProcess, OwnerParty


class RivalsWatch:
    """See `Watcher`."""

    def __init__(self, site: RivalsSite) -> None:
        self.site = site
        self.holders: dict[str, RangeMap[OwnerParty | None]] = {}
        self.committed = LeaseHistory(State(), 0)
        self.is_armed = False
        """Whether both leaders must have stopped, and what they had granted must have run out."""

    def on_hold(self, owner: OwnerParty, holdings: Holdings) -> None:
        """An owner believes something else from now on."""
        before = owner.holdings
        if owner.machine.others.may_have_granted and holdings.leases:
            self._check_takes_nothing(owner, before, holdings)
        owner.holdings = holdings
        owner.believes_until = owner.clock.real(holdings.expires_at) if holdings.leases else 0
        for other in self.site.owners():
            is_same = other.holdings.journal == holdings.journal
            if other is not owner and (self.is_armed or is_same):
                self._check(owner, other)

    def _check_takes_nothing(self, owner: OwnerParty, before: Holdings, now: Holdings) -> None:
        had = {(each.start, each.end) for each in before.leases}
        has = {(each.start, each.end) for each in now.leases}
        if now.expires_at > before.expires_at or not has <= had:
            raise Violation(
                "P25: took something beside a rival", f"{owner.slot}: {before}, and then {now}"
            )

    def _check(self, one: OwnerParty, other: OwnerParty) -> None:
        now = self.site.now
        if not all(each.alive and each.believes_until > now for each in (one, other)):
            return
        for mine in one.holdings.leases:
            for theirs in other.holdings.leases:
                both = KeyRange(mine.start, mine.end).intersection(
                    KeyRange(theirs.start, theirs.end)
                )
                if both is not None:
                    raise Violation("S1: two owners", f"{one.slot} and {other.slot} have {both}")

    def check_all(self) -> None:
        """S1 among all owners."""
        owners = self.site.owners()
        for number, one in enumerate(owners):
            for other in owners[:number]:
                self._check(one, other)

    def on_loss(self, lookup: LookupProcess, ranges: Sequence[KeyRange], why: str) -> None:
        """There are no lookups."""

    def on_clock_changed(self, owner: OwnerParty) -> None:
        """An owner's clock has jumped: it believes for longer."""
        owner.believes_until = owner.clock.real(Instant(owner.holdings.expires_at))

    def on_leading(self, manager: ManagerProcess) -> None:
        """A manager has begun to lead."""
        self.site.on_takeover()
