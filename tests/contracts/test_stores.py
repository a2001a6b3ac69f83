"""Every store passes the contract of stores."""

from functools import partial

import pytest

from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.opening import StoreOpening
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
