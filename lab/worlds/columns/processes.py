"""Simulated nodes: the machine, its store on a disk, and the way to others and to clients."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from lab.worlds.columns.disks import Disk
from tenure.base.instants import MICROSECOND_NS, MILLISECOND_NS, seconds
from tenure.base.noted import Noted
from tenure.columns.node_replica import NodeReplica, is_change
from tenure.protocol.replication import node_events
from tenure.protocol.replication.messages import NodeMessage
from tenure.protocol.replication.node import StoreNode
from tenure.protocol.topology.messages import NodeRefused, NodeRequest, TopologyTold
from tenure.protocol.topology.records import NodeId
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.faults import Fault
from tenure.sim.kernel.network import Network
from tenure.sim.kernel.process import SimProcess, Site

EPOCH_US = 1_700_000_000_000_000
SYNC_NS = 4 * MILLISECOND_NS
"""How long a sync takes if the disk is quick."""
SLOW_SYNC = Fault("slow sync", lambda strength: float(0.05 * 12**strength))
MANAGER = "m0"
ASKS_EVERY_NS = seconds(10)
"""How often a node asks the manager while the ring changes, or until it is answered."""
ASKS_AT_REST_NS = seconds(60)
"""How often it asks otherwise. A manager tells all nodes of a change by itself, so a node that asks
at rest finds only what was lost on the way.
"""


class StoreSite(Site):
    """A world of the store, as everything in it sees it."""

    network: Network
    offsets_us: dict[str, int]
    """How far the wall clock of each slot is wrong."""
    present: dict[int, SimProcess]
    """The present life of every slot, by its uid."""

    @abstractmethod
    def slot_of(self, node: NodeId) -> str:
        """The slot of the node with that id, according to the topology."""

    @abstractmethod
    def on_refused(self, node: "NodeProcess") -> None:
        """The manager refuses a node, because it was removed."""

    @abstractmethod
    def on_went_back(self, node: "NodeProcess") -> None:
        """Others refuse a node because its disk was put back, or the node has heard so itself."""

    @abstractmethod
    def on_takes_part(self, node: "NodeProcess") -> None:
        """A life of a node begins to take part in requests."""

    @abstractmethod
    def members(self) -> "Sequence[NodeProcess]":
        """The nodes of the ring, as clients know it."""

    @abstractmethod
    def nodes(self) -> "list[NodeProcess]":
        """The nodes: the present life of each."""

    def clients(self) -> Sequence[SimProcess]:
        """The processes that read and write."""
        return [each for slot, each in self.slots.items() if slot.startswith("c")]

    def groups(self) -> Sequence[Sequence[SimProcess]]:
        """Nodes, clients, and the manager."""
        manager = self.slots.get(MANAGER)
        return self.nodes(), self.clients(), [manager] if manager else []

    def peers(self, process: SimProcess) -> Sequence[SimProcess]:
        """The processes that may be connected to this one: everybody is connected to nodes."""
        return self.processes() if isinstance(process, NodeProcess) else self.nodes()

    def wall_us(self, slot: str) -> int:
        """The time that the wall clock of a slot's host shows."""
        return EPOCH_US + self.now // MICROSECOND_NS + self.offsets_us.get(slot, 0)


class StoreProcess(SimProcess):
    """A process in a world of the store."""

    site: StoreSite

    def on_disconnected(self, peer: tuple[str, int]) -> None:
        """Do nothing: a client that waits for an answer has a deadline."""


