"""Every ring: placed from nothing, and again after each node that may come, go or move."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from tenure.protocol.topology.placement import Former, TooFewNodes, check_enough, placed
from tenure.protocol.topology.records import Node, NodeId, Placement
from tests.unit.protocol.topology.rings import (
    SPACE,
    Rack,
    badness,
    check,
    least_badness,
    node,
    ring,
    unlike,
)

RACKS: Sequence[Rack] = ((0, 0), (0, 1), (0, 2))
RACKS_OF_TWO: Sequence[Rack] = (*RACKS, (1, 0), (1, 1), (1, 2))

PLACEMENTS = (
    *(Placement("rack_unaware", n) for n in range(1, 5)),
    *(Placement("rack_aware", n) for n in range(1, 5)),
    *(
        Placement("datacentre_aware", e + w, (("e", e), ("w", w)))
        for e in range(1, 3)
        for w in range(e, 5 - e)  # the others are these, with the names of the two exchanged
    ),
)


def try_rings(placement: Placement, up_to: int, twin_up_to: int) -> int:
    """Try all rings of that many nodes; how many placements were looked at."""
    racks: Sequence[Rack] = {
        "rack_unaware": RACKS[:1],
        "rack_aware": RACKS,
        "datacentre_aware": RACKS_OF_TWO,
    }[placement.kind]
    tried = 0
    for count in range(1, up_to + 1):
        for found in unlike(count, racks):
            nodes = ring(found)
            lists = _try(placement, nodes, {}, twin=count <= twin_up_to)
            if lists is None:
                continue
            tried += 1
            for changed in _changes(nodes, racks):
                before = {each.id: lists[_owner(nodes, each)] for each in changed}
                twin = len(changed) <= min(twin_up_to, 4)
                tried += _try(placement, changed, before, twin=twin) is not None
    return tried


def _owner(nodes: list[Node], of: Node) -> NodeId:
    """The node whose own range contained the own range of `of`, or most of it."""
    ends = [each for each in nodes if each.token >= of.token]
    return (ends or nodes)[0].id


def _changes(nodes: list[Node], racks: Sequence[Rack]) -> Iterator[list[Node]]:
    count = len(nodes)
    for place, gone in enumerate(nodes):
        rest = [each for each in nodes if each is not gone]
        yield rest
        if place == 0:  # rings are tried in all their turns, but for those that are alike
            for gap in range(count):
                yield _with(rest, (gone.datacentre, gone.rack), count, gap)
    for rack in racks:
        for gap in range(min(count, 2)):
            yield _with(nodes, ("ew"[rack[0]], f"r{rack[1]}"), count, gap)


def _with(nodes: list[Node], rack: tuple[str, str], place: int, gap: int) -> list[Node]:
    token = SPACE * (gap + 1) - SPACE // 2
    named = (("ew".index(rack[0])), int(rack[1][1:]))
    return sorted((*nodes, node(place, named, token)), key=lambda each: each.token)


def _try(
    placement: Placement,
    nodes: list[Node],
    before: Mapping[NodeId, Sequence[NodeId]],
    *,
    twin: bool,
) -> dict[NodeId, tuple[NodeId, ...]] | None:
    try:
        check_enough(placement, nodes)
    except TooFewNodes:
        return None
    former = {of: (Former(1, by),) for of, by in before.items()}
    lists, excess = placed(placement, nodes, former)
    check(placement, nodes, lists)
    shared, over, new = badness(placement, nodes, before, lists)
    assert sum(excess.values()) == over
    if placement.kind == "rack_unaware":
        assert over == 0
    elif twin:
        assert (shared, over, new) == least_badness(placement, nodes, before), (nodes, before)
    assert shared == _least_shared(placement, nodes)
    return lists


def _least_shared(placement: Placement, nodes: list[Node]) -> int:
    """Replicas that share a rack whatever is done, of all ranges."""
    if placement.kind == "rack_unaware":
        return sum(placement.replicas - 1 for _ in nodes)
    wanted = dict(placement.datacentres) or {nodes[0].datacentre: placement.replicas}
    racks = {each: len({n.rack for n in nodes if n.datacentre == each}) for each in wanted}
    return len(nodes) * sum(max(0, count - racks[each]) for each, count in wanted.items())


if __name__ == "__main__":
    for each in PLACEMENTS:
        began = time.process_time()
        tried = try_rings(each, up_to=7, twin_up_to=5 if "fast" not in sys.argv else 4)
        seconds = time.process_time() - began
        sys.stdout.write(f"{each.kind} {each}: {tried} placements, {seconds:.1f} s\n")
        sys.stdout.flush()
