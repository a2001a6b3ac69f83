"""The coordinator's part of a node: what clients ask of it, as requests to replicas (5)."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tenure.base.instants import Instant
from tenure.protocol.replication import flows
from tenure.protocol.replication.adoption import Adopting
from tenure.protocol.replication.conversation import Conversation, Conversing, RequestFailed
from tenure.protocol.replication.drawing import DrawnTimes, draw_version
from tenure.protocol.replication.flow_run import FlowRun
from tenure.protocol.replication.flows import Flow
from tenure.protocol.replication.hints import Hints
from tenure.protocol.replication.layout import FamilyShape, shapes_of
from tenure.protocol.replication.messages import (
    AdoptRow,
    ClientAnswer,
    ClientRequest,
    DrawVersion,
    Failed,
    FailedWhy,
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
from tenure.protocol.replication.scanning import Scanning
from tenure.protocol.replication.warming import warm
from tenure.protocol.replication.whole_reading import WholeReading
from tenure.protocol.replication.writing import write_row
from tenure.protocol.topology.tables import TableRecord

PageRequest = ReadColumn | ReadPage | ReadSupers
ReadRequest = PageRequest | ReadRow


class Coordinator:
    """See above. If too many requests run at once, more are refused before they begin."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self.hints = Hints(context)
        self._drawn = DrawnTimes()

    def on_asked(self, now: Instant, client: int, request: ClientRequest) -> None:
        """Begin a request."""
        context = self._context
        context.under_way += 1
        if context.under_way > context.config.most_requests:
            answer = Failed(request=request.request, why="overloaded")
            context.answer(client, answer)
            return
        table = context.topology.tables.get(request.table)
        if table is None:
            answer = Failed(request=request.request, why="no such table", detail=request.table)
            context.answer(client, answer)
            return
        lacks = lacking_in(request, table)
        if lacks is not None:  # this node has not heard of it yet, or nobody has
            detail = f"{request.table} with {lacks}"
            context.answer(
                client, Failed(request=request.request, why="no such table", detail=detail)
            )
            return
        match request:
            case DrawVersion():
                talk = Conversation(context, now)
                self._converse(talk, client, request, draw_version(talk, self._drawn, request))
            case WriteRow():
                talk, tell = Conversation(context, now), partial(context.answer, client)
                self._converse(talk, client, request, write_row(talk, request, self.hints, tell))
            case AdoptRow():
                Adopting(context, now, client, request).begin(now)
            case ReadRows():
                shapes = shapes_of(table)
                Scanning(context, now, client, request, (table.kind, shapes)).begin(now)
            case ReadPage(warms=True) | ReadSupers(warms=True):
                warm(context, now, client, request)
            case _:
                self._read(now, client, request, shapes_of(table))

    def _converse(
        self,
        talk: Conversation,
        client: int,
        request: ClientRequest,
        steps: Conversing[ClientAnswer | None],
    ) -> None:
        """Tell the client what comes of it, unless the conversation does so itself."""

        def told() -> Conversing[None]:
            try:
                answer = yield from steps
            except RequestFailed as failed:
                answer = Failed(request=request.request, why=failed.why, detail=failed.detail)
            if answer is not None:
                self._context.answer(client, answer)

        talk.begin(told())

    def _read(
        self, now: Instant, client: int, request: ReadRequest, shapes: dict[str, FamilyShape]
    ) -> None:
        row = request.table, request.key

        def answered(make: Callable[[Any], ClientAnswer]) -> Callable[..., None]:
            def then(at: Instant, found: Any, why: FailedWhy | None) -> None:  # noqa: ANN401 - of any flow
                del at
                failed = why and Failed(request=request.request, why=why)
                self._context.answer(client, failed or make(found))

            return then

        if isinstance(request, ReadRow):
            found = answered(lambda whole: RowFound(request=request.request, row=whole))
            page = shapes, request.within
            WholeReading(self._context, now, request.level, row, page, found).begin(now)
        else:
            flow, make = _flow(request, shapes)
            FlowRun(self._context, request.level, row, flow, answered(make)).begin(now)


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


def _flow(
    request: PageRequest, shapes: dict[str, FamilyShape]
) -> tuple[Flow[Any], Callable[[Any], ClientAnswer]]:
    number = request.request
    match request:
        case ReadColumn(family=family, super=inner, name=name):
            flow: Flow[Any] = flows.column(family, inner, name)
            return flow, lambda page: PageFound(request=number, page=page)
        case ReadPage(family=family, super=inner, part=part):
            flow = flows.page(shapes[family], inner, part)
            return flow, lambda page: PageFound(request=number, page=page)
        case ReadSupers(family=family, part=part, within=within):
            flow = flows.supers(shapes[family], part, within)
            return flow, lambda page: SupersFound(request=number, page=page)
