"""Rings to try: nodes by their racks, without those that differ only by names or by turning."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TypeAlias

from tenure.protocol.topology.placement import Lists
from tenure.protocol.topology.records import Node, NodeId, Placement

Rack: TypeAlias = tuple[int, int]
"""A data centre, and a rack in it."""
SPACE = 16


def node(place: int, rack: Rack = (0, 0), token: int | None = None) -> Node:
    """A node at a place of the ring."""
    at = SPACE * (place + 1) if token is None else token
    datacentre, in_it = rack
    return Node(
        id=place + 1,
        name=f"node-{place + 1}",
        address=f"http://10.0.0.{place + 1}:7500",
        rack=f"r{in_it}",
        datacentre="ew"[datacentre],
        token=bytes([at]),
    )


def ring(racks: Sequence[Rack]) -> list[Node]:
    """A ring of nodes in those racks."""
    return [node(place, rack) for place, rack in enumerate(racks)]


def unlike(count: int, racks: Sequence[Rack]) -> Iterator[tuple[Rack, ...]]:
    """Every ring of `count` nodes in `racks`, once for all that are alike."""
    for found in product(racks, repeat=count):
        if found == _plain(found) and all(
            found <= _plain(found[turn:] + found[:turn]) for turn in range(1, count)
        ):
            yield found


def _plain(racks: tuple[Rack, ...]) -> tuple[Rack, ...]:
    """Return the racks of each data centre, numbered in the order in which they come."""
    within: dict[Rack, int] = {}
    for rack in racks:
        if rack not in within:
            within[rack] = sum(other[0] == rack[0] for other in within)
    return tuple((rack[0], within[rack]) for rack in racks)


Badness: TypeAlias = tuple[int, int, int]
"""Replicas that share a rack, ranges beyond N - 1, replicas where a node had none before."""


def badness(
    placement: Placement,
    nodes: Sequence[Node],
    before: Mapping[NodeId, Sequence[NodeId]],
    lists: Mapping[NodeId, Sequence[NodeId]],
) -> Badness:
    """Return what a placement costs."""
    racks = {each.id: (each.datacentre, each.rack) for each in nodes}
    shared = sum(len(of) - len({racks[by] for by in of}) for of in lists.values())
    held = Counter(by for of in lists.values() for by in of)
    excess = sum(max(0, held[each.id] - placement.replicas) for each in nodes)
    new = sum(by not in before.get(of, ()) for of in lists for by in lists[of] if by != of)
    return shared, excess, new


def least_badness(
    placement: Placement, nodes: Sequence[Node], before: Mapping[NodeId, Sequence[NodeId]]
) -> Badness:
    """The least that any placement costs, found by trying all of them."""
    choices = [list(_lists(placement, nodes, of)) for of in nodes]
    return min(
        badness(placement, nodes, before, dict(zip([n.id for n in nodes], tried, strict=True)))
        for tried in product(*choices)
    )


def _lists(placement: Placement, nodes: Sequence[Node], of: Node) -> Iterator[tuple[NodeId, ...]]:
    others = [each for each in nodes if each.id != of.id]
    for chosen in combinations(others, placement.replicas - 1):
        here = Counter(each.datacentre for each in (of, *chosen))
        if not placement.datacentres or here == Counter(dict(placement.datacentres)):
            yield (of.id, *(each.id for each in chosen))


def check(placement: Placement, nodes: Sequence[Node], lists: Lists) -> None:
    """Every list is one that the placement allows."""
    for each in nodes:
        replicas = lists[each.id]
        assert replicas[0] == each.id
        assert len(set(replicas)) == len(replicas) == placement.replicas
        if placement.datacentres:
            centres = {other.id: other.datacentre for other in nodes}
            assert Counter(centres[by] for by in replicas) == Counter(dict(placement.datacentres))
