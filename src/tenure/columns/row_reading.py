"""Reading whole rows in steps, from cursors that all show one instant."""

from collections.abc import Iterable, Mapping

from tenure.columns.tables import Table
from tenure.protocol.replication.messages import RowsFound, WholeRow
from tenure.protocol.replication.row.layout import MARKER, row_key
from tenure.protocol.replication.row.limits import PAGE_BYTES
from tenure.protocol.replication.row.pages import (
    CellPage,
    Cursors,
    Slice,
    Steps,
    SuperPage,
    cells,
    greatest,
    super_columns,
)
from tenure.protocol.replication.row.records import RowRecord, record_of


def read_row(
    table: Table, at: bytes, record: RowRecord, cursors: Mapping[str, Cursors], within: int
) -> Steps[WholeRow]:
    """A row's first columns of each family."""
    simple: dict[str, CellPage] = {}
    supers: dict[str, SuperPage] = {}
    for name, shape in table.shapes.items():
        both = cursors[name]
        marker = greatest([record.marker, both.finder.get(at + MARKER)])
        if shape.has_supers:
            inner = yield from super_columns(both, shape, at, marker, Slice(within), within)
            if inner.supers:
                supers[name] = inner
        else:
            page = yield from cells(both, shape, at, marker, Slice(within))
            if page.cells:
                simple[name] = page
        yield
    return WholeRow(key=row_key(at, table.kind)[0], simple=simple, supers=supers)


def read_rows(
    table: Table,
    entries: Iterable[tuple[bytes, bytes]],
    cursors: Mapping[str, Cursors],
    first: int,
    within: int,
) -> Steps[RowsFound]:
    """Rows of these records, in order: the requested number of rows with columns, or as many as a
    page holds.
    """
    rows: list[WholeRow] = []
    size = 0
    for at, record in entries:
        row = yield from read_row(table, at, record_of(record), cursors, within)
        if row.families:
            rows.append(row)
            size += row.size
            if len(rows) >= first or size >= PAGE_BYTES:
                return RowsFound(rows=tuple(rows), next=row.key)
    return RowsFound(rows=tuple(rows))
