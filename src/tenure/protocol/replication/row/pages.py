"""Pages: the part of a row that a reader sees, from cursors that stand at one instant.

A page may have to look at a million tombstones for its first column. So reading is done in steps:
these functions are generators that yield after some entries, and return the page. Their caller lets
others have a turn in between. A cursor goes on seeing the instant at which it was opened, so the
page shows one instant all the same (D1), and collects only what it returns.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import Annotated, Protocol, TypeAlias, TypeVar

import msgspec

from tenure.protocol.replication.row.cells import is_hidden, is_live, value_in
from tenure.protocol.replication.row.layout import (
    AFTER,
    CELL,
    MARKER,
    PLACE,
    TIME_BYTES,
    FamilyShape,
    inverted,
)
from tenure.protocol.replication.row.limits import PAGE_BYTES, STEP_BYTES, STEP_ENTRIES
from tenure.protocol.replication.row.message_limits import (
    OF_COLUMNS,
    ColumnName,
    Columns,
    EntryKey,
    Value,
)
from tenure.protocol.replication.row.names import escaped, unescaped
from tenure.protocol.replication.row.versions import Version, version_of

P = TypeVar("P")
Steps: TypeAlias = Generator[None, None, P]

SUPER_ENTRIES = 8
"""Entries that finding the next super column counts for."""


class Cursor(Protocol):
    """One space of entries, as it was when the cursor was opened."""

    def get(self, key: bytes) -> bytes | None:
        """The value that is kept at `key`. Ends a walk of this cursor."""
        ...

    def walk(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries from `lower` to `upper`, excluded, or to the end; `reverse` from there.

        Ends an earlier walk of this cursor.
        """
        ...


class Cursors(msgspec.Struct, frozen=True):
    """Two cursors of one family, opened at the same instant: one to walk, and one to look up."""

    walker: Cursor
    finder: Cursor


class Slice(msgspec.Struct, frozen=True, array_like=True):
    """The part of an order that is asked for: bounds as bytes, in the direction of that order."""

    first: Columns
    start: ColumnName | None = None
    """Included."""
    end: ColumnName | None = None
    """Excluded."""
    reverse: bool = False
    """Whether the page is read from the end."""
    after: EntryKey | None = None
    """The place at which the page before ended, which was read in the same direction."""


