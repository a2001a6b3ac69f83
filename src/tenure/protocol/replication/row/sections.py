"""Sections: what replicas say of a part of a row, and the sum of it.

A replica cannot just send the page that readers would see: a column on it may be deleted elsewhere,
and another replica may have one that it leaves out. So it sends what it *has*, tombstones and
markers included, of some columns or from one column to another, and says how far that goes. Two
replicas with equal digests of this have the same. Otherwise all parts are merged (R7), which is
certain up to the lowest place where one of them ends (R8).

All replicas know everything up to the sealed horizon. Tombstones of that time may be gone at one
replica and still exist at another, so no part has them, and they change no digest.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import msgspec
from xxhash import xxh3_128_digest

from tenure.protocol.replication.row.cells import is_hidden, is_live
from tenure.protocol.replication.row.message_limits import (
    OF_ENTRIES,
    ColumnName,
    ColumnNames,
    Columns,
    EntryKey,
    FamilyName,
    Kept,
    Marker,
)
from tenure.protocol.replication.row.pages import Slice
from tenure.protocol.replication.row.records import NOTHING
from tenure.protocol.replication.row.versions import version_of

_ENCODER = msgspec.msgpack.Encoder()


class SectionQuestion(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A simple family or a super column, and the columns wanted of it: by name, or as a page."""

    family: FamilyName
    super: ColumnName | None = None
    names: ColumnNames = ()
    part: Slice | None = None
    """The part that is asked for; None stands for the columns of those names."""
    lists_supers: bool = False
    """The page is of super columns, by their names alone."""
    within: Columns | None = None
    """Set if it is about a family of a whole row (R7). Such questions share the bytes of one page,
    and a list of super columns is followed by a part for each of them, with its first columns. A
    node of an earlier release does not know this, and tells the list alone.
    """


class SectionPart(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The part of a section that one replica has."""

    markers: tuple[Marker, Marker, Marker] = (NOTHING, NOTHING, NOTHING)
    """The markers of the row, of the family and of the super column."""
    cells: Annotated[tuple[tuple[EntryKey, Kept], ...], OF_ENTRIES] = ()
    """Names and cells that no marker hides, in the order that was asked for."""
    last: EntryKey | None = None
    """The end of the part, included: a name, or a place in the order of time; None at the very end.
    """

    @property
    def marker(self) -> bytes:
        """The greatest marker."""
        return max(self.markers)

    @property
    def size(self) -> int:
        """The bytes of all names and cells."""
        return sum(len(name) + len(cell) for name, cell in self.cells)

    def without_known(self, sealed: int) -> "SectionPart":
        """The section without markers of deletion that everybody knows (R23)."""
        first, second, third = self.markers
        return SectionPart(
            markers=(_above(first, sealed), _above(second, sealed), _above(third, sealed)),
            cells=tuple(
                (name, cell)
                for name, cell in self.cells
                if is_live(cell, NOTHING) or version_of(cell).time > sealed
            ),
            last=self.last,
        )


def _above(marker: bytes, sealed: int) -> bytes:
    return marker if version_of(marker).time > sealed else NOTHING


def digest_of(parts: Sequence[SectionPart]) -> bytes:
    """The same for replicas that have the same."""
    return xxh3_128_digest(_ENCODER.encode(parts))


class SaidPart(NamedTuple):
    """A part, and the sealed horizon of the replica that said it."""

    part: SectionPart
    sealed: int


class MergedSection(NamedTuple):
    """The sum of several parts."""

    markers: tuple[bytes, bytes, bytes]
    cells: dict[bytes, bytes]
    """The cells that count, by name: tombstones too, and cells that a marker hides."""
    sealed: int

    def is_live(self, name: bytes) -> bool:
        cell = self.cells.get(name)
        return cell is not None and is_live(cell, max(self.markers))


def merge_sections(said: Sequence[SaidPart]) -> MergedSection:
    """Merge all parts: below the highest sealed horizon only what was told with it counts."""
    sealed = max(each.sealed for each in said)
    markers = [NOTHING] * 3
    cells: dict[bytes, bytes] = {}
    for part, horizon in said:
        for place, marker in enumerate(part.markers):
            if horizon >= sealed or version_of(marker).time > sealed:
                markers[place] = max(markers[place], marker)
        for name, cell in part.cells:
            if horizon >= sealed or version_of(cell).time > sealed:
                cells[name] = max(cell, cells.get(name, b""))
    return MergedSection((markers[0], markers[1], markers[2]), cells, sealed)


def lacking(
    merged: MergedSection, said: SaidPart, names: Iterable[bytes]
) -> tuple[tuple[bytes, bytes, bytes], tuple[tuple[bytes, bytes], ...]]:
    """The markers, and the cells of `names`, that whoever said so lacks of what all said."""
    has = dict(said.part.cells)
    own = said.part.markers
    first, second, third = (
        marker if marker > before and version_of(marker).time > said.sealed else NOTHING
        for marker, before in zip(merged.markers, own, strict=True)
    )
    hidden = max(merged.markers)
    cells = tuple(
        (name, cell)
        for name in names
        if (cell := merged.cells.get(name)) is not None
        and not is_hidden(cell, hidden)
        and has.get(name, b"") < cell
        and version_of(cell).time > said.sealed
    )
    return (first, second, third), cells
