"""The backend on Cassandra: each of our tables is a CQL table, and each row a partition of it.

Cassandra decides by time alone which of two writes counts. It never refuses a write because its
time has passed, so a writer whose clock is behind can lose what it wrote last (D3 is not promised).
A deleted value can come back if a node was away for longer than `gc_grace_seconds` (D4). Rows are
in the order of their keys only if the whole cluster keeps them in that order, with
`ByteOrderedPartitioner`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from tenure.columns.backends.cassandra.address import CassandraAddress
from tenure.columns.backends.cassandra.driver import Answer, CassandraDriver
from tenure.columns.backends.cassandra.reading import RowReading, Sizes
from tenure.columns.backends.cassandra.schema import kept_records, prepare_schema
from tenure.columns.backends.cassandra.statements import (
    ColumnPlace,
    Cql,
    Promise,
    RowFence,
    bounds_of,
    check_names,
    clear,
    fence_of,
    keys_of,
    places,
    promise,
    put,
    take_turn,
)
from tenure.columns.backends.cassandra.statements import remove as remove_value
from tenure.columns.backends.contract import Fencing
from tenure.columns.requests import RowMutation
from tenure.columns.tables import Table, table_of
from tenure.errors import Unsupported
from tenure.protocol.replication.messages import (
    AnyRead,
    ReadColumn,
    ReadPage,
    ReadRow,
    ReadRows,
    Reads,
    ReadSupers,
    RowsFound,
    WholeRow,
    whole_row,
)
from tenure.protocol.replication.row.admission import (
    Ahead,
    Attempt,
    Late,
    Outranked,
    Refused,
    may_write,
)
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.layout import FamilyShape, inverted
from tenure.protocol.replication.row.limits import AHEAD_US
from tenure.protocol.replication.row.pages import CellPage, SuperPage
from tenure.protocol.replication.row.records import RowRecord
from tenure.protocol.replication.row.versions import NEVER, Version
from tenure.protocol.topology.tables import TableRecord
from tenure.runtime.clock import wall_us

A = TypeVar("A")
_OfRow: TypeAlias = ReadColumn | ReadPage | ReadSupers | ReadRow | RowMutation

MARK = b""
"""The value at a place in the order of time, which only shows that the place exists."""


class CassandraBackend:
    def __init__(
        self,
        address: CassandraAddress,
        tables: Sequence[Table],
        *,
        create: bool,
        fence: Fencing,
        options: Mapping[str, Any],
        clock: Callable[[], int] = wall_us,
    ) -> None:
        self.address = address
        self._driver = CassandraDriver(address, options)
        self._tables = {table.name: table for table in tables}
        self._create = create
        self._fence: Fencing = fence
        self._clock = clock
        self._sizes = Sizes()

    async def open(self) -> None:
        await self._driver.connect()
        try:
            await prepare_schema(
                self._driver, [*self._tables.values()], create=self._create, fence=self._fence
            )
            kept = {name: table_of(name, record) for name, record in (await self.records()).items()}
        except BaseException:
            await self._driver.close()
            raise
        self._tables = {**kept, **self._tables}

    async def close(self) -> None:
        await self._driver.close()

    async def records(self) -> Mapping[str, TableRecord]:
        return await kept_records(self._driver) or {}

    # --- writing ---

    async def draw(self, mutation: RowMutation, floor: int) -> Attempt:
        """See `Backend.draw`. A table whose writes are ordered is not opened here."""
        raise Unsupported(f"Cassandra does not order the writes of {mutation.table.name!r}")

    async def write(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        for edit in mutation.edits:
            if edit.family is not None:
                check_names(mutation.table, edit.family, edit.super, edit.name)
        if mutation.table.fenced_by:
            return await self._write_under(mutation, attempt)
        at = attempt.version.time
        # A drawn time must be above all earlier ones, or the write would be hidden.
        if mutation.time is not None and at > (bound := self._clock() + AHEAD_US):
            return Ahead(bound)
        await self._driver.apply(await self._said(mutation, at), mutation.level)
        return None

    async def _write_under(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        """Write if the row is promised to this very lease, and its turn is not over.

        The server draws the times of these writes. So if a node carried out a copy of a write late,
        when the write was repeated long ago, the copy would hide later writes. The time that we
        drew is therefore the write's turn, and each turn is carried out once.
        """
        table, key = mutation.table, mutation.key
        turn, lease = attempt.version.time, Promise(attempt.version.number, attempt.journal)
        statements = await self._said(mutation, None)
        statements.append(take_turn(table, key, lease, turn))
        while True:
            if _is_applied(await self._driver.apply(statements, mutation.level)):
                return None
            fence = await self._fence_of(table, key)
            if fence is not None and fence.promise == lease and fence.turn >= turn:
                return None if fence.turn == turn else Late(fence.turn)
            if isinstance(refused := await self.adopt(table, key, *lease), Outranked):
                return refused

    async def adopt(
        self, table: Table, key: bytes, number: int, journal: int
    ) -> Version | Outranked:
        """See `Backend.adopt`. The newest version is that of the last turn."""
        lease = Promise(number, journal)
        while True:
            fence = await self._fence_of(table, key)
            before = fence.promise if fence else None
            newest = Version(number, fence.turn or 0) if fence else NEVER
            if before == lease:
                return newest
            there = before or Promise(0, 0)
            record = RowRecord(fence=there.number, journal=there.journal)
            if not may_write(number, journal, record):
                return Outranked(*there)
            if _is_applied(
                await self._driver.apply([promise(table, key, lease, before)], "quorum")
            ):
                return newest

    async def _fence_of(self, table: Table, key: bytes) -> RowFence | None:
        listed = await self._driver.execute(fence_of(table, key), "serial")
        return next(
            (RowFence(Promise(*row[:2]), row[2]) for row in listed if row[0] is not None), None
        )

    async def _said(self, mutation: RowMutation, at: int | None) -> list[Cql]:
        """The mutation in CQL; without a time, that of a fenced table."""
        return [said for edit in mutation.edits for said in await self._said_of(mutation, edit, at)]

    async def _said_of(self, mutation: RowMutation, edit: Edit, at: int | None) -> list[Cql]:
        table, key = mutation.table, mutation.key
        if edit.family is None and table.fenced_by:  # the fence is a part of the row, and stays
            return [clear(table, (key, name), at) for name in table.families]
        if edit.family is None:
            return [clear(table, (key,), at)]
        family = table.shapes[edit.family]
        above: tuple[bytes, ...] = () if edit.super is None else (edit.super,)
        if edit.name is None:
            spaces = [family.name, *([places(family)] if family.order == "time" else [])]
            return [clear(table, (key, space, *above), at) for space in spaces]
        place = ColumnPlace(key, family.name, edit.super or b"", edit.name)
        if edit.value is not None:
            said = [put(table, place, edit.value, at)]
            if at is not None and family.order == "time":
                said.append(put(table, _in_time(place, family, at), MARK, at))
            return said
        said = [remove_value(table, place, at)]
        if family.order == "time":
            found = await self._reading(mutation).column(family, edit.super, edit.name)
            if found is not None:
                said.append(remove_value(table, _in_time(place, family, found.version.time), at))
        return said

    # --- reading ---

    def _reading(self, asked: _OfRow) -> RowReading:
        table = asked.table if isinstance(asked, RowMutation) else self._tables[asked.table]
        if asked.level == "each_quorum":
            raise Unsupported(
                "Cassandra does not support each_quorum for reads; use local_quorum or quorum"
            )
        return RowReading(self._driver, self._sizes, table, asked.key, asked.level)

    def _family(self, asked: ReadColumn | ReadPage | ReadSupers) -> FamilyShape:
        return self._tables[asked.table].shapes[asked.family]

    async def read(self, asked: Reads[A]) -> A:
        return cast("A", await self._read(cast("AnyRead", asked)))

    async def _read(self, asked: AnyRead) -> CellPage | SuperPage | WholeRow | RowsFound:
        match asked:
            case ReadRows():
                return await self._rows(asked)
            case ReadRow():
                return await self._row(asked)
            case ReadColumn(family=family, super=inner, name=name):
                check_names(self._tables[asked.table], family, inner, name)
                cell = await self._reading(asked).column(self._family(asked), inner, name)
                return CellPage(() if cell is None else (cell,))
            case ReadPage(family=family, super=inner, part=part):
                check_names(self._tables[asked.table], family, inner, None)
                return await self._reading(asked).page(self._family(asked), inner, part)
            case ReadSupers(part=part, within=within):
                return await self._reading(asked).supers(self._family(asked), part, within)

    async def _row(self, asked: ReadRow) -> WholeRow:
        reading = self._reading(asked)
        shapes = self._tables[asked.table].shapes
        pages = await asyncio.gather(
            *(reading.family(shape, asked.within) for shape in shapes.values())
        )
        return whole_row(asked.key, dict(zip(shapes, pages, strict=True)))

    async def _rows(self, asked: ReadRows) -> RowsFound:
        part = asked.part
        if part.reverse:
            raise Unsupported("Cassandra scans rows forwards only: scan without reverse")
        is_distinct = not self._driver.speaks_in_full  # CQL 3.0.0 lists a key with each column
        bounds = bounds_of(part, part.after)
        said = keys_of(self._tables[asked.table], bounds, part.first, is_distinct=is_distinct)
        listed = [] if bounds.is_empty else await self._driver.execute(said, asked.level)
        keys = list(dict.fromkeys(key for (key,) in listed))
        of_rows = (
            ReadRow(table=asked.table, key=key, within=asked.within, level=asked.level)
            for key in keys
        )
        rows = await asyncio.gather(*map(self._row, of_rows))
        is_last = len(listed) < part.first
        return RowsFound(
            rows=tuple(row for row in rows if row.families), next=None if is_last else keys[-1]
        )


def _is_applied(answer: Answer) -> bool:
    """Whether the condition held, according to the first column of the answer."""
    return bool(answer and answer[0][0])


def _in_time(place: ColumnPlace, family: FamilyShape, at: int) -> ColumnPlace:
    """The place, in the order of time, of a column that was written then."""
    return place._replace(family=places(family), name=inverted(at.to_bytes(8, "big")) + place.name)
