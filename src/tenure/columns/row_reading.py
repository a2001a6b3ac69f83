"""Reading whole rows in steps, from cursors that all show one instant."""

from collections.abc import Iterable, Mapping

from tenure.columns.results import FoundRow, RowPage
from tenure.columns.tables import Table
from tenure.protocol.replication.layout import MARKER, row_key
from tenure.protocol.replication.limits import PAGE_BYTES
from tenure.protocol.replication.pages import (
    CellPage,
    Cursors,
    Slice,
    Steps,
    SuperPage,
    cells,
    greatest,
    super_columns,
)
from tenure.protocol.replication.records import RowRecord, record_of


def read_row(
    table: Table, at: bytes, record: RowRecord, cursors: Mapping[str, Cursors], within: int
) -> Steps[FoundRow]:
    """A row's first columns of each family."""
    found: dict[str, CellPage | SuperPage] = {}
    for name, shape in table.shapes.items():
        both = cursors[name]
        marker = greatest([record.marker, both.finder.get(at + MARKER)])
        page: CellPage | SuperPage
        if shape.has_supers:
            page = yield from super_columns(both, shape, at, marker, Slice(within), within)
            is_empty = not page.supers
        else:
            page = yield from cells(both, shape, at, marker, Slice(within))
            is_empty = not page.cells
        if not is_empty:
            found[name] = page
        yield
    return FoundRow(row_key(at, table.kind)[0], found)


def read_rows(
    table: Table,
    entries: Iterable[tuple[bytes, bytes]],
    cursors: Mapping[str, Cursors],
    first: int,
    within: int,
) -> Steps[RowPage]:
    """Rows of these records, in order: the requested number of rows with columns, or as many as a
    page holds.
    """
    rows: list[FoundRow] = []
    size = 0
    for at, record in entries:
        row = yield from read_row(table, at, record_of(record), cursors, within)
        if row.families:
            rows.append(row)
            size += sum(page.size for page in row.families.values())
            if len(rows) >= first or size >= PAGE_BYTES:
                return RowPage(tuple(rows), row.key)
    return RowPage(tuple(rows))
