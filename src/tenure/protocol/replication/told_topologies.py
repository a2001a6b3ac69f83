"""Whether a topology that another node tells counts (R32).

A topology ends nodes and decides who keeps what, and a later version replaces each earlier one for
ever. So this node believes a topology only of a node that has proven that it belongs to the
cluster. Even then one node's word, which may be a fault of its disk or its memory, must not end
another node, nor use up the versions: such a topology counts when a manager tells it as well. One
that only leaps also counts when a second member of the ring tells the same.
"""

from typing import Literal

from tenure.protocol.topology.limits import LEAP
from tenure.protocol.topology.records import NodeId, Topology

Doubt = Literal["is not proven", "removes this node", "leaps"]


class ToldTopologies:
    def __init__(self, node: NodeId) -> None:
        self._node = node
        self._leaps: dict[NodeId, Topology] = {}
        """What each member told that leaps: one for each, so they are few."""

    def doubt(
        self, mine: Topology, told: Topology, teller: NodeId, *, is_proven: bool
    ) -> Doubt | None:
        """The reason why a topology does not count yet; None if it counts."""
        if not is_proven:
            return "is not proven"
        if told.is_removed(self._node):
            return "removes this node"
        if told.version - mine.version <= LEAP:
            return None
        if mine.node(teller) is not None:
            self._leaps[teller] = told
        tellers = [each for each, leap in self._leaps.items() if leap == told and mine.node(each)]
        # One with a damaged memory could use up the versions: another must tell the same (R32).
        return None if len(tellers) > 1 else "leaps"

    def to_ask(self, mine: Topology) -> list[NodeId]:
        """The members that have not told anything that leaps."""
        return [
            each.id for each in mine.nodes if each.id != self._node and each.id not in self._leaps
        ]

    def settle(self, mine: Topology) -> None:
        """Forget what was told, since another topology counts now."""
        self._leaps = {
            each: leap for each, leap in self._leaps.items() if leap.version > mine.version
        }
