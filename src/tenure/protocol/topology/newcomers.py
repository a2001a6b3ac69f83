"""What can be caused by a node that nobody has added (R34).

A token is enough to come, under any id. So what waits is bounded by token and by age, and gives
way; and it holds up nothing: neither a member that takes an address, nor the versions of the ring.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.base.instants import SECOND_NS, Instant
from tenure.base.names import shown, wrong_with_name
from tenure.protocol.topology.limits import LEAP, NODES
from tenure.protocol.topology.messages import NodeRefusalReason
from tenure.protocol.topology.records import Node, NodeId, Topology
from tenure.protocol.topology.sessions import NodeSessions

SILENT_NS = 3_600 * SECOND_NS
"""After so long without a word, a node that waits gives way to one that needs its place."""
RECORD_NS = SECOND_NS
"""How often the nodes of one token that nobody has added may cause a record in the journal, and a
message to all nodes."""
RECORDS_AT_ONCE = 2 * NODES
"""So many may come at once: all nodes of a cluster, before its ring is formed."""


class Room(NamedTuple):
    """The place of a node that comes: which waiting nodes give way, or why it is refused."""

    leaving: tuple[NodeId, ...] = ()
    refused: tuple[NodeRefusalReason, str] | None = None


def room_for(
    now: Instant,
    topology: Topology,
    sessions: NodeSessions,
    node: Node,
    by: str,
    replaced: Node | None = None,
) -> Room:
    """The place of a node that has shown the token `by`, and the secret of a member to replace."""
    why = wrong_with_name(node.name)
    if why is not None:
        return _taken(f"{shown(node.name)} cannot be the name of a node: {why}")
    leaving: list[NodeId] = []
    everyone = (*topology.nodes, *topology.waiting)
    for other in everyone:
        clash = "" if other is replaced else _clash(node, other)
        if clash and not _gives_way(now, topology, sessions, other, replaced or node):
            return _taken(clash)
        if clash:
            leaving.append(other.id)
    is_here = any(each.id == node.id for each in everyone)
    if not is_here and len(everyone) - len(leaving) >= NODES:
        longest = _first_to_leave(now, topology.waiting, sessions, by)
        if longest is None:
            name = topology.cluster
            return Room(refused=("full", f"{name!r} has {NODES} nodes; no more are allowed"))
        leaving.append(longest)
    return Room(tuple(leaving))


def _taken(why: str) -> Room:
    return Room(refused=("taken", why))


def _clash(node: Node, other: Node) -> str:
    """What both would have, with the way out; empty if there is nothing."""
    if other.id == node.id:
        return ""
    if other.name == node.name:
        return (
            f"there is a node {node.name!r} already, with the id {other.id:016x}: choose another "
            f"--name, or, if that one is nobody's, remove it: tenure columns remove"
        )
    if other.address == node.address or (node.gossip and node.gossip == other.gossip):
        return (
            f"the address {node.address} is that of {other.name!r}: choose another one, or remove "
            f"{other.name!r} first"
        )
    return ""


def _gives_way(
    now: Instant, topology: Topology, sessions: NodeSessions, other: Node, to: Node
) -> bool:
    """Whether a node that waits leaves its name and address to a member, or has been silent."""
    if topology.node(other.id) is not None:
        return False
    return topology.node(to.id) is not None or sessions.silent_ns(now, other.id) > SILENT_NS


def _first_to_leave(
    now: Instant, waiting: Sequence[Node], sessions: NodeSessions, by: str
) -> NodeId | None:
    """Which of these gives way if there is no place left: one that is silent, or otherwise the last
    to come of the token that has the most places, if `by` has fewer even with this one.
    """
    ids = [node.id for node in waiting]
    silent = max(ids, key=lambda node: sessions.silent_ns(now, node), default=None)
    if silent is not None and sessions.silent_ns(now, silent) > SILENT_NS:
        return silent
    counts = sessions.shown(ids)
    most = max(counts, key=lambda token: counts[token], default=by)
    if counts[most] <= counts[by] + 1:
        return None
    return next(node for node in reversed(ids) if sessions.shown_by(node) == most)


class Records:
    """How many records may follow from what comes with each token."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def may_cause(self, now: Instant, by: str) -> bool:
        """Whether another record may, which is counted."""
        at = max(self._next.get(by, now), now)
        if at - now >= RECORDS_AT_ONCE * RECORD_NS:
            return False
        self._next[by] = at + RECORD_NS
        return True


def version_ahead(topology: Topology, sessions: NodeSessions) -> int:
    """The latest version that nodes are believed to have; 0 if it is not above this one.

    Members are believed, because they have been added, and of what leaps only two (R32). Before
    there is a ring everybody waits: each is believed while it is connected.
    """
    waiting = (node.id for node in topology.waiting if sessions.is_connected(node.id))
    members = [node.id for node in topology.nodes] or list(waiting)
    later = sorted(each for each in sessions.versions(members) if each > topology.version)
    near = [each for each in later if each - topology.version <= LEAP]
    far = later[len(near) :]
    return max((*near, far[-2] if len(far) > 1 else 0), default=0)
