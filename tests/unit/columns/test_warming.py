"""`warm` reads rows in the background, and copes with a store that is closed meanwhile."""

import asyncio
from typing import TypeVar, cast

import pytest

from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.protocol.replication.messages import AnyRead, ReadPage, Reads, ReadSupers
from tenure.protocol.replication.row.pages import CellPage, SuperPage

pytestmark = pytest.mark.asyncio

A = TypeVar("A")
TABLE = Table("t", f=Family(columns=int), s=Family(supers=int, columns=int, order="time"))


class WatchedBackend(EmbeddedBackend):
    """Counts what its pages had."""

    def __init__(self) -> None:
        super().__init__(MemoryEngine, [TABLE])
        self.found: dict[str, int] = {}

    async def read(self, asked: Reads[A]) -> A:
        page = await super().read(asked)
        match cast("AnyRead", asked), page:
            case ReadPage(family=family), CellPage(cells=cells):
                self.found[family] = len(cells)
            case ReadSupers(family=family), SuperPage(supers=supers):
                self.found[family] = sum(len(columns.cells) for _, columns in supers)
        return page


async def test_columns_and_super_columns_with_theirs_are_read() -> None:
    backend = WatchedBackend()
    store = ColumnStore(backend, {"t": TABLE})
    await store.open()
    columns = dict.fromkeys(range(3), b"")
    await store.insert(TABLE, "k", {"f": columns, "s": {1: columns, 2: columns}})
    await store.warm(TABLE, "k")
    await store.warmed()
    assert backend.found == {"f": 3, "s": 6}
    backend.found.clear()
    await store.warm(TABLE, "k", "s")
    await store.warmed()
    assert backend.found == {"s": 6}
    await store.close()


class HangingBackend(EmbeddedBackend):
    """Reads for ever."""

    async def read(self, asked: Reads[A]) -> A:
        await asyncio.Event().wait()
        return await super().read(asked)


async def test_closing_ends_what_is_still_read() -> None:
    backend = HangingBackend(MemoryEngine, [TABLE])
    store = ColumnStore(backend, {"t": TABLE})
    await store.open()
    before = asyncio.all_tasks()
    await store.warm(TABLE, "k")
    [reading] = asyncio.all_tasks() - before
    await asyncio.sleep(0)
    await store.close()
    await asyncio.wait([reading], timeout=1)
    assert reading.cancelled()
