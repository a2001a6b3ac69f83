"""Pages of whole rows: as many as are asked for, or as a page of bytes takes."""

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
