"""Writing one row: to all replicas, until as many have it as the level requires (R6).

The replicas decide: each applies the attempt whole, or refuses it. If so many refuse that the level
cannot be met, the client begins anew above what they have (R4). Some may have applied the attempt
by then, which harms nobody: the next attempt says the same, with a greater version.

A replica that says nothing until the deadline gets a hint, and so does one that was down from the
beginning.
"""

import msgspec

from tenure.base.instants import Instant
from tenure.protocol.replication.admission import Ahead, Attempt, Late, Outranked, Outrun, Refused
from tenure.protocol.replication.hints import Hints
from tenure.protocol.replication.levels import Need, are_met, may_be_met
from tenure.protocol.replication.messages import (
    ApplyRow,
    NotWritten,
    RowApplied,
    RowWritten,
    WriteRow,
)
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.request import ClientRequestUnderWay
from tenure.protocol.topology.records import NodeId


class RowWriting(ClientRequestUnderWay):
    """See above."""

    def __init__(
        self, context: NodeContext, now: Instant, client: int, asked: WriteRow, hints: Hints
    ) -> None:
        super().__init__(context, now, asked.level, client, asked.request)
        self._asked = asked
        self._hints = hints
        self._needs: list[Need] = []
        self._everyone: tuple[NodeId, ...] = ()
        self._applied: set[NodeId] = set()
        self._refused: dict[NodeId, Refused] = {}

    def begin(self, now: Instant) -> None:
        """Identify, and route."""
        del now
        asked, context = self._asked, self.context
        if self._everyone and asked.attempt.kind == "first":
            # Some have applied it, so the same attempt would be outrun by itself.
            newest = asked.attempt.version
            self.answer(NotWritten(request=self.request, refused=Outrun(newest)))
            self.end()
            return
        replicas = context.replicas(asked.table, asked.key)
        needs = None if replicas is None else self.needs(replicas)
        if replicas is None or needs is None:
            self._fail_at_once(is_known=replicas is not None)
            return
        self._needs, self._everyone = needs, replicas.everyone
        self._applied.clear()
        self._refused.clear()
        for node in context.in_order(self._everyone):
            self._ask(node, asked.attempt)

    def _ask(self, node: NodeId, attempt: Attempt) -> None:
        body = ApplyRow(
            ticket=self.context.draw_ticket(),
            table=self._asked.table,
            key=self._asked.key,
            edits=self._asked.edits,
            attempt=attempt,
        )
        self.ask(node, body)

    def _fail_at_once(self, *, is_known: bool) -> None:
        if self._everyone:  # it was sent under an earlier topology
            self.fail("unknown")
        elif is_known:
            self.fail("too few replicas")
        else:
            self.fail("no such table", self._asked.table)

    def on_told(self, now: Instant, node: NodeId, body: RowApplied) -> None:
        """Resolve."""
        del now
        if body.refused is None:
            self._applied.add(node)
        else:
            self._refused[node] = body.refused
        if self._asked.attempt.kind == "repeat" and any(
            need.is_met(self._applied) for need in self._needs
        ):
            self._merge_refused()
        if are_met(self._needs, self._applied):
            self.answer(RowWritten(request=self.request))
        elif not may_be_met(self._needs, self._refused):
            refused = max(self._refused.values(), key=_gravity)
            self.answer(NotWritten(request=self.request, refused=refused))
            self.end()
        if len(self._applied) + len(self._refused) == len(self._everyone):
            self.end()

    def _merge_refused(self) -> None:
        """A list has the repeated write: it has taken effect, so replicas that have never had it
        must have it, too.
        """
        for node, refused in list(self._refused.items()):
            if isinstance(refused, Outrun):
                del self._refused[node]
                self._ask(node, msgspec.structs.replace(self._asked.attempt, kind="merge"))

    def on_deadline(self, now: Instant) -> None:
        """Fail, if nothing was answered; and repair later whoever was silent."""
        for node in self._everyone:
            if node not in self._applied and node not in self._refused:
                self._hints.keep(now, node, self._asked)
        self.fail("unknown")


def _gravity(refused: Refused) -> tuple[int, int]:
    """The rank of a refusal: of several, the client is told the one that it can do least about."""
    match refused:
        case Outrun(newest):
            return 0, newest.time
        case Ahead(bound):
            return 1, bound
        case Late(horizon):
            return 2, horizon
        case Outranked(fence):
            return 3, fence
