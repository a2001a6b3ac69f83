"""The machine of a node of the store: coordinator, replica, hinter and filler behind one door.

Every node has all parts, and no node is special. Everything from outside passes here first: a
message counts only if it belongs to this cluster, is for this very node, and comes from a node that
was not removed (R10); and only under the topology that this node acts by (R16). A sender with an
older topology is told the newer one. If the sender's is newer, this node learns it first, and keeps
it on disk before it counts: a node that forgot it could answer again as it no longer may. It does
not believe every topology that a node tells (R32).
"""

from functools import partial
from random import Random

import msgspec

from tenure.base.instants import Instant
from tenure.base.machine import Output
from tenure.protocol.replication.messages import AskTopology, NodeMessage, Outdated, TopologySaid
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.node_events import (
    CompareAsked,
    Convicted,
    DelaysMeasured,
    DoubtTopology,
    KeepTopology,
    NodeAction,
    NodeConfig,
    NodeEvent,
    NodeTold,
    NumbersTold,
    StepDone,
    StepFailed,
    StoreAsked,
    Synced,
    TopologyGossiped,
    TopologyKept,
    TopologyLearned,
)
from tenure.protocol.replication.operations import (
    AnyAnswer,
    AnyOperation,
    OfRow,
    RangeOperation,
    ReplicaAnswer,
    ReplicaOperation,
    size_of,
    waits_for,
)
from tenure.protocol.replication.request.coordinator import Coordinator
from tenure.protocol.replication.told_topologies import ToldTopologies
from tenure.protocol.replication.upkeep.filling import Filler
from tenure.protocol.replication.upkeep.upkeep import Upkeep
from tenure.protocol.topology.messages import NodeReport
from tenure.protocol.topology.records import NodeId, Topology

PARKED = 1_000
"""Messages that wait until their topology is learned."""
PARKED_BYTES = 64 << 20
"""What these have at most: a write has up to 32 MiB, and a row that is settled is of any size."""


