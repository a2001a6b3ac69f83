"""The checkers of the promises, at every event, with real time as the judge.

The checkers know what no process does: the real time, every clock's rate, what every owner believes
and what is committed. They keep their own copy of the committed table, and share nothing with the
workload that drives the run. Each check looks only at changes, so that a large pool costs no more
than what changes in it.
"""

from collections import deque
from collections.abc import Sequence
from operator import itemgetter

from tenure.base.instants import in_seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.lookup.events import AnyRoutingTable
from tenure.protocol.lease.messages import Entry, Leased
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.records import AnyRecord, Changed, Left, State, TookOver
from tenure.protocol.lease.table import NOBODY
from tenure.sim.journal import LeaseContents
from tenure.sim.kernel.checkers import InvariantChecker, Violation
from tenure.sim.kernel.process import SimProcess
from tenure.sim.lease.beliefs import added, believes
from tenure.sim.lease.ledger import PlainLedger
from tenure.sim.lease.losses import LossChecker
from tenure.sim.lease.processes import LeaseSite, LookupProcess, ManagerProcess, OwnerProcess


class Checkers(InvariantChecker):
    """All checkers, and what they remember."""

    def __init__(self, site: LeaseSite) -> None:
        super().__init__()
        self.site = site
        self.holders: dict[str, RangeMap[OwnerProcess | None]] = {
            pool: RangeMap(None) for pool in site.pools
        }
        """By pool, as in all that follows: the owner that was last seen to begin to believe in each
        range.
        """
        self.numbers: dict[str, RangeMap[int]] = {}
        """The last number that any owner believed in, in the journal `numbers_of`."""
        self.numbers_of = 0
        self.losses = LossChecker(site)
        self.committed = LeaseHistory(State(), 0)
        self.committed_of = 0
        self.acknowledged = PlainLedger(())
        """The committed records once more, kept by the simplest means."""
        self.changes: deque[tuple[str, int, int]] = deque(maxlen=100)
        """The last changes of tables: the pool and LSN of each, and when it was committed."""
        self._known: dict[int, tuple[int, RangeMap[int]]] = {}
        """By lookup: the journal, and the numbers in it that the lookup knew when it last
        signalled.
        """
        self._checked: dict[int, int] = {}
        """The LSN at which a leader's invariants were last checked."""

    def begin_history(self, journal: LeaseContents, history: LeaseHistory) -> None:
        """Another journal is in place, with this history: begin anew what is compared with the
        journal.
        """
        self.committed_of, self.committed = journal.journal, history
        self.acknowledged = PlainLedger(self.site.workload.keys, history.state().pools)
        self.numbers.clear()
        self.changes.clear()

    # --- the machines' own ---

    def has_changed(self, process: SimProcess) -> bool:
        """Whether there is anything new to check: a leader's table is long, and changes rarely."""
        if not isinstance(process, ManagerProcess):
            return True
        history = process.machine.view(process.now()).history
        if history is None:
            return True
        if self._checked.get(process.uid) == history.lsn:
            return False
        self._checked[process.uid] = history.lsn
        return True

    # --- S1 and S3: what owners believe ---

    def on_hold(self, owner: OwnerProcess, holdings: Holdings) -> None:
        """An owner's readers see new holdings."""
        old, until, now = owner.holdings, owner.believes_until, self.site.now
        same_history = old.journal == holdings.journal
        owner.holdings = holdings
        owner.believes_until = owner.clock.real(holdings.expires_at) if holdings.leases else 0
        unbroken = same_history and now < until
        if now >= owner.believes_until or (unbroken and holdings.leases == old.leases):
            return  # published too late to be believed, or nothing new
        self.site.tell(owner.slot, "believes", holdings)
        for lease in added(old.leases if unbroken else (), holdings.leases):
            self._check_one_owner(owner, lease)
        # A decision made in time and published late goes on only if no reader saw the belief end.
        went_on = same_history and owner.decided_at < until
        for lease in added(old.leases if went_on else (), holdings.leases):
            self._check_number(owner, holdings, lease)
            self.site.states.check(owner, lease)

    def on_clock_changed(self, owner: OwnerProcess) -> None:
        """A broken clock jumped: its owner believes for longer than it should."""
        if owner.holdings.leases:
            owner.believes_until = owner.clock.real(owner.holdings.expires_at)
            for lease in owner.holdings.leases:
                self._check_one_owner(owner, lease)

    def _check_one_owner(self, owner: OwnerProcess, lease: Leased) -> None:
        """S1: at any real instant at most one owner believes that it holds a key."""
        for piece, holder in list(self.holders[owner.pool].within(lease.range)):
            if holder is not None and holder is not owner and believes(holder, piece):
                left = in_seconds(holder.believes_until - self.site.now)
                self._violated(
                    "S1: two owners",
                    f"{owner.slot} takes {piece} under number {lease.number} "
                    f"while {holder.slot} believes in it for {left:.3f} s more",
                )
        self.holders[owner.pool].assign(lease.range, owner)

    def _check_number(self, owner: OwnerProcess, holdings: Holdings, lease: Leased) -> None:
        """S3: numbers rise, and what was interrupted does not go on. S4: nobody believes in a
        number that the journal does not have.
        """
        if holdings.journal != self.numbers_of:
            self.numbers_of = holdings.journal
            self.numbers.clear()
        numbers = self.numbers.setdefault(owner.pool, RangeMap(0))
        for piece, number in numbers.within(lease.range):
            if number >= lease.number:
                self._violated(
                    "S3: a number came again",
                    f"{owner.slot} takes {piece} under number {lease.number} after {number}",
                )
        numbers.assign(lease.range, lease.number)
        if holdings.journal == self.committed_of:
            table = self.committed.tables[owner.pool]
            if lease.number >= table.next_number:
                self._violated(
                    "S4: told before it was durable",
                    f"{owner.slot} takes {lease.range} under number {lease.number}; "
                    f"the journal knows none from {table.next_number} on",
                )

    # --- S4 and early freeing: what is committed ---

    def on_commit(self, journal: LeaseContents, record: AnyRecord) -> None:
        """A record is durable."""
        if journal.journal != self.committed_of:
            self.begin_history(journal, LeaseHistory(journal.state, journal.state_lsn))
        self.site.tell("journal", f"commits {type(record).__name__}", record)
        if isinstance(record, TookOver):
            self.site.on_takeover()
        if isinstance(record, Changed | Left):
            for entry in record.entries:
                self._check_not_early(record.pool, entry)
        self.committed.apply(record)
        self.acknowledged.apply(record)
        if isinstance(record, Changed | Left) and record.entries:
            self.changes.append((record.pool, self.committed.lsn, self.site.now))

    def _check_not_early(self, pool: str, entry: Entry) -> None:
        """No range is freed before its owner's belief in it has ended."""
        for piece, right in self.committed.tables[pool].within(entry.range):
            if entry.number <= right.number:
                self._violated("S3: a number came again", f"{entry} after {right}")
            if right.owner in (NOBODY, entry.owner):
                continue
            for part, holder in self.holders[pool].within(piece):
                if (
                    holder is not None
                    and holder.holdings.incarnation == right.owner
                    and holder.holdings.journal == self.committed_of
                    and believes(holder, part)
                ):
                    left = in_seconds(holder.believes_until - self.site.now)
                    self._violated(
                        "freed too early",
                        f"{part} of {holder.slot}, which believes in it for {left:.3f} s more",
                    )

    def on_leading(self, manager: ManagerProcess) -> None:
        """S4: nothing that the journal acknowledged is forgotten by a later leader."""
        journal, view = self.site.journal, manager.machine.view(manager.now())
        assert view.history is not None
        if journal.seat.leadership != view.leadership or not journal.lsn:
            return
        if view.journal != self.committed_of:
            return
        forgotten = self.acknowledged.differs(view.history.state().pools)
        if forgotten is not None:
            self._violated("S4: forgotten", forgotten)

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
                        self._violated(
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
        return _unknown(lookup, self._believed(lookup.pool))

    def _believed(self, pool: str) -> list[tuple[Key, Key | None, OwnerProcess]]:
        believed = [
            (lease.start, lease.end, owner)
            for owner in self.site.owners()
            if owner.pool == pool and owner.alive and self.site.now < owner.believes_until
            for lease in owner.holdings.leases
        ]
        return sorted(believed, key=itemgetter(0))  # an old copy may have given a range twice

    def not_converged(self) -> str | None:
        """The reason why not every key has an owner yet that every lookup knows."""
        return next(filter(None, map(self._not_converged, self.site.pools)), None)

    def _not_converged(self, pool: str) -> str | None:
        believed = self._believed(pool)
        position: Key | None = WHOLE.start
        for start, end, _ in believed:
            if start != position:
                break
            position = end
        if position is not None:
            return f"nobody has the keys of {pool} from {position.hex() or '-'}"
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

    def _violated(self, promise: str, detail: str) -> None:
        if not self.site.is_old_copy:
            raise Violation(promise, detail)


def _unknown(
    lookup: LookupProcess, believed: list[tuple[Key, Key | None, OwnerProcess]]
) -> str | None:
    """A range in which an owner believes and which the lookup does not find in its published table,
    in words.
    """
    for start, end, owner in believed:
        address = owner.machine.view().config.address
        if any(found != address for found in lookup.found_in(start, end)):
            return f"{lookup.slot} does not find {owner.slot} in {KeyRange(start, end)}"
    return None
