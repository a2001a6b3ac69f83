"""Copies and scans go on behind every page, and limits hold to the byte."""

from typing import Any, TypeVar

import pytest

from lab.worlds.columns.disks import SimEngine
from tenure.columns import copying
from tenure.columns.backends import contract
from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.copying import copy_table
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.opening import open_store
from tenure.columns.requests import RowMutation
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.errors import ConfigurationError, SchemaError
from tenure.protocol.replication.messages import ReadRows, Reads
from tenure.protocol.replication.row.admission import Attempt, Refused

pytestmark = pytest.mark.asyncio

A = TypeVar("A")
TABLE = Table("t", f=Family(columns=int), s=Family(supers=int, columns=int))


def names(page: Any) -> list[Any]:  # noqa: ANN401 - of any page
    return [each.name for each in page]


async def copied(old: ColumnStore, new: ColumnStore) -> int:
    return sum([count async for _, count in copy_table(TABLE, old.backend, new.backend)])


async def test_what_takes_several_pages_is_copied_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROWS_AT_ONCE", "COLUMNS_AT_ONCE"):
        monkeypatch.setattr(copying, name, 2)
    monkeypatch.setattr(contract, "PAGE_COLUMNS", 2)
    async with open_store("memory:", TABLE) as old, open_store("memory:", TABLE) as new:
        columns = dict.fromkeys(range(5), b"v")
        for key in "abcde":
            await old.insert(TABLE, key, {"f": columns, "s": dict.fromkeys(range(5), columns)})
        assert await copied(old, new) == 150
        for key in "abcde":
            assert await new.get(TABLE, key) == await old.get(TABLE, key)


class ScannedBackend(EmbeddedBackend):
    """Notes what is read of rows beside the scan."""

    def __init__(self) -> None:
        super().__init__(MemoryEngine, [TABLE])
        self.reads: list[object] = []

    async def read(self, asked: Reads[A]) -> A:
        if not isinstance(asked, ReadRows):
            self.reads.append(asked)
        return await super().read(asked)


async def test_a_row_that_one_page_holds_is_copied_from_it() -> None:
    """What is read of it later may be of another instant."""
    backend = ScannedBackend()
    old = ColumnStore(backend, {"t": TABLE})
    await old.open()
    async with open_store("memory:", TABLE) as new:
        row = {"f": {1: b"v", 2: b"w"}, "s": {1: {1: b"v"}, 2: {2: b"w"}}}
        await old.insert(TABLE, "a", row)
        assert await copied(old, new) == 4
        assert backend.reads == []
        assert await new.get(TABLE, "a") == await old.get(TABLE, "a")
    await old.close()


