"""The places of simulated nodes and clients: racks, data centres, and the distances between them.

Each seed draws a shape of the ring: without racks, in racks, or in two data centres; of three
nodes, which all have every range, or of more. Nodes are told the nearest, as by their shells.
"""

from random import Random

from tenure.base.instants import MILLISECOND_NS
from tenure.protocol.topology.change import form
from tenure.protocol.topology.records import Node, NodeId, Placement, Topology
from tenure.protocol.topology.tables import TableRecord
from tenure.sim.kernel.network import Network
from tenure.sim.kernel.process import SimProcess

PLACEMENTS = ("3", "3", "3", "racks=3", "east=2,west=1", "east=2,west=2")
NODES = {"racks=3": (4, 5, 6), "east=2,west=1": (4, 5, 6), "east=2,west=2": (5, 6)}
ANY_NODES = (3, 4, 5, 6)
RACKS = ("r0", "r1", "r2")
RACKS_APART_NS = MILLISECOND_NS // 2
APART_NS = tuple(each * MILLISECOND_NS for each in (5, 20, 80))
"""The latency between two data centres, one way."""


class Places:
    """The shape of one world."""

    def __init__(self, nodes: int, random: Random) -> None:
        self._random = random
        drawn = random.choice(PLACEMENTS)
        self.placement = Placement.read(drawn)
        count = random.choice(NODES.get(drawn, ANY_NODES))
        self.nodes = nodes or count
        self.apart_ns = random.choice(APART_NS)
        self._datacentres = [name for name, _ in self.placement.datacentres] or ["datacentre"]
        self._racks = RACKS if self.placement.kind != "rack_unaware" else RACKS[:1]
        self._of: dict[str, tuple[str, str]] = {}
        self._distances: dict[tuple[str, str], int] = {}

    def __str__(self) -> str:
        kind = self.placement.kind.replace("_", " ")
        return f"{kind}, {self.nodes} nodes"

    def of(self, slot: str) -> tuple[str, str]:
        """The data centre and rack of a slot. Nodes get them in turn, so that every data centre has
        some.
        """
        if slot not in self._of:
            turn = len(self._of) if slot.startswith("n") else self._random.randrange(6)
            datacentre = self._datacentres[turn % len(self._datacentres)]
            self._of[slot] = (
                datacentre,
                self._racks[turn // len(self._datacentres) % len(self._racks)],
            )
        return self._of[slot]

    def node(self, slot: str, name: str, since: int = 0) -> Node:
        """A new node at a slot."""
        datacentre, rack = self.of(slot)
        return Node(
            id=self._random.getrandbits(63),
            name=name,
            address=name,
            token=self._random.randbytes(8),
            rack=rack,
            datacentre=datacentre,
            since=since,
        )

    def first_topology(self, tables: dict[str, TableRecord]) -> Topology:
        """A ring of nodes at random tokens, placed as managers do."""
        nodes = tuple(self.node(f"n{i}", f"n{i}") for i in range(self.nodes))
        waiting = Topology(
            cluster="store",
            id=self._random.getrandbits(63),
            version=0,
            placement=self.placement,
            first_nodes=self.nodes,
            waiting=nodes,
            tables=tables,
        )
        return form(waiting, 1)

    def distance_ns(self, one: str, other: str) -> int:
        """How much longer a message takes between these slots than within a rack."""
        known = self._distances.get((one, other))
        if known is None:
            known = self._distances[one, other] = self._distance_ns(self.of(one), self.of(other))
        return known

    def _distance_ns(self, mine: tuple[str, str], theirs: tuple[str, str]) -> int:
        if mine == theirs:
            return 0
        return self.apart_ns if mine[0] != theirs[0] else RACKS_APART_NS

    def nearest_first(self, slot: str, others: dict[str, NodeId]) -> tuple[NodeId, ...]:
        """Nodes by their slots, in the order of their distance from `slot`."""
        slots = list(others)
        self._random.shuffle(slots)
        slots.sort(key=lambda other: self.distance_ns(slot, other))
        return tuple(others[each] for each in slots)


class FarNetwork(Network):
    """A network that knows distances."""

    places: Places

    def end_connections(self, process: SimProcess) -> None:
        """Tell nobody: here nobody minds, as `StoreProcess.on_disconnected` says."""

    def latency_ns(self, sender: SimProcess, to: str) -> int:
        """The latency, which grows with the distance."""
        return super().latency_ns(sender, to) + self.places.distance_ns(sender.slot, to)
