"""Moves of tokens, after which all nodes carry about the same (Cassandra 5.1, 5.5).

The paper has lightly loaded nodes move on the ring to relieve heavily loaded ones. A node that is
added takes the token that halves the heaviest own range. A node that already takes part may jump
there, too, or shift its token a little, so that its range and its neighbour's become alike. Of all
these moves, a round takes the one after which nodes are the most alike; the next round begins from
there.

What a node carries is the load of every range that it replicates, so each move is placed before it
is judged. A key cannot be cut: if one key is most of the load, no move helps, and none is made.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tenure.base.ranges import KeyRange
from tenure.protocol.topology.change import (
    ChangeRefused,
    WantedChange,
    begin,
    finish,
    gained,
    join,
    shown_token,
)
from tenure.protocol.topology.records import Node, NodeId, Token, Topology
from tenure.protocol.topology.weights import Weights

EVEN_ENOUGH = 1.2
"""The load of the heaviest node as a multiple of the mean, below which nothing is moved."""
WORTH_IT = 0.02
"""The part of the strain that a move must remove at least, or its bytes are not worth it."""
HEAVY, LIGHT = 3, 4
"""How many of the heaviest ranges, and of the lightest nodes, are tried."""
MOVES = 24
PROMISING = 8
"""How many candidates are placed in a round."""
PLACING_WORK = 1_000_000
"""The work that placing may do at a time: about a second, in which the leases of the same manager
wait, since placing takes as long as the cube of the nodes. With 64 nodes it is enough for the first
move; the next is found when that is done."""


class TokenMove(NamedTuple):
    """One move that would help."""

    node: NodeId
    name: str
    token: Token
    bytes: int
    why: str
    before: float
    """The heaviest node's load as a multiple of the mean, before the move and after it."""
    after: float


def loads(topology: Topology, weights: Weights) -> dict[NodeId, float]:
    """The load of each member: of all that it replicates."""
    found = {node.id: 0.0 for node in topology.nodes}
    for replicas in topology.each():
        load = weights.load(replicas.range)
        for node in replicas.old:
            found[node] += load
    return found


def unevenness(topology: Topology, weights: Weights) -> float:
    """The heaviest node's load as a multiple of the mean; 1 if nothing is known."""
    carried = loads(topology, weights).values()
    return max(carried) * len(carried) / sum(carried) if sum(carried) else 1.0


def own_ranges(topology: Topology) -> dict[NodeId, list[KeyRange]]:
    """The own range of each member: one, or the two ends of the space, the upper one first. A node
    that is being replaced shares it with the node that replaces it.
    """
    ring = sorted(topology.nodes, key=lambda node: node.token)
    found: dict[NodeId, list[KeyRange]] = {}
    for place, node in enumerate(ring):
        before = ring[place - 1].token
        if place and before == node.token:
            found[node.id] = found[ring[place - 1].id]
        elif place:
            found[node.id] = [KeyRange(before, node.token)]
        else:
            found[node.id] = [KeyRange(before, None), KeyRange(b"", node.token)]
    return found


def relieving_token(topology: Topology, weights: Weights) -> Token | None:
    """The token that halves the heaviest own range; None if no load is known."""
    own = own_ranges(topology)
    heaviest = sorted(own, key=lambda node: -sum(map(weights.load, own[node])))
    taken = {node.token for node in topology.nodes}
    tokens = (weights.token_at(own[node], 0.5) for node in heaviest)
    return next((token for token in tokens if token is not None and token not in taken), None)


