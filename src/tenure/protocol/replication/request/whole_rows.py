"""Whole rows: the page that a reader sees of all families, from what replicas say of them.

Either from the parts of one instant that enough replicas have, or from the state to which the row
was settled. So a mutation over several families is in it, or is not.
"""

from collections.abc import Iterable, Mapping, Sequence

from tenure.protocol.replication.messages import WholeRow
from tenure.protocol.replication.row.cells import is_live
from tenure.protocol.replication.row.layout import CELL, FamilyShape, parted
from tenure.protocol.replication.row.limits import PAGE_BYTES
from tenure.protocol.replication.row.memory_row import MemoryRow
from tenure.protocol.replication.row.names import unescaped
from tenure.protocol.replication.row.pages import CellPage, FoundCell, Slice, SuperPage, found_cell
from tenure.protocol.replication.row.parts import place_in_time
from tenure.protocol.replication.row.records import NOTHING
from tenure.protocol.replication.row.sections import SectionPart, SectionQuestion
from tenure.protocol.replication.row.states import RowState, is_marker

Shapes = Mapping[str, FamilyShape]


def questions_of(shapes: Shapes, within: int) -> tuple[SectionQuestion, ...]:
    """What a replica is asked, in one step, for a page of a row."""
    return tuple(
        SectionQuestion(
            family=name, part=Slice(within), lists_supers=shape.has_supers, within=within
        )
        for name, shape in shapes.items()
    )


# --- from parts ---


def row_of_parts(key: bytes, shapes: Shapes, parts: Sequence[SectionPart]) -> WholeRow | None:
    """The page that these parts tell. None if they do not tell it: they are of a replica of an
    earlier release, or deleted columns fill a part, and what is behind them is unknown.
    """
    by_family = _by_family(shapes, parts)
    if by_family is None:
        return None
    simple: dict[str, CellPage] = {}
    supers: dict[str, SuperPage] = {}
    for name, (first, *inner) in by_family.items():
        if shapes[name].has_supers:
            pages = [(of, _page_of(part)) for (of, _), part in zip(first.cells, inner, strict=True)]
            if any(_is_unknown(page) for _, page in pages):
                return None
            supers[name] = SuperPage(tuple(each for each in pages if each[1].cells), first.last)
        else:
            simple[name] = _page_of(first)
    families: list[CellPage | SuperPage] = [*simple.values(), *supers.values()]
    if any(map(_is_unknown, families)):
        return None
    return _row(key, simple, supers)


def _by_family(
    shapes: Shapes, parts: Sequence[SectionPart]
) -> dict[str, Sequence[SectionPart]] | None:
    found: dict[str, Sequence[SectionPart]] = {}
    begin = 0
    for name, shape in shapes.items():
        if begin >= len(parts):
            return None
        end = begin + 1 + (len(parts[begin].cells) if shape.has_supers else 0)
        found[name] = parts[begin:end]
        begin = end
    return found if begin == len(parts) else None


def _page_of(part: SectionPart) -> CellPage:
    live = ((name, cell) for name, cell in part.cells if is_live(cell, NOTHING))
    return CellPage(tuple(found_cell(name, cell) for name, cell in live), part.last)


def _is_unknown(page: CellPage | SuperPage) -> bool:
    has = page.supers if isinstance(page, SuperPage) else page.cells
    return not has and page.next is not None


# --- from a state ---


def row_of_state(key: bytes, shapes: Shapes, state: RowState, within: int) -> WholeRow:
    """The page that a reader sees of a row that was settled to this state."""
    row = _readable(shapes, state)
    simple: dict[str, CellPage] = {}
    supers: dict[str, SuperPage] = {}
    left = PAGE_BYTES
    for name, shape in shapes.items():
        if shape.has_supers:
            supers[name] = _super_page(row, shape, within, left)
            left -= supers[name].size
        else:
            simple[name] = _cell_page(row.columns(name, None), shape, within, left)
            left -= simple[name].size
    return _row(key, simple, supers)


def _readable(shapes: Shapes, state: RowState) -> MemoryRow:
    """The live cells of a state, under all its markers."""
    markers: dict[tuple[str, bytes], bytes] = {}
    cells: list[tuple[str, bytes, bytes, bytes]] = []
    for family, key, entry in state.entries:
        if family in shapes:
            section, _, name = parted(shapes[family], b"", key)
            if is_marker(entry):
                markers[family, section] = entry
            else:
                cells.append((family, section, name, entry))
    row = MemoryRow(shapes)
    for family, section, name, cell in cells:
        above = (markers.get((family, each), NOTHING) for each in (b"", section))
        if is_live(cell, max(state.marker, *above)):
            inner = unescaped(section, len(CELL))[0] if section else None
            row.put(family, inner, found_cell(name, cell))
    return row


def _super_page(row: MemoryRow, shape: FamilyShape, within: int, most_bytes: int) -> SuperPage:
    found: list[tuple[bytes, CellPage]] = []
    size = 0
    for inner in row.supers(shape.name):
        columns = row.columns(shape.name, inner)
        found.append((inner, _cell_page(columns, shape, within, most_bytes - size)))
        size += len(inner) + found[-1][1].size
        if len(found) == within or size >= most_bytes:
            return SuperPage(tuple(found), inner)
    return SuperPage(tuple(found))


def _cell_page(
    columns: Iterable[FoundCell], shape: FamilyShape, within: int, most_bytes: int
) -> CellPage:
    cells: list[FoundCell] = []
    size = 0
    for cell in columns:
        cells.append(cell)
        size += cell.size
        if len(cells) == within or size >= most_bytes:
            by_time = shape.order == "time"
            place = place_in_time(cell.name, cell.version.packed()) if by_time else cell.name
            return CellPage(tuple(cells), place)
    return CellPage(tuple(cells))


def _row(key: bytes, simple: Mapping[str, CellPage], supers: Mapping[str, SuperPage]) -> WholeRow:
    """Only the families that have any columns."""
    return WholeRow(
        key=key,
        simple={name: page for name, page in simple.items() if page.cells},
        supers={name: page for name, page in supers.items() if page.supers},
    )
