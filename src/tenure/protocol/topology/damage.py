"""Damage: a member whose disk has lost something leaves, and comes back as another node (R35).

What such a node has promised may be lost with its rows, so it never takes part again under its id.
It begins anew, in an empty directory, says whose place it takes, and shows the secret of that node.
Then it replaces it as by a command: it copies, and catches up from a majority of each old list.

Neither happens unless each range of the node has a majority of replicas beside it, all of them well
and heard by this leader: they have all that was acknowledged. A node that is damaged but is needed
for a majority stays, and answers what it can still read.
"""

from tenure.base.instants import SECOND_NS, Instant
from tenure.protocol.topology.change import WantedChange
from tenure.protocol.topology.messages import NodeRequest
from tenure.protocol.topology.proof import mark_of
from tenure.protocol.topology.records import Node, NodeId, Topology
from tenure.protocol.topology.sessions import NodeSessions

HEARD_NS = 10 * SECOND_NS
"""A node that asks every two seconds, and has not asked for so long, may be gone."""


def replaced_by(topology: Topology, request: NodeRequest) -> Node | None:
    """The member whose place this node takes, if it shows the secret of that member."""
    member = topology.node(request.replaces)
    if member is None or not member.mark or member.mark != mark_of(request.replaced_proof):
        return None
    return member


def may_leave(now: Instant, topology: Topology, sessions: NodeSessions, node: NodeId) -> bool:
    """Whether a damaged member may leave."""
    return topology.change is None and _can_spare(topology, node, _well(now, topology, sessions))


def replacement(now: Instant, topology: Topology, sessions: NodeSessions) -> WantedChange | None:
    """The replacement that may begin, of a member that has left."""
    if topology.change is not None:
        return None
    well = _well(now, topology, sessions)
    for node in topology.waiting:
        session = sessions.get(node.id)
        if session is None or not _is_here(now, sessions, node.id):
            continue
        old = replaced_by(topology, session.request)
        if old is not None and _can_spare(topology, old.id, well):
            return WantedChange(kind="replace", node=node.id, replaces=old.id, token=old.token)
    return None


def _can_spare(topology: Topology, node: NodeId, well: frozenset[NodeId]) -> bool:
    others = well - {node}
    return all(
        len(others.intersection(each.old)) > len(each.old) // 2 for each in topology.kept_by(node)
    )


def _well(now: Instant, topology: Topology, sessions: NodeSessions) -> frozenset[NodeId]:
    down = set(sessions.taken_down([node.id for node in topology.nodes]))
    return frozenset(
        node.id
        for node in topology.nodes
        if node.id not in down and _is_here(now, sessions, node.id)
    )


def _is_here(now: Instant, sessions: NodeSessions, node: NodeId) -> bool:
    session = sessions.get(node)
    return (
        session is not None
        and session.connection is not None
        and now - session.heard_at < HEARD_NS
        and not session.request.damage
    )
