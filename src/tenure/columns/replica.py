"""One replica: rows over an engine. What is decided stands in `protocol/replication`.

Everything here is called in one thread, and a write is one step in it: what was read cannot change
before the batch is applied. A page's cursors are opened in one step too, so they show one instant,
and the page is then read in as many steps as it takes.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from tenure.columns.engines.contract import Entry, StorageEngine
from tenure.columns.requests import RowMutation
from tenure.columns.row_reading import RowView, read_rows
from tenure.columns.spaces import doomed_entry, doomed_space, rows_space, space, traces_space
from tenure.columns.tables import Table, check_same, table_of
from tenure.errors import StoreDamaged
from tenure.protocol.replication.messages import (
    AnyRead,
    ReadColumn,
    ReadPage,
    ReadRow,
    ReadRows,
    Reads,
    ReadSupers,
)
from tenure.protocol.replication.request.page_reading import read_by_family, read_page, read_supers
from tenure.protocol.replication.row.admission import (
    Attempt,
    Mutation,
    MutationAdmitted,
    Outranked,
    Refused,
    may_write,
)
from tenure.protocol.replication.row.cells import is_live
from tenure.protocol.replication.row.layout import CELL, MARKER, position
from tenure.protocol.replication.row.pages import (
    CellPage,
    Cursors,
    Pace,
    Steps,
    found_cell,
    row_bounds,
)
from tenure.protocol.replication.row.records import NOTHING, RowRecord, record_of, stored
from tenure.protocol.replication.row.sums import SUM_BYTES, SUMS, place_among_sums
from tenure.protocol.replication.row.versions import Version, version_of
from tenure.protocol.topology.tables import TableRecord

A = TypeVar("A")

META = "meta"
EMPTY = record_of(None)

_HORIZON_KEY = b"horizon"
_TABLE = msgspec.msgpack.Decoder(TableRecord)
_JOURNALS = msgspec.msgpack.Decoder(list[int])


class RowChange(msgspec.Struct, frozen=True):
    """The change of one row's record. The record of a row that is not there is empty."""

    table: str
    at: bytes
    before: RowRecord
    after: RowRecord


