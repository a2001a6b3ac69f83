"""Pages: the part of a row that a reader sees.

A page may have to look at a million tombstones for its first column. So reading is done in steps:
what reads is a generator that yields after some entries, and returns the page. Its caller lets
others have a turn in between. A cursor goes on seeing the instant at which it was opened, so the
page shows one instant all the same (D1), and collects only what it returns.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import Annotated, Protocol, TypeAlias, TypeVar

import msgspec

from tenure.protocol.replication.row.cells import value_in
from tenure.protocol.replication.row.layout import AFTER, CELL, PLACE, position
from tenure.protocol.replication.row.limits import (
    LISTED_BYTES,
    LISTED_ROWS,
    STEP_BYTES,
    STEP_ENTRIES,
)
from tenure.protocol.replication.row.message_limits import (
    OF_COLUMNS,
    ColumnName,
    Columns,
    EntryKey,
    Value,
)
from tenure.protocol.replication.row.names import escaped
from tenure.protocol.replication.row.versions import Version, version_of
from tenure.protocol.topology.tables import RowKind

P = TypeVar("P")
Steps: TypeAlias = Generator[None, None, P]


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


def listed(walk: Iterable[tuple[bytes, bytes]]) -> tuple[list[tuple[bytes, bytes]], bool]:
    """As many rows as one answer lists, by their positions, and whether they are the last."""
    found: list[tuple[bytes, bytes]] = []
    size = 0
    for row in walk:
        if len(found) == LISTED_ROWS or size >= LISTED_BYTES:
            return found, False
        found.append(row)
        size += len(row[0])
    return found, True


def bounds(base: bytes, end: bytes, part: Slice) -> tuple[bytes, bytes]:
    """The keys of a slice: those that begin with `base`, up to `end`."""
    lower = base + (part.start or b"")
    upper = end if part.end is None else base + part.end
    if part.after is not None and part.reverse:
        upper = min(upper, base + part.after)
    elif part.after is not None:
        lower = max(lower, base + part.after + b"\0")
    return lower, upper


def super_bounds(at: bytes, part: Slice) -> tuple[bytes, bytes]:
    base = at + CELL
    lower = base if part.start is None else base + escaped(part.start)
    upper = at + PLACE if part.end is None else base + escaped(part.end)
    if part.after is not None and part.reverse:
        upper = min(upper, base + escaped(part.after))
    elif part.after is not None:
        lower = max(lower, base + escaped(part.after) + AFTER)
    return lower, upper


def row_bounds(part: Slice, kind: RowKind) -> tuple[bytes, bytes | None]:
    lower = b"" if part.start is None else position(part.start, kind)
    upper = None if part.end is None else position(part.end, kind)
    if part.after is not None and part.reverse:
        upper = position(part.after, kind)
    elif part.after is not None:
        lower = position(part.after, kind) + b"\0"
    return lower, upper
