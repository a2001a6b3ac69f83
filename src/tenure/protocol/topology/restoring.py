"""The topology with which a cluster goes on after its journal was restored from an old copy.

Nodes have the topologies that the lost part of the journal made. The leader takes the latest one
that any node reports, once enough nodes have reported to rule out that anybody acted by a later
one: a majority of all nodes, and of each list of replicas that counts in it. A step is over only
when a majority of each old list has answered in its version (R15), and any request needs a
majority, too; so if a later topology had counted, one of these nodes would have it.
"""

from collections.abc import Collection, Iterable

from tenure.protocol.topology.records import NodeId, Topology


def latest(known: Topology, told: Iterable[Topology]) -> Topology:
    """The latest of what the copy has and what nodes tell, of this cluster."""
    of_it = [each for each in told if each.id == known.id]
    return max((known, *of_it), key=lambda each: each.version)


def missing(topology: Topology, told: Collection[NodeId]) -> str:
    """The nodes that must still tell before `topology` is known to be the right one; empty if none
    must.
    """
    everyone = [node.id for node in topology.nodes] or [node.id for node in topology.waiting]
    heard = sum(node in told for node in everyone)
    if heard * 2 <= len(everyone):
        return f"{heard} of {len(everyone)} nodes have told what they know; it takes a majority"
    names = {node.id: node.name for node in topology.nodes}
    for replicas in topology.each():
        for each in replicas.lists:
            if sum(node in told for node in each) * 2 <= len(each):
                among = ", ".join(names[node] for node in each)
                return f"of {among} a majority must tell what it knows, because they share a range"
    return ""