class StoreNode:
    """One node, in one life of its process."""

    def __init__(self, config: NodeConfig, random: Random) -> None:
        self.context = NodeContext(config, random)
        self.coordinator = Coordinator(self.context)
        self.filler = Filler(self.context)
        self.upkeep = Upkeep(self.context, random)
        self._has_started = False
        self._keeps: Topology | None = None
        """The topology that is on its way to the disk."""
        self._told = ToldTopologies(config.node)
        self._parked: list[NodeMessage] = []
        self._parked_bytes = 0

    def handle(self, now: Instant, event: NodeEvent) -> Output[NodeAction]:
        """Do what is due at `now`, then take `event`."""
        context = self.context
        if not self._has_started:
            self._begin(now)
        context.advance(now)
        match event:
            case StepDone(ticket, result, changes):
                context.on_step_done(ticket, result, changes)
            case StepFailed(ticket):
                context.on_step_failed(ticket)
            case NodeTold(message, is_proven):
                self._on_message(now, message, is_proven=is_proven)
            case Synced(changes):
                context.on_synced(changes)
            case StoreAsked():
                portion = context.admit(event)
                if portion is not None:
                    self.coordinator.on_asked(now, event, portion)
            case TopologyGossiped(node, version):
                if version > context.topology.version:
                    self._ask_topology(node)
            case TopologyLearned(topology):
                self._learn(topology)
            case TopologyKept(topology):
                self._on_kept(now, topology)
            case Convicted(nodes):
                context.down = frozenset(nodes)
            case DelaysMeasured(nearest):
                context.set_nearest(nearest)
            case NumbersTold(numbers, asked_at):
                context.given.on_told(numbers, asked_at)
            case CompareAsked():
                self.upkeep.begin_soon(now)
                context.advance(now)
        return self._output(now)

    def advance(self, now: Instant) -> Output[NodeAction]:
        if not self._has_started:
            self._begin(now)
        self.context.advance(now)
        self.context.room.let_in()
        return self._output(now)

    def invariants(self) -> None:
        context = self.context
        assert not context.to_itself

    def report(self, now: Instant) -> NodeReport:
        hints = self.coordinator.hints
        return NodeReport(
            tended=tuple(each.told(now) for each in self.upkeep.tended.values()),
            hints=hints.told(),
            hints_dropped=hints.dropped,
        )

    def _begin(self, now: Instant) -> None:
        self._has_started = True
        self.upkeep.start(now)
        self.coordinator.hints.start()

    def _output(self, now: Instant) -> Output[NodeAction]:
        context = self.context
        if self.filler.seen is not context.topology:
            self.filler.look()
        while context.to_itself:
            self._on_message(now, context.to_itself.popleft())
        # It acts by what is durable, and only something later is on its way there (R16).
        assert self._keeps is None or self._keeps.version > context.topology.version
        assert context.room.places.taken >= 0, context.room.places.taken
        actions, context.actions = context.actions, []
        return Output(actions, context.wake_at)

    # --- messages ---

    def _on_message(self, now: Instant, message: NodeMessage, *, is_proven: bool = True) -> None:
        context, body = self.context, message.body
        topology = context.topology
        # Two clusters may number their nodes alike, and their rows must not mix (R10).
        if (message.cluster, message.id) != (topology.cluster, topology.id):
            return  # a message of another cluster
        # A removed node may lag by any time: its words are of the past (R10, R18).
        if message.receiver != context.node or topology.is_removed(message.sender):
            return
        asker = context.asker_of(body)
        if isinstance(body, Outdated | TopologySaid):
            self._hear(message.sender, body.topology, is_proven=is_proven)
            if isinstance(body, Outdated) and asker is not None:
                asker.on_outdated(now)
        elif isinstance(body, AskTopology):
            context.tell(message.sender, TopologySaid(ticket=body.ticket, topology=topology))
        elif isinstance(body, ReplicaAnswer):
            if asker is not None:
                asker.on_told(now, message.sender, body)
        elif isinstance(body, ReplicaOperation):
            self._serve(message, body)

    def _serve(self, message: NodeMessage, asked: AnyOperation) -> None:
        context, topology = self.context, self.context.topology
        # Not refused: this node learns that topology first, and then answers by it (R16).
        if message.version > topology.version:
            self._park(message)
        elif message.version < topology.version:  # its sender acts by what has been replaced (R16)
            context.tell(message.sender, Outdated(ticket=asked.ticket, topology=topology))
        # Who is no member has no say, whatever topology it names (R10).
        elif topology.node(message.sender) is not None:
            self._carry_out(message.sender, asked)

    def _carry_out(self, sender: NodeId, asked: AnyOperation) -> None:
        """Do what a node asks: in one step, under the topology that holds then (R11)."""
        # No answer at all: one about a row that it does not keep would count as one (R10).
        if self._is_replica_for(asked):
            self.context.run(asked, partial(self._answer, sender, asked))

    def _is_replica_for(self, asked: AnyOperation) -> bool:
        context = self.context
        if isinstance(asked, OfRow):
            return context.is_replica_of(asked.table, asked.key)
        if isinstance(asked, RangeOperation):
            replicas = context.topology.at(asked.range.start)
            return replicas.range == asked.range and context.node in replicas.everyone
        return True

    def _answer(self, sender: NodeId, asked: AnyOperation, answer: AnyAnswer) -> None:
        """Answer when all that it changed, or has read, survives a power failure."""
        context = self.context
        tell = partial(context.tell, sender, msgspec.structs.replace(answer, ticket=asked.ticket))
        match waits_for(asked, answer):
            case "nothing":
                tell()
            case "the row":
                assert isinstance(asked, OfRow)
                # Told before that, a power failure would take back what was acknowledged (R11).
                context.when_row_durable(asked.table, asked.key, tell)
            case "all":
                context.when_durable(tell)
            case "for ever":
                pass

    # --- topology ---

    def _park(self, message: NodeMessage) -> None:
        size = size_of(message.body)
        if len(self._parked) < PARKED and self._parked_bytes + size <= PARKED_BYTES:
            self._parked.append(message)
            self._parked_bytes += size
        if self._keeps is None or self._keeps.version < message.version:
            self._ask_topology(message.sender)

    def _ask_topology(self, node: NodeId) -> None:
        self.context.tell(node, AskTopology(ticket=self.context.draw_ticket()))

    def _hear(self, teller: NodeId, told: Topology, *, is_proven: bool) -> None:
        """Take a topology of another node, or ask others about it (R32)."""
        context = self.context
        mine = self._keeps or context.topology
        if not told.is_taken_over(mine):
            return
        doubt = self._told.doubt(mine, told, teller, is_proven=is_proven)
        if doubt is None:
            self._learn(told)
            return
        context.actions.append(DoubtTopology(teller, told.version, doubt))
        for node in self._told.to_ask(mine) if doubt == "leaps" else ():
            self._ask_topology(node)

    def _learn(self, topology: Topology) -> None:
        known = self._keeps or self.context.topology
        if topology.id == known.id and topology.version > known.version:
            # Durable first: after a restart this node must not act by an earlier one (R16).
            self._keeps = topology
            self.context.actions.append(KeepTopology(topology))

    def _on_kept(self, now: Instant, topology: Topology) -> None:
        context = self.context
        if topology.version <= context.topology.version:
            return
        context.topology = topology
        self._told.settle(topology)
        if self._keeps is not None and self._keeps.version <= topology.version:
            self._keeps = None
        for request in list(context.waiting):
            request.on_topology(now)
        parked, self._parked, self._parked_bytes = self._parked, [], 0
        for message in parked:
            self._on_message(now, message)
