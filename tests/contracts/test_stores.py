"""Every store passes the contract of stores."""

from functools import partial
from pathlib import Path

import pytest

from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.opening import StoreOpening, open_store
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table, by_name
from tenure.testing.contracts.store import OpenTables, StoreContract


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
