"""The summaries of a cluster that a leader gives to people and tools."""

from collections.abc import Mapping

from tenure.base.instants import Instant, in_seconds
from tenure.base.ranges import KeyRange
from tenure.protocol.topology.answers import (
    ClusterSummary,
    Gain,
    MovesRead,
    NodeStanding,
    NodeSummary,
    RangeSummary,
    RingRead,
    TokenMoved,
)
from tenure.protocol.topology.change import described, gained, shown_token
from tenure.protocol.topology.cluster import LedCluster
from tenure.protocol.topology.damage import replaced_by
from tenure.protocol.topology.moves import loads, proposed_moves, unevenness
from tenure.protocol.topology.placement import excess_of
from tenure.protocol.topology.records import Node, NodeId, Topology
from tenure.protocol.topology.sessions import NodeSession
from tenure.protocol.topology.weights import Weights


def cluster_summary(now: Instant, cluster: LedCluster) -> ClusterSummary:
    """A cluster in short."""
    topology = cluster.topology
    sessions = (cluster.sessions.get(node.id) for node in topology.nodes)
    return ClusterSummary(
        name=topology.cluster,
        version=topology.version,
        placement=str(topology.placement),
        nodes=len(topology.nodes),
        waiting=len(topology.waiting),
        tables=len(topology.tables),
        change=described(topology) if topology.change else "",
        trouble=cluster.trouble,
        doubted=len(cluster.doubts.listed(now)) + cluster.doubts.more,
        connected=sum(_is_connected(each) for each in sessions),
    )


def ring_read(now: Instant, cluster: LedCluster) -> RingRead:
    """A cluster as a whole."""
    topology, weights = cluster.topology, cluster.weights()
    carried = loads(topology, weights)
    mean = sum(carried.values()) / len(carried) if carried else 0.0
    names = {node.id: node.name for node in topology.nodes}
    return RingRead(
        cluster=topology.cluster,
        id=f"{topology.id:016x}",
        version=topology.version,
        placement=str(topology.placement),
        phase=topology.phase,
        nodes=tuple(
            _node(now, cluster, node, carried.get(node.id, 0.0) / mean if mean else 0.0)
            for node in sorted((*topology.nodes, *topology.waiting), key=lambda node: node.name)
        ),
        ranges=tuple(
            RangeSummary(
                start=shown_token(each.range.start) if each.range.start else "",
                end=None if each.range.end is None else shown_token(each.range.end),
                replicas=tuple(names[node] for node in each.old),
                new=tuple(names[node] for node in each.new) if each.new != each.old else (),
                bytes=weights.bytes_in(each.range),
                load=weights.load(each.range),
            )
            for each in topology.each()
        ),
        tables=tuple(sorted(topology.tables)),
        removed=tuple(node.name for node in topology.removed),
        short_racks=excess_of(topology),
        unevenness=unevenness(topology, weights),
        change=described(topology) if topology.change else "",
        waits_for=tuple(waits(cluster)),
        trouble=cluster.trouble,
        balance_bytes=topology.balance_bytes,
        doubted=cluster.doubts.said(now),
    )


def waits(cluster: LedCluster) -> list[str]:
    """The nodes that the running change waits for, and how far they are."""
    names = {node.id: node.name for node in cluster.topology.nodes}
    found = []
    for node in cluster.waits_for():
        session = cluster.sessions.get(node)
        if session is None:
            found.append(f"{names[node]}, which has not been heard")
        else:
            request = session.request
            found.append(f"{names[node]}: {request.copied} of {request.to_copy} bytes")
    return found


def _node(now: Instant, cluster: LedCluster, node: Node, load: float) -> NodeSummary:
    topology, session = cluster.topology, cluster.sessions.get(node.id)
    request = session.request if session else None
    replaced = replaced_by(topology, request) if request else None
    kept = topology.kept_by(node.id)
    weights = cluster.weights()
    return NodeSummary(
        name=node.name,
        id=f"{node.id:016x}",
        address=node.address,
        gossip=node.gossip,
        rack=node.rack,
        datacentre=node.datacentre,
        token=shown_token(node.token),
        standing=_standing(topology, node),
        ranges=len(kept),
        load=load,
        bytes=sum(weights.bytes_in(each.range) for each in kept),
        heard_seconds=in_seconds(now - session.heard_at) if session else None,
        version=request.version if request else 0,
        copied=request.copied if request else 0,
        to_copy=request.to_copy if request else 0,
        is_through=cluster.is_through(node.id),
        connected=_is_connected(session),
        damage="".join(filter(str.isprintable, request.damage)) if request else "",
        replaces=replaced.name if replaced else "",
    )


def _is_connected(session: NodeSession | None) -> bool:
    return session is not None and session.connection is not None


def _standing(topology: Topology, node: Node) -> NodeStanding:
    change = topology.change
    if topology.node(node.id) is None:
        return "waiting"
    if change is None or node.id not in (change.node, change.replaces):
        return "member"
    if node.id == change.replaces or change.kind == "remove":
        return "leaving"
    return "moving" if change.kind == "move" else "joining"


def moves_read(cluster: LedCluster, budget: int | None) -> MovesRead:
    """The ranges that should move."""
    topology, weights = cluster.topology, cluster.weights()
    return MovesRead(
        cluster=topology.cluster,
        unevenness=unevenness(topology, weights),
        moves=tuple(
            TokenMoved(
                node=move.name,
                token=shown_token(move.token),
                token_hex=move.token.hex(),
                bytes=move.bytes,
                why=move.why,
                before=move.before,
                after=move.after,
            )
            for move in proposed_moves(topology, weights, budget)
        ),
        known=bool(weights.parts),
    )


def gains(topology: Topology, weights: Weights) -> tuple[Gain, ...]:
    """The ranges that nodes gain by the change that runs."""
    names = {node.id: node.name for node in topology.nodes}
    copied: Mapping[NodeId, int] = gained(topology, weights.bytes_in)
    ranges: Mapping[NodeId, list[KeyRange]] = topology.gaining()
    return tuple(
        Gain(node=names[node], ranges=len(ranges[node]), bytes=copied[node])
        for node in sorted(copied)
    )
