"""Reads pages of a row on Cassandra, in as many requests as a page takes."""

import asyncio
from collections.abc import Iterator
from typing import TypeVar

from tenure.columns.backends.cassandra.driver import Answer, CassandraDriver
from tenure.columns.backends.cassandra.statements import (
    Bounds,
    ColumnPlace,
    bounds_of,
    one,
    places,
    remove,
    several,
    slice_of,
    supers_of,
)
from tenure.columns.requests import Consistency
from tenure.columns.tables import Table
from tenure.errors import TenureError
from tenure.protocol.replication.row.layout import TIME_BYTES, FamilyShape, inverted
from tenure.protocol.replication.row.limits import PAGE_BYTES
from tenure.protocol.replication.row.pages import CellPage, FoundCell, Slice, SuperPage
from tenure.protocol.replication.row.versions import Version

T = TypeVar("T")

MOST_ROWS = 2048
"""The most rows of one answer: the server reads an answer as a whole, and so does the driver."""
ANSWER_BYTES = 4 << 20
"""The intended most bytes of an answer, as far as they can be foretold."""
GUESSED_BYTES = 16 << 10
"""The assumed size of a family's values, before any was seen."""
AT_ONCE = 16
"""The most super columns, or columns by time, that are looked up concurrently."""


class Sizes:
    """How large the values of families are, so that an answer's size can be foretold."""

    def __init__(self) -> None:
        self._usual: dict[tuple[str, str], float] = {}

    def rows(self, table: Table, family: FamilyShape, wanted: int) -> int:
        """How many rows to ask for."""
        usual = self._usual.get((table.name, family.name), GUESSED_BYTES)
        return max(1, min(wanted, MOST_ROWS, int(ANSWER_BYTES / max(usual, 1))))

    def see(self, table: Table, family: FamilyShape, values: Iterator[bytes]) -> None:
        """Learn from an answer; quickly if values are larger than expected."""
        found = [len(value) for value in values]
        if not found:
            return
        mean = sum(found) / len(found)
        usual = self._usual.get((table.name, family.name), mean)
        self._usual[table.name, family.name] = max(mean, 0.8 * usual + 0.2 * mean)


