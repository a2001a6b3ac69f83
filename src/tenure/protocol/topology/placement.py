"""Placement: which nodes replicate which own range (Cassandra 5.2), with the least change.

*Rack unaware*: the owner of a range and the nodes that follow it on the ring. *Rack aware*:
replicas lie in as many racks as possible. *Datacentre aware*: so many replicas in each data centre,
and there in as many racks as possible.

In the paper, the leader sees to it that no node replicates more than N - 1 ranges beside its own.
Without racks that is always so. With racks it is often impossible: a rack of one node has a replica
of nearly everything. Then racks come first, because a lost rack loses data and a full node only
time; the excess is as small as possible, and the short rack is named, so that somebody adds a node
there.

All of it is one cheapest flow from own ranges, through racks, to nodes. The costs, in this order:
two replicas in one rack; a range beyond N - 1, and more so on a node that has some already; a
replica where there was none; an uneven share; and distance on the ring, which only breaks ties.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tenure.protocol.topology.flow import FlowNetwork
from tenure.protocol.topology.records import Node, NodeId, Placement, Topology

Lists: TypeAlias = dict[NodeId, tuple[NodeId, ...]]
"""The replicas of every node's own range; the node itself first."""

_STEP = 1 << 20
"""The factor between costs: more than all the cheaper ones together, 9 replicas of a thousand parts
each, or distances on the ring.
"""
_DISTANCE = 1
_UNEVEN = _STEP
_CHANGED = _STEP * _UNEVEN
_EXCESS_UNEVEN = _STEP * _CHANGED
_EXCESS = _STEP * _EXCESS_UNEVEN
_SAME_RACK = _STEP * _EXCESS


class Former(NamedTuple):
    """The nodes that replicate a part of an own range now, and the weight of that part."""

    weight: int
    """The cost of a new replica of the range: at least 1, and 1,000 for the whole ring."""
    replicas: Sequence[NodeId]


FormerLists: TypeAlias = Mapping[NodeId, Sequence[Former]]


class Placed(NamedTuple):
    """A placement, and what is wrong with it."""

    lists: Lists
    excess: dict[str, int]
    """How many ranges more than N - 1 the nodes of a rack replicate together; by short rack."""


class TooFewNodes(Exception):
    """The nodes do not suffice for the replicas that every range must have."""


def check_enough(placement: Placement, nodes: Iterable[Node]) -> None:
    """Raise TooFewNodes if `nodes` cannot hold all replicas."""
    here = Counter(node.datacentre for node in nodes)
    if placement.kind != "datacentre_aware":
        if here.total() < placement.replicas:
            raise TooFewNodes(
                f"cannot place {placement.replicas} replicas of each range on {here.total()} nodes"
            )
        return
    wanted = dict(placement.datacentres)
    for name, count in wanted.items():
        if here[name] < count:
            raise TooFewNodes(
                f"cannot place {count} replicas of each range on {here[name]} nodes in the data "
                f"centre {name!r}"
            )
    for name in here:
        if name not in wanted:
            raise TooFewNodes(
                f"there are nodes in the data centre {name!r}, in which the placement {placement} "
                "has no replicas"
            )


def placed(placement: Placement, nodes: Sequence[Node], before: FormerLists) -> Placed:
    """The replicas of the own range of each of `nodes`, each at its token.

    `before` lists the nodes that replicate that range now, part by part. Raises TooFewNodes.
    """
    check_enough(placement, nodes)
    ring = sorted(nodes, key=lambda node: node.token)
    if placement.kind == "rack_unaware":
        lists = {node.id: _following(ring, index, placement.replicas)
                 for index, node in enumerate(ring)}  # fmt: skip
        excess = _excess(ring, lists, placement.replicas)
        assert not excess, excess
        return Placed(lists, excess)
    wanted = dict(placement.datacentres)
    found: dict[NodeId, set[NodeId]] = {node.id: {node.id} for node in ring}
    for datacentre in sorted({node.datacentre for node in ring}) if wanted else [None]:
        count = placement.replicas if datacentre is None else wanted[datacentre]
        for of, by in _Room(ring, datacentre, count, placement.replicas, before).chosen():
            found[of].add(by)
    lists = {
        node.id: tuple(each for each in _following(ring, index) if each in found[node.id])
        for index, node in enumerate(ring)
    }
    return Placed(lists, _excess(ring, lists, placement.replicas))