def proposed_moves(
    topology: Topology, weights: Weights, budget: int | None = None
) -> Iterator[TokenMove]:
    """Moves one after the other, each from where the one before leads, that copy at most `budget`
    bytes together. None while a change runs: there is one at a time.
    """
    if topology.change is not None:
        return
    left = float("inf") if budget is None else budget
    placings = _placings(topology)
    for _ in range(MOVES):
        before, strain = unevenness(topology, weights), _strain(topology, weights)
        if before <= EVEN_ENOUGH:
            return
        best: _Tried | None = None
        for node, token, why in _most_promising(topology, weights):
            if not placings:
                break
            placings -= 1
            tried = _tried(topology, node, token, weights, why)
            if tried is not None and tried.bytes <= left and (best is None or tried[:2] < best[:2]):
                best = tried
        if best is None or best.strain > strain * (1 - WORTH_IT):
            return
        topology = best.topology
        left -= best.bytes
        after = unevenness(topology, weights)
        yield TokenMove(
            best.node.id, best.node.name, best.token, best.bytes, best.why, before, after
        )


def _strain(topology: Topology, weights: Weights) -> float:
    """A measure that is lower, the more alike nodes and own ranges are. It falls with moves of
    which it takes several to relieve the heaviest node: with six nodes and three replicas a heavy
    range is on half of them wherever it is cut once.
    """
    own = (sum(map(weights.load, ranges)) for ranges in own_ranges(topology).values())
    replicas = topology.placement.replicas
    carried = loads(topology, weights).values()
    return sum(load * load for load in carried) + sum((replicas * load) ** 2 for load in own)


def _placings(topology: Topology) -> int:
    if topology.placement.kind == "rack_unaware":
        return MOVES * PROMISING  # there is nothing to choose
    return PLACING_WORK // max(len(topology.nodes), 1) ** 3


def _most_promising(topology: Topology, weights: Weights) -> list[tuple[Node, Token, str]]:
    """The candidates that make own ranges most alike, which is found without placing anything."""
    ring = sorted(topology.nodes, key=lambda node: node.token)
    tokens = [node.token for node in ring]

    def strain(candidate: tuple[Node, Token, str]) -> float:
        node, token, _ = candidate
        moved = sorted((token, *(each for each in tokens if each != node.token)))
        own = [KeyRange(*ends) for ends in pairwise(moved)]
        around = weights.load(KeyRange(moved[-1], None)) + weights.load(KeyRange(b"", moved[0]))
        return around**2 + sum(weights.load(each) ** 2 for each in own)

    return sorted(_candidates(topology, weights), key=strain)[:PROMISING]


def _candidates(topology: Topology, weights: Weights) -> Iterator[tuple[Node, Token, str]]:
    own, carried = own_ranges(topology), loads(topology, weights)
    names = {node.id: node.name for node in topology.nodes}
    taken = {node.token for node in topology.nodes}
    ring = sorted(topology.nodes, key=lambda node: node.token)
    heavy = sorted(own, key=lambda node: -sum(map(weights.load, own[node])))[:HEAVY]
    light = sorted(topology.nodes, key=lambda node: carried[node.id])[:LIGHT]
    for of in heavy:
        token = weights.token_at(own[of], 0.5)
        for node in light:
            if token is not None and token not in taken and node.id != of:
                where = shown_token(token)
                yield node, token, f"it takes half of {names[of]}'s range, up to {where}"
    for place, node in enumerate(ring):
        after = ring[(place + 1) % len(ring)]
        both = [*own[node.id], *own[after.id]]
        token = weights.token_at(both, 0.5) if after.id != node.id else None
        if token is not None and token not in taken:
            yield node, token, f"its range and {after.name}'s become alike"


class _Tried(NamedTuple):
    """The result of a move; the least is the best."""

    strain: float
    bytes: int
    topology: Topology
    node: Node
    token: Token
    why: str


def _tried(
    topology: Topology, node: Node, token: Token, weights: Weights, why: str
) -> _Tried | None:
    wanted = WantedChange(kind="move", node=node.id, token=token)
    version = topology.version + 1
    try:
        begun = begin(topology, wanted, version, weights.of_a_thousand)
    except ChangeRefused:
        return None
    moved = finish(join(begun, version + 1), version + 2)
    copied = sum(gained(begun, weights.bytes_in).values())
    return _Tried(_strain(moved, weights), copied, moved, node, token, why)
