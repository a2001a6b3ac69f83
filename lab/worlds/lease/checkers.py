"""The checkers of a world with simulated owners and lookups: what lookups signal and find, and that
an old copy of the journal is noticed.
"""

from collections import deque
from collections.abc import Sequence

from lab.worlds.lease.losses import LossChecker
from lab.worlds.lease.processes import LookupProcess, OwnerProcess, OwnerSite
from tenure.base.instants import in_seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.lookup.events import AnyRoutingTable
from tenure.protocol.lease.messages import Leased
from tenure.protocol.lease.records import AnyRecord, Changed, Left
from tenure.sim.journal import LeaseContents
from tenure.sim.kernel.checkers import Violation
from tenure.sim.lease.checkers import LeaseCheckers
from tenure.sim.lease.processes import OwnerParty


class Checkers(LeaseCheckers):
    """All checkers, and what they remember."""

    site: OwnerSite

    def __init__(self, site: OwnerSite) -> None:
        super().__init__(site)
        self.losses = LossChecker(site)
        self.changes: deque[tuple[str, int, int]] = deque(maxlen=100)
        """The last changes of tables: the pool and LSN of each, and when it was committed."""
        self._known: dict[int, tuple[int, RangeMap[int]]] = {}
        """By lookup: the journal, and the numbers in it that the lookup knew when it last
        signalled.
        """

    def begin_history(self, journal: LeaseContents, history: LeaseHistory) -> None:
        super().begin_history(journal, history)
        self.changes.clear()

    def on_commit(self, journal: LeaseContents, record: AnyRecord) -> None:
        super().on_commit(journal, record)
        if isinstance(record, Changed | Left) and record.entries:
            self.changes.append((record.pool, self.committed.lsn, self.site.now))

    def check_state(self, owner: OwnerParty, lease: Leased) -> None:
        assert isinstance(owner, OwnerProcess)
        self.site.states.check(owner, lease)

    def violated(self, promise: str, detail: str) -> None:
        """A promise is broken. Nothing is promised while the journal is an old copy."""
        if not self.site.is_old_copy:
            super().violated(promise, detail)

    def on_clock_changed(self, owner: OwnerProcess) -> None:
        """A broken clock jumped: its owner believes for longer than it should."""
        if owner.holdings.leases:
            owner.believes_until = owner.clock.real(owner.holdings.expires_at)
            for lease in owner.holdings.leases:
                self.check_one_owner(owner, lease)

    # --- S2: what lookups signal ---

    def on_loss(self, lookup: LookupProcess, ranges: Sequence[KeyRange], why: str) -> None:
        """S2: what was not lost is not signalled, except by a lookup that cannot know.

        A signal is in vain where no `since` was raised above the number that the lookup knew when
        it last signalled there. That every loss is signalled is judged by what clients rely on.
        """
        self.losses.on_loss(lookup, ranges)
        table = self.committed.tables.get(lookup.pool)
        machine = lookup.machine
        if why != "lost" or table is None or machine.journal != self.committed_of:
            return
        journal, known = self._known.get(lookup.uid, (0, RangeMap(0)))
        if journal != machine.journal:
            known = RangeMap(0)
        self._known[lookup.uid] = (machine.journal, known)
        for lost in ranges:
            for piece, right in table.within(lost):
                for part, number in list(known.within(piece)):
                    if right.since <= number:
                        self.violated(
                            "S2: signalled in vain",
                            f"{lookup.slot} signals {part}, unbroken since {right.since}, which it "
                            f"knew under {number}",
                        )
            for piece, now_known in machine.table.within(lost):
                known.assign(piece, now_known.number)

    def check_pushed(self, lookup: LookupProcess, within_ns: int) -> None:
        """Check that the lookup knows of each change within `within_ns` of its commit, while
        nothing goes wrong.
        """
        seen = lookup.machine.view()
        for pool, lsn, at in self.changes:
            late_ns = self.site.now - at
            is_seen = seen.journal != self.committed_of or seen.lsn >= lsn
            if pool == lookup.pool and not is_seen and late_ns > within_ns:
                raise Violation(
                    "L1: a change was not pushed",
                    f"{lookup.slot} knows LSN {seen.lsn}, and {lsn} was committed "
                    f"{in_seconds(late_ns):.3f} s ago",
                )

    # --- L1: after healing ---

    def unknown_to(self, lookup: LookupProcess) -> str | None:
        """A range in which an owner believes and which this lookup does not know yet, in words."""
        if lookup.routes is None or not lookup.routes.in_contact:
            return f"{lookup.slot} is out of contact"
        return _unknown(lookup, self.believed(lookup.pool))

    def not_converged_in(self, pool: str) -> str | None:
        """The reason why not every key of a pool has an owner yet that every lookup knows."""
        if (nobody := super().not_converged_in(pool)) is not None:
            return nobody
        believed = self.believed(pool)
        well: AnyRoutingTable | None = None
        for lookup in (each for each in self.site.lookups() if each.pool == pool):
            routes = lookup.routes
            if routes is None or not routes.in_contact:
                return f"{lookup.slot} is out of contact"
            missing = None if routes == well else _unknown(lookup, believed)
            if missing is not None:
                return missing
            well = routes
        return None

    def went_back_unnoticed(self) -> str | None:
        """The clients that have seen more of the journal than the old copy in its place holds
        (P22).
        """
        journal = self.site.journal
        for lookup in self.site.lookups():
            seen = lookup.machine.view()
            if lookup.alive and seen.journal == journal.journal and seen.lsn > journal.lsn:
                return f"{lookup.slot} knows LSN {seen.lsn} of a journal that ends at {journal.lsn}"
        led = journal.seat.leadership
        for owner in self.site.owners():
            told = owner.machine.view()
            is_of_it = owner.alive and told.incarnation and told.journal == journal.journal
            if is_of_it and told.leadership > led:
                return f"{owner.slot} knows leadership {told.leadership} of a journal led to {led}"
        return None


def _unknown(
    lookup: LookupProcess, believed: list[tuple[Key, Key | None, OwnerParty]]
) -> str | None:
    """A range in which an owner believes and which the lookup does not find in its published table,
    in words.
    """
    for start, end, owner in believed:
        address = owner.machine.view().config.address
        if any(found != address for found in lookup.found_in(start, end)):
            return f"{lookup.slot} does not find {owner.slot} in {KeyRange(start, end)}"
    return None
