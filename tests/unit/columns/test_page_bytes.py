"""A page has what was asked for, or as much as its bytes take; the next one goes on there."""

from typing import Any

import pytest

from tenure.columns.opening import open_store
from tenure.columns.paths import DELETE
from tenure.columns.tables import Family, Table
from tenure.errors import SchemaError
from tenure.protocol.replication.messages import ReadRows
from tenure.protocol.replication.row.limits import MUTATION_BYTES, NAME_BYTES, PAGE_BYTES
from tenure.protocol.replication.row.pages import Slice
from tenure.protocol.topology.tables import Order

pytestmark = pytest.mark.asyncio

TABLE = Table("t", f=Family(columns=int), s=Family(supers=int, columns=int))


async def test_a_page_of_rows_has_bounded_bytes_and_the_scan_goes_on() -> None:
    """A row may have as much in one super family as in a simple one."""
    third = bytes(PAGE_BYTES // 3 + 1)
    async with open_store("memory:", TABLE) as store:
        for n in range(3):
            await store.insert(TABLE, f"simple-{n}", {"f": {1: third}})
            await store.insert(TABLE, f"super-{n}", {"s": {1: {1: third}}})
        sizes = []
        part = Slice(100)
        while True:
            page = await store.backend.read(ReadRows(table=TABLE.name, part=part, within=10))
            sizes.append(len(page.rows))
            if page.next is None:
                break
            part = Slice(100, after=page.next)
        assert sizes == [3, 3, 0]
        assert len([row async for row in store.scan(TABLE)]) == 6


async def test_a_page_of_columns_has_bounded_bytes() -> None:
    half = bytes(PAGE_BYTES // 2)
    async with open_store("memory:", TABLE) as store:
        for n in range(3):
            await store.insert(TABLE, "k", {"f": {n: half}, "s": {n: {1: half}}})
        for family in ("f", "s"):
            page = await store.get(TABLE, "k", family, first=10)
            assert [each.name for each in page] == [0, 1]
            rest = await store.get(TABLE, "k", family, first=10, next=page.next)
            assert [each.name for each in rest] == [2]


@pytest.mark.parametrize("family", ["f", "s"])
async def test_names_fill_a_page_as_values_do(family: str) -> None:
    """They have up to 65,535 bytes each, and a column may have nothing else."""
    table = Table("t", f=Family(columns=str), s=Family(supers=str, columns=int))
    full = PAGE_BYTES // NAME_BYTES + 1
    names = [f"{n:{NAME_BYTES}}" for n in range(full + 10)]
    value: Any = b"" if family == "f" else {1: b""}
    async with open_store("memory:", table) as store:
        for name in names:
            await store.insert(table, "k", {family: {name: value}})
        page = await store.get(table, "k", family, first=10_000)
        assert len(page) in (full - 1, full)  # a super column has a name of its column, too
        rest = await store.get(table, "k", family, first=10_000, next=page.next)
        assert [each.name for each in (*page, *rest)] == names


async def test_a_next_that_no_page_had_is_refused() -> None:
    by_time = Table("b", f=Family(columns=str, order="time"), n=Family(columns=str))
    async with open_store("memory:", TABLE, by_time) as store:
        asked: list[tuple[Any, ...]] = [
            (TABLE, "f"),
            (TABLE, "s"),
            (TABLE, "s", 1),
            (by_time, "f"),
            (by_time, "n"),
        ]
        for table, *path in asked:
            for junk in (b"\xff\xfe", b"\xff" * 9):
                with pytest.raises(SchemaError, match=r"pass page\.next"):
                    await store.get(table, "k", *path, next=junk)


async def test_the_bytes_of_a_mutation_are_those_of_all_its_names() -> None:
    """Super columns too: their names are in the key of each entry, and sent with each."""
    many = MUTATION_BYTES // NAME_BYTES + 1
    names = [f"{n:{NAME_BYTES}}" for n in range(many)]
    table = Table("t", s=Family(supers=str, columns=int))
    async with open_store("memory:", table) as store:
        with pytest.raises(SchemaError, match="at most 33554432 are allowed"):
            await store.insert(table, "k", {"s": dict.fromkeys(names, DELETE)})
        with pytest.raises(SchemaError, match="at most 33554432 are allowed"):
            await store.insert(table, "k", {"s": {names[0]: dict.fromkeys(range(many), b"")}})
        await store.insert(table, "k", {"s": dict.fromkeys(names[1:], DELETE)})


@pytest.mark.parametrize(("order", "before"), [("name", b""), ("time", bytes(8))])
async def test_no_page_goes_on_behind_a_name_that_is_longer_than_any(
    order: Order, before: bytes
) -> None:
    """A node would end the connection, with all that others wait for there, and applications may
    have `next` from their own users.
    """
    table = Table("t", f=Family(columns=str, order=order))
    async with open_store("memory:", table) as store:
        longest = before + b"x" * NAME_BYTES
        assert [*await store.get(table, "k", "f", next=longest)] == []
        with pytest.raises(SchemaError, match="next is not what a page"):
            await store.get(table, "k", "f", next=longest + b"x")
