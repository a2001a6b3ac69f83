"""Lying peers: they tell nodes topologies that no manager has decided (R32).

Some have proven nothing and tell what they like. Others are nodes whose memory or disk is damaged,
so that their proof is right: such a one removes the node that it speaks to, or uses up the
versions. No node may act by any of this. The lies are drawn apart from all else, so that a world
without them is as it was before there were any.
"""

from random import Random
from typing import Final

import msgspec

from lab.worlds.columns.processes import NodeProcess
from lab.worlds.columns.strikes import RingSite
from tenure.base.instants import seconds
from tenure.protocol.replication.messages import NodeMessage, Outdated, TopologySaid
from tenure.protocol.replication.node_events import NodeTold
from tenure.protocol.topology.limits import LEAP
from tenure.protocol.topology.records import Removed, Topology

LYING: Final = 0.2
"""The share of worlds with liars."""
APART_NS: Final = seconds(30)
"""The time between two lies, on average."""
HIGHEST: Final = (1 << 63) - 1


class LyingPeers:
    """The liars of one simulated cluster."""

    def __init__(self, site: RingSite, seed: int) -> None:
        self._site = site
        self._random = Random(f"lies of {seed}")
        if self._random.random() < LYING:
            self._go_on()

    def _go_on(self) -> None:
        self._site.at(self._site.now + self._random.randrange(2 * APART_NS), self._lie, None)

    def _lie(self, _: object) -> None:
        members = [each for each in self._site.members() if each.alive and each.is_part]
        if members:
            self._tell(self._random.choice(members))
        self._go_on()

    def _tell(self, receiver: NodeProcess) -> None:
        random, topology = self._random, receiver.machine.context.topology
        node = receiver.disk.node
        others = [each.id for each in topology.nodes if each.id != node]
        if not others:
            return
        is_proven = random.random() < 0.5
        body = random.choice((TopologySaid, Outdated))
        message = NodeMessage(
            cluster=topology.cluster,
            id=topology.id,
            sender=random.choice(others),
            receiver=node,
            version=topology.version,
            body=body(ticket=0, topology=self._forged(topology, node, is_proven=is_proven)),
        )
        self._site.tell(receiver.slot, "is lied to", type(body).__name__)
        receiver.post(NodeTold(message, is_proven))

    def _forged(self, topology: Topology, node: int, *, is_proven: bool) -> Topology:
        if is_proven and self._random.random() < 0.5:
            leap = self._random.randrange(topology.version + LEAP + 1, HIGHEST)
            return msgspec.structs.replace(topology, version=leap)
        version = topology.version + self._random.randrange(1, 100)
        removed = (*topology.removed, Removed(node, "lied"))
        return msgspec.structs.replace(topology, version=version, removed=removed)
