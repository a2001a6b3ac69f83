"""Delays: how soon other nodes answer reads. The nearest replica is asked first (paper 5.7).

Of two nodes at the same distance, in racks and data centres, the nearer one is the one that answers
sooner. A difference of half as much again says nothing, so only the power of two counts. A node
that has not been asked for a while is forgotten little by little, and so is tried again.
"""

from collections.abc import Callable, Sequence
from math import log2

from tenure.base.instants import MILLISECOND_NS, SECOND_NS, Instant
from tenure.protocol.topology.records import NodeId

WEIGHT = 0.1
"""The weight of the last answer, beside those before it."""
FORGOTTEN = 0.98
"""The part of a delay that still counts after each look."""
LOOK_NS = SECOND_NS
LEAST_NS = MILLISECOND_NS
"""The least delay that is told apart: processes wait as long for the processor."""
MOST_ASKED = 10_000
"""Questions without an answer that are remembered: a node may be gone."""


class Delays:
    def __init__(self) -> None:
        self._asked: dict[int, tuple[NodeId, Instant]] = {}
        self._smoothed: dict[NodeId, float] = {}
        self._look_at = Instant(0)

    def asked(self, now: Instant, ticket: int, node: NodeId) -> None:
        if len(self._asked) >= MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        self._asked[ticket] = node, now

    def answered(self, now: Instant, ticket: int) -> bool:
        """Count an answer; return whether it is time to look which node is the nearest."""
        node, at = self._asked.pop(ticket, (0, now))
        if node:
            self._count(node, now - at)
        return bool(node) and now >= self._look_at

    def _count(self, node: NodeId, took_ns: float) -> None:
        before = self._smoothed.get(node, took_ns)
        self._smoothed[node] = before + WEIGHT * (took_ns - before)

    def nearest(
        self, now: Instant, nodes: Sequence[NodeId], distance: Callable[[NodeId], int]
    ) -> tuple[NodeId, ...]:
        """The nearest first: by distance, and then by delay."""
        self._look_at = Instant(now + LOOK_NS)
        silent: dict[NodeId, int] = {}
        for node, at in self._asked.values():
            silent.setdefault(node, now - at)  # the first question is the oldest
        self._smoothed = {node: each * FORGOTTEN for node, each in self._smoothed.items()}

        def power(node: NodeId) -> int:
            delay = max(self._smoothed.get(node, 0.0), silent.get(node, 0), LEAST_NS)
            return int(log2(delay / LEAST_NS))

        self._asked = {
            ticket: (node, at)
            for ticket, (node, at) in self._asked.items()
            if now - at < 10 * LOOK_NS
        }
        return tuple(sorted(nodes, key=lambda node: (distance(node), power(node))))
