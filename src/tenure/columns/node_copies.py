"""Copies of rows between the stores of two nodes: what is read, written and wiped.

`NodeReplica` does each in one step. A piece, the progress of the copy with it, and the sums of its
rows are one batch: a copy that was killed has nothing twice.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from tenure.base.ranges import KeyRange
from tenure.columns.engines.contract import Entry, StorageEngine
from tenure.columns.replica import EMPTY, RowChange
from tenure.columns.spaces import doomed_entry, doomed_space, rows_space, space
from tenure.columns.tables import Table
from tenure.protocol.replication.operations import ReadPiece
from tenure.protocol.replication.row.admission import Doomed
from tenure.protocol.replication.row.cells import is_live, packed_time
from tenure.protocol.replication.row.copies import CopiedRow, CopyMark
from tenure.protocol.replication.row.layout import AFTER, TIME_BYTES, bound
from tenure.protocol.replication.row.limits import STEP_ENTRIES
from tenure.protocol.replication.row.records import NOTHING, record_of
from tenure.protocol.replication.row.states import is_marker

PIECE_ENTRIES = 4 * STEP_ENTRIES
"""The most bytes of a piece: reading one is one step, of some ten milliseconds."""


def piece_of(
    engine: StorageEngine, tables: Mapping[str, Table], asked: ReadPiece
) -> tuple[list[CopiedRow], bool]:
    """Whole rows behind the mark, until there are enough, and whether these are all."""
    rows: list[CopiedRow] = []
    size = entries = 0
    for row in _rows(engine, tables, asked.range, asked.mark):
        rows.append(row)
        for family in row.families.values():
            size += sum(len(key) + len(value) for key, value in family)
            entries += len(family)
        size += len(row.at) + len(row.record)
        if size >= asked.most_bytes or entries >= PIECE_ENTRIES or len(rows) >= STEP_ENTRIES:
            return rows, False
    return rows, True


def _rows(
    engine: StorageEngine, tables: Mapping[str, Table], key_range: KeyRange, mark: CopyMark
) -> Iterator[CopiedRow]:
    for name, table in sorted(tables.items()):
        if name < mark.table:
            continue
        lower, upper = bounds(key_range, table)
        if name == mark.table and mark.at:
            lower = mark.at + b"\0"
        families = {
            family: _Behind(engine.cursor(space(name, family)).walk(lower, upper))
            for family in table.families
        }
        for at, record in engine.cursor(rows_space(name)).walk(lower, upper):
            found = {family: behind.of(at) for family, behind in families.items()}
            found = {family: entries for family, entries in found.items() if entries}
            yield CopiedRow(name, at, record, found)


def taken(rows: Iterable[CopiedRow]) -> tuple[list[Entry], list[RowChange]]:
    """What is written, and which rows change with it, to have rows as another node keeps them."""
    batch: list[Entry] = []
    changes: list[RowChange] = []
    for row in rows:
        batch.append((rows_space(row.table), row.at, row.record))
        batch.extend(_entries(row))
        changes.append(RowChange(row.table, row.at, EMPTY, record_of(row.record)))
    return batch, changes


def wiped(
    engine: StorageEngine, tables: Mapping[str, Table], key_range: KeyRange
) -> tuple[list[Entry], list[RowChange], bool]:
    """What is removed from a range: few enough entries that others need not wait; and whether that
    is the rest of it.
    """
    batch: list[Entry] = []
    changes: list[RowChange] = []
    for name, table in tables.items():
        lower, upper = bounds(key_range, table)
        for each in (*(space(name, family) for family in table.families), rows_space(name)):
            walk = engine.cursor(each).walk(lower, upper)
            for key, value in islice(walk, STEP_ENTRIES - len(batch)):
                batch.append((each, key, None))
                if each == rows_space(name):
                    changes.append(RowChange(name, key, record_of(value), EMPTY))
    return batch, changes, len(batch) < STEP_ENTRIES


class _Behind:
    """A walk through the entries of a family, row by row."""

    def __init__(self, walk: Iterator[tuple[bytes, bytes]]) -> None:
        self._walk = walk
        self._next = next(walk, None)

    def of(self, at: bytes) -> list[tuple[bytes, bytes]]:
        """The entries of the row at a position, which lies behind that of the previous row."""
        found = []
        upper, size = at + AFTER, len(at)
        while self._next is not None and self._next[0] < upper:
            key, value = self._next
            if key.startswith(at):
                found.append((key[size:], value))
            self._next = next(self._walk, None)
        return found


def bounds(key_range: KeyRange, table: Table) -> tuple[bytes, bytes | None]:
    """The keys between which the entries of rows in a range of the ring lie."""
    end = key_range.end
    return bound(key_range.start, table.kind), None if end is None else bound(end, table.kind)


def _entries(row: CopiedRow) -> Iterator[Entry]:
    """The entries of a row, and those of its doomed things."""
    doomed: list[Doomed] = []
    if (marker := record_of(row.record).marker) != NOTHING:
        doomed.append(Doomed(packed_time(marker), "", row.at, covers=True))
    for family, entries in row.families.items():
        name = space(row.table, family)
        for behind, value in entries:
            key = row.at + behind
            yield name, key, value
            if is_marker(value):
                doomed.append(Doomed(packed_time(value), family, key, covers=True))
            elif len(value) > TIME_BYTES and not is_live(value, NOTHING):
                doomed.append(Doomed(packed_time(value), family, key, covers=False))
    for each in doomed:
        yield (doomed_space(row.table), *doomed_entry(each))
