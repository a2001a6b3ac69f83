"""Disks of simulated nodes: which data outlives a process, and which a power failure takes."""

from copy import deepcopy

from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.node_replica import counter_of
from tenure.protocol.gossip.messages import NodeDigest
from tenure.protocol.topology.records import Node, Topology


class SimEngine(MemoryEngine):
    """An engine whose syncs take time: a sync does not make durable what is written
    after it began.
    """

    def begin_sync(self) -> int:
        """Begin a sync. Returns a mark that says how much the sync makes durable."""
        return len(self._undo)

    def end_sync(self, mark: int) -> None:
        """End the sync that has this mark."""
        del self._undo[:mark]


class Disk:
    """The disk of one node: its identity, its store, and the topology that it knows."""

    def __init__(self, identity: Node, topology: Topology) -> None:
        self.identity = identity
        self.node = identity.id
        self.topology = topology
        self.lives = 0
        self.engine = SimEngine()
        self.is_full = False
        self.promises = 0
        """How often the node's counter had been raised when the copy was made."""
        self.known: tuple[NodeDigest, ...] = ()
        """The counters of others that the node had heard of."""

    def copy(self) -> "Disk":
        """A backup of what is durable."""
        copy = deepcopy(self)
        copy.engine.crash()
        copy.promises = counter_of(copy.engine)
        return copy
