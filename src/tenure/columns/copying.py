"""Copies tables from one store to another, with all times.

Everything that readers see is written with its own time. So a copy may be started again, even if
applications already write to the other store: nothing counts twice, and newer values stay. Rows are
copied in the order of the first store; an interrupted copy continues behind the last row that was
copied. A row that one page holds is copied from it, and so as it was at one instant; what is behind
a page is of later ones.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator

from tenure.columns.backends.contract import Backend, pages_of, pages_of_family
from tenure.columns.requests import RowMutation
from tenure.columns.tables import Table
from tenure.errors import ConfigurationError, Unsupported
from tenure.protocol.replication.messages import ReadRow, ReadRows, WholeRow
from tenure.protocol.replication.row.admission import Attempt, Outranked
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.pages import FoundCell, Slice
from tenure.protocol.replication.row.versions import Version

ROWS_AT_ONCE = 32
COLUMNS_AT_ONCE = 1_000
"""The most edits of one time in one mutation."""
MUTATION_BYTES = 1 << 20
"""The same, in bytes."""


def check_unfenced(table: Table) -> None:
    """Raise Unsupported for a table with a fence: the other store would know no promises to its
    leases.
    """
    if table.fenced_by:
        raise Unsupported(
            f"the table {table.name!r} is fenced by {table.fenced_by!r}, and a copy would know "
            "nothing of its fences: back the store up and restore it instead. To copy it without "
            "them, stop its owners and say --without-fences"
        )


async def copy_table(
    table: Table, old: Backend, new: Backend, after: bytes | None = None
) -> AsyncIterator[tuple[bytes, int]]:
    """Copy the rows behind the key `after`; yields the last key of each batch, and its number of
    columns. Of a fenced table the copy has the rows, and no fence.
    """
    part = Slice(ROWS_AT_ONCE, after=after)
    asked = ReadRows(table=table.name, part=part, within=COLUMNS_AT_ONCE)
    async for page in pages_of(old, asked):
        counts = await asyncio.gather(*(_copy_row(table, row, old, new) for row in page.rows))
        if page.rows:
            yield page.rows[-1].key, sum(counts)


async def _copy_row(table: Table, row: WholeRow, old: Backend, new: Backend) -> int:
    """Copy what the page of the row has, which is of one instant, and then what is behind it."""
    count = 0
    whole = ReadRow(table=table.name, key=row.key, within=COLUMNS_AT_ONCE)
    for name, first in row.families.items():
        async for inner, page in pages_of_family(old, whole, table.shapes[name], first):
            count += len(page.cells)
            await _write(table, row.key, name, inner, page.cells, new)
    return count


async def _write(
    table: Table,
    key: bytes,
    family: str,
    super_column: bytes | None,
    cells: Iterable[FoundCell],
    new: Backend,
) -> None:
    by_time: dict[int, list[Edit]] = defaultdict(list)
    for cell in cells:
        edit = Edit(family, super_column, cell.name, cell.value)
        by_time[cell.version.time].append(edit)
    for time, edits in sorted(by_time.items()):
        for some in _parts(edits):
            attempt = Attempt(Version(0, time))
            refused = await new.write(RowMutation(table, key, some), attempt)
            if isinstance(refused, Outranked):
                raise ConfigurationError(
                    f"an owner with the lease number {refused.fence} has written this row of "
                    f"{table.name!r} in the other store already. Copy into a new store"
                )
            if refused is not None:
                raise ConfigurationError(
                    f"the other store refuses a column of the time {time} ({refused}): it has "
                    "sealed that time already. Copy into a new store"
                )


def _parts(edits: Iterable[Edit]) -> Iterator[list[Edit]]:
    """Split the edits into mutations that delay nobody for long: a copy need not be atomic."""
    part: list[Edit] = []
    size = 0
    for edit in edits:
        if part and size + edit.size > MUTATION_BYTES:
            yield part
            part, size = [], 0
        part.append(edit)
        size += edit.size
    yield part
