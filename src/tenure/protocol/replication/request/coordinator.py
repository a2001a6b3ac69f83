"""The coordinator's part of a node: what clients ask of it, as requests to replicas (5)."""

from collections.abc import Callable
from functools import partial
from typing import assert_never

from tenure.base.instants import Instant
from tenure.protocol.replication.conversation import Conversation, Conversing, RequestFailed
from tenure.protocol.replication.messages import (
    AdoptRow,
    ClientAnswer,
    ClientRequest,
    DrawVersion,
    Failed,
    PageFound,
    ReadColumn,
    ReadPage,
    ReadRow,
    ReadRows,
    ReadSupers,
    RowFound,
    SupersFound,
    WriteRow,
)
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.node_events import StoreAsked
from tenure.protocol.replication.request.adoption import adopt_row
from tenure.protocol.replication.request.drawing import DrawnTimes, draw_version
from tenure.protocol.replication.request.page_reading import read_page, read_supers
from tenure.protocol.replication.request.reading import read_parts
from tenure.protocol.replication.request.scanning import read_rows
from tenure.protocol.replication.request.settling import RowAsked
from tenure.protocol.replication.request.warming import warm_page, warm_supers
from tenure.protocol.replication.request.whole_rows import read_whole
from tenure.protocol.replication.request.writing import write_row
from tenure.protocol.replication.request_room import Portion
from tenure.protocol.replication.row.layout import FamilyShape, shapes_of
from tenure.protocol.replication.row.pages import CellPage, found_cell
from tenure.protocol.replication.row.sections import SectionQuestion
from tenure.protocol.replication.upkeep.hints import Hints
from tenure.protocol.topology.tables import TableRecord

ReadRequest = ReadColumn | ReadPage | ReadSupers | ReadRow
Tell = Callable[[ClientAnswer], None]


class Coordinator:
    """Begins the requests that were admitted, each as a conversation."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self.hints = Hints(context)
        self._drawn = DrawnTimes()

    def on_asked(self, now: Instant, asked: StoreAsked, portion: Portion) -> None:
        context, request = self._context, asked.request
        no_table = partial(Failed, request=request.request, why="no such table")
        table = context.topology.tables.get(request.table)
        if table is None:
            context.answer(asked, portion, no_table(detail=request.table))
            return
        lacks = lacking_in(request, table)
        if lacks is not None:  # this node has not heard of it yet, or nobody has
            context.answer(asked, portion, no_table(detail=f"{request.table} with {lacks}"))
            return
        talk = Conversation(context, now, portion)
        talk.begin(self._converse(talk, asked, table, partial(context.answer, asked, portion)))

    def _converse(
        self, talk: Conversation, asked: StoreAsked, table: TableRecord, tell: Tell
    ) -> Conversing[None]:
        """Tell the client what comes of it, unless the conversation does so itself."""
        request = asked.request
        try:
            answer = yield from self._steps(talk, request, table, tell)
        except RequestFailed as failed:
            answer = Failed(request=request.request, why=failed.why, detail=failed.detail)
        if answer is not None:
            tell(answer)

    def _steps(
        self, talk: Conversation, request: ClientRequest, table: TableRecord, tell: Tell
    ) -> Conversing[ClientAnswer | None]:
        match request:
            case DrawVersion():
                return draw_version(talk, self._drawn, request)
            case WriteRow():
                return write_row(talk, request, self.hints, tell)
            case AdoptRow():
                return adopt_row(talk, request)
            case ReadRows():
                return read_rows(talk, request, table)
            case ReadPage(warms=True):
                return warm_page(talk, request)
            case ReadSupers(warms=True):
                return warm_supers(talk, request)
            case ReadColumn() | ReadPage() | ReadSupers() | ReadRow():
                return _read(talk, request, shapes_of(table))
        assert_never(request)


def _read(
    talk: Conversation, asked: ReadRequest, shapes: dict[str, FamilyShape]
) -> Conversing[ClientAnswer]:
    number, row = asked.request, RowAsked(asked.table, asked.key, asked.level)
    read = partial(read_parts, talk, row)
    match asked:
        case ReadColumn(family=family, super=inner, name=name):
            question = SectionQuestion(family=family, super=inner, names=(name,))
            [found] = yield from read([question])
            cells = tuple(found_cell(name, cell) for name, cell in found.cells)
            return PageFound(request=number, page=CellPage(cells))
        case ReadPage(family=family, super=inner, part=part):
            page = yield from read_page(read, shapes[family], inner, part)
            return PageFound(request=number, page=page)
        case ReadSupers(family=family, part=part, within=within):
            supers = yield from read_supers(read, shapes[family], part, within)
            return SupersFound(request=number, page=supers)
        case ReadRow(within=within):
            whole = yield from read_whole(row, shapes, within, talk)
            return RowFound(request=number, row=whole)


_A_FENCE = "a fence, which lease numbers need: `fenced_by` names the pool"
"""Without this, one lease number would keep everybody from a row that nobody owns."""


def lacking_in(request: ClientRequest, table: TableRecord) -> str | None:
    """The first thing that a request names and a table does not have; None if it has everything.
    No entry may lie where readers of its family do not expect it: nobody could read the row.
    """
    match request:
        case AdoptRow() if not table.fenced_by:
            return _A_FENCE
        case WriteRow(attempt=attempt) if attempt.version.number and not table.fenced_by:
            return _A_FENCE
        case WriteRow(edits=edits):
            named = {
                (edit.family, edit.super is not None, edit.name is not None)
                for edit in edits
                if edit.family is not None
            }
        case ReadColumn(family=family, super=inner) | ReadPage(family=family, super=inner):
            named = {(family, inner is not None, True)}
        case ReadSupers(family=family):
            named = {(family, True, False)}
        case _:
            return None
    for family, in_super, is_column in sorted(named):
        kept = table.families.get(family)
        if kept is None:
            return f"a family {family}"
        if in_super and not kept.supers:
            return f"super columns in the family {family}"
        if is_column and kept.supers and not in_super:
            return f"columns outside of super columns in the family {family}"
    return None
