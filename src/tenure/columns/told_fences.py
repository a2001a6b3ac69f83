"""The fences of rows on a cluster, as its nodes tell them. Nothing is changed by asking.

A cluster never lowers a fence. Each node has its own copy of a row, and merging takes the highest
number that any copy has: a node that is away while the others lower a fence would bring it back,
and with it cells that hide what was written since. So if the managers have lost their journal, the
numbers of the new journal are raised above the fences (`protocol.lease.restoration`), and the rows
stay as they are.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

from tenure.columns.backends.contract import Backend, pages_of
from tenure.columns.tables import Table
from tenure.protocol.replication.messages import ReadRows, WholeRow
from tenure.protocol.replication.row.admission import Outranked
from tenure.protocol.replication.row.pages import CellPage, Slice

ROWS_AT_ONCE = 32
TIMES = 3
"""How often a row is asked whose first answer came from a replica that lacks what others have."""
NO_LEASE, NO_JOURNAL = 0, 1
"""A lease number that no lease has, of a journal that is not that of rows without a fence. So every
row refuses it, and says what it has promised."""


async def told_fences(table: Table, backend: Backend) -> AsyncIterator[tuple[int, int]]:
    """The journal and the highest lease number of each row that has a fence and a column."""
    asked = ReadRows(table=table.name, part=Slice(ROWS_AT_ONCE), within=1)
    async for page in pages_of(backend, asked):
        for journal, number in await asyncio.gather(
            *(_fence(table, backend, row) for row in page.rows)
        ):
            if number:
                yield journal, number


async def _fence(table: Table, backend: Backend, row: WholeRow) -> tuple[int, int]:
    written = max(_numbers(row), default=0)
    journal = number = 0
    for _ in range(TIMES):
        refused = await backend.adopt(table, row.key, NO_LEASE, NO_JOURNAL)
        assert isinstance(refused, Outranked), "no row takes that lease"
        journal, number = refused.journal, refused.fence
        if number >= written:
            break
    return journal, max(number, written)


def _numbers(row: WholeRow) -> Iterator[int]:
    """The lease numbers under which the columns of a row were written, as far as they were read."""
    for page in row.families.values():
        pages = [page] if isinstance(page, CellPage) else [each for _, each in page.supers]
        for each in pages:
            for cell in each.cells:
                yield cell.version.number
