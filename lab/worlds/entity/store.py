"""The database of a simulated world: one SQLite for all processes, in memory, with the SQL of the
library. It is never lost. It is slow, fails, and may lose its answer after doing what it was asked.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Self, TypeVar

from tenure.base.instants import MILLISECOND_NS, SECOND_NS
from tenure.base.keys import PoolKind
from tenure.errors import Fenced, StoreFailed, TenureError
from tenure.fencing.commit_groups import Program, run_together
from tenure.fencing.databases import SqliteDatabase
from tenure.sim.app.site import ClientHost
from tenure.sim.kernel.faults import Fault, FaultDice
from tenure.stores.sql_store import SqlEntityStore

T = TypeVar("T")
STORE_SLOW = Fault("store slow")
STORE_FAILED = Fault("store failed")
STORE_ANSWER_LOST = Fault("store answer lost")
STORE_LATE = Fault("store late")
"""The store does what it was asked when the asker has given up, or is gone."""
STORE_FAULTS = (STORE_SLOW, STORE_FAILED, STORE_ANSWER_LOST, STORE_LATE)
LATENCY_NS = 2 * MILLISECOND_NS


class SimDatabase(SqliteDatabase):
    """A database in memory, which all processes share."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self._connection = sqlite3.connect(":memory:", isolation_level=None)

    def afresh(self) -> Self:
        """All processes have the same connection."""
        return self

    def drop(self) -> None:
        """See `Database`. This does nothing, because dropping would lose what is in memory."""


class SimStore(SqlEntityStore):
    """The store, as one process sees it."""

    def __init__(
        self, process: ClientHost, database: SimDatabase, pool: str, kind: PoolKind
    ) -> None:
        super().__init__(database, pool, kind)
        self._process = process

    async def _do(self, begin: Callable[[], Program[T]]) -> T:
        faults: FaultDice = self._process.site.faults
        late_ns = faults.span(0.01, 0.3) if faults.strikes(STORE_SLOW) else 0
        await asyncio.sleep((LATENCY_NS + late_ns) / SECOND_NS)
        if faults.strikes(STORE_FAILED):
            raise StoreFailed("the store failed, and has kept nothing")
        if faults.strikes(STORE_LATE):
            site = self._process.site
            site.at(site.now + faults.span(0.01, 2.5), self._do_late, begin)
            raise StoreFailed("the store failed, and does it later")
        found = self._commit(begin)
        await asyncio.sleep(LATENCY_NS / SECOND_NS)
        if faults.strikes(STORE_ANSWER_LOST):
            raise StoreFailed("the store failed, and has kept it")
        return found

    def _do_late(self, begin: Callable[[], Program[object]]) -> None:
        with suppress(TenureError):
            self._commit(begin)

    def _commit(self, begin: Callable[[], Program[T]]) -> T:
        with self._database.transaction() as driver:
            [outcome] = run_together(driver, [begin()])
        if isinstance(outcome, Fenced):
            raise outcome
        found: T = outcome
        return found

    async def close(self) -> None:
        """See `EntityStore`. This does nothing, because the database is everybody's."""
