"""A page has what was asked for, or as much as its bytes take; the next one goes on there."""

import pytest

from tenure.columns.opening import open_store
from tenure.columns.requests import ScanRead
from tenure.columns.tables import Family, Table
from tenure.protocol.replication.limits import PAGE_BYTES
from tenure.protocol.replication.pages import Slice

pytestmark = pytest.mark.asyncio

TABLE = Table("t", f=Family(columns=int), s=Family(supers=int, columns=int))


async def test_a_page_of_rows_has_bounded_bytes_and_the_scan_goes_on() -> None:
    """What a row may have in one super family is as large as what it has in a simple one."""
    third = bytes(PAGE_BYTES // 3 + 1)
    async with open_store("memory:", TABLE) as store:
        for n in range(3):
            await store.insert(TABLE, f"simple-{n}", {"f": {1: third}})
            await store.insert(TABLE, f"super-{n}", {"s": {1: {1: third}}})
        sizes = []
        part = Slice(100)
        while True:
            page = await store.backend.rows(ScanRead(TABLE, part, 10))
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


async def test_a_page_that_goes_on_keeps_to_its_bounds() -> None:
    """Also where they are other bounds than those of the page before."""
    async with open_store("memory:", TABLE) as store:
        await store.insert(TABLE, "k", {"f": dict.fromkeys(range(6), b"")})
        page = await store.get(TABLE, "k", "f", first=1)
        later = await store.get(TABLE, "k", "f", start=3, next=page.next)
        assert [each.name for each in later] == [3, 4, 5]
        page = await store.get(TABLE, "k", "f", first=1, reverse=True)
        lower = await store.get(TABLE, "k", "f", end=3, next=page.next, reverse=True)
        assert [each.name for each in lower] == [2, 1, 0]
