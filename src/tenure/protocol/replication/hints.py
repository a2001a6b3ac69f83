"""Hints: writes for replicas that were silent, kept by their coordinator until they are back (R13).

A hint is a late write. The replica admits it wherever it lies, and drops it if it comes too late: a
quorum has the write without hints. So hints only make replicas the same sooner, and they may be
lost; repair finds what they do not bring. They are kept on disk all the same, because a coordinator
has most hints when other nodes are away, and may end just then.

Hints are handed over a few at a time, and only as fast as the replica answers. If there are too
many, in number or in bytes, no more are kept.
"""

from collections import deque
from typing import NamedTuple

import msgspec

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.replication.messages import WriteRow
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import ApplyRow, RowApplied
from tenure.protocol.replication.tasks import DropHint, HintsRead, KeepHint, ReadHints
from tenure.protocol.topology.messages import HintsFor
from tenure.protocol.topology.records import NodeId

HANDED_OVER_AT_ONCE = 16
"""The hints that are handed over to one node at once: one that is back has other things to do."""
_NUMBER_BYTES = 8
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(WriteRow)


class Hint(NamedTuple):
    """A write for a node."""

    key: bytes
    """The key under which it is on the disk: the node, and a number."""
    asked: WriteRow
    size: int


class Hints:
    """The hints that this node keeps for others."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._kept: dict[NodeId, deque[Hint]] = {}
        self._count = 0
        self._bytes = 0
        self._sent: dict[int, tuple[NodeId, Hint]] = {}
        """The hints by ticket that were handed over, and are not answered yet."""
        self.wake_at = FAR_FUTURE
        self.dropped = 0

    def start(self, after: bytes = b"") -> None:
        """Read what an earlier life has kept."""

        def read(result: HintsRead) -> None:
            for key, kept in result.hints:
                node = int.from_bytes(key[:_NUMBER_BYTES])
                self._add(self._context.now, node, Hint(key, _DECODER.decode(kept), len(kept)))
            if not result.is_all:
                self.start(result.hints[-1][0])

        self._context.run(ReadHints(after), read)

    def keep(self, now: Instant, node: NodeId, asked: WriteRow) -> None:
        """Have a write for a node, unless there are too many."""
        config, data = self._context.config, _ENCODER.encode(asked)
        if self._count >= config.most_hints or self._bytes + len(data) > config.most_hint_bytes:
            self.dropped += 1
            return
        number = self._context.draw_ticket()
        key = node.to_bytes(_NUMBER_BYTES) + number.to_bytes(_NUMBER_BYTES)
        self._context.run(KeepHint(key, data), _nothing)
        self._add(now, node, Hint(key, asked, len(data)))

    def _add(self, now: Instant, node: NodeId, hint: Hint) -> None:
        self._kept.setdefault(node, deque()).append(hint)
        self._count += 1
        self._bytes += hint.size
        if self.wake_at == FAR_FUTURE:
            self._wake(now)

    def _drop(self, hint: Hint) -> None:
        self._count -= 1
        self._bytes -= hint.size
        self._context.run(DropHint(hint.key), _nothing)

    def counts(self) -> dict[NodeId, int]:
        """How many there are for each node."""
        return {each.node: each.count for each in self.told()}

    def told(self) -> tuple[HintsFor, ...]:
        """The same, as it is told to managers."""
        return tuple(
            HintsFor(node=node, count=len(kept), bytes=sum(hint.size for hint in kept))
            for node, kept in sorted(self._kept.items())
            if kept
        )

    def advance(self, now: Instant) -> None:
        """Hand over to those that are up; what was not answered is kept again."""
        context = self._context
        for ticket, (node, hint) in self._sent.items():
            context.forget(ticket)
            self._kept.setdefault(node, deque()).append(hint)
        self._sent.clear()
        for node, kept in self._kept.items():
            if context.topology.is_removed(node):
                while kept:
                    self._drop(kept.popleft())
            elif node not in context.down:
                self._hand_over(node, kept)
        self.wake_at = FAR_FUTURE
        if self._count > 0:
            self._wake(now)

    def _wake(self, now: Instant) -> None:
        self.wake_at = Instant(now + self._context.config.hint_ns)
        self._context.wake(self, self.wake_at)

    def _hand_over(self, node: NodeId, kept: deque[Hint]) -> None:
        for _ in range(min(HANDED_OVER_AT_ONCE - self._under_way(node), len(kept))):
            hint = kept.popleft()
            if not self._is_replica(node, hint):
                self._drop(hint)
                continue
            body = ApplyRow(
                ticket=self._context.draw_ticket(),
                table=hint.asked.table,
                key=hint.asked.key,
                edits=hint.asked.edits,
                attempt=msgspec.structs.replace(hint.asked.attempt, kind="merge"),
            )
            self._sent[body.ticket] = node, hint
            self._context.ask(self, node, body)

    def _is_replica(self, node: NodeId, hint: Hint) -> bool:
        """Whether the node is one of the row's replicas; it may have been when the hint was kept,
        and it answers nothing about rows that are no longer its own.
        """
        replicas = self._context.replicas(hint.asked.table, hint.asked.key)
        return replicas is not None and node in replicas.everyone

    def _under_way(self, node: NodeId) -> int:
        return sum(to == node for to, _ in self._sent.values())

    def on_told(self, now: Instant, node: NodeId, body: RowApplied) -> None:
        """The node has the row, or does not want it; the next hint may come."""
        del now
        self._context.forget(body.ticket)
        _, hint = self._sent.pop(body.ticket, (node, None))
        if hint is not None:
            self._drop(hint)
            self._hand_over(node, self._kept.setdefault(node, deque()))

    def on_outdated(self, now: Instant) -> None:
        """The hint is tried again later."""
        del now


def _nothing(_: object) -> None:
    """Do nothing: no caller waits for it."""
