"""The topology with which a cluster goes on after its journal was restored from an old copy.

Nodes have the topologies that the lost part of the journal made. The leader takes the latest one
that a node of the ring tells, once enough nodes have told to rule out that anybody acted by a later
one: a majority of all nodes, and of each list of replicas that counts in it. A step is over only
when a majority of each old list has answered in its version (R15), and any request needs a
majority, too; so if a later topology had counted, one of these nodes would have it.

Whoever has a token could tell a topology that he has made up (R34). So the members of the copy are
believed, each by its secret, then the members of what these tell, and so on. If the copy knows no
node, everybody is believed: people restored with nothing but the name of the cluster.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tenure.protocol.topology.proof import is_proven
from tenure.protocol.topology.records import Node, NodeId, Proof, Topology


class Telling(NamedTuple):
    """What a node tells of the topology that it has."""

    node: NodeId
    proof: Proof
    topology: Topology


def latest(known: Topology, told: Sequence[Telling]) -> Topology:
    """The latest of what the copy has and what its nodes tell, of this cluster."""
    found = known
    while True:
        of_it = (each.topology for each in believed(found, told) if each.topology.id == known.id)
        later = max((found, *of_it), key=lambda each: each.version)
        if later.version == found.version:
            return found
        found = later


def believed(topology: Topology, told: Iterable[Telling]) -> list[Telling]:
    """What the nodes of this topology tell."""
    nodes = {node.id: node for node in _everyone(topology)}
    if not nodes:
        return list(told)
    return [each for each in told if each.node in nodes and is_proven(nodes[each.node], each.proof)]


def missing(topology: Topology, told: Iterable[Telling]) -> str:
    """The nodes that must still tell before `topology` is known to be the right one; empty if none
    must.
    """
    everyone = _everyone(topology)
    heard = {each.node for each in believed(topology, told)}
    count = sum(node.id in heard for node in everyone)
    if count * 2 <= len(everyone):
        return f"{count} of {len(everyone)} nodes have told what they know; it takes a majority"
    names = {node.id: node.name for node in topology.nodes}
    for replicas in topology.each():
        for each in replicas.lists:
            if sum(node in heard for node in each) * 2 <= len(each):
                among = ", ".join(names[node] for node in each)
                return f"of {among} a majority must tell what it knows, because they share a range"
    return ""


def _everyone(topology: Topology) -> tuple[Node, ...]:
    return topology.nodes or topology.waiting
