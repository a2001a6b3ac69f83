"""Running a flow: its questions are read at a level, and it goes on with each result."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.replication.flows import Flow
from tenure.protocol.replication.levels import Level
from tenure.protocol.replication.messages import FailedWhy
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.reading import Found, Reading
from tenure.protocol.replication.sections import SectionQuestion

P = TypeVar("P")


class FlowRun(Generic[P]):
    """A flow about one row, and the reading that it waits for. `then` is called once."""

    def __init__(
        self,
        context: NodeContext,
        level: Level,
        row: tuple[str, Key],
        flow: Flow[P],
        then: Callable[[Instant, P | None, FailedWhy | None], None],
    ) -> None:
        self._context = context
        self._level: Level = level
        self._row = row
        self._flow = flow
        self._then = then

    def begin(self, now: Instant) -> None:
        """Ask the first questions."""
        self._ask(now, next(self._flow))

    def _ask(self, now: Instant, questions: Sequence[SectionQuestion]) -> None:
        Reading(self._context, now, self._level, self._row, questions, self._go_on).begin(now)

    def _go_on(self, now: Instant, found: Found) -> None:
        if isinstance(found, str):
            self._then(now, None, found)
            return
        try:
            questions = self._flow.send(found)
        except StopIteration as end:
            self._then(now, end.value, None)
        else:
            self._ask(now, questions)
