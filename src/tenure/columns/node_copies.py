"""Copies in a node's store: reads rows as they are kept, takes those of another node, and wipes
ranges.

Each is one step, as in `node_replica`. A piece, the progress of the copy with it, and the sums of
its rows are one batch: a copy that was killed has nothing twice.
"""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from tenure.base.ranges import KeyRange
from tenure.columns.engines.contract import Entry
from tenure.columns.replica import EMPTY, META, RowChange
from tenure.columns.spaces import doomed_entry, doomed_space, rows_space, space
from tenure.columns.tables import Table
from tenure.protocol.replication.admission import Doomed
from tenure.protocol.replication.cells import is_live, packed_time
from tenure.protocol.replication.copies import (
    CopiedRow,
    CopyMark,
    packed_record,
    packed_rows,
    record_of_filling,
    rows_of,
)
from tenure.protocol.replication.layout import AFTER, TIME_BYTES, bound, row_key
from tenure.protocol.replication.limits import STEP_ENTRIES
from tenure.protocol.replication.operations import PieceRead, ReadPiece
from tenure.protocol.replication.records import NOTHING, record_of
from tenure.protocol.replication.states import is_marker
from tenure.protocol.replication.sums import row_print
from tenure.protocol.replication.tasks import (
    BeginFilling,
    CompareRows,
    RowsCompared,
    TakePiece,
    TaskDone,
    WipeRange,
)

if TYPE_CHECKING:
    from tenure.columns.node_replica import NodeReplica

FILLING = b"filling"
PIECE_ENTRIES = 4 * STEP_ENTRIES
"""The most bytes of a piece: reading one is one step, of some ten milliseconds."""


class NodeCopies:
    """The copies of one replica."""

    def __init__(self, replica: "NodeReplica") -> None:
        self._replica = replica
        self.record = record_of_filling(None)

    def load(self) -> None:
        """Load what was there before."""
        [kept] = self._replica.engine.get(META, [FILLING])
        self.record = record_of_filling(kept)

    # --- where a copy comes from ---

    def read(self, step: ReadPiece) -> PieceRead:
        """Read whole rows, until there are enough."""
        rows: list[CopiedRow] = []
        horizons = self._replica.horizons.within(step.range)
        size = entries = 0
        for row in self._rows(step.range, step.mark):
            rows.append(row)
            for family in row.families.values():
                size += sum(len(key) + len(value) for key, value in family)
                entries += len(family)
            size += len(row.at) + len(row.record)
            if size >= step.most_bytes or entries >= PIECE_ENTRIES or len(rows) >= STEP_ENTRIES:
                mark = CopyMark(row.table, row.at)
                return PieceRead(rows=packed_rows(rows), mark=mark, is_all=False, horizons=horizons)
        return PieceRead(rows=packed_rows(rows), mark=step.mark, is_all=True, horizons=horizons)

    def _rows(self, key_range: KeyRange, mark: CopyMark) -> Iterator[CopiedRow]:
        engine = self._replica.engine
        for name, table in sorted(self._replica.tables.items()):
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

    def compare(self, step: CompareRows) -> RowsCompared:
        """Find the rows that differ here."""
        table = self._replica.tables[step.table]
        places = [at for at, _ in step.rows]
        kept = self._replica.engine.get(rows_space(step.table), places) if places else []
        return RowsCompared(
            tuple(
                row_key(at, table.kind)[0]
                for (at, digest), found in zip(step.rows, kept, strict=True)
                if found is None or row_print(record_of(found)) != int.from_bytes(digest)
            )
        )

    # --- where it goes to ---

    def begin(self, step: BeginFilling) -> TaskDone:
        """Note what is to be copied."""
        self._replica.engine.apply([(META, FILLING, packed_record(step.record))])
        self.record = step.record
        return TaskDone()

    def take(self, step: TakePiece) -> TaskDone:
        """Take rows as another node keeps them."""
        record = self.record.with_part(step.number, step.part)
        batch: list[Entry] = [(META, FILLING, packed_record(record))]
        changes: list[RowChange] = []
        for row in rows_of(step.rows):
            batch.append((rows_space(row.table), row.at, row.record))
            batch.extend(_entries(row))
            changes.append(RowChange(row.table, row.at, EMPTY, record_of(row.record)))
        batch.extend(self._replica.horizons.raised(step.horizons))
        self._replica.apply_rows(batch, changes)
        self._replica.horizons.load()
        self.record = record
        return TaskDone()

    def wipe(self, step: WipeRange) -> TaskDone:
        """Forget some of a range: few enough entries that others need not wait."""
        batch: list[Entry] = []
        changes: list[RowChange] = []
        for name, table in self._replica.tables.items():
            lower, upper = bounds(step.range, table)
            for each in (*(space(name, family) for family in table.families), rows_space(name)):
                walk = self._replica.engine.cursor(each).walk(lower, upper)
                for key, value in islice(walk, STEP_ENTRIES - len(batch)):
                    batch.append((each, key, None))
                    if each == rows_space(name):
                        changes.append(RowChange(name, key, record_of(value), EMPTY))
        if is_all := len(batch) < STEP_ENTRIES:
            batch.extend(self._replica.horizons.forgotten(step.range))
        self._replica.apply_rows(batch, changes)
        self._replica.horizons.load()
        return TaskDone(is_all=is_all)


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
