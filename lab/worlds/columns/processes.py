"""Simulated nodes: the machine, its store on a disk, and the way to others and to clients."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from lab.worlds.columns.disks import Disk
from tenure.base.instants import MICROSECOND_NS, MILLISECOND_NS, seconds
from tenure.base.noted import Noted
from tenure.columns.node.scrub import Scrub
from tenure.columns.node_replica import NodeReplica, is_change
from tenure.errors import StoreDamaged, StoreError
from tenure.protocol.replication import node_events
from tenure.protocol.replication.messages import NodeMessage
from tenure.protocol.replication.node import StoreNode
from tenure.protocol.replication.tasks import Step
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
ASKS_IF_DAMAGED_NS = seconds(2)
"""How often it asks in worlds with damage, which is how often real nodes do."""
SCRUBBED_A_SECOND = 10_000
FROZEN_SECONDS = 1.0
SCRUBBED_AGAIN_NS = seconds(20)
"""The longest rest of a scrub: an hour is longer than most worlds."""


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
    def on_may_leave(self, node: "NodeProcess") -> None:
        """The manager lets a node leave whose disk is damaged."""

    @property
    @abstractmethod
    def has_damage(self) -> bool:
        """Whether disks are damaged in this world: then nodes read what they have, and ask the
        manager as often as real ones do.
        """

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
        self.damage = ""
        """What the disk has lost, as far as the node has met it."""
        self._scrub = Scrub(disk.engine, SCRUBBED_A_SECOND, self._on_damaged)

    def on_message(self, sender: SimProcess, message: Any) -> None:
        """A message of a node, a client or the manager has arrived."""
        match message:
            case NodeMessage():
                self.post(node_events.NodeTold(message))
            case TopologyTold(topology=topology, may_leave=may_leave):
                self._is_told = True
                if may_leave and self.damage:
                    self.site.on_may_leave(self)
                    return
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

    def scrub(self, _: object = None) -> None:
        """Read some of what is on the disk, and more after a rest."""
        if not self.alive:
            return
        rest = FROZEN_SECONDS if self.is_frozen else self._scrub.step()
        if rest is not None:
            rest_ns = min(seconds(rest), SCRUBBED_AGAIN_NS)
            self.site.at(self.site.now + rest_ns, self.scrub, None)

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
        if self.site.has_damage:
            every_ns = ASKS_IF_DAMAGED_NS
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
        if self.site.has_damage:
            request = self._with_damage(request)
        self.site.network.to_address(self, MANAGER, request)

    def _with_damage(self, request: NodeRequest) -> NodeRequest:
        disk, topology = self.disk, self.machine.context.topology
        before = disk.replaces
        if before is None or topology.is_removed(before.node):
            return msgspec.structs.replace(request, proof=disk.proof, damage=self.damage)
        return msgspec.structs.replace(
            request,
            proof=disk.proof,
            damage=self.damage,
            replaces=before.node,
            replaced_proof=before.proof,
        )

    def _run(self, ticket: int, step: Step) -> None:
        try:
            done = self.store.run(step)
        except StoreDamaged as error:
            self._on_damaged(error)
            self.next(node_events.StepFailed(ticket))
        else:
            self.next(node_events.StepDone(ticket, *done))

    def _on_damaged(self, error: StoreError) -> None:
        """See `DiskTrouble`: the node goes on with what it can read."""
        if not self.damage:
            self.damage = str(error)
            self.site.tell(self.slot, "damage found", self.damage)
            self._ask()

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        match action:
            case node_events.RunStep(ticket=ticket, step=step):
                if self.disk.is_full and is_change(step):
                    self.next(node_events.StepFailed(ticket))
                else:
                    self._run(ticket, step)
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
