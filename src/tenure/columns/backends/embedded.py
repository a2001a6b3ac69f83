"""One replica in this process, over an engine: a directory, or memory."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

from tenure.base.ranges import WHOLE
from tenure.columns.commits import GroupCommit
from tenure.columns.engines.contract import EngineBusy, StorageEngine
from tenure.columns.replica import Replica
from tenure.columns.requests import RowMutation
from tenure.columns.spaces import HINTS
from tenure.columns.sweeping import Sweep, doomed_within
from tenure.columns.tables import Table, table_of
from tenure.errors import ClosedError, ConfigurationError, Overloaded, StoreError, WriteUnknown
from tenure.protocol.replication.messages import Reads
from tenure.protocol.replication.row.admission import Attempt, Outranked, Refused
from tenure.protocol.replication.row.limits import HORIZON_LAG_US
from tenure.protocol.replication.row.pages import Steps
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.topology.tables import TableRecord
from tenure.runtime.clock import wall_us

_log = logging.getLogger("tenure.columns")

A = TypeVar("A")
P = TypeVar("P")
Sync = Literal["normal", "fast"]

SWEEP_SECONDS = 60.0
"""Seconds between two sweeps of deleted data."""
FAST_SECONDS = 1.0
"""Seconds between two syncs of a store that answers before it syncs."""
BUSY_ATTEMPTS = 100
BUSY_SECONDS = 0.05
"""A write waits five seconds for a disk that does not keep up."""
SHORTEST_SECONDS = 1e-6
"""More than zero, since the system returns at once from a sleep of zero."""


def _check_is_alone(engine: StorageEngine) -> None:
    """Raise ConfigurationError for the rows of a node: there are replicas of them elsewhere. What
    is deleted here must not be forgotten without them, and what is written here they do not get.
    """
    if HINTS in engine.spaces():
        raise ConfigurationError(
            "the directory has the rows of a node of a cluster, and other nodes have replicas of "
            "them: start the node, and use the cluster: columns:http://HOST:PORT"
        )


class EmbeddedBackend:
    """See `Backend`. With `sync="fast"` writes are answered before they are synced."""

    def __init__(
        self,
        make_engine: Callable[[], StorageEngine],
        tables: Sequence[Table],
        sync: Sync = "normal",
        clock: Callable[[], int] = wall_us,
    ) -> None:
        self._make_engine = make_engine
        self._tables = tables
        self._mode = sync
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []
        self._latest = 0
        self._is_dirty = False
        self._is_open = False
        self.replica: Replica
        self.commits: GroupCommit

    async def open(self) -> None:
        engine = await asyncio.to_thread(self._make_engine)
        self.replica = Replica(engine)
        try:
            _check_is_alone(engine)
            self.replica.open(self._tables)
        except BaseException:
            engine.close()
            raise
        self.commits = GroupCommit(engine.sync)
        self._is_open = True
        self._tasks = [asyncio.create_task(self._sweep_now_and_then())]
        if self._mode == "fast":
            self._tasks.append(asyncio.create_task(self._sync_now_and_then()))

    async def close(self) -> None:
        self._is_open = False
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        try:
            if self._mode == "fast":  # also where cancelling has ended the wait for a sync
                await self.commits.durable()
        finally:
            await self.commits.finish()
            self.replica.engine.close()

    async def records(self) -> Mapping[str, TableRecord]:
        return self.replica.records

    async def draw(self, mutation: RowMutation, floor: int) -> Attempt:
        self._check_open()
        return Attempt(Version(0, self.replica.draw(mutation.table, mutation.key, floor)))

    async def write(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        try:
            refused = await self._kept_up(
                lambda: self.replica.write(mutation, attempt, self._now())
            )
            if refused is None:
                if self._mode == "fast":
                    self._is_dirty = True
                else:
                    await self.commits.durable()
        except StoreError as error:
            raise WriteUnknown(
                f"nobody knows whether the disk has the write: {error}. Open the store again, and "
                "repeat it"
            ) from error
        return refused

    async def _kept_up(self, step: Callable[[], P]) -> P:
        """Take a step as soon as the disk keeps up with earlier ones."""
        for _ in range(BUSY_ATTEMPTS):
            self._check_open()
            try:
                return step()
            except EngineBusy:
                await asyncio.sleep(BUSY_SECONDS)
        raise Overloaded(
            "the disk has not kept up with the writes to the store for five seconds; this "
            "write was not begun. Write less at once, or try again later"
        )

    def _now(self) -> int:
        """The clock, or the latest time it ever showed: a time drawn before the clock went back is
        no later.
        """
        self._latest = max(self._latest, self._clock())
        return self._latest

    async def adopt(
        self, table: Table, key: bytes, number: int, journal: int
    ) -> Version | Outranked:
        newest = await self._kept_up(lambda: self.replica.adopt(table, key, number, journal))
        if isinstance(newest, Version):
            await self.commits.durable()
        return newest

    async def _sync_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(FAST_SECONDS)
            if self._is_dirty:
                self._is_dirty = False
                try:
                    await self.commits.durable()
                except StoreError as error:  # closing tries again, and says so
                    self._is_dirty = True
                    _log.warning("what was written in the last second is not kept yet: %s", error)

    async def _sweep_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await self.sweep()
            except EngineBusy:
                continue  # the next sweep removes the rest
            except StoreError as error:
                _log.warning("deleted data is no longer swept: %s", error)
                return

    async def sweep(self) -> int:
        """Remove deleted data for good, as far as the horizon may go; returns how much."""
        replica = self.replica
        until = max(self._clock() - HORIZON_LAG_US, replica.horizon)
        tables = [table_of(name, record) for name, record in replica.records.items()]
        newest = max((doomed_within(replica, table, WHOLE, until) for table in tables), default=0)
        if newest > replica.horizon:
            replica.raise_horizon(newest)
            await self.commits.durable()
        count = 0
        for table in tables:
            count += await in_steps(Sweep(replica, table).steps())
        return count

    def _check_open(self) -> None:
        if not self._is_open:
            raise ClosedError("the store was closed in the meantime; nothing was written or read")

    async def read(self, asked: Reads[A]) -> A:
        """See `Backend.read`. Closing the store ends all cursors, which then no longer show
        everything.
        """
        self._check_open()
        return await in_steps(self.replica.read(asked), self._check_open)


async def in_steps(steps: Steps[P], check: Callable[[], None] = lambda: None) -> P:
    """Run a reading to its end, and let other tasks and threads run between its steps; `check` is
    called after each step, and may raise.
    """
    while True:
        try:
            next(steps)
        except StopIteration as end:
            page: P = end.value
            return page
        await asyncio.sleep(0)
        let_threads_run()
        check()


def let_threads_run() -> None:
    """Leave the interpreter to a thread that waits for it.

    A thread asks for the interpreter when it has waited 5 ms. Whenever the loop looks for events,
    it releases the interpreter for some microseconds: too short for another thread to wake up, but
    its 5 ms begin anew. So a loop whose turns are shorter keeps other threads waiting, for as long
    as 0.1 s, and one of them may renew leases. The shortest sleep takes about 60 µs, which is
    enough.
    """
    time.sleep(SHORTEST_SECONDS)
