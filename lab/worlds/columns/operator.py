"""The operator of a simulated cluster, who adds, removes, replaces and moves nodes, and takes
changes back.

The operator does so at any time, even while the last change runs, and may be refused. If a disk was
lost, its node is replaced, because nothing else can help it.
"""

from random import Random

from tenure.protocol.topology.questions import (
    AddNode,
    MoveNode,
    RemoveNode,
    ReplaceNode,
    RingCommand,
    TakeBackChange,
)
from tenure.protocol.topology.records import Node, Topology

CLUSTER = "store"
MOST_NODES = 7
TAKEN_BACK = 0.3


def command_of(topology: Topology, lost: Node | None, random: Random) -> RingCommand | None:
    """Draw a command that an operator might want for this ring."""
    waiting = random.choice(topology.waiting) if topology.waiting else None
    if topology.change is not None:
        return TakeBackChange(cluster=CLUSTER) if random.random() < TAKEN_BACK else None
    if lost is not None:
        return replacement(topology, lost)
    member = random.choice(topology.nodes)
    can_lose = len(topology.nodes) > topology.placement.replicas
    match random.choice(("add", "add", "remove", "move", "replace")):
        case "add" if waiting and len(topology.nodes) < MOST_NODES:
            return AddNode(cluster=CLUSTER, node=waiting.name, token=random.randbytes(8))
        case "remove" if can_lose:
            return RemoveNode(cluster=CLUSTER, node=member.name)
        case "replace" if waiting:
            return ReplaceNode(cluster=CLUSTER, node=member.name, by=waiting.name)
        case "move":
            return MoveNode(cluster=CLUSTER, node=member.name, token=random.randbytes(8))
    return None


def replacement(topology: Topology, lost: Node) -> RingCommand | None:
    """The command that replaces a node whose disk is lost."""
    change = topology.change
    if change is not None:
        is_it = change.replaces == lost.id
        return None if is_it else TakeBackChange(cluster=CLUSTER)
    there = [node for node in topology.waiting if node.datacentre == lost.datacentre]
    if not there:
        return None
    return ReplaceNode(cluster=CLUSTER, node=lost.name, by=there[-1].name)
