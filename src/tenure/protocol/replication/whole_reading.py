"""Reading a page of a whole row at a level: one question, and one instant at each replica (R7, D2).

If as many replicas as are needed have the same, that is the page. Otherwise nothing is merged part
by part, since a mend of some columns would tear a mutation for the next reader: the whole row is
settled, and the page is made of what it is settled to. So no second read follows that would find
the row changed again.
"""

from collections.abc import Callable, Sequence

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.replication import flows
from tenure.protocol.replication.flow_run import FlowRun
from tenure.protocol.replication.levels import Level
from tenure.protocol.replication.messages import FailedWhy, WholeRow
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import PartsRead
from tenure.protocol.replication.reading import Found, Reading
from tenure.protocol.replication.sections import SectionPart
from tenure.protocol.replication.states import RowState
from tenure.protocol.replication.whole_rows import (
    Shapes,
    questions_of,
    row_of_parts,
    row_of_state,
)
from tenure.protocol.topology.records import NodeId


class WholeReading(Reading):
    """See above. `then` is called once."""

    def __init__(
        self,
        context: NodeContext,
        now: Instant,
        level: Level,
        row: tuple[str, Key],
        page: tuple[Shapes, int],
        then: Callable[[Instant, WholeRow | None, FailedWhy | None], None],
    ) -> None:
        self._shapes_of_row, self._within = page
        self._then_row = then
        super().__init__(context, now, level, row, questions_of(*page), self._fail)

    def agree(self, now: Instant, parts: Sequence[SectionPart]) -> None:
        """See `Reading.agree`."""
        row = row_of_parts(self._key, self._shapes_of_row, parts)
        if row is None:
            self._read_by_family(now)
        else:
            self._end_with_row(now, row)

    def resolve(self, now: Instant, told: dict[NodeId, PartsRead]) -> None:
        """They differ: settle the whole row. But what some cannot say in one answer is no reason
        to send all of it.
        """
        rows = (row_of_parts(self._key, self._shapes_of_row, each.parts) for each in told.values())
        if all(row is not None for row in rows):
            self.mend_whole(now)
        else:
            self._read_by_family(now)

    def on_whole_mended(self, now: Instant, state: RowState) -> None:
        """The page is in the state itself."""
        self._end_with_row(now, row_of_state(self._key, self._shapes_of_row, state, self._within))

    def _read_by_family(self, now: Instant) -> None:
        self.end()
        flow = flows.row(self._key, self._shapes_of_row, self._within)
        FlowRun(self.context, self.level, self._row, flow, self._then_row).begin(now)

    def _end_with_row(self, now: Instant, row: WholeRow) -> None:
        self.end()
        self._then_row(now, row, None)

    def _fail(self, now: Instant, found: Found) -> None:
        assert isinstance(found, str)
        self._then_row(now, None, found)
