"""Reading pages of a row at a level: in as many rounds as it takes.

Each round reads some parts of the row, see `reading`, and tells how far they are certain.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from tenure.protocol.replication.messages import WholeRow, whole_row
from tenure.protocol.replication.request.resolving import Resolved
from tenure.protocol.replication.row.layout import FamilyShape
from tenure.protocol.replication.row.limits import PAGE_BYTES, PAGE_COLUMNS
from tenure.protocol.replication.row.pages import CellPage, FoundCell, Slice, SuperPage, found_cell
from tenure.protocol.replication.row.parts import place_in_time
from tenure.protocol.replication.row.sections import SectionQuestion

R = TypeVar("R")
W = TypeVar("W")
Waiting: TypeAlias = Generator[W, None, R]
"""Returns R, and yields W in between: what a conversation waits for, or nothing where the row is
read in steps on the only replica that there is.
"""
ReadRound: TypeAlias = Callable[[Sequence[SectionQuestion]], Waiting[W, list[Resolved]]]


def read_page(
    read: ReadRound[W],
    shape: FamilyShape,
    super_column: bytes | None,
    part: Slice,
    most_bytes: int = PAGE_BYTES,
) -> Waiting[W, CellPage]:
    """Columns in the family's order: in as many rounds as it takes to have so many, or so many
    bytes.

    In the order of time a column that is rewritten between two rounds would be in neither, or in
    both. So instead of a second round the page begins anew, and asks for more in the first one, as
    long as that reaches further.
    """
    cells: list[FoundCell] = []
    after, wanted, reached = part.after, part.first, b""
    begins_anew = is_by_time = shape.order == "time"
    size = 0
    while True:
        rest = msgspec.structs.replace(part, first=wanted - len(cells), after=after)
        [found] = yield from read(
            [SectionQuestion(family=shape.name, super=super_column, part=rest)]
        )
        if found.unconfirmed:
            found = yield from _confirmed(read, shape.name, super_column, rest, found)
        for name, cell in found.cells:
            cells.append(found_cell(name, cell))
            size += cells[-1].size
            if len(cells) == part.first or size >= most_bytes:
                place = place_in_time(name, cell) if is_by_time else name
                return CellPage(tuple(cells), place)
        if found.last is None:
            return CellPage(tuple(cells))
        begins_anew = begins_anew and wanted < PAGE_COLUMNS and found.last != reached
        if begins_anew:
            wanted, reached = min(2 * wanted, PAGE_COLUMNS), found.last
            cells.clear()
            size = 0
        else:
            after = found.last


def _confirmed(
    read: ReadRound[W], family: str, super_column: bytes | None, part: Slice, found: Resolved
) -> Waiting[W, Resolved]:
    """Look up with all replicas, by name, the columns that some listed by time (R8)."""
    [named] = yield from read(
        [SectionQuestion(family=family, super=super_column, names=found.unconfirmed)]
    )
    placed = sorted(
        ((place_in_time(name, cell), name, cell) for name, cell in named.cells),
        reverse=part.reverse,
    )
    kept = [
        (name, cell)
        for place, name, cell in placed
        if _is_within(place, part) and not _is_behind(place, found.last, part)
    ]
    return Resolved(tuple(kept), found.last)


def _is_within(place: bytes, part: Slice) -> bool:
    if part.start is not None and place < part.start:
        return False
    if part.end is not None and place >= part.end:
        return False
    return part.after is None or _is_behind(place, part.after, part)


def _is_behind(place: bytes, other: bytes | None, part: Slice) -> bool:
    if other is None:
        return False
    return place < other if part.reverse else place > other


def read_supers(
    read: ReadRound[W], shape: FamilyShape, part: Slice, within: int, most_bytes: int = PAGE_BYTES
) -> Waiting[W, SuperPage]:
    """Super columns that have columns, by name."""
    found: list[tuple[bytes, CellPage]] = []
    after = part.after
    size = 0
    while True:
        rest = msgspec.structs.replace(part, first=part.first - len(found), after=after)
        question = SectionQuestion(family=shape.name, part=rest, lists_supers=True)
        [listed] = yield from read([question])
        for name, _ in listed.cells:
            columns = yield from read_page(read, shape, name, Slice(within))
            if columns.cells:
                found.append((name, columns))
                size += len(name) + columns.size
                if len(found) == part.first or size >= most_bytes:
                    return SuperPage(tuple(found), name)
        if listed.last is None:
            return SuperPage(tuple(found))
        after = listed.last


def read_by_family(
    read: ReadRound[W], key: bytes, shapes: Mapping[str, FamilyShape], within: int
) -> Waiting[W, WholeRow]:
    """The first columns of each family, which share the bytes of one page; each of an instant of
    its own. `whole_rows` reads a row so only where one question cannot tell it.
    """
    pages: dict[str, CellPage | SuperPage] = {}
    left = PAGE_BYTES
    for name, shape in shapes.items():
        if shape.has_supers:
            pages[name] = yield from read_supers(read, shape, Slice(within), within, left)
        else:
            pages[name] = yield from read_page(read, shape, None, Slice(within), left)
        left -= pages[name].size
    return whole_row(key, pages)
