"""Changing the ring: one change at a time, in two steps, and back (R14, R15, R18).

Each function makes a new topology from another. The result is a record in the managers' journal
before anybody is told of it, so the manager that takes over goes on from the last step.

While a change is *filling*, nobody depends on it, and it can be taken back at no cost. While it is
*joint*, the old lists and the new ones keep all that is acknowledged, so it can be finished, and
taken back, too. What a node that joins has copied is wiped when a change begins anew (R17).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from tenure.base.names import shown
from tenure.base.ranges import KeyRange
from tenure.protocol.topology.limits import REMOVED
from tenure.protocol.topology.placement import Former, Lists, Placed, TooFewNodes, placed
from tenure.protocol.topology.records import (
    NO_NODE,
    ChangeKind,
    Node,
    NodeId,
    Removed,
    ReplicaRange,
    RingChange,
    Token,
    Topology,
)
from tenure.protocol.topology.ring import owner_index, pieces

Weigh: TypeAlias = Callable[[KeyRange], int]
"""A function for the cost of copying a part of the ring: at least 1, and 1,000 for the
whole ring.
"""


class ChangeRefused(Exception):
    """A change cannot be made, for this reason; and what can be done instead."""

    def __init__(self, why: str, way_out: str, *, missing: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.way_out = way_out
        self.missing = missing
        """The names that are not there."""


class WantedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change, with all that it leaves open decided."""

    kind: ChangeKind
    node: NodeId
    replaces: NodeId = NO_NODE
    token: Token


def form(topology: Topology, version: int) -> Topology:
    """The first ring, of all nodes that wait. Raises TooFewNodes."""
    nodes = _apart(replace(node, since=version) for node in topology.waiting)
    ring = sorted(nodes, key=_token)
    lists = placed(topology.placement, ring, {}).lists
    tokens = [node.token for node in ring]
    ranges = [
        ReplicaRange(piece.start, lists[ring[owner_index(tokens, piece.start)].id])
        for piece in pieces(tokens)
    ]
    return replace(
        topology,
        version=version,
        nodes=tuple(sorted(nodes, key=_id)),
        waiting=(),
        ranges=_merged(ranges),
    )


def _apart(nodes: Iterable[Node]) -> list[Node]:
    found: dict[Token, Node] = {}
    for node in nodes:
        token = node.token
        while token in found:
            token += b"\1"
        found[token] = replace(node, token=token)
    return list(found.values())


def begin(topology: Topology, wanted: WantedChange, version: int, weigh: Weigh) -> Topology:
    """The change begins to fill. Raises ChangeRefused."""
    check_can_begin(topology)
    members = {node.id: node for node in topology.nodes}
    joining = None
    if wanted.kind in ("add", "replace"):
        waiting = next(node for node in topology.waiting if node.id == wanted.node)
        joining = replace(waiting, token=wanted.token, since=version)
    after = after_change(topology, wanted, joining)
    found = place(topology, wanted, after, weigh)
    if joining is not None:
        members[joining.id] = joining
    return replace(
        topology,
        version=version,
        nodes=tuple(sorted(members.values(), key=_id)),
        waiting=tuple(node for node in topology.waiting if node.id != wanted.node),
        ranges=_ranges(topology, after, found.lists),
        change=RingChange(
            kind=wanted.kind,
            node=wanted.node,
            replaces=wanted.replaces,
            token=wanted.token,
            began=version,
        ),
    )


def check_can_begin(topology: Topology) -> None:
    """Raise ChangeRefused if no change can begin."""
    if topology.change is not None:
        raise ChangeRefused(
            f"one change at a time: {described(topology)}",
            "wait until it is done, or take it back: tenure columns take-back",
        )
    if not topology.ranges:
        raise ChangeRefused(
            f"the cluster {topology.cluster!r} has no ring yet: {len(topology.waiting)} of "
            f"{topology.first_nodes} nodes are there",
            "start its first nodes: tenure columns node --cluster NAME --data DIR --manager URL",
        )
    if len(topology.removed) >= REMOVED:
        raise ChangeRefused(
            f"this cluster has already had {REMOVED} nodes removed, the most it can remember",
            "make a new cluster, and copy the tables",
        )


def after_change(topology: Topology, wanted: WantedChange, joining: Node | None) -> list[Node]:
    """The nodes in the order of the ring after the change. Raises ChangeRefused."""
    gone = {wanted.node: (), wanted.replaces: ()}
    kept = [node for node in topology.nodes if node.id not in gone]
    if wanted.kind == "move":
        moved = next(node for node in topology.nodes if node.id == wanted.node)
        kept.append(replace(moved, token=wanted.token))
    elif joining is not None:
        kept.append(joining)
    ring = sorted(kept, key=_token)
    for one, other in pairwise(ring):
        if one.token == other.token:
            raise ChangeRefused(
                f"{one.name} and {other.name} would both have the token {shown_token(one.token)}",
                "choose another one, or none: then the heaviest range is halved",
            )
    return ring