class MeasuredBackend(EmbeddedBackend):
    """Notes how large the mutations are that it is sent."""

    def __init__(self) -> None:
        super().__init__(MemoryEngine, [TABLE])
        self.sizes: list[int] = []

    async def write(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        self.sizes.append(sum(each.size for each in mutation.edits))
        return await super().write(mutation, attempt)


async def test_a_copy_sends_no_mutation_that_would_delay_others_for_long() -> None:
    """A column that is as large as that itself is sent alone."""
    backend = MeasuredBackend()
    new = ColumnStore(backend, {"t": TABLE})
    await new.open()
    large, half, name = 2 << 20, (1 << 19) - 8, 8
    async with open_store("memory:", TABLE) as old:
        columns = dict(enumerate(map(bytes, (large, half, half, 0, large, 0))))
        await old.insert(TABLE, "a", {"f": columns})
        assert await copied(old, new) == 6
        assert await new.get(TABLE, "a") == await old.get(TABLE, "a")
    assert backend.sizes == [name + large, 1 << 20, name, name + large, name]
    await new.close()


async def test_a_copy_that_the_other_store_refuses_is_told() -> None:
    new = ColumnStore(EmbeddedBackend(MemoryEngine, [TABLE]), {"t": TABLE})
    await new.open()
    async with open_store("memory:", TABLE) as old:
        version = await old.insert(TABLE, "a", {"f": {1: b""}})
        assert isinstance(new.backend, EmbeddedBackend)
        new.backend.replica.raise_horizon(version.time)
        with pytest.raises(ConfigurationError, match="Copy into a new store"):
            await copied(old, new)
    await new.close()


async def test_a_scan_backwards_goes_on_behind_its_first_page() -> None:
    async with open_store("memory:", TABLE) as store:
        for n in range(201):
            await store.insert(TABLE, f"{n:03}", {"f": {1: b""}})
        found = [row.key async for row in store.scan(TABLE, reverse=True)]
        assert found == [f"{n:03}" for n in reversed(range(201))]


async def test_a_row_has_as_many_columns_of_each_super_column_as_were_asked_for() -> None:
    async with open_store("memory:", TABLE) as store:
        await store.insert(TABLE, "a", {"s": {1: dict.fromkeys(range(5), b"")}})
        row = await store.get(TABLE, "a", within=3)
        [super_column] = row.families["s"]
        assert names(super_column.columns) == [0, 1, 2]


async def test_what_is_exactly_at_a_limit_is_taken_and_what_is_one_beyond_is_not() -> None:
    async with open_store("memory:", TABLE) as store:
        await store.insert(TABLE, "a", {"f": {1: bytes(16 << 20)}})
        with pytest.raises(SchemaError, match="16777216 at most"):
            await store.insert(TABLE, "a", {"f": {1: bytes((16 << 20) + 1)}})
        most = dict.fromkeys(range(65_536), b"")
        await store.insert(TABLE, "b", {"f": most})
        with pytest.raises(SchemaError, match="at most 65536"):
            await store.insert(TABLE, "b", {"f": most | {-1: b""}})
        halves = {1: bytes((16 << 20) - 8), 2: bytes((16 << 20) - 8)}
        await store.insert(TABLE, "c", {"f": halves})
        with pytest.raises(SchemaError, match="at most 33554432"):
            await store.insert(TABLE, "c", {"f": halves | {2: bytes((16 << 20) - 7)}})


@pytest.mark.parametrize("time", [0, -1, 1 << 63, 1.0, True])
async def test_a_time_that_no_clock_shows_is_refused(time: Any) -> None:  # noqa: ANN401
    async with open_store("memory:", TABLE) as store:
        with pytest.raises(SchemaError, match="microseconds since 1970"):
            await store.insert(TABLE, "a", {"f": {1: b""}}, timestamp=time)


@pytest.mark.parametrize("clock", [1 << 62, (1 << 63) - 1])
async def test_the_first_time_and_the_last_are_taken(clock: int) -> None:
    store = ColumnStore(EmbeddedBackend(MemoryEngine, [TABLE], clock=lambda: clock), {"t": TABLE})
    await store.open()
    for time in (1, clock):
        version = await store.insert(TABLE, "a", {"f": {1: b"%d" % time}}, timestamp=time)
        assert version.time == time
    assert (await store.get(TABLE, "a", "f", 1)).value == b"%d" % clock
    await store.close()


async def test_of_tables_that_do_not_all_fit_none_is_made() -> None:
    engine = MemoryEngine()
    other, changed = Table("n", f=Family(columns=str)), Table("t", f=Family(columns=str))

    async def open_with(*tables: Table) -> None:
        backend = EmbeddedBackend(lambda: engine, tables)
        await backend.open()
        await backend.close()

    await open_with(TABLE)
    for tables in ((other, changed), (changed, other)):
        with pytest.raises(SchemaError, match="'t'"):
            await open_with(*tables)
    await open_with(TABLE, Table("n", f=Family(columns=int)))  # it may still be any


async def test_a_table_survives_a_crash_as_soon_as_the_store_is_open() -> None:
    engine = SimEngine()
    backend = EmbeddedBackend(lambda: engine, [TABLE])
    await backend.open()
    await backend.close()
    engine.crash()
    again = EmbeddedBackend(lambda: engine, [])
    await again.open()
    assert await again.records() == {"t": TABLE.record()}
    await again.close()
