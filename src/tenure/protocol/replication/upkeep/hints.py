"""Hints: writes for replicas that were silent, kept by their coordinator until they are back (R13).

A hint is a late write. The replica admits it wherever it lies, and drops it if it comes too late: a
quorum has the write without hints. So hints only make replicas the same sooner, and they may be
lost; repair finds what they do not bring. They are kept on disk all the same, because a coordinator
has most hints when other nodes are away, and may end just then.

Hints are handed over a few at a time, and only as fast as the replica answers. If there are too
many, in number or in bytes, no more are kept.
"""

from contextlib import suppress
from functools import partial
from typing import NamedTuple

import msgspec

from tenure.protocol.replication.conversation import Conversing, Interrupted, Until
from tenure.protocol.replication.messages import WriteRow
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import ApplyRow
from tenure.protocol.replication.tasks import DropHint, KeepHint, ReadHints
from tenure.protocol.replication.upkeep.errand import DiskRefused, Errand, errand
from tenure.protocol.topology.messages import HintsFor
from tenure.protocol.topology.records import NodeId

HANDED_OVER_AT_ONCE = 16
"""The hints that are handed over to one node at once: one that is back has other things to do."""
_NUMBER_BYTES = 8
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(WriteRow)


class Hint(NamedTuple):
    asked: WriteRow
    size: int


class Hints:
    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._kept: dict[NodeId, dict[bytes, Hint]] = {}
        """The hints for each node, by the key under which they are on the disk."""
        self._count = 0
        self._bytes = 0
        self._work: Errand | None = None
        self._hand_overs: dict[NodeId, Errand] = {}
        self.dropped = 0

    def start(self) -> None:
        """Begin to hand over, also what an earlier life has kept."""
        assert self._work is None, "each life begins once"
        self._work = errand(self._context, self._run)

    def keep(self, node: NodeId, asked: WriteRow) -> None:
        """Have a write for a node, unless there are too many."""
        config, data = self._context.config, _ENCODER.encode(asked)
        if self._count >= config.most_hints or self._bytes + len(data) > config.most_hint_bytes:
            self.dropped += 1  # comparing brings it (R27)
            return
        number = self._context.draw_ticket()
        key = node.to_bytes(_NUMBER_BYTES) + number.to_bytes(_NUMBER_BYTES)
        self._context.run(KeepHint(key, data))
        self._add(key, Hint(asked, len(data)))

    def told(self) -> tuple[HintsFor, ...]:
        """How many there are for each node, as managers are told it."""
        return tuple(
            HintsFor(node=node, count=len(kept), bytes=sum(hint.size for hint in kept.values()))
            for node, kept in sorted(self._kept.items())
            if kept
        )

    # --- handing over ---

    def _run(self, talk: Errand) -> Conversing[None]:
        """Hand over to those that are up, again and again."""
        yield from self._read(talk)
        while True:
            yield Until(lambda: self._count > 0)
            yield from talk.pause(self._context.config.hint_ns)
            for node in self._kept:
                before = self._hand_overs.get(node)
                if before is None or before.is_over:
                    self._hand_overs[node] = errand(self._context, partial(self._hand_over, node))

    def _read(self, talk: Errand) -> Conversing[None]:
        """What an earlier life has kept."""
        after, is_all = b"", False
        while not is_all:
            try:
                found = yield from talk.run(ReadHints(after))
            except DiskRefused:
                yield from talk.pause(self._context.config.hint_ns)
                continue
            for key, kept in found.hints:
                self._add(key, Hint(_DECODER.decode(kept), len(kept)))
                after = key
            is_all = found.is_all

    def _hand_over(self, node: NodeId, talk: Errand) -> Conversing[None]:
        """All that there is for a node now."""
        kept = tuple(self._kept[node].items())
        # Its id is refused for ever, so nobody is left to hand it to (R18).
        if self._context.topology.is_removed(node):
            for key, hint in kept:
                self._drop(node, key, hint)
        elif node not in self._context.down:
            parts = (partial(self._hand_over_one, node, key, hint) for key, hint in kept)
            with suppress(Interrupted):  # what it did not answer is tried again later (R13)
                yield from talk.together(parts, HANDED_OVER_AT_ONCE)

    def _hand_over_one(
        self, node: NodeId, key: bytes, hint: Hint, talk: Errand
    ) -> Conversing[None]:
        asked = hint.asked
        if self._is_replica(node, asked):
            # A late write like any other: a fence or a horizon may refuse it (R20, R24).
            attempt = msgspec.structs.replace(asked.attempt, kind="merge")
            late = ApplyRow(table=asked.table, key=asked.key, edits=asked.edits, attempt=attempt)
            yield from talk.ask_one(node, late)
        self._drop(node, key, hint)  # also if it was refused: it would be each time (R13)

    def _is_replica(self, node: NodeId, asked: WriteRow) -> bool:
        """Whether the node is one of the row's replicas; it may have been when the hint was kept,
        and it answers nothing about rows that are no longer its own.
        """
        replicas = self._context.replicas(asked.table, asked.key)
        return replicas is not None and node in replicas.everyone

    # --- what is kept ---

    def _add(self, key: bytes, hint: Hint) -> None:
        self._kept.setdefault(int.from_bytes(key[:_NUMBER_BYTES]), {})[key] = hint
        self._count += 1
        self._bytes += hint.size
        if self._work is not None:
            self._work.look()

    def _drop(self, node: NodeId, key: bytes, hint: Hint) -> None:
        del self._kept[node][key]
        assert self._count > 0, "each hint is counted once"
        self._count -= 1
        self._bytes -= hint.size
        self._context.run(DropHint(key))
