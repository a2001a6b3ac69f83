"""Every store passes the contract of stores."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from lab.contracts.store import OpenTables, StoreContract
from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.opening import StoreOpening, open_store
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table, by_name
from tests.unit.columns.node.ringed import TablesMade, form_ring, running, settings_of


def open_memory(engine: MemoryEngine, *tables: Table) -> StoreOpening:
    return StoreOpening(ColumnStore(EmbeddedBackend(lambda: engine, tables), by_name(tables)))


@pytest.mark.asyncio
class TestMemoryStore(StoreContract):
    @pytest.fixture
    def open_tables(self) -> OpenTables:
        return partial(open_memory, MemoryEngine())


@pytest.mark.asyncio
class TestStoreInADirectory(StoreContract):
    @pytest.fixture
    def open_tables(self, tmp_path: Path) -> OpenTables:
        return partial(open_store, f"rocksdb:{tmp_path / 'store'}")


@pytest.mark.asyncio
class TestStoreWithItsLogElsewhere(StoreContract):
    @pytest.fixture
    def open_tables(self, tmp_path: Path) -> OpenTables:
        return partial(
            open_store, f"rocksdb:{tmp_path / 'store'}", sync="fast", log=tmp_path / "log"
        )


@pytest.mark.asyncio
class TestStoreOnThreeNodes(StoreContract):
    """Real nodes over loopback; what makes tables is played by the test."""

    @pytest_asyncio.fixture
    async def open_tables(self, tmp_path: Path) -> AsyncIterator[OpenTables]:
        nodes = settings_of(tmp_path)
        form_ring(nodes)
        loop = asyncio.get_running_loop()
        async with running(nodes) as services:
            yield lambda *tables: TablesMade(services, tables, loop)