def place(topology: Topology, wanted: WantedChange, after: Sequence[Node], weigh: Weigh) -> Placed:
    """Decide which nodes replicate the own range of each node. Raises ChangeRefused."""
    former: dict[NodeId, list[Former]] = {}
    tokens = [node.token for node in after]
    for piece in pieces((*tokens, *(each.start for each in topology.ranges))):
        replicas = topology.at(piece.start).old
        if wanted.replaces:  # a replacement is preferred where the replaced node was
            replicas = tuple(wanted.node if by == wanted.replaces else by for by in replicas)
        owner = after[owner_index(tokens, piece.start)]
        former.setdefault(owner.id, []).append(Former(weigh(piece), replicas))
    try:
        return placed(topology.placement, after, former)
    except TooFewNodes as error:
        raise ChangeRefused(str(error), "add a node first") from None


def _ranges(topology: Topology, after: Sequence[Node], lists: Lists) -> tuple[ReplicaRange, ...]:
    tokens = [node.token for node in after]
    ranges = []
    for piece in pieces((*tokens, *(each.start for each in topology.ranges))):
        old = topology.at(piece.start).old
        new = lists[after[owner_index(tokens, piece.start)].id]
        ranges.append(ReplicaRange(piece.start, old, () if new == old else new))
    return _merged(ranges)


def _merged(ranges: Iterable[ReplicaRange]) -> tuple[ReplicaRange, ...]:
    found: list[ReplicaRange] = []
    for each in ranges:
        if not found or (found[-1].old, found[-1].new) != (each.old, each.new):
            found.append(each)
    return tuple(found)


def join(topology: Topology, version: int) -> Topology:
    """The topology after everything was copied: from here on both lists count."""
    assert topology.change is not None
    assert topology.phase == "filling"
    return replace(topology, version=version, change=replace(topology.change, joint=version))


def finish(topology: Topology, version: int) -> Topology:
    """The topology in which the new lists alone count."""
    change = topology.change
    assert change is not None
    assert topology.phase == "joint"
    gone = {"remove": change.node, "replace": change.replaces}.get(change.kind, NO_NODE)
    nodes = [node for node in topology.nodes if node.id != gone]
    if change.kind == "move":
        nodes = [
            replace(node, token=change.token) if node.id == change.node else node for node in nodes
        ]
    removed = [Removed(node.id, node.name) for node in topology.nodes if node.id == gone]
    return replace(
        topology,
        version=version,
        nodes=tuple(nodes),
        removed=(*topology.removed, *removed),
        ranges=_merged(ReplicaRange(each.start, each.new or each.old) for each in topology.ranges),
        change=None,
    )


def take_back(topology: Topology, version: int) -> Topology:
    """The topology in which the old lists alone count again, and a node that was to join waits
    again. Raises ChangeRefused.
    """
    change = topology.change
    if change is None:
        raise ChangeRefused(
            f"no change of the ring of {topology.cluster!r} runs", "there is nothing to take back"
        )
    joining = change.node if change.kind in ("add", "replace") else NO_NODE
    waiting = [replace(node, since=0) for node in topology.nodes if node.id == joining]
    return replace(
        topology,
        version=version,
        nodes=tuple(node for node in topology.nodes if node.id != joining),
        waiting=(*topology.waiting, *waiting),
        ranges=_merged(ReplicaRange(each.start, each.old) for each in topology.ranges),
        change=None,
    )


# --- in words ---


def described(topology: Topology) -> str:
    """The change that runs, in words."""
    change = topology.change
    assert change is not None
    names = {node.id: node.name for node in topology.nodes}
    name = names.get(change.node, "a node")
    what = {
        "add": f"{name} is being added",
        "remove": f"{name} is being removed",
        "replace": f"{names.get(change.replaces, 'a node')} is being replaced by {name}",
        "move": f"{name} is being moved to {shown_token(change.token)}",
    }[change.kind]
    return f"{what} since version {change.began}, and is {change.phase}"


def shown_token(token: Token) -> str:
    """A token as people see it: text where it is text, otherwise in hexadecimal."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return f"0x{token.hex()}"
    return shown(text) if text.isprintable() else f"0x{token.hex()}"


def gained(topology: Topology, bytes_in: Callable[[KeyRange], int]) -> Mapping[NodeId, int]:
    """The bytes that each node copies by the change that runs."""
    return {node: sum(map(bytes_in, ranges)) for node, ranges in topology.gaining().items()}


def _id(node: Node) -> NodeId:
    return node.id


def _token(node: Node) -> Token:
    return node.token
