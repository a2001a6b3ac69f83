"""Reading rows of one replica: by the rounds of a coordinator, each answered from one instant."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tenure.columns.tables import Table
from tenure.protocol.replication.messages import RowsFound, WholeRow
from tenure.protocol.replication.request.page_reading import read_by_family
from tenure.protocol.replication.request.resolving import Resolved, agreed
from tenure.protocol.replication.row.layout import row_key
from tenure.protocol.replication.row.limits import PAGE_BYTES
from tenure.protocol.replication.row.pages import Cursors, Pace, Slice, Steps
from tenure.protocol.replication.row.parts import section_part
from tenure.protocol.replication.row.records import RowRecord, record_of
from tenure.protocol.replication.row.sections import SectionQuestion

QUESTION_ENTRIES = 8
"""Entries that finding a section counts for."""


class RowView(NamedTuple):
    """One row at one instant: its record, and cursors of the families that are read."""

    table: Table
    at: bytes
    record: RowRecord
    cursors: Mapping[str, Cursors]
    pace: Pace

    def read(self, questions: Sequence[SectionQuestion]) -> Steps[list[Resolved]]:
        """The outcome of each question. There is nobody else to agree with."""
        found = []
        for question in questions:
            family = question.family
            cursors, shape = self.cursors[family], self.table.shapes[family]
            part = yield from section_part(cursors, shape, self.at, self.record.marker, question)
            found.append(agreed(part))
            if self.pace.is_over(0, QUESTION_ENTRIES):
                yield
        return found


def read_rows(
    table: Table,
    entries: Iterable[tuple[bytes, bytes]],
    cursors: Mapping[str, Cursors],
    part: Slice,
    within: int,
) -> Steps[RowsFound]:
    """Rows of these records, in order: the requested number of rows with columns, or as many as a
    page holds.
    """
    rows: list[WholeRow] = []
    size, pace = 0, Pace()
    for at, record in entries:
        view = RowView(table, at, record_of(record), cursors, pace)
        key, _ = row_key(at, table.kind)
        row = yield from read_by_family(view.read, key, table.shapes, within)
        if row.families:
            rows.append(row)
            size += row.size
            if len(rows) >= part.first or size >= PAGE_BYTES:
                return RowsFound(rows=tuple(rows), next=row.key)
    return RowsFound(rows=tuple(rows))
