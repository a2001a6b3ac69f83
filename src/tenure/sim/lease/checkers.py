"""The checkers of the promises, at every event, with real time as the judge.

The checkers know what no process does: the real time, every clock's rate, what every owner believes
and what is committed. They keep their own copy of the committed table, and share nothing with what
drives the run. Each check looks only at changes, so that a large pool costs no more than what
changes in it.
"""

from operator import itemgetter

from tenure.base.instants import in_seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.messages import Entry, Leased
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.records import AnyRecord, Changed, Left, State, TookOver
from tenure.protocol.lease.table import NOBODY
from tenure.sim.journal import LeaseContents
from tenure.sim.kernel.checkers import InvariantChecker, Violation
from tenure.sim.kernel.process import SimProcess
from tenure.sim.lease.beliefs import added, believes
from tenure.sim.lease.ledger import PlainLedger
from tenure.sim.lease.processes import LeaseSite, ManagerProcess, OwnerParty


class LeaseCheckers(InvariantChecker):
    """The checkers of owners and managers, and what they remember."""

    def __init__(self, site: LeaseSite) -> None:
        super().__init__()
        self.site = site
        self.holders: dict[str, RangeMap[OwnerParty | None]] = {
            pool: RangeMap(None) for pool in site.pools
        }
        """By pool, as in all that follows: the owner that was last seen to begin to believe in each
        range.
        """
        self.numbers: dict[str, RangeMap[int]] = {}
        """The last number that any owner believed in, in the journal `numbers_of`."""
        self.numbers_of = 0
        self.committed = LeaseHistory(State(), 0)
        self.committed_of = 0
        self.acknowledged = PlainLedger(())
        """The committed records once more, kept by the simplest means."""
        self._checked: dict[int, int] = {}
        """The LSN at which a leader's invariants were last checked."""

    def begin_history(self, journal: LeaseContents, history: LeaseHistory) -> None:
        """Another journal is in place, with this history: begin anew what is compared with the
        journal.
        """
        self.committed_of, self.committed = journal.journal, history
        self.acknowledged = PlainLedger(self.site.watched_keys, history.state().pools)
        self.numbers.clear()

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

    def on_hold(self, owner: OwnerParty, holdings: Holdings) -> None:
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
            self.check_one_owner(owner, lease)
        # A decision made in time and published late goes on only if no reader saw the belief end.
        went_on = same_history and owner.decided_at < until
        for lease in added(old.leases if went_on else (), holdings.leases):
            self._check_number(owner, holdings, lease)
            self.check_state(owner, lease)

    def check_state(self, owner: OwnerParty, lease: Leased) -> None:
        """An owner has a new lease: check that it has the state that belongs to it, if the world
        knows of any.
        """

    def check_one_owner(self, owner: OwnerParty, lease: Leased) -> None:
        """S1: at any real instant at most one owner believes that it holds a key."""
        for piece, holder in list(self.holders[owner.pool].within(lease.range)):
            if holder is not None and holder is not owner and believes(holder, piece):
                left = in_seconds(holder.believes_until - self.site.now)
                self.violated(
                    "S1: two owners",
                    f"{owner.slot} takes {piece} under number {lease.number} "
                    f"while {holder.slot} believes in it for {left:.3f} s more",
                )
        self.holders[owner.pool].assign(lease.range, owner)

    def _check_number(self, owner: OwnerParty, holdings: Holdings, lease: Leased) -> None:
        """S3: numbers rise, and what was interrupted does not go on. S4: nobody believes in a
        number that the journal does not have.
        """
        if holdings.journal != self.numbers_of:
            self.numbers_of = holdings.journal
            self.numbers.clear()
        numbers = self.numbers.setdefault(owner.pool, RangeMap(0))
        for piece, number in numbers.within(lease.range):
            if number >= lease.number:
                self.violated(
                    "S3: a number came again",
                    f"{owner.slot} takes {piece} under number {lease.number} after {number}",
                )
        numbers.assign(lease.range, lease.number)
        if holdings.journal == self.committed_of:
            table = self.committed.tables[owner.pool]
            if lease.number >= table.next_number:
                self.violated(
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

    def _check_not_early(self, pool: str, entry: Entry) -> None:
        """No range is freed before its owner's belief in it has ended."""
        for piece, right in self.committed.tables[pool].within(entry.range):
            if entry.number <= right.number:
                self.violated("S3: a number came again", f"{entry} after {right}")
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
                    self.violated(
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
            self.violated("S4: forgotten", forgotten)

    # --- L1: after healing ---

    def believed(self, pool: str) -> list[tuple[Key, Key | None, OwnerParty]]:
        believed = [
            (lease.start, lease.end, owner)
            for owner in self.site.owners()
            if owner.pool == pool and owner.alive and self.site.now < owner.believes_until
            for lease in owner.holdings.leases
        ]
        return sorted(believed, key=itemgetter(0))  # an old copy may have given a range twice

    def not_converged(self) -> str | None:
        """The reason why not every key has an owner yet."""
        return next(filter(None, map(self.not_converged_in, self.site.pools)), None)

    def not_converged_in(self, pool: str) -> str | None:
        """The same, of one pool."""
        position: Key | None = WHOLE.start
        for start, end, _ in self.believed(pool):
            if start != position:
                break
            position = end
        if position is not None:
            return f"nobody has the keys of {pool} from {position.hex() or '-'}"
        return None

    def violated(self, promise: str, detail: str) -> None:
        """A promise is broken."""
        raise Violation(promise, detail)
