"""A store of tables, for coroutines: what an application calls."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from struct import error
from typing import Any

from tenure.base.names import shown
from tenure.columns.backends.contract import Backend, pages_of
from tenure.columns.paths import Path, edits_of, key_of, path_of, shape_of
from tenure.columns.requests import Consistency, RowMutation
from tenure.columns.results import Row, column_of, page_of, row_of
from tenure.columns.tables import Table
from tenure.columns.writes import RowWrite
from tenure.errors import ClosedError, ForkedError, SchemaError, Unsupported
from tenure.protocol.replication.clock import WriteClock
from tenure.protocol.replication.messages import (
    ReadColumn,
    ReadPage,
    ReadRow,
    ReadRows,
    Reads,
    ReadSupers,
)
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.layout import TIME_BYTES, FamilyShape, inverted
from tenure.protocol.replication.row.limits import NAME_BYTES, PAGE_COLUMNS
from tenure.protocol.replication.row.names import NameType
from tenure.protocol.replication.row.pages import Slice
from tenure.runtime.clock import wall_us

FIRST = 100
"""How many columns a page has by default."""
SCANNED_ROWS = 100
"""How many rows a scan asks for at a time."""
_LEVELS = ("one", "quorum", "all", "local_quorum", "each_quorum")


class ColumnStore:
    """Tables that `open_store` has opened.

    Every call first checks its arguments, and raises SchemaError for a family, a name or a value
    that the table does not take; in that case nothing was sent.
    """

    def __init__(
        self,
        backend: Backend,
        tables: Mapping[str, Table],
        clock: Callable[[], int] = wall_us,
    ) -> None:
        self.backend = backend
        self.tables: Mapping[str, Table] = tables
        self._wall = clock
        self._clock = WriteClock()
        self._warming: dict[asyncio.Task[None], None] = {}
        self._is_open = False
        self._process = os.getpid()

    # --- opening ---

    async def open(self) -> None:
        """Be ready; see `open_store`."""
        self._process = os.getpid()
        await self.backend.open()
        self._is_open = True

    async def close(self) -> None:
        """Let go of everything. A store that is closed stays so, and a forked child has nothing to
        let go of: the files and threads are those of its parent.
        """
        if not self.is_ours:
            return
        self._is_open = False
        for task in self._warming:
            task.cancel()
        await self.backend.close()

    # --- writing ---

    def insert(
        self,
        table: Table,
        key: object,
        mutation: Mapping[str, Any],
        *,
        timestamp: int | None = None,
        consistency: Consistency | None = None,
    ) -> RowWrite:
        """Write a row mutation, across any families, as a whole or not at all; await the result.

        `{"profile": {"name": value, "old": DELETE}}`; in a super family `{"terms": {"tea": {17:
        b""}}}`. With `timestamp`, in microseconds since 1970, you decide which of two writes wins;
        otherwise the later one does.

        Awaiting it raises TooLate for a time whose deletes are forgotten, WriteUnknown if the store
        may or may not have the write, and Overloaded if nothing was begun.
        """
        at = self._key(table, key)
        return self._write(table, at, edits_of(table, mutation), timestamp, consistency)

    def delete(
        self,
        table: Table,
        key: object,
        *path: object,
        timestamp: int | None = None,
        consistency: Consistency | None = None,
    ) -> RowWrite:
        """Delete a column, a super column, a family or, without a path, the row; await it.

        You may also delete what does not exist. Raises the same errors as `insert`.
        """
        at = self._key(table, key)
        edit = path_of(table, path).edit()
        return self._write(table, at, [edit], timestamp, consistency)

    def _write(
        self,
        table: Table,
        key: bytes,
        edits: list[Edit],
        timestamp: int | None,
        consistency: Consistency | None,
    ) -> RowWrite:
        if table.fenced_by:
            raise Unsupported(
                f"the table {table.name!r} is fenced by the pool {table.fenced_by!r}: write its "
                "rows through OwnedRows, under a lease"
            )
        if timestamp is not None and not (type(timestamp) is int and 0 < timestamp < 1 << 63):
            raise SchemaError(
                f"timestamp is a number of microseconds since 1970, not {shown(timestamp)}"
            )
        level: Consistency = "one" if table.writes == "async" else "quorum"
        if consistency is not None:
            level = _checked_level(consistency)
        return self.write(RowMutation(table, key, edits, level, timestamp))

    def write(self, mutation: RowMutation) -> RowWrite:
        """Return the write of a checked mutation; await it."""
        return RowWrite(self.backend, self._clock, self._wall, mutation)

    # --- reading ---

    async def get(  # noqa: PLR0913 - a page is asked for in so many words
        self,
        table: Table,
        key: object,
        *path: object,
        first: int = FIRST,
        start: object = None,
        end: object = None,
        reverse: bool = False,
        next: bytes | None = None,  # noqa: A002 - as a page calls it
        within: int = FIRST,
        consistency: Consistency = "quorum",
    ) -> Any:  # noqa: ANN401 - what the path names
        """The data at a path: a Column or None; a Page of columns, or of super columns; a Row.

        A page has `first` columns, in the family's order: by name, or the newest first. `start` is
        included and `end` is not; they are names, or times in the order of time, in the direction
        of that order. `reverse` reads from the end, and `next` continues after a page. `within` is
        how many columns of each super column, or of each family of a row, are returned.
        """
        at = self._key(table, key)
        place = path_of(table, path)
        level = _checked_level(consistency)
        if place.shape is None or place.name is not None:
            _check_no_part(first=first != FIRST, start=start, end=end, reverse=reverse, next=next)
        if place.shape is None:
            whole = ReadRow(
                table=table.name, key=at, within=_checked_count("within", within), level=level
            )
            return row_of(table, await self.backend.read(whole))
        family = table.families[place.shape.name]
        if place.name is not None:
            one = ReadColumn(
                table=table.name,
                key=at,
                family=place.shape.name,
                super=place.super,
                name=place.name,
                level=level,
            )
            cells = (await self.backend.read(one)).cells
            return column_of(family, cells[0]) if cells else None
        part = _slice(table, place, first, start, end, reverse, next)
        if place.shape.has_supers and place.super is None:
            within = _checked_count("within", within)
            page: Reads[Any] = ReadSupers(
                table=table.name,
                key=at,
                family=place.shape.name,
                part=part,
                within=within,
                level=level,
            )
        else:
            page = ReadPage(
                table=table.name,
                key=at,
                family=place.shape.name,
                super=place.super,
                part=part,
                level=level,
            )
        return page_of(family, await self.backend.read(page))

    async def scan(
        self,
        table: Table,
        *,
        start: object = None,
        end: object = None,
        reverse: bool = False,
        within: int = FIRST,
        consistency: Consistency = "quorum",
    ) -> AsyncIterator[Row]:
        """The rows of an ordered table in the order of their keys, from `start`, included, to
        `end`, excluded: each with the first `within` columns of each family. Rows without columns
        are left out. In a hashed table rows come in no order, so `start` and `end` cannot be given.

        Each page of rows shows the state of one instant, but the whole scan does not.
        """
        self._check(table)
        if table.kind == "hashed" and (start is not None or end is not None):
            raise SchemaError(
                f"the table {table.name!r} is hashed, so its rows have no order: scan it whole, or "
                "make an ordered table"
            )
        level, within = _checked_level(consistency), _checked_count("within", within)
        lower = None if start is None else key_of(table, start)
        upper = None if end is None else key_of(table, end)
        _check_flag("reverse", reverse)
        part = Slice(SCANNED_ROWS, lower, upper, reverse)
        asked = ReadRows(table=table.name, part=part, within=within, level=level)
        async for page in pages_of(self.backend, asked):
            for row in page.rows:
                yield row_of(table, row)

    async def warm(self, table: Table, key: object, *families: str) -> None:
        """Have a row read into memory, all families or those that you name; returns at once.

        Use it for rows that will be needed next: on a click into a search field, before the first
        word is typed.
        """
        at = self._key(table, key)
        shapes = [shape_of(table, each) for each in families or table.families]
        task = asyncio.create_task(self._warm(table.name, at, shapes))
        self._warming[task] = None
        task.add_done_callback(self._warmed)

    async def _warm(self, table: str, key: bytes, shapes: list[FamilyShape]) -> None:
        part = Slice(PAGE_COLUMNS)
        for shape in shapes:
            asked: Reads[Any] = ReadPage(
                table=table, key=key, family=shape.name, part=part, level="one", warms=True
            )
            if shape.has_supers:
                asked = ReadSupers(
                    table=table,
                    key=key,
                    family=shape.name,
                    part=part,
                    within=PAGE_COLUMNS,
                    level="one",
                    warms=True,
                )
            await self.backend.read(asked)

    async def warmed(self) -> None:
        """Wait until everything is in memory for which `warm` was called; a failure is no error."""
        if self._warming:
            await asyncio.wait(self._warming)

    def _warmed(self, task: "asyncio.Task[None]") -> None:
        self._warming.pop(task, None)
        if not task.cancelled():
            task.exception()  # the next request reports the failure again

    def _key(self, table: Table, key: object) -> bytes:
        self._check(table)
        return key_of(table, key)

    @property
    def is_ours(self) -> bool:
        """Whether it is open, and this is the process that opened it."""
        return self._is_open and os.getpid() == self._process

    def check(self) -> None:
        """Raise ForkedError in a child of the process that opened the store, and ClosedError if it
        is not open.
        """
        if os.getpid() != self._process:
            raise ForkedError(
                "this store belongs to the process that opened it, and this is a forked child: "
                "open stores after forking"
            )

        if not self._is_open:
            raise ClosedError(
                "the store is not open: use it inside `async with open_store(...) as store`, or "
                "`with`"
            )

    def _check(self, table: Table) -> None:
        self.check()
        if not isinstance(table, Table) or self.tables.get(table.name) is not table:
            raise SchemaError(
                f"{shown(table)} is not a table of this store: pass it to open_store as well"
            )


def _slice(
    table: Table,
    place: Path,
    first: int,
    start: object,
    end: object,
    reverse: bool,  # noqa: FBT001 - as it was given
    after: bytes | None,
) -> Slice:
    shape = place.shape
    assert shape is not None
    _check_flag("reverse", reverse)
    if after is not None and not isinstance(after, bytes):
        raise SchemaError(f"next is what a page has as its next, not {shown(after)}")
    family = table.families[shape.name]
    if after is not None:
        lists_supers = shape.has_supers and place.super is None
        names = family.supers if lists_supers and family.supers else family.columns
        _check_next(names, after, 0 if lists_supers or shape.order == "name" else TIME_BYTES)

    def bound(name: object, what: str) -> bytes | None:
        if name is None:
            return None
        if shape.has_supers and place.super is None:
            assert family.supers is not None
            return family.supers.encoded(name, what)
        if shape.order == "name":
            return family.columns.encoded(name, what)
        if type(name) is not int or not 0 <= name < 1 << 63:
            raise SchemaError(
                f"{what} of a page in the order of time is a number of microseconds since 1970, "
                f"not {shown(name)}"
            )
        return inverted(name.to_bytes(TIME_BYTES))

    return Slice(
        _checked_count("first", first),
        bound(start, "start"),
        bound(end, "end"),
        reverse,
        after,
    )


def _check_next(names: NameType, after: bytes, before: int) -> None:
    """Raise SchemaError for what no page of such names ends with, `before` bytes into it."""
    is_one = before <= len(after) <= before + NAME_BYTES  # a node ends the connection for more
    try:
        names.decode(after[before:])
    except (ValueError, error):
        is_one = False
    if not is_one:
        raise SchemaError(
            f"next is not what a page of this family has as its next: {shown(after)}; pass "
            "page.next as it was returned"
        )


def _check_no_part(**given: object) -> None:
    """Raise SchemaError for an argument that chooses a part of a page, if no page is returned."""
    for name, what in given.items():
        if what is not None and what is not False:
            raise SchemaError(
                f"{name} is for a page of columns or super columns: leave it out, or name a family "
                "or super column of which to get a page"
            )


def _checked_count(what: str, count: int) -> int:
    if type(count) is not int or not 0 < count <= PAGE_COLUMNS:
        raise SchemaError(f"{what} is a number from 1 to {PAGE_COLUMNS}, not {shown(count)}")
    return count


def _check_flag(what: str, given: object) -> None:
    if type(given) is not bool:
        raise SchemaError(f"{what} is True or False, not {shown(given)}")


def _checked_level(level: Consistency) -> Consistency:
    if level not in _LEVELS:
        raise SchemaError(f"consistency is one of {', '.join(_LEVELS)}, not {shown(level)}")
    return level