class FoundCell(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A column that readers see."""

    name: ColumnName
    version: Version
    value: Value

    @property
    def size(self) -> int:
        """The bytes of the name and the value."""
        return len(self.name) + len(self.value)


def found_cell(name: bytes, cell: bytes) -> FoundCell:
    """A live cell, as readers see it."""
    return FoundCell(name, version_of(cell), value_in(cell) or b"")


class CellPage(msgspec.Struct, frozen=True, array_like=True):
    """Columns in their order, and where to go on; None after the last."""

    cells: Annotated[tuple[FoundCell, ...], OF_COLUMNS]
    next: EntryKey | None = None

    @property
    def size(self) -> int:
        """The bytes of all names and values."""
        return sum(each.size for each in self.cells)


class SuperPage(msgspec.Struct, frozen=True, array_like=True):
    """Super columns by name, each with its first columns."""

    supers: Annotated[tuple[tuple[ColumnName, CellPage], ...], OF_COLUMNS]
    next: EntryKey | None = None

    @property
    def size(self) -> int:
        """The bytes of all names and values."""
        return sum(len(name) + page.size for name, page in self.supers)


class Pace:
    """Says when a step is over: after so many entries, so many bytes, or a mixture of both."""

    def __init__(self) -> None:
        self._spent = 0

    def is_over(self, size: int, entries: int = 1) -> bool:
        """Count entries that have `size` bytes together. Returns whether a step ends with them."""
        self._spent += size + entries * (STEP_BYTES // STEP_ENTRIES)
        if self._spent < STEP_BYTES:
            return False
        self._spent = 0
        return True


def of_a_step(walk: Iterable[tuple[bytes, bytes]]) -> tuple[list[tuple[bytes, bytes]], bool]:
    """As many entries as one step may look at, and whether they are the last."""
    pace = Pace()
    found = []
    for entry in walk:
        found.append(entry)
        if pace.is_over(len(entry[0]) + len(entry[1])):
            return found, False
    return found, True


class _Filling:
    """A page that becomes full."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._bytes = 0
        self.cells: list[FoundCell] = []

    def add(self, name: bytes, cell: bytes) -> bool:
        """Take a live cell. Returns whether the page is full then."""
        value = value_in(cell)
        assert value is not None
        self.cells.append(FoundCell(name, version_of(cell), value))
        self._bytes += self.cells[-1].size
        return len(self.cells) >= self._first or self._bytes >= PAGE_BYTES

    def page(self, after: bytes | None = None) -> CellPage:
        return CellPage(tuple(self.cells), after)


def cells(
    cursors: Cursors,
    shape: FamilyShape,
    section: bytes,
    marker: bytes,
    part: Slice,
    pace: Pace | None = None,
) -> Steps[CellPage]:
    """The columns of a section, where `marker` is the greatest above them."""
    pace = pace or Pace()
    if shape.order == "time":
        return _by_time(cursors, section, marker, part, pace)
    return _by_name(cursors.walker, section, marker, part, pace)


def _by_name(
    walker: Cursor, section: bytes, marker: bytes, part: Slice, pace: Pace
) -> Steps[CellPage]:
    base = section + CELL
    lower, upper = bounds(base, section + PLACE, part)
    filling = _Filling(part.first)
    for key, cell in walker.walk(lower, upper, reverse=part.reverse):
        if is_live(cell, marker) and filling.add(key[len(base) :], cell):
            return filling.page(key[len(base) :])
        if pace.is_over(len(key) + len(cell)):
            yield
    return filling.page()


def _by_time(
    cursors: Cursors, section: bytes, marker: bytes, part: Slice, pace: Pace
) -> Steps[CellPage]:
    base = section + PLACE
    lower, upper = bounds(base, section + AFTER, part)
    filling = _Filling(part.first)
    for key, number in cursors.walker.walk(lower, upper, reverse=part.reverse):
        at = key[len(base) :]
        version, name, size = number + inverted(at[:TIME_BYTES]), at[TIME_BYTES:], len(key)
        if not is_hidden(version, marker):
            cell = cursors.finder.get(b"".join((section, CELL, name)))
            assert cell is not None, "a place without its cell"
            size += len(cell)
            if is_live(cell, marker) and filling.add(name, cell):
                return filling.page(at)
        if pace.is_over(size):
            yield
    return filling.page()


def bounds(base: bytes, end: bytes, part: Slice) -> tuple[bytes, bytes]:
    """The keys of a slice: those that begin with `base`, up to `end`."""
    lower = base + (part.start or b"")
    upper = end if part.end is None else base + part.end
    if part.after is not None and part.reverse:
        upper = min(upper, base + part.after)
    elif part.after is not None:
        lower = max(lower, base + part.after + b"\0")
    return lower, upper


def super_columns(
    cursors: Cursors, shape: FamilyShape, at: bytes, marker: bytes, part: Slice, within: int
) -> Steps[SuperPage]:
    """The super columns of the row at `at` that have columns, with the first `within` of each."""
    pace = Pace()
    lower, upper = super_bounds(at, part)
    found: list[tuple[bytes, CellPage]] = []
    size = 0
    while True:
        entry = next(iter(cursors.walker.walk(lower, upper, reverse=part.reverse)), None)
        if entry is None:
            return SuperPage(tuple(found))
        name, _ = unescaped(entry[0], len(at) + len(CELL))
        section = shape.section(at, name)
        own = max(marker, cursors.walker.get(section + MARKER) or b"")
        page = yield from cells(cursors, shape, section, own, Slice(within), pace)
        if page.cells:
            found.append((name, page))
            size += len(name) + page.size
            if len(found) >= part.first or size >= PAGE_BYTES:
                return SuperPage(tuple(found), name)
        lower, upper = (lower, section) if part.reverse else (section + AFTER, upper)
        if pace.is_over(len(section), SUPER_ENTRIES):
            yield


def super_bounds(at: bytes, part: Slice) -> tuple[bytes, bytes]:
    """The keys of a slice of super columns."""
    base = at + CELL
    lower = base if part.start is None else base + escaped(part.start)
    upper = at + PLACE if part.end is None else base + escaped(part.end)
    if part.after is not None and part.reverse:
        upper = min(upper, base + escaped(part.after))
    elif part.after is not None:
        lower = max(lower, base + escaped(part.after) + AFTER)
    return lower, upper


def greatest(markers: Iterable[bytes | None]) -> bytes:
    """The marker that hides the most."""
    return max((each for each in markers if each is not None), default=b"")
