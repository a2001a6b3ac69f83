"""Reading a page of a whole row at a level: one question, and one instant at each replica (R7, D2).

If as many replicas as are needed have the same parts, they are the page. Otherwise nothing is
merged part by part, since a mend of some columns would tear a mutation for the next reader: the
whole row is settled, and the page is made of what it is settled to. So no second read follows that
would find the row changed again, and a mutation over several families is in the page, or is not.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from tenure.protocol.replication.conversation import Conversation, Conversing, TopologyReplaced
from tenure.protocol.replication.messages import WholeRow, whole_row
from tenure.protocol.replication.request.page_reading import read_by_family
from tenure.protocol.replication.request.reading import read_parts, told_parts
from tenure.protocol.replication.request.resolving import Resolved
from tenure.protocol.replication.request.settling import RowAsked, mend_row
from tenure.protocol.replication.row.cells import is_live
from tenure.protocol.replication.row.layout import CELL, FamilyShape, parted
from tenure.protocol.replication.row.names import unescaped
from tenure.protocol.replication.row.pages import CellPage, Slice, Steps, SuperPage, found_cell
from tenure.protocol.replication.row.parts import at_once, place_in_time
from tenure.protocol.replication.row.records import NOTHING
from tenure.protocol.replication.row.sections import SectionPart, SectionQuestion
from tenure.protocol.replication.row.states import RowState, is_marker

Shapes = Mapping[str, FamilyShape]
Section = tuple[str, bytes | None]


def read_whole(
    row: RowAsked, shapes: Shapes, within: int, talk: Conversation
) -> Conversing[WholeRow]:
    """The first `within` columns of each family."""
    while True:
        with suppress(TopologyReplaced):
            told = yield from told_parts(talk, row, questions_of(shapes, within))
            answers = [told.agreed] if told.agreed else [*told.data.values()]
            pages = [row_of_parts(row.key, shapes, each.parts) for each in answers]
            whole = [page for page in pages if page is not None]
            if len(whole) < len(pages):
                # That some cannot say it in one answer is no reason to send all of the row.
                read = partial(read_parts, talk, row)
                return (yield from read_by_family(read, row.key, shapes, within))
            if told.agreed is None:
                state = yield from mend_row(talk, row)
                return row_of_state(row.key, shapes, state, within)
            return whole[0]


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
    found: dict[str, CellPage | SuperPage] = {}
    for name, (first, *inner) in by_family.items():
        if shapes[name].has_supers:
            pages = [(of, _page_of(part)) for (of, _), part in zip(first.cells, inner, strict=True)]
            if any(_is_unknown(page) for _, page in pages):
                return None
            found[name] = SuperPage(tuple(each for each in pages if each[1].cells), first.last)
        else:
            found[name] = _page_of(first)
    return None if any(map(_is_unknown, found.values())) else whole_row(key, found)


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
    live = _live(shapes, state)

    def read(questions: Sequence[SectionQuestion]) -> Steps[list[Resolved]]:
        yield from ()
        return [_answer(live, each) for each in questions]

    return at_once(read_by_family(read, key, shapes, within))


def _live(shapes: Shapes, state: RowState) -> dict[Section, list[tuple[bytes, bytes]]]:
    """The live cells of a state, under all its markers, in the order of their families."""
    markers: dict[tuple[str, bytes], bytes] = {}
    cells: list[tuple[str, bytes, bytes, bytes]] = []
    for family, key, entry in state.entries:
        if family in shapes:
            section, _, name = parted(shapes[family], b"", key)
            if is_marker(entry):
                markers[family, section] = entry
            else:
                cells.append((family, section, name, entry))
    found: dict[Section, list[tuple[bytes, bytes]]] = {}
    for family, section, name, cell in cells:
        above = (markers.get((family, each), NOTHING) for each in (b"", section))
        if is_live(cell, max(state.marker, *above)):
            inner = unescaped(section, len(CELL))[0] if section else None
            found.setdefault((family, inner), []).append((name, cell))
    for (family, _), of_section in found.items():
        if shapes[family].order == "time":
            of_section.sort(key=lambda each: place_in_time(*each))
    return found


def _answer(live: Mapping[Section, list[tuple[bytes, bytes]]], asked: SectionQuestion) -> Resolved:
    if asked.lists_supers:
        names = sorted(inner or b"" for family, inner in live if family == asked.family)
        return Resolved(tuple((name, b"") for name in names))
    return Resolved(tuple(live.get((asked.family, asked.super), ())))
