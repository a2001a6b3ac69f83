"""The replica's part of a node: what it does for coordinators, of this node and of others.

Everything is decided in the step that does it, under the topology that holds then, so nothing can
come in between (R11). No answer says what a power failure could still undo: it leaves when all that
it changed, or has read, is durable. `operations` says for each operation what that is.
"""

from functools import partial

import msgspec

from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import (
    AnyAnswer,
    AnyOperation,
    OfRow,
    RangeOperation,
    is_changed,
    waits_for,
)
from tenure.protocol.topology.records import NodeId


class ReplicaPart:
    """See above. The caller has checked that the asker acts by the same topology."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    def serve(self, sender: NodeId, asked: AnyOperation) -> None:
        """Do what a node asks. It counts the silence of a node that is no replica."""
        # No answer at all: one about a row that it does not keep would count as one (R10).
        if not self._is_replica(asked):
            return
        self._context.run(asked, partial(self._answer, sender, asked))

    def _is_replica(self, asked: AnyOperation) -> bool:
        context = self._context
        if isinstance(asked, OfRow):
            return context.is_replica_of(asked.table, asked.key)
        if isinstance(asked, RangeOperation):
            replicas = context.topology.at(asked.range.start)
            return replicas.range == asked.range and context.node in replicas.everyone
        return True

    def _answer(self, sender: NodeId, asked: AnyOperation, answer: AnyAnswer) -> None:
        context = self._context
        if isinstance(asked, OfRow) and is_changed(asked, answer):
            context.row_changed(asked.table, asked.key)
        tell = partial(context.tell, sender, msgspec.structs.replace(answer, ticket=asked.ticket))
        match waits_for(asked, answer):
            case "nothing":
                tell()
            case "the row":
                assert isinstance(asked, OfRow)
                # Told before that, a power failure would take back what was acknowledged (R11).
                context.when_row_durable(asked.table, asked.key, tell)
            case "all":
                context.when_durable(tell)
            case "for ever":
                pass
