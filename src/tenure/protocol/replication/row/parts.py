"""Parts: reading what a replica has of a section, with tombstones, from cursors of one instant, in
steps (see `pages`).
"""

from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

import msgspec

from tenure.protocol.replication.row.cells import is_hidden, is_live
from tenure.protocol.replication.row.layout import (
    AFTER,
    CELL,
    MARKER,
    PLACE,
    TIME_BYTES,
    FamilyShape,
    inverted,
)
from tenure.protocol.replication.row.limits import PAGE_BYTES, PART_ENTRIES
from tenure.protocol.replication.row.names import unescaped
from tenure.protocol.replication.row.pages import (
    Cursor,
    Cursors,
    Pace,
    Slice,
    Steps,
    bounds,
    super_bounds,
)
from tenure.protocol.replication.row.records import NOTHING
from tenure.protocol.replication.row.sections import SectionPart, SectionQuestion

P = TypeVar("P")

SUPER_BYTES = 512
"""What each super column counts for in a page of a whole row, beside its bytes: it is a part of the
answer, and a message has a bounded number of these."""


def at_once(steps: Steps[P]) -> P:
    """Run a reading to its end without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            page: P = end.value
            return page


def section_part(
    cursors: Cursors,
    shape: FamilyShape,
    at: bytes,
    row_marker: bytes,
    question: SectionQuestion,
    most_bytes: int = PAGE_BYTES,
) -> Steps[SectionPart]:
    """Read the parts that are asked for; `row_marker` is the row's own."""
    finder = cursors.finder
    section = shape.section(at, question.super)
    own = finder.get(section + MARKER) if shape.has_supers and question.super is not None else None
    markers = (row_marker, finder.get(at + MARKER) or NOTHING, own or NOTHING)
    marker = max(markers)
    if question.lists_supers and question.part is not None:
        names, last = _supers(cursors.walker, at, question.part)
        return SectionPart(markers=markers, cells=tuple((name, b"") for name in names), last=last)
    if question.part is None:
        return SectionPart(
            markers=markers, cells=_named(finder, section, question.names, marker, most_bytes)
        )
    walk = _by_time if shape.order == "time" else _by_name
    cells: list[tuple[bytes, bytes]] = []
    entries = walk(cursors, section, question.part)
    last = yield from _collect(entries, question.part, marker, cells, most_bytes)
    return SectionPart(markers=markers, cells=tuple(cells), last=last)


def supers_with_columns(
    cursors: Cursors,
    shape: FamilyShape,
    at: bytes,
    row_marker: bytes,
    question: SectionQuestion,
    most_bytes: int,
    sealed: int,
) -> Steps[list[SectionPart]]:
    """The list of super columns, and then each with its first columns, without what is known.

    What is deleted stands in it as well, since replicas must agree on that, too.
    """
    assert question.part is not None
    assert question.within is not None
    names: list[tuple[bytes, bytes]] = []
    inner: list[SectionPart] = []
    live = size = 0
    last = None
    for name in _super_names(cursors.walker, at, question.part):
        first = SectionQuestion(family=shape.name, super=name, part=Slice(question.within))
        part = yield from section_part(cursors, shape, at, row_marker, first, most_bytes - size)
        size += SUPER_BYTES + len(name) + part.size
        part = part.without_known(sealed)
        if part.cells or part.markers[2] != NOTHING or part.last is not None:
            names.append((name, b""))
            inner.append(part)
        live += any(is_live(cell, NOTHING) for _, cell in part.cells)
        if live >= question.part.first or size >= most_bytes:
            last = name
            break
    markers = (row_marker, cursors.finder.get(at + MARKER) or NOTHING, NOTHING)
    listed = SectionPart(markers=markers).without_known(sealed)
    return [msgspec.structs.replace(listed, cells=tuple(names), last=last), *inner]


def _named(
    finder: Cursor, section: bytes, names: tuple[bytes, ...], marker: bytes, most_bytes: int
) -> tuple[tuple[bytes, bytes], ...]:
    """The cells of these names, or more than so many bytes of them: whoever asked gets nothing."""
    kept: list[tuple[bytes, bytes]] = []
    size = 0
    for name in names:
        cell = finder.get(b"".join((section, CELL, name)))
        if cell and not is_hidden(cell, marker):
            kept.append((name, cell))
            size += len(name) + len(cell)
            if size > most_bytes:
                break
    return tuple(kept)


def _collect(
    found: Iterator[tuple[bytes, bytes, bytes]],
    part: Slice,
    marker: bytes,
    cells: list[tuple[bytes, bytes]],
    most_bytes: int,
) -> Steps[bytes | None]:
    """Take cells until so many live ones are there; where that was, or None at the end."""
    live = size = 0
    pace = Pace()
    for place, name, cell in found:
        if not is_hidden(cell, marker):
            cells.append((name, cell))
            live += is_live(cell, marker)
            size += len(name) + len(cell)
            if live >= part.first or size >= most_bytes or len(cells) >= PART_ENTRIES:
                return place
        if pace.is_over(len(place) + len(cell)):
            yield
    return None


def _by_name(cursors: Cursors, section: bytes, part: Slice) -> Iterator[tuple[bytes, bytes, bytes]]:
    base = section + CELL
    lower, upper = bounds(base, section + PLACE, part)
    for key, cell in cursors.walker.walk(lower, upper, reverse=part.reverse):
        name = key[len(base) :]
        yield name, name, cell


def _by_time(cursors: Cursors, section: bytes, part: Slice) -> Iterator[tuple[bytes, bytes, bytes]]:
    base = section + PLACE
    lower, upper = bounds(base, section + AFTER, part)
    for key, _ in cursors.walker.walk(lower, upper, reverse=part.reverse):
        place = key[len(base) :]
        name = place[TIME_BYTES:]
        cell = cursors.finder.get(b"".join((section, CELL, name)))
        assert cell is not None, "a place without its cell"
        yield place, name, cell


def _supers(walker: Cursor, at: bytes, part: Slice) -> tuple[list[bytes], bytes | None]:
    """As many names of super columns as a page has, and where it ends."""
    names: list[bytes] = []
    size = 0
    for name in _super_names(walker, at, part):
        names.append(name)
        size += len(name)
        if len(names) >= part.first or size >= PAGE_BYTES:
            return names, name
    return names, None


def _super_names(walker: Cursor, at: bytes, part: Slice) -> Iterator[bytes]:
    """The names of super columns that have any entries. Others may use the cursor in between."""
    lower, upper = super_bounds(at, part)
    while True:
        entry = next(iter(islice(walker.walk(lower, upper, reverse=part.reverse), 1)), None)
        if entry is None:
            return
        name, end = unescaped(entry[0], len(at) + len(CELL))
        section = entry[0][:end]
        lower, upper = (lower, section) if part.reverse else (section + AFTER, upper)
        yield name


def place_in_time(name: bytes, cell: bytes) -> bytes:
    """The place of a cell in the order of time, as a page's `next` tells it."""
    return inverted(cell[TIME_BYTES : 2 * TIME_BYTES]) + name