def _following(ring: Sequence[Node], index: int, count: int | None = None) -> tuple[NodeId, ...]:
    return tuple(node.id for node in (*ring[index:], *ring[:index]))[:count]


def excess_of(topology: Topology) -> dict[str, int]:
    """How many more ranges nodes replicate than N - 1 beside their own, by short rack."""
    lists = {each.old[0]: each.old for each in topology.ranges}
    return _excess(topology.nodes, lists, topology.placement.replicas)


def _excess(ring: Sequence[Node], lists: Lists, replicas: int) -> dict[str, int]:
    held = Counter(by for of in lists.values() for by in of)
    excess: Counter[str] = Counter()
    for node in ring:
        if held[node.id] > replicas:
            excess[f"{node.datacentre}/{node.rack}"] += held[node.id] - replicas
    return dict(sorted(excess.items()))


class _Room:
    """Choosing `count` replicas of each range in one data centre, or in all of them."""

    def __init__(
        self,
        ring: Sequence[Node],
        datacentre: str | None,
        count: int,
        replicas: int,
        before: FormerLists,
    ) -> None:
        self._ring = ring
        self._here = [node for node in ring if datacentre in (None, node.datacentre)]
        self._count = count
        self._before = before
        self._places = {node.id: place for place, node in enumerate(ring)}
        self._network = FlowNetwork()
        self._source, self._sink = self._network.point(), self._network.point()
        self._points = {node.id: self._network.point() for node in self._here}
        self._choices: list[tuple[NodeId, NodeId, int]] = []
        for node in self._here:
            self._let_take(node, replicas)
        for node in ring:
            self._let_choose(node)

    def chosen(self) -> Iterable[tuple[NodeId, NodeId]]:
        """Own ranges by their nodes, each with a node that replicates it, too."""
        self._network.send(self._source, self._sink)
        return [(of, by) for of, by, edge in self._choices if self._network.used(edge)]

    def _let_take(self, node: Node, replicas: int) -> None:
        for taken in range(len(self._ring) - 1):
            beyond = taken + 1 - (replicas - 1)
            cost = taken * _UNEVEN
            if beyond > 0:
                cost = _EXCESS + beyond * _EXCESS_UNEVEN
            self._network.edge(self._points[node.id], self._sink, 1, cost)

    def _let_choose(self, of: Node) -> None:
        others = [node for node in self._here if node.id != of.id]
        is_here = len(others) < len(self._here)
        wanted = self._count - is_here
        if not wanted:
            return
        network, chooser = self._network, self._network.point()
        network.edge(self._source, chooser, wanted)
        racks: dict[tuple[str, str], int] = {}
        for node in others:
            rack = node.datacentre, node.rack
            if rack not in racks:
                racks[rack] = network.point()
                if not (is_here and rack == (of.datacentre, of.rack)):
                    network.edge(chooser, racks[rack], 1)
                network.edge(chooser, racks[rack], wanted, _SAME_RACK)
            edge = network.edge(racks[rack], self._points[node.id], 1, self._cost(of, node))
            self._choices.append((of.id, node.id, edge))

    def _cost(self, of: Node, by: Node) -> int:
        distance = (self._places[by.id] - self._places[of.id]) % len(self._ring)
        parts = self._before.get(of.id, ())
        new = sum(part.weight for part in parts if by.id not in part.replicas)
        return new * _CHANGED + distance * _DISTANCE
