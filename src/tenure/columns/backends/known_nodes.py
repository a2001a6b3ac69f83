"""The nodes that a handle knows, and which of them it asks.

Nodes tell the topology when a handle opens, and again whenever they act by another. So the handle
prefers the replicas of a row, and forgets nodes that have left. It prefers only a node that has
answered it: an address of the topology may not be reachable from here, or lead into nothing for
seconds. Others are *probed*, and are asked once they have answered. While no node answers, they are
all tried in turn, and so are the URLs that were given, whatever the topology says.
"""

import random
from collections.abc import Sequence
from typing import Final

from tenure.protocol.topology.records import NodeId, Topology
from tenure.protocol.topology.ring import position

PROBE_SECONDS: Final = 5.0
"""The least time between two probes of a node."""


class KnownNodes:
    """The nodes of one handle; before the first topology is told, those that the user named."""

    def __init__(self, given: Sequence[str]) -> None:
        self._given = tuple(given)
        self._addresses = self._given
        self._topology: Topology | None = None
        self._home = random.choice(self._given)  # noqa: S311 - so that handles spread
        self._draws: dict[str, float] = {}
        """A random number for each node: a handle prefers the same replica of a row each time."""
        self._orders: dict[tuple[NodeId, ...], list[str]] = {}
        """The order of these replicas, as long as the topology and the home are the same."""
        self._heard: dict[str, None] = {}
        """The nodes that have answered, over connections that are not lost."""
        self._probed: dict[str, float] = {}
        self.lost: dict[str, str] = {}
        """Why connections were lost, of nodes that have not answered since; the latest last."""

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self._home, *self._addresses, *self._given)))

    @property
    def is_any_heard(self) -> bool:
        """Whether there is a connection over which a node has answered."""
        return bool(self._heard)

    @property
    def all_are_lost(self) -> bool:
        """Whether no node is left to be tried before those that were lost are tried again."""
        return all(node in self.lost for node in self.all)

    # --- what is heard ---

    def learn(self, addresses: Sequence[str], topology: Topology | None) -> None:
        """A node has told which nodes there are. Those before there was a topology in it told only
        their addresses.
        """
        if topology is None:
            if self._topology is None:
                self._addresses = tuple(addresses) or self._addresses
        elif topology.is_taken_over(self._topology) and topology.nodes:
            here = [node.address for node in topology.nodes]
            gone = set(self._addresses if self._topology else ()).difference(here)
            self._topology, self._addresses = topology, tuple(here)
            self._orders.clear()
            self._given = tuple(node for node in self._given if node not in gone)
            for node in sorted(gone):
                self.lost.pop(node, None)
                self._heard.pop(node, None)
            if self._home in gone:
                self._home = next(iter(self._heard), None) or random.choice(here)  # noqa: S311

    def on_answer(self, node: str) -> None:
        self.lost.pop(node, None)
        self._heard[node] = None

    def on_lost(self, node: str, why: str) -> None:
        self._heard.pop(node, None)
        self.lost.pop(node, None)
        if node in self.all:
            self.lost[node] = why
        if node == self._home:
            self._home = next(iter(self._heard), None) or self._next_in_turn()
            self._orders.clear()

    def demote(self, nodes: Sequence[str], now: float) -> None:
        """These nodes did not reach enough replicas, but another one did."""
        for node in nodes:
            self.on_lost(node, "it does not reach enough replicas")
            self._probed[node] = now

    def _next_in_turn(self) -> str:
        """The next node to be tried: one that was not lost, or the one that was lost first."""
        fresh = [node for node in self.all if node not in self.lost]
        return fresh[0] if fresh else next(iter(self.lost))

    # --- choosing ---

    def choose(self, replicas: Sequence[str]) -> str:
        """The node to ask, of these replicas if one has answered."""
        found = next((node for node in replicas if node in self._heard), None)
        if found is not None:
            return found
        if self._home in self._heard or self._home not in self.lost:
            return self._home
        return next(iter(self._heard), None) or self._next_in_turn()

    def other_than(self, nodes: Sequence[str]) -> str | None:
        """Another node, if some were asked; rather one that has answered."""
        untried = [node for node in (*self._heard, *self.all) if node not in (*nodes, *self.lost)]
        return untried[0] if nodes and untried else None

    def to_probe(self, replicas: Sequence[str], now: float) -> str | None:
        """The replica that would be asked, had it answered."""
        best = next(iter(replicas), None)
        if best is None or best in self._heard:
            return None
        if now - self._probed.get(best, -PROBE_SECONDS) < PROBE_SECONDS:
            return None
        self._probed[best] = now
        return best

    def replicas(self, table: str, key: bytes) -> list[str]:
        """The replicas of a row in this handle's order, if it is known which are near."""
        topology = self._topology
        record = topology.tables.get(table) if topology else None
        if topology is None or record is None:
            return []
        nodes = topology.at(position(key, record.kind)).everyone
        order = self._orders.get(nodes)
        if order is None:
            order = sorted(filter(None, map(self._near, nodes)), key=self._draw)
            self._orders[nodes] = order
        return order

    def _near(self, node: NodeId) -> str | None:
        """The address of a node that is as near as any: in the data centre of the node that is
        asked otherwise, or in the only one.
        """
        assert self._topology is not None
        member = self._topology.node(node)
        centres = {each.datacentre for each in self._topology.nodes}
        if member is not None and len(centres) > 1:
            home = [each for each in self._topology.nodes if each.address == self._home]
            if [each.datacentre for each in home] != [member.datacentre]:
                return None
        return member.address if member else None

    def _draw(self, node: str) -> float:
        return self._draws.setdefault(node, random.random())  # noqa: S311
