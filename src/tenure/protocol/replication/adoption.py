"""Adopting a row: what an owner does before it counts on what the row says (R19 to R22).

First the fence is raised on all replicas: from then on they refuse what former owners write, and
say what they have. If all have answered, and all have the same, the row is settled: this is the
short way, and the usual one. Otherwise what a quorum has is merged, and a quorum keeps it *as the
state of this adoption*. Anything else that a former owner wrote, at a replica that was not reached,
then belongs to an earlier adoption, and never counts again.

The short way is for the first try only. A second try cannot know whether the first one settled
something at a replica that no longer answers. Nor is there a short way while a node fills: that
node has made no promise, and late writes of a former owner could reach it.
"""

import msgspec

from tenure.base.instants import Instant
from tenure.protocol.replication.messages import Adopted, AdoptRow, Failed, NodeBody
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import PromiseFence, StateMerged, StateRead
from tenure.protocol.replication.settling import Settling
from tenure.protocol.replication.states import RowState
from tenure.protocol.replication.versions import version_of
from tenure.protocol.topology.records import NodeId

FIRST_TRY = 1
"""The number of an owner's first try under a lease. Replicas accept it once, and after no other."""


class Adopting(Settling):
    """See above."""

    def __init__(self, context: NodeContext, now: Instant, client: int, asked: AdoptRow) -> None:
        super().__init__(context, now, (asked.table, asked.key))
        self._client = client
        self._asked = asked
        self.is_first = asked.attempt == FIRST_TRY
        self._has_begun = False

    def begin(self, now: Instant) -> None:
        """Raise the fence. Under another topology the try is another one, and the owner's."""
        if self._has_begun:
            self.on_deadline(now)
            return
        self._has_begun = True
        super().begin(now)

    def question(self) -> NodeBody:
        """Promise, and say what you have."""
        return PromiseFence(
            ticket=self.context.draw_ticket(),
            table=self.table,
            key=self.key,
            number=self._asked.number,
            journal=self._asked.journal,
            attempt=self._asked.attempt,
        )

    def on_told(self, now: Instant, node: NodeId, body: StateRead | StateMerged) -> None:
        """A higher number was promised somewhere: this owner is a former one."""
        refused = body.refused if isinstance(body, StateRead) else None
        if refused is not None:
            if (refused.fence, refused.journal) == (self._asked.number, self._asked.journal):
                self.on_deadline(now)  # this very try has been made: by a request that came twice
                return
            answer = Adopted(request=self._asked.request, refused=refused)
            self.context.answer(self._client, answer)
            self.end()
            return
        super().on_told(now, node, body)

    def is_settled_already(self) -> bool:
        """Whether the short way can be taken."""
        # Otherwise what is the same at all replicas may not stay so.
        if not self.is_first or self.replicas.phase == "filling":
            return False
        if any(node not in self.states for node in self.replicas.everyone):
            return False
        states = [_content(state) for state in self.states.values()]
        return all(state == states[0] for state in states)

    def settled(self, state: RowState) -> RowState:
        """The state as this adoption settles it."""
        return msgspec.structs.replace(
            state,
            fence=self._asked.number,
            journal=self._asked.journal,
            adopted=self._asked.number,
            attempt=self._asked.attempt,
        )

    def finish(self, now: Instant) -> None:
        """The row is this owner's."""
        del now
        newest = max(version_of(state.newest) for state in self.states.values())
        self.context.answer(self._client, Adopted(request=self._asked.request, newest=newest))

    def on_deadline(self, now: Instant) -> None:
        """The owner tries again."""
        del now
        failed = Failed(request=self._asked.request, why="unavailable")
        self.context.answer(self._client, failed)
        self.end()


def _content(state: RowState) -> tuple[object, ...]:
    return state.entries, state.marker, state.newest, state.adoption