class RowReading:
    def __init__(
        self,
        driver: CassandraDriver,
        sizes: Sizes,
        table: Table,
        key: bytes,
        level: Consistency,
    ) -> None:
        self._driver = driver
        self._sizes = sizes
        self._table = table
        self._key = key
        self._level = level

    async def column(
        self, family: FamilyShape, super_column: bytes | None, name: bytes
    ) -> FoundCell | None:
        """One column, if there is a value."""
        place = ColumnPlace(self._key, family.name, super_column or b"", name)
        for value, time in await self._driver.execute(one(self._table, place), self._level):
            if value is not None:
                return FoundCell(name, Version(0, time), value)
        return None

    async def page(self, family: FamilyShape, super_column: bytes | None, part: Slice) -> CellPage:
        if family.order == "time":
            return await self._by_time(family, super_column, part)
        return await self._by_name(family, super_column, part)

    async def _by_name(
        self, family: FamilyShape, super_column: bytes | None, part: Slice
    ) -> CellPage:
        within = (self._key, family.name, super_column or b"")
        cells: list[FoundCell] = []
        size, after = 0, part.after
        while True:
            limit = self._sizes.rows(self._table, family, part.first - len(cells))
            bounds = bounds_of(part, after)
            rows = await self._ask_slice(within, bounds, limit)
            live = [row for row in rows if row[1] is not None]  # old servers list tombstones, too
            if self._driver.speaks_in_full:
                live = await self._confirmed(family, super_column, live)
            self._sizes.see(self._table, family, (value for _, value, _ in live))
            for name, value, time in live:
                cells.append(FoundCell(name, Version(0, time), value))
                size += cells[-1].size
                if len(cells) >= part.first or size >= PAGE_BYTES:
                    return CellPage(tuple(cells), name)
            if len(rows) < limit:
                return CellPage(tuple(cells))
            after = rows[-1][0]

    async def _confirmed(
        self, family: FamilyShape, super_column: bytes | None, listed: Answer
    ) -> Answer:
        """Those of the listed columns that exist when they are asked for individually.

        Cassandra 1.2 reads a file from the first name of a slice on. So it overlooks a delete of
        the family or the super column if the entry of the delete lies before that name, and lists
        what was deleted.
        """
        kept: Answer = []
        for few in _in_parts(listed, AT_ONCE):
            found = await self._by_names(family, super_column, [name for name, _, _ in few])
            kept += [row for row in few if row[0] in found]
        return kept

    async def _by_names(
        self, family: FamilyShape, super_column: bytes | None, names: list[bytes]
    ) -> dict[bytes, FoundCell]:
        """The columns among these that have values: in one request, if the server supports that."""
        if not names:
            return {}
        if self._driver.speaks_in_full:
            cells = await asyncio.gather(
                *(self.column(family, super_column, name) for name in names)
            )
            return {each.name: each for each in cells if each is not None}
        within = (self._key, family.name, super_column or b"")
        rows = await self._driver.execute(several(self._table, within, names), self._level)
        return {
            name: FoundCell(name, Version(0, time), value)
            for name, value, time in rows
            if value is not None
        }

    async def _by_time(
        self, family: FamilyShape, super_column: bytes | None, part: Slice
    ) -> CellPage:
        """Read columns by time. A place may belong to an earlier value, because writes are blind,
        so each column is looked up. Places that a newer value has left are removed on the way.
        """
        within = (self._key, places(family), super_column or b"")
        cells: list[FoundCell] = []
        size, after = 0, part.after
        while True:
            limit = self._sizes.rows(self._table, family, min(part.first - len(cells), AT_ONCE))
            bounds = bounds_of(part, after)
            rows = await self._ask_slice(within, bounds, limit)
            listed = [place for place, mark, _ in rows if mark is not None]
            names = list({place[TIME_BYTES:]: None for place in listed})
            found = await self._by_names(family, super_column, names)
            self._sizes.see(self._table, family, (each.value for each in found.values()))
            for place in listed:
                cell = found.get(place[TIME_BYTES:])
                time = int.from_bytes(inverted(place[:TIME_BYTES]), "big")
                if cell is None or cell.version.time != time:
                    if cell is not None and cell.version.time > time:
                        await self._forget(ColumnPlace(*within, place), time)
                    continue
                cells.append(cell)
                size += cell.size
                if len(cells) >= part.first or size >= PAGE_BYTES:
                    return CellPage(tuple(cells), place)
            if len(rows) < limit:
                return CellPage(tuple(cells))
            after = rows[-1][0]

    async def _forget(self, place: ColumnPlace, time: int) -> None:
        """Remove a place that a newer value has left. The next reader tries again if it fails."""
        try:
            await self._driver.apply([remove(self._table, place, time)], "one")
        except TenureError:
            return

    async def supers(self, family: FamilyShape, part: Slice, within: int) -> SuperPage:
        """Super columns by name, each with its first columns."""
        found: list[tuple[bytes, CellPage]] = []
        size, after = 0, part.after
        while True:
            bounds = bounds_of(part, after)
            asked = supers_of(self._table, (self._key, family.name), bounds, MOST_ROWS)
            rows = [] if bounds.is_empty else await self._driver.execute(asked, self._level)
            names = list(dict.fromkeys(name for (name,) in rows))
            for few in _in_parts(names, AT_ONCE):
                pages = await asyncio.gather(
                    *(self.page(family, name, Slice(within)) for name in few)
                )
                for name, page in zip(few, pages, strict=True):
                    if page.cells:
                        found.append((name, page))
                        size += len(name) + page.size
                    if len(found) >= part.first or size >= PAGE_BYTES:
                        return SuperPage(tuple(found), name)
            if len(rows) < MOST_ROWS:
                return SuperPage(tuple(found))
            after = names[-1]

    async def family(self, family: FamilyShape, first: int) -> CellPage | SuperPage:
        """The first columns of a family, or super columns with as many."""
        if family.has_supers:
            return await self.supers(family, Slice(first), first)
        return await self.page(family, None, Slice(first))

    async def _ask_slice(
        self, within: tuple[bytes, str, bytes], bounds: Bounds, limit: int
    ) -> Answer:
        if bounds.is_empty:
            return []
        return await self._driver.execute(slice_of(self._table, within, bounds, limit), self._level)


def _in_parts(whole: list[T], size: int) -> Iterator[list[T]]:
    return (whole[at : at + size] for at in range(0, len(whole), size))
