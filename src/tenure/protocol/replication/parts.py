"""Parts: reading what a replica has of a section, with tombstones, from cursors of one instant.

(`pages` reads what readers see.) Both read in steps.
"""

from collections.abc import Iterator
from itertools import islice

from tenure.protocol.replication.cells import is_hidden, is_live
from tenure.protocol.replication.layout import (
    AFTER,
    CELL,
    MARKER,
    PLACE,
    TIME_BYTES,
    FamilyShape,
    inverted,
)
from tenure.protocol.replication.limits import PAGE_BYTES, PART_ENTRIES, STEP_ENTRIES
from tenure.protocol.replication.names import unescaped
from tenure.protocol.replication.pages import Cursor, Cursors, Slice, Steps, bounds, super_bounds
from tenure.protocol.replication.records import NOTHING
from tenure.protocol.replication.sections import SectionPart, SectionQuestion


def section_part(
    cursors: Cursors, shape: FamilyShape, at: bytes, row_marker: bytes, question: SectionQuestion
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
        found = [(name, finder.get(b"".join((section, CELL, name)))) for name in question.names]
        kept = tuple((name, cell) for name, cell in found if cell and not is_hidden(cell, marker))
        return SectionPart(markers=markers, cells=kept)
    walk = _by_time if shape.order == "time" else _by_name
    cells: list[tuple[bytes, bytes]] = []
    last = yield from _collect(walk(cursors, section, question.part), question.part, marker, cells)
    return SectionPart(markers=markers, cells=tuple(cells), last=last)


def _collect(
    found: Iterator[tuple[bytes, bytes, bytes]],
    part: Slice,
    marker: bytes,
    cells: list[tuple[bytes, bytes]],
) -> Steps[bytes | None]:
    """Take cells until so many live ones are there; where that was, or None at the end."""
    live = size = 0
    for count, (place, name, cell) in enumerate(found, 1):
        if not is_hidden(cell, marker):
            cells.append((name, cell))
            live += is_live(cell, marker)
            size += len(name) + len(cell)
            if live >= part.first or size >= PAGE_BYTES or len(cells) >= PART_ENTRIES:
                return place
        if not count % STEP_ENTRIES:
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
    """The names of super columns that have any entries."""
    lower, upper = super_bounds(at, part)
    names: list[bytes] = []
    size = 0
    while len(names) < part.first and size < PAGE_BYTES:
        entry = next(iter(islice(walker.walk(lower, upper, reverse=part.reverse), 1)), None)
        if entry is None:
            return names, None
        name, end = unescaped(entry[0], len(at) + len(CELL))
        names.append(name)
        size += len(name)
        section = entry[0][:end]
        lower, upper = (lower, section) if part.reverse else (section + AFTER, upper)
    return names, names[-1]


def place_in_time(name: bytes, cell: bytes) -> bytes:
    """The place of a cell in the order of time, as a page's `next` tells it."""
    return inverted(cell[TIME_BYTES : 2 * TIME_BYTES]) + name