class Replica:
    """The rows of some tables, in one engine."""

    def __init__(self, engine: StorageEngine) -> None:
        self.engine = engine
        self.horizon = 0
        """Writes of this time, in microseconds, or an earlier one are refused."""
        self.records: dict[str, TableRecord] = {}
        self.tables: dict[str, Table] = {}
        """All tables that are here: as they were declared, or as they are remembered."""
        self._over: dict[str, frozenset[int]] = {}
        """The journals of each table whose leases are refused; see `refencing`."""
        self._sums: dict[str, list[int]] = {}

    # --- tables ---

    def open(self, tables: Iterable[Table]) -> None:
        """Have these tables, made where they are missing. Raises SchemaError and StoreError."""
        self.engine.make_spaces([META])
        self._load()
        opened = {table.name: table for table in tables}
        declared = {name: table.record() for name, table in opened.items()}
        for name, record in declared.items():
            if name in self.records:
                check_same(name, self.records[name], record)
        for name, record in declared.items():
            self._make(name, record)
        kept = {name: table_of(name, record) for name, record in self.records.items()}
        self.tables = {**kept, **opened}
        self._drop_traces()
        self.engine.sync()

    def _drop_traces(self) -> None:
        traces = set(map(traces_space, self.records))
        self.engine.drop_spaces(traces & self.engine.spaces())

    def _load(self) -> None:
        [horizon] = self.engine.get(META, [_HORIZON_KEY])
        self.horizon = int(horizon or 0)
        for key, value in self.engine.cursor(META).walk(b"table ", b"table!"):
            with suppress(msgspec.DecodeError):
                name = key.removeprefix(b"table ").decode()
                self.records[name] = _TABLE.decode(value)
                self._load_sums(name)
                [over] = self.engine.get(META, [_over_key(name)])
                self._over[name] = frozenset(_JOURNALS.decode(over) if over else ())
                continue
            raise StoreDamaged(f"the store's record of the table {key!r} cannot be read")

    def _load_sums(self, table: str) -> None:
        found = self.engine.get(META, _sum_keys(table))
        self._sums[table] = [int.from_bytes(each or b"") for each in found]

    def _make(self, name: str, record: TableRecord) -> None:
        kept = self.records.get(name)
        if kept is not None:
            families = kept.families | record.families
            record = msgspec.structs.replace(record, families=families)
        self.engine.make_spaces(
            [rows_space(name), doomed_space(name), *(space(name, each) for each in record.families)]
        )
        if record != kept:
            self.engine.apply([(META, b"table " + name.encode(), msgspec.msgpack.encode(record))])
        self.records[name] = record
        self._sums.setdefault(name, [0] * SUMS)
        self._over.setdefault(name, frozenset())

    # --- writing ---

    def record(self, table: Table, at: bytes) -> RowRecord:
        """The record of the row at a position as a whole."""
        [found] = self.engine.get(rows_space(table.name), [at])
        return record_of(found)

    def write(self, asked: RowMutation, attempt: Attempt, now: int) -> Refused | None:
        """Apply a mutation of one row in one step, or refuse it. Raises EngineBusy."""
        table = asked.table
        at = position(asked.key, table.kind)
        mutation = Mutation(table.shapes, table.spaces, at, asked.edits)
        [kept] = self.engine.get(rows_space(table.name), [at])
        record = record_of(kept)
        found: dict[str, list[bytes | None]] = {}
        if kept is not None:  # otherwise there is no entry of the row, and reading is spared
            for family, keys in mutation.wanted(record):
                found[family] = self.engine.get(table.spaces[family], keys)
        if attempt.journal in self._over[table.name]:
            return Outranked(record.fence, record.journal)
        horizon = self.horizon_of(table, asked.key)
        outcome = mutation.admit(attempt, record, found, horizon, now)
        if not isinstance(outcome, MutationAdmitted):
            return outcome
        self.apply_admitted(table.name, at, record, outcome)
        return None

    def apply_admitted(
        self, table: str, at: bytes, before: RowRecord, outcome: MutationAdmitted
    ) -> None:
        """Write what was decided about one row."""
        batch = outcome.puts
        batch.append((rows_space(table), at, stored(outcome.record)))
        for doomed in outcome.doomed:
            batch.append((doomed_space(table), *doomed_entry(doomed)))
        self.apply_rows(batch, [RowChange(table, at, before, outcome.record)])

    def draw(self, table: Table, key: bytes, floor: int) -> int:
        """A time for a write, not below `floor`: above all that the row has (R4)."""
        newest = version_of(self.record(table, position(key, table.kind)).newest).time
        return max(newest, self.horizon_of(table, key), floor - 1) + 1

    def adopt(self, table: Table, key: bytes, number: int, journal: int) -> Version | Outranked:
        """Refuse every lower lease number from here on; it counts when it is synced. Returns the
        newest version of the row.
        """
        at = position(key, table.kind)
        record = self.record(table, at)
        if journal in self._over[table.name] or not may_write(number, journal, record):
            return Outranked(record.fence, record.journal)
        attempt = record.attempt + 1 if record.adopted == number else 1
        after = msgspec.structs.replace(
            record, fence=number, journal=journal, adopted=number, attempt=attempt
        )
        self.engine.apply([(rows_space(table.name), at, stored(after))])
        return version_of(record.newest)

    def refuse_journals(self, table: Table, journals: frozenset[int]) -> None:
        """Refuse the leases of these journals from here on; it counts when it is synced."""
        over = self._over[table.name] | journals
        self.engine.apply([(META, _over_key(table.name), msgspec.msgpack.encode(sorted(over)))])
        self._over[table.name] = over

    def apply(
        self, table: str, at: bytes, batch: list[Entry], before: RowRecord, after: RowRecord
    ) -> None:
        """Write a batch that changes one row, together with the sum that the row is in. A row that
        is gone has an empty record.
        """
        self.apply_rows(batch, [RowChange(table, at, before, after)])

    def apply_rows(self, batch: list[Entry], changes: Iterable[RowChange]) -> None:
        """The same of several rows."""
        totals: dict[tuple[str, int], int] = {}
        for change in changes:
            before, after = change.before.digest, change.after.digest
            if before != after:
                place = place_among_sums(change.at)
                summed = change.table, place
                total = totals.get(summed, self._sums[change.table][place])
                totals[summed] = total ^ int.from_bytes(before) ^ int.from_bytes(after)
        for (table, place), total in totals.items():
            batch.append((META, _sum_keys(table)[place], total.to_bytes(SUM_BYTES)))
        self.engine.apply(batch)
        for (table, place), total in totals.items():
            self._sums[table][place] = total

    def sums(self, table: str) -> Sequence[int]:
        """The xor of the digests of all rows, by the hash of their position."""
        return self._sums[table]

    def horizon_of(self, table: Table, key: bytes) -> int:
        """Up to where the writes of a row are refused."""
        return self.horizon

    def settled_to(self, table: Table, at: bytes) -> int:
        """Up to where everything is known of the row at a position: what was deleted may go."""
        return self.horizon

    def raise_horizon(self, time: int) -> None:
        """Promise to refuse what is not above `time`. It counts when it is synced."""
        self.engine.apply([(META, _HORIZON_KEY, str(time).encode())])
        self.horizon = time

    # --- reading ---

    def read(self, asked: Reads[A]) -> Steps[A]:
        """What readers see at this instant; read it in steps."""
        table = self.tables[asked.table]
        found: Any
        match cast("AnyRead", asked):
            case ReadColumn() as column:
                found = self._column(column)
            case ReadPage(key=key, family=family, super=inner, part=part):
                view = self._view(table, key, [family])
                found = read_page(view.read, table.shapes[family], inner, part)
            case ReadSupers(key=key, family=family, part=part, within=within):
                view = self._view(table, key, [family])
                found = read_supers(view.read, table.shapes[family], part, within)
            case ReadRow(key=key, within=within):
                view = self._view(table, key, table.families)
                found = read_by_family(view.read, key, table.shapes, within)
            case ReadRows(part=part, within=within):
                lower, upper = row_bounds(part, table.kind)
                walker = self.engine.cursor(rows_space(table.name))
                walk = walker.walk(lower, upper, reverse=part.reverse)
                cursors = {family: self.cursors(table, family) for family in table.families}
                found = read_rows(table, walk, cursors, part, within)
        return cast("Steps[A]", found)

    def _column(self, asked: ReadColumn) -> Steps[CellPage]:
        """One column, without cursors: a lookup of each key costs less."""
        table = self.tables[asked.table]
        at = position(asked.key, table.kind)
        section = table.shapes[asked.family].section(at, asked.super)
        keys = [section + CELL + asked.name, at + MARKER, section + MARKER]
        cell, *markers = self.engine.get(space(asked.table, asked.family), keys)
        marker = max(self.record(table, at).marker, *(each or NOTHING for each in markers))
        yield from ()
        if cell is None or not is_live(cell, marker):
            return CellPage(())
        return CellPage((found_cell(asked.name, cell),))

    def _view(self, table: Table, key: bytes, families: Iterable[str]) -> RowView:
        at = position(key, table.kind)
        cursors = {family: self.cursors(table, family) for family in families}
        return RowView(table, at, self.record(table, at), cursors, Pace())

    def cursors(self, table: Table, family: str) -> Cursors:
        """Two walkers through a family, as it is now."""
        name = space(table.name, family)
        return Cursors(self.engine.cursor(name), self.engine.cursor(name))


@cache
def _sum_keys(table: str) -> list[bytes]:
    return [b"sum %b %04d" % (table.encode(), place) for place in range(SUMS)]


def _over_key(table: str) -> bytes:
    return b"over " + table.encode()