class NodeProcess(StoreProcess):
    """One life of a node."""

    machine: StoreNode
    counter = 0
    """How often the counter of the disk was durably raised; 0 if nobody gossips."""
    stops_before: ClassVar[tuple[type, ...]] = (
        node_events.TellNode,
        node_events.AnswerClient,
        node_events.SyncUpTo,
        node_events.KeepTopology,
    )

    def __init__(
        self,
        site: StoreSite,
        slot: str,
        clock: SimClock,
        machine: StoreNode,
        disk: Disk,
        store: NodeReplica,
    ) -> None:
        super().__init__(site, slot, clock, machine)
        self.disk = disk
        self.store = store
        self._syncs = False
        self._wanted = 0
        self._sequence = 0
        self._is_told = False
        """Whether a manager has answered this life."""

    def on_message(self, sender: SimProcess, message: Any) -> None:
        """A message of a node, a client or the manager has arrived."""
        match message:
            case NodeMessage():
                self.post(node_events.NodeTold(message))
            case TopologyTold(topology=topology):
                self._is_told = True
                if topology is not None:
                    self.post(node_events.TopologyLearned(topology))
            case NodeRefused(life=life, reason=reason):
                if life == self.disk.lives and reason == "past":
                    self.site.on_went_back(self)
                elif life == self.disk.lives:
                    self.site.on_refused(self)
            case _:
                wall_us = self.site.wall_us(self.slot)
                self.post(node_events.StoreAsked(sender.uid, message, wall_us))

    @property
    def is_part(self) -> bool:
        """Whether the node takes part in requests."""
        return True

    @property
    def refused(self) -> frozenset[NodeId]:
        """The other nodes that this node knows to have gone back."""
        return frozenset()

    def begin(self) -> None:
        """A life begins."""
        self.site.on_takes_part(self)
        self.ask_manager()

    def ask_manager(self, _: object = None) -> None:
        """Report to the manager what this node is and what it has finished, and do so again after a
        while.
        """
        if not self.alive:
            return
        if not self.is_frozen:
            self._ask()
        changes = self.machine.context.topology.change is not None
        every_ns = ASKS_EVERY_NS if changes or not self._is_told else ASKS_AT_REST_NS
        self.site.at(self.site.now + every_ns, self.ask_manager, None)

    def _ask(self) -> None:
        self._sequence += 1
        topology, filler = self.machine.context.topology, self.machine.filler
        request = NodeRequest(
            cluster=topology.cluster,
            cluster_id=topology.id,
            node=self.disk.identity,
            life=self.disk.lives,
            sequence=self._sequence,
            version=topology.version,
            through=filler.through,
            counter=self.counter,
        )
        self.site.network.to_address(self, MANAGER, request)

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        match action:
            case node_events.RunStep(ticket=ticket, step=step):
                if self.disk.is_full and is_change(step):
                    self.next(node_events.StepFailed(ticket))
                else:
                    self.next(node_events.StepDone(ticket, *self.store.run(step)))
            case node_events.TellNode(node=node, message=message):
                self.site.network.to_address(self, self.site.slot_of(node), message)
            case node_events.AnswerClient(client=client, answer=answer):
                process = self.site.present.get(client)
                if process is not None:
                    self.site.network.to_process(self, process, answer)
            case node_events.SyncUpTo(changes=changes):
                self._wanted = max(self._wanted, changes)
                self._sync()
            case node_events.StepThrough() | node_events.DoubtTopology():
                self._ask()
            case node_events.KeepTopology(topology=topology):
                self.site.at(self.site.now + self._sync_ns(), self._keep, topology)
            case Noted():
                self.site.tell(self.slot, action.kind.phrase, action.detail)
                self.site.count_note(action.kind.phrase)

    # --- the disk ---

    def _sync_ns(self) -> int:
        if self.site.faults.strikes(SLOW_SYNC):
            return self.site.faults.span(0.01, 0.8)
        return self.site.random.randrange(1, SYNC_NS)

    def _sync(self) -> None:
        if not self._syncs:
            self._syncs = True
            mark = self.disk.engine.begin_sync(), self.store.changes, self.store.promises
            self.site.at(self.site.now + self._sync_ns(), self._synced, mark)

    def _synced(self, began: tuple[int, int, int]) -> None:
        if not self.alive:
            return
        mark, changes, promises = began
        self._syncs = False
        self.disk.engine.end_sync(mark)
        if self._wanted > changes:
            self._sync()
        self._on_durable(changes, promises)

    def _on_durable(self, changes: int, promises: int) -> None:
        self.post(node_events.Synced(changes))

    def _keep(self, topology: Any) -> None:
        if self.alive:
            if topology.version > self.disk.topology.version:
                self.disk.topology = topology
            self.post(node_events.TopologyKept(topology))

    def kill(self) -> None:
        """End the process. Whatever was not synced may be lost with it."""
        was_alive = self.alive
        super().kill()
        if was_alive and self.site.random.random() < 0.5:
            self.disk.engine.crash()

    def lose_power(self) -> None:
        """End the process, and lose what was not synced."""
        self.site.bring_down(self)
        self.disk.engine.crash()
