"""The coordinator's part of a node: what clients ask of it, as requests to replicas (5)."""

from collections.abc import Callable, Sequence
from typing import Any

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.replication import flows
from tenure.protocol.replication.adoption import Adopting
from tenure.protocol.replication.flows import Flow
from tenure.protocol.replication.hints import Hints
from tenure.protocol.replication.layout import FamilyShape, shapes_of
from tenure.protocol.replication.levels import Level
from tenure.protocol.replication.messages import (
    AdoptRow,
    ClientAnswer,
    ClientRequest,
    Failed,
    PageFound,
    ReadColumn,
    ReadPage,
    ReadRow,
    ReadSupers,
    RowFound,
    SupersFound,
    WriteRow,
)
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.reading import Found, Reading
from tenure.protocol.replication.sections import SectionQuestion
from tenure.protocol.replication.writing import RowWriting


class Coordinator:
    """See above. What is too much at once is refused before it begins."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self.hints = Hints(context)

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
        match request:
            case WriteRow():
                RowWriting(context, now, client, request, self.hints).begin(now)
            case AdoptRow():
                Adopting(context, now, client, request).begin(now)
            case _:
                flow, answered = _flow(request, shapes_of(table))
                _FlowUnderWay(context, client, request, flow, answered).begin(now)


class _FlowUnderWay:
    """A flow, and the reading that it waits for."""

    def __init__(
        self,
        context: NodeContext,
        client: int,
        request: ReadColumn | ReadPage | ReadSupers | ReadRow,
        flow: Flow[Any],
        answered: Callable[[Any], ClientAnswer],
    ) -> None:
        self._context = context
        self._client = client
        self._request = request
        self._row: tuple[str, Key] = request.table, request.key
        self._level: Level = request.level
        self._flow = flow
        self._answered = answered

    def begin(self, now: Instant) -> None:
        """Ask the first questions."""
        self._ask(now, next(self._flow))

    def _ask(self, now: Instant, questions: Sequence[SectionQuestion]) -> None:
        Reading(self._context, now, self._level, self._row, questions, self._go_on).begin(now)

    def _go_on(self, now: Instant, found: Found) -> None:
        if isinstance(found, str):
            failed = Failed(request=self._request.request, why=found)
            self._context.answer(self._client, failed)
            return
        try:
            questions = self._flow.send(found)
        except StopIteration as end:
            self._context.answer(self._client, self._answered(end.value))
        else:
            self._ask(now, questions)


def _flow(
    request: ReadColumn | ReadPage | ReadSupers | ReadRow, shapes: dict[str, FamilyShape]
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
        case ReadRow(key=key, within=within):
            flow = flows.row(key, shapes, within)
            return flow, lambda found: RowFound(request=number, row=found)
