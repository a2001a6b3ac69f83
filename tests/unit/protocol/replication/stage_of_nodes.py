"""A stage: some nodes of the store, with every message between them in a schedule's hands."""

from random import Random

import msgspec

from lab.worlds.columns.disks import SimEngine
from tenure.base.instants import SECOND_NS, Instant
from tenure.columns.node_replica import NodeReplica
from tenure.columns.tables import table_of
from tenure.protocol.replication import node_events
from tenure.protocol.replication.messages import ClientAnswer, ClientRequest, NodeMessage
from tenure.protocol.replication.node import StoreNode
from tenure.protocol.replication.operations import PartsRead
from tenure.protocol.replication.tasks import Step
from tenure.protocol.topology.records import Node, Placement, ReplicaRange, Topology
from tenure.protocol.topology.tables import FamilyRecord, TableRecord

CLIENT = 7
EPOCH_US = 1_700_000_000_000_000
TABLES = {
    "plain": TableRecord(
        "hashed",
        "bytes",
        "",
        {"names": FamilyRecord("bytes"), "times": FamilyRecord("bytes", order="time")},
    ),
    "nested": TableRecord(
        "hashed",
        "bytes",
        "",
        {"inner": FamilyRecord("bytes", supers="bytes"), "names": FamilyRecord("bytes")},
    ),
    "owned": TableRecord("hashed", "bytes", "pool", {"names": FamilyRecord("bytes")}),
}


def topology_of(count: int, replicas: int = 3) -> Topology:
    """One range, kept by the first nodes."""
    nodes = tuple(
        Node(id=i + 1, name=f"n{i + 1}", address=f"n{i + 1}", token=b"%d" % i, since=1)
        for i in range(count)
    )
    return Topology(
        cluster="store",
        id=99,
        version=1,
        placement=Placement(replicas=replicas),
        first_nodes=count,
        nodes=nodes,
        ranges=(ReplicaRange(b"", tuple(range(1, replicas + 1))),),
        tables=dict(TABLES),
    )


class StagedNode:
    """A node, and its store. Syncs happen when the schedule says so, unless they are quick."""

    def __init__(self, stage: "NodeStage", node: int, topology: Topology) -> None:
        self.stage = stage
        self.node = node
        self.engine = SimEngine()
        self.is_quick = True
        self.through = 0
        self.refuses: type[Step] | None = None
        """Steps of this type the disk refuses."""
        self.refused = 0
        """How often it did."""
        self.start(topology)

    def start(self, topology: Topology) -> None:
        """A life begins."""
        self.store = NodeReplica(self.engine, lambda: EPOCH_US + self.stage.now // 1_000)
        self.store.open(table_of(name, record) for name, record in TABLES.items())
        self.store.load()
        config = node_events.NodeConfig(
            node=self.node,
            topology=topology,
            filling=self.store.filling,
            copy_parts=4,
            piece_bytes=1_000,
            has_managers=self.stage.has_managers,
        )
        self.machine = StoreNode(config, Random(self.node))

    def post(self, event: node_events.NodeEvent) -> None:
        """Something has happened."""
        self.perform(self.machine.handle(self.stage.now, event).actions)

    def advance(self) -> None:
        """Time has passed."""
        self.perform(self.machine.advance(self.stage.now).actions)

    def sync(self) -> None:
        """Make everything durable that was changed so far."""
        self.engine.sync()
        self.post(node_events.Synced(self.store.changes))

    def perform(self, actions: list[node_events.NodeAction]) -> None:
        """Carry them out."""
        for action in actions:
            match action:
                case node_events.RunStep(ticket=ticket, step=step) if type(step) is self.refuses:
                    self.refused += 1
                    self.post(node_events.StepFailed(ticket))
                case node_events.RunStep(ticket=ticket, step=step):
                    self.post(node_events.StepDone(ticket, *self.store.run(step)))
                case node_events.SyncUpTo():
                    if self.is_quick:
                        self.sync()
                case node_events.StepThrough(version=version):
                    self.through = version
                case node_events.KeepTopology(topology=topology):
                    self.post(node_events.TopologyKept(topology))
                case node_events.AskManagers():
                    self.stage.asked_managers += 1
                case node_events.DoubtTopology(why=why):
                    self.stage.doubts.append(why)
                case node_events.TellNode(message=message):
                    self.stage.messages.append(message)
                    self.stage.said.append(message)
                case node_events.AnswerClient(answer=answer):
                    self.stage.answers.append(answer)


class NodeStage:
    """See above."""

    def __init__(self, count: int = 3, *, has_managers: bool = False) -> None:
        self.now = Instant(SECOND_NS)
        self.has_managers = has_managers
        self.asked_managers = 0
        self.messages: list[NodeMessage] = []
        self.said: list[NodeMessage] = []
        """All that nodes ever said to others."""
        self.answers: list[ClientAnswer] = []
        self.doubts: list[str] = []
        """Why topologies were not believed."""
        self.older: set[int] = set()
        """Nodes of an earlier release, which do not tell the newest version with parts of a row."""
        self.topology = topology_of(count)
        self.nodes = {i + 1: StagedNode(self, i + 1, self.topology) for i in range(count)}

    def ask(self, node: int, request: ClientRequest, *, by: str = "", places: int = 1) -> None:
        """A client asks a node."""
        wall_us = EPOCH_US + self.now // 1_000
        self.nodes[node].post(node_events.StoreAsked(CLIENT, request, wall_us, by, places))

    def deliver(self, *receivers: int) -> None:
        """Bring what is under way to these nodes, and all that follows from it; to all nodes if
        none is named. What is for others waits.
        """
        wanted = receivers or tuple(self.nodes)
        while True:
            found = next((each for each in self.messages if each.receiver in wanted), None)
            if found is None:
                return
            self._bring(found)

    def deliver_one(self) -> None:
        """Bring the message that has been under way the longest."""
        self._bring(self.messages[0])

    def _bring(self, message: NodeMessage) -> None:
        self.messages.remove(message)
        told = _over_the_wire(message)
        if told.sender in self.older and isinstance(told.body, PartsRead):
            body = msgspec.structs.replace(told.body, newest=b"", promised=0)
            told = msgspec.structs.replace(told, body=body)
        self.nodes[message.receiver].post(node_events.NodeTold(told))

    def lose(self, *receivers: int) -> None:
        """Lose what is under way to these nodes."""
        self.messages = [each for each in self.messages if each.receiver not in receivers]

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now = Instant(self.now + round(seconds * SECOND_NS))
        for node in self.nodes.values():
            node.advance()


def _over_the_wire(message: NodeMessage) -> NodeMessage:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=NodeMessage)
