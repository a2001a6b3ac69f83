"""What the journal says, applied: every pool's table and what else must outlive a manager."""

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
from tenure.protocol.lease.table import FIRST_NUMBER, LeaseTable


class LeaseHistory:
    """The sum of a journal's records up to `lsn`."""

    def __init__(self, state: State, lsn: int) -> None:
        self.lsn = lsn
        self.leadership = state.leadership
        self.promise_ns = state.promise_ns
        self.waited_out = state.waited_out
        self.secret = state.secret
        self.older = state.older
        """Another journal, of which clients were heard; 0 for none."""
        """With which receipts are sealed; empty where no leader has drawn one."""
        self.tables = {pool.pool: LeaseTable.from_state(pool) for pool in state.pools}

    def apply(self, record: AnyRecord) -> None:
        """Make `record` so; it has the next LSN."""
        self.lsn += 1
        match record:
            case Changed(pool=pool) | Left(pool=pool) | Joined(pool=pool):
                self._table(pool).apply(record)
            case PoolCreated(pool=pool):
                self.tables[pool] = LeaseTable(record, self.tables.get(pool))
            case TookOver(leadership=leadership, promise_ns=promise_ns, secret=secret):
                self.leadership = leadership
                self.secret = secret or self.secret
                self.promise_ns = max(self.promise_ns, promise_ns)
                for table in self.tables.values():
                    table.forget_the_gone()
            case PromiseLowered(promise_ns=promise_ns, older=older):
                self.promise_ns = promise_ns
                self.older = older or self.older
            case WaitedOut():
                self.waited_out = True

    @property
    def has_granted(self) -> bool:
        """Whether any number but the first was given out in it, or in what it was restored from."""
        return any(table.next_number > FIRST_NUMBER + 1 for table in self.tables.values())

    def _table(self, pool: str) -> LeaseTable:
        try:
            return self.tables[pool]
        except KeyError:
            msg = f"record {self.lsn} changes the pool {pool!r}, which no record before it created"
            raise JournalDamaged(msg) from None

    def state(self) -> State:
        """All of this that a later leader must know (rule P21)."""
        return State(
            leadership=self.leadership,
            promise_ns=self.promise_ns,
            waited_out=self.waited_out,
            pools=tuple(self.tables[pool].state() for pool in sorted(self.tables)),
            secret=self.secret,
            older=self.older,
        )

    def invariants(self) -> None:
        """Those of every table."""
        for table in self.tables.values():
            table.invariants()
