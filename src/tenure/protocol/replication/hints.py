"""Hints: writes for replicas that were silent, kept by their coordinator until they are back (R13).

A hint is a late write. The replica admits it wherever it lies, and drops it where it comes too
late: what a quorum has is there without hints. So hints only make replicas the same sooner, and
they may be lost; repair finds what they do not bring.
"""

from collections import deque

import msgspec

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.replication.admission import Attempt
from tenure.protocol.replication.messages import ApplyRow, RowApplied, WriteRow
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.topology.records import NodeId

HANDED_OVER_AT_ONCE = 16
"""To one node: whoever is back has other things to do as well."""


class Hints:
    """What this node keeps for others."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._kept: dict[NodeId, deque[WriteRow]] = {}
        self._count = 0
        self._sent: dict[int, tuple[NodeId, WriteRow]] = {}
        """By ticket: handed over, and not answered yet."""
        self.wake_at = FAR_FUTURE
        self.dropped = 0

    def keep(self, now: Instant, node: NodeId, asked: WriteRow) -> None:
        """Have a write for a node, unless there are too many."""
        if self._count >= self._context.config.most_hints:
            self.dropped += 1
            return
        self._kept.setdefault(node, deque()).append(asked)
        self._count += 1
        if self.wake_at == FAR_FUTURE:
            self._wake(now)

    def counts(self) -> dict[NodeId, int]:
        """How many there are for each node."""
        return {node: len(kept) for node, kept in self._kept.items() if kept}

    def advance(self, now: Instant) -> None:
        """Hand over to those that are up; what was not answered is kept again."""
        context = self._context
        for ticket, (node, asked) in self._sent.items():
            context.forget(ticket)
            self._kept.setdefault(node, deque()).append(asked)
        self._sent.clear()
        for node, kept in self._kept.items():
            if context.topology.is_removed(node):
                self._count -= len(kept)
                kept.clear()
            elif node not in context.down:
                self._hand_over(node, kept)
        self.wake_at = FAR_FUTURE
        if self._count > 0:
            self._wake(now)

    def _wake(self, now: Instant) -> None:
        self.wake_at = Instant(now + self._context.config.hint_ns)
        self._context.wake(self, self.wake_at)

    def _hand_over(self, node: NodeId, kept: "deque[WriteRow]") -> None:
        for _ in range(min(HANDED_OVER_AT_ONCE - self._under_way(node), len(kept))):
            asked = kept.popleft()
            body = ApplyRow(
                ticket=self._context.draw_ticket(),
                table=asked.table,
                key=asked.key,
                edits=asked.edits,
                attempt=as_hint(asked.attempt),
            )
            self._sent[body.ticket] = node, asked
            self._context.ask(self, node, body)

    def _under_way(self, node: NodeId) -> int:
        return sum(to == node for to, _ in self._sent.values())

    def on_told(self, now: Instant, node: NodeId, body: RowApplied) -> None:
        """It has it, or does not want it; the next may come."""
        del now
        self._context.forget(body.ticket)
        if self._sent.pop(body.ticket, None) is not None:
            self._count -= 1
            self._hand_over(node, self._kept.setdefault(node, deque()))

    def on_outdated(self, now: Instant) -> None:
        """It is tried again later."""
        del now


def as_hint(attempt: Attempt) -> Attempt:
    """What was written since does not refuse a late write."""
    return msgspec.structs.replace(attempt, kind="merge")
