"""Deltas: the values that one node knows better than another, cut to fit a datagram.

Heartbeats come first, because a failure detector without them convicts the living. Values follow in
the order of their versions, so that a node that gets some of them knows where to go on. The order
of nodes is drawn for each message, so no node waits behind another for ever.
"""

from collections.abc import Iterable
from random import Random

import msgspec

from tenure.protocol.gossip.limits import HEADS_SHARE, PARTS_BYTES
from tenure.protocol.gossip.messages import NodeDelta, NodeDigest, StateEntry, size_of
from tenure.protocol.gossip.state import NodeState


def knows_better(state: NodeState, theirs: NodeDigest) -> bool:
    """Whether there is anything to tell a peer that knows the node as `theirs` says."""
    head = state.head
    if head.promises > theirs.promises:
        return True  # of an earlier life too: it shows that the node went back (R26)
    if head.generation != theirs.generation:
        return head.generation > theirs.generation
    return head.heartbeat > theirs.heartbeat or head.version > theirs.version


def knows_less(state: NodeState, theirs: NodeDigest) -> bool:
    """Whether they have values that are missing here."""
    return (theirs.generation, theirs.version) > (state.head.generation, state.head.version)


def cut_deltas(
    behind: Iterable[tuple[NodeState, NodeDigest]], random: Random, room: int = PARTS_BYTES
) -> tuple[NodeDelta, ...]:
    """The values of these nodes that a peer lacks, whose knowledge of each node is given by its
    digest.
    """
    shuffled = list(behind)
    random.shuffle(shuffled)
    begun: list[tuple[NodeState, NodeDelta]] = []
    for_values = round(room * (1 - HEADS_SHARE))
    for state, theirs in shuffled:
        after = theirs.version if theirs.generation == state.head.generation else 0
        head = msgspec.structs.replace(state.head, version=min(after, state.head.version))
        delta = NodeDelta(head, head.version)
        size = size_of(delta)
        if room - size < for_values:
            break
        room -= size
        begun.append((state, delta))
    deltas = []
    for state, delta in begun:
        entries, room = _cut_entries(state.since(delta.after), room)
        deltas.append(_with_entries(delta, entries))
    return tuple(deltas)


def _cut_entries(entries: Iterable[StateEntry], room: int) -> tuple[list[StateEntry], int]:
    fitting = []
    for entry in entries:
        size = size_of(entry)
        if size > room:
            break
        room -= size
        fitting.append(entry)
    return fitting, room


def _with_entries(delta: NodeDelta, entries: list[StateEntry]) -> NodeDelta:
    if not entries:
        return delta
    head = msgspec.structs.replace(delta.head, version=entries[-1].version)
    return NodeDelta(head, delta.after, tuple(entries))
