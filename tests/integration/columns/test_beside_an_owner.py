"""An owner renews its leases in the process, and the loop, that writes to a store: none runs out.

A machine that stands still for a term ends leases as well. So the work is done in rounds, and one
of them must go by with the leases that it began with: what holds the interpreter does it each time.
"""

import asyncio
import ctypes
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tenure import Family, Owner, Table
from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.rocksdb import MIB, EngineOptions, RocksEngine
from tenure.columns.store import ColumnStore
from tenure.protocol.lease.timing import TEST
from tenure.protocol.replication.row.limits import HORIZON_LAG_US
from tenure.runtime.clock import wall_us
from tests.integration.processes import manager
from tests.patience import DEADLINE_SECONDS, until

pytestmark = pytest.mark.asyncio

TABLE = Table("t", large=Family(columns=int), small=Family(columns=int, order="time"))
OPTIONS = EngineOptions(family_bytes=4 * MIB)
"""Families are so small that they become files, and files are merged, while rows are written."""
ROUNDS = 5
LARGE, SMALL = 48, 20_000
TERM_SECONDS = TEST.term_ns / 1e9


@pytest_asyncio.fixture
async def owner() -> AsyncIterator[Owner]:
    with manager("--first-start", preset=TEST.name) as running:
        url = running.wait_for("listening")["url"]
        async with Owner([url], pool="rooms", address="http://127.0.0.1:1") as owner:
            await asyncio.wait_for(owner.ready(), DEADLINE_SECONDS)
            yield owner


class Beside:
    """A store in the loop of the owner, and what it has to do in a round."""

    def __init__(self, path: Path, engine: type[RocksEngine]) -> None:
        self._ahead = 0
        self.backend = EmbeddedBackend(
            lambda: engine.open(path, None, OPTIONS), [TABLE], clock=self._wall
        )
        self.store = ColumnStore(self.backend, {"t": TABLE}, self._wall)

    def _wall(self) -> int:
        return wall_us() + self._ahead

    async def round(self) -> None:
        """Write, sync, flush and merge; read a page behind tombstones; sweep them."""
        store, engine = self.store, self.backend.replica.engine
        values = ({"large": {n: bytes(MIB)}} for n in range(LARGE))
        await asyncio.gather(*(store.insert(TABLE, "k", each) for each in values))
        await store.insert(TABLE, "k", {"large": {0: bytes(16 * MIB)}})
        for start in range(0, SMALL, 1_000):
            columns = dict.fromkeys(range(start, start + 1_000), b"")
            await store.insert(TABLE, "k", {"small": columns})
        await asyncio.gather(asyncio.to_thread(engine.flush), store.delete(TABLE, "k", "small"))
        merging = asyncio.create_task(asyncio.to_thread(engine.compact))
        assert len(await store.get(TABLE, "k", "small")) == 0
        self._ahead += 2 * HORIZON_LAG_US
        assert await self.backend.sweep() > 0
        await merging


async def rounds_that_kept(owner: Owner, beside: Beside, rounds: int) -> int:
    """How many rounds went by in which no lease ran out, until one has."""
    await beside.store.open()
    try:
        for _ in range(rounds):
            lease = await until(lambda: owner.check("attic"))
            assert lease
            await beside.round()
            if owner.holds(lease):
                return 1
        return 0
    finally:
        await beside.store.close()


async def test_what_a_store_does_ends_no_lease(owner: Owner, tmp_path: Path) -> None:
    assert await rounds_that_kept(owner, Beside(tmp_path / "store", RocksEngine), ROUNDS)


class HoldingEngine(RocksEngine):
    """Works as RocksDB does inside of a write: with the interpreter's lock, on a slow disk."""

    def flush(self) -> None:
        ctypes.PyDLL(None).usleep(int(2 * TERM_SECONDS * 1e6))
        super().flush()


async def test_an_engine_that_holds_the_interpreter_ends_them(owner: Owner, tmp_path: Path) -> None:
    """The test above would notice this: the work is in a thread, and the loop stands
    still with it.
    """
    assert not await rounds_that_kept(owner, Beside(tmp_path / "store", HoldingEngine), 1)
