"""The journal's records, applied: every pool's table, and everything else that must outlive a
manager.

That includes clusters, whose records `protocol.topology` applies: one journal, one leader, one LSN.
"""

from tenure.errors import JournalDamaged
from tenure.protocol.lease.records import (
    AnyRecord,
    Changed,
    Joined,
    Left,
    PoolCreated,
    PromiseLowered,
    State,
    TookOver,
    WaitedOut,
)
from tenure.protocol.lease.rivalry import OVER_KEPT, RIVALS_KEPT, Rivalry
from tenure.protocol.lease.table import FIRST_NUMBER, Counters, LeaseTable
from tenure.protocol.topology.history import ClusterDeleted, Clusters, TopologySet

DELETED_KEPT = 1_000
"""How many deleted pools are remembered, with their numbers: those with the highest numbers. Pools
whose names are drawn at random would otherwise fill the journal."""

_SMALL_BYTES = 64
"""What anything takes that has no more than some numbers."""


class LeaseHistory:
    """The sum of a journal's records up to `lsn`."""

    def __init__(self, state: State, lsn: int) -> None:
        self.lsn = lsn
        self.bytes = 0
        """About how many bytes the records have that were applied here."""
        self.leadership = state.leadership
        self.promise_ns = state.promise_ns
        self.waited_out = state.waited_out
        self.secret = state.secret
        """The secret with which receipts are sealed; empty if no leader has drawn one."""
        self.older = state.older
        """Another journal, whose history clients have brought; 0 for none."""
        self.rivalries = state.rivalries
        """The rivals that no operator has decided about yet (P25)."""
        self.over = state.over
        """The journals that an operator has declared over."""
        self.predecessors = state.predecessors
        self.realm = state.realm
        self.first = Counters(state.next_number, state.next_incarnation)
        """The first numbers of a pool that is not known here: higher than any that was
        forgotten.
        """
        self.tables = {pool.pool: LeaseTable.from_state(pool) for pool in state.pools}
        for table in self.tables.values():
            table.laid_lsn = lsn
        self.clusters = Clusters(state.clusters, state.versions_passed)

    def apply(self, record: AnyRecord) -> None:
        """Apply `record`, which has the next LSN."""
        self.lsn += 1
        self.bytes += _bytes_of(record)
        match record:
            case Changed(pool=pool) | Left(pool=pool) | Joined(pool=pool):
                table = self._table(pool)
                table.apply(record)
                if not isinstance(record, Joined):
                    table.laid_lsn = self.lsn
                if isinstance(record, Changed) and record.deleted:
                    self._forget_deleted()
            case PoolCreated(pool=pool):
                self.tables[pool] = LeaseTable(record, self._first_of(pool))
                self.tables[pool].laid_lsn = self.lsn
            case TookOver(leadership=leadership, promise_ns=promise_ns, secret=secret):
                self.leadership = leadership
                self.secret = secret or self.secret
                self.promise_ns = max(self.promise_ns, promise_ns)
                for table in self.tables.values():
                    table.forget_the_gone()
            case PromiseLowered(promise_ns=promise_ns, older=older):
                self.promise_ns = promise_ns
                self.older = older or self.older
                self.realm = record.realm or self.realm
                self._apply_rivalry(record)
            case WaitedOut():
                self.waited_out = True
            case TopologySet() | ClusterDeleted():
                self.clusters.apply(record)

    def _apply_rivalry(self, record: PromiseLowered) -> None:
        said, over = record.rivalry, record.over
        if said is not None:
            others = (each for each in self.rivalries if _names(each) != _names(said))
            self.rivalries = (*others, said)[-RIVALS_KEPT:]
        if over:
            self.rivalries = tuple(each for each in self.rivalries if each.journal != over)
            kept = (each for each in self.over if each != over)
            self.over = (*kept, over)[-OVER_KEPT:]
        if record.waits:
            self.waited_out = False

    def _first_of(self, pool: str) -> Counters:
        former = self.tables.get(pool)
        return Counters(former.next_number, former.next_incarnation) if former else self.first

    def _forget_deleted(self) -> None:
        """Forget the pool with the lowest numbers if there are too many."""
        deleted = [table for table in self.tables.values() if table.is_deleted]
        if len(deleted) > DELETED_KEPT:
            lowest = min(deleted, key=lambda table: (table.next_number, table.pool))
            self.first = Counters(
                max(self.first.number, lowest.next_number),
                max(self.first.incarnation, lowest.next_incarnation),
            )
            del self.tables[lowest.pool]

    @property
    def has_granted(self) -> bool:
        """Whether this journal, or the one from which it was restored, has granted any number."""
        numbers = (table.next_number for table in self.tables.values())
        return self.first.number > FIRST_NUMBER or max(numbers, default=0) > FIRST_NUMBER + 1

    def _table(self, pool: str) -> LeaseTable:
        try:
            return self.tables[pool]
        except KeyError:
            msg = f"record {self.lsn} changes the pool {pool!r}, which no record before it created"
            raise JournalDamaged(msg) from None

    def state(self) -> State:
        """The state that a later leader must know (rule P21)."""
        return State(
            leadership=self.leadership,
            promise_ns=self.promise_ns,
            waited_out=self.waited_out,
            pools=tuple(self.tables[pool].state() for pool in sorted(self.tables)),
            secret=self.secret,
            older=self.older,
            next_number=self.first.number,
            next_incarnation=self.first.incarnation,
            clusters=self.clusters.state(),
            versions_passed=self.clusters.passed,
            rivalries=self.rivalries,
            over=self.over,
            predecessors=self.predecessors,
            realm=self.realm,
        )

    def invariants(self) -> None:
        """The invariants of every table hold."""
        for table in self.tables.values():
            table.invariants()
        self.clusters.invariants()


def _names(rivalry: Rivalry) -> tuple[int, str]:
    return rivalry.journal, rivalry.pool


def _bytes_of(record: AnyRecord) -> int:
    """About how many bytes a record has in the journal: it counts what owners and nodes choose."""
    match record:
        case Joined():
            labels = (text for each in record.labels.items() for text in each)
            urls = record.address, record.hand_off or "", record.cache or ""
            return _SMALL_BYTES + _texts(record.name, *urls, *labels)
        case Left(entries=entries) | Changed(entries=entries):
            return _SMALL_BYTES * (1 + len(entries)) + sum(len(each.start) for each in entries)
        case PoolCreated(split_points=points):
            return _SMALL_BYTES * (1 + len(points)) + sum(map(len, points))
        case TopologySet(topology=topology):
            nodes = (*topology.nodes, *topology.waiting)
            families = sum(1 + len(each.families) for each in topology.tables.values())
            parts = 1 + len(nodes) + len(topology.ranges) + families
            return _SMALL_BYTES * parts + sum(_texts(each.name, each.address) for each in nodes)
        case _:
            return _SMALL_BYTES


def _texts(*texts: str) -> int:
    return sum(len(text.encode()) for text in texts)
