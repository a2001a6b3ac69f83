"""A world of nodes, managers and one register in each of some rows, to try topologies in.

Managers fail over at any point, with whatever they had not yet committed. Nodes answer late, twice
or never, are stopped and come again, and coordinate writes and reads by the topology that they
have, by the rules R6, R7, R15, R16 and R17 and by nothing else. A judge knows what was
acknowledged.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random

from msgspec.structs import replace

from tenure.base.instants import Instant
from tenure.base.noted import NotedKind
from tenure.protocol.lease.messages import Standby
from tenure.protocol.topology.answers import ClusterAnswer
from tenure.protocol.topology.history import AnyClusterRecord, Clusters, ClusterState, LostCluster
from tenure.protocol.topology.leader import TopologyLeader
from tenure.protocol.topology.messages import (
    NodeRefused,
    NodeRequest,
    RangeWeight,
    ToNode,
    TopologyTold,
)
from tenure.protocol.topology.proof import mark_of
from tenure.protocol.topology.questions import ClusterQuestion, CreateCluster
from tenure.protocol.topology.records import Node, Placement, Replicas, Topology
from tenure.protocol.topology.ring import random_token
from tenure.wire.lease_records import LEASE_RECORDS
from tenure.wire.topology import decode_node_request, decode_to_node, encode_topology

CLUSTER = "chat"
ROWS = tuple(bytes([at]) for at in range(8, 256, 16))


class Desk:
    """A leader's desk: what is said waits until what it follows from is committed."""

    def __init__(self, world: "World", leadership: int) -> None:
        self.world = world
        self.journal = world.journal_id
        self.leadership = leadership
        self.records: list[AnyClusterRecord] = []
        self.waiting: list[tuple[int, Callable[[], None]]] = []
        self.is_over = False

    @property
    def next_lsn(self) -> int:
        return self.world.lsn_base + len(self.world.records) + len(self.records) + 1

    def next_numbers(self, pools: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(pools, 1)

    def write(self, record: AnyClusterRecord) -> int:
        lsn = self.next_lsn
        data = LEASE_RECORDS.encode_record(record)
        self.records.append(record)
        assert LEASE_RECORDS.decode_record(data, "here") == record
        self.world.clusters.apply(record)
        return lsn

    def send(self, connection: int | None, message: ToNode) -> None:
        if connection is not None:
            self.push((connection,), message)

    def push(self, connections: tuple[int, ...], message: ToNode) -> None:
        data = encode_topology(message, 2)
        for each in connections:
            self._say(lambda each=each: self.world.deliver_to_node(each, data))  # type: ignore[misc]

    def reply(self, ticket: int, answer: ClusterAnswer) -> None:
        self._say(lambda: self.world.answers.update({ticket: answer}))

    def note(self, kind: NotedKind, pool: str = "", detail: str = "") -> None:
        self.world.story.append(f"{kind.phrase}: {detail}")

    def _say(self, what: Callable[[], None]) -> None:
        self.waiting.append((self.next_lsn - 1, what))
        if not self.world.commits_late:
            self.commit()

    def commit(self) -> None:
        """Make what was written durable, and send what waited for it."""
        if self.is_over:
            return
        self.world.records.extend(self.records)
        self.records = []
        waiting, self.waiting = self.waiting, []
        for _, what in waiting:
            what()


class SimulatedNode:
    """A node: a topology and registers on its disk."""

    def __init__(self, world: "World", node: Node) -> None:
        self.world, self.node = world, node
        self.topology: Topology | None = None
        self.life = self.sequence = self.through = 0
        self.proof = mark_of(b"the disk of %d" % node.id)
        self.is_up = True
        self.damage = ""
        """What the disk has lost: a node that knows it answers nothing of it."""
        self.replaces: SimulatedNode | None = None
        """The damaged node whose place it takes."""
        self.refused = ""
        self.wanted = False
        self.rows: dict[bytes, int] = {}
        self.weights: tuple[RangeWeight, ...] = ()

    @property
    def version(self) -> int:
        return self.topology.version if self.topology else 0

    @property
    def answers(self) -> bool:
        """Whether other nodes hear from it what it has."""
        return self.is_up and not self.damage

    def start(self) -> None:
        """A new life, with the disk as it is."""
        self.life += 1
        self.is_up = True

    def request(self) -> NodeRequest:
        """Return what it asks now."""
        self.sequence += 1
        return NodeRequest(
            cluster=CLUSTER,
            cluster_id=self.topology.id if self.topology else 0,
            node=self.node,
            life=self.life,
            sequence=self.sequence,
            version=self.version,
            through=self.through,
            weights=self.weights,
            topology=self.topology if self.wanted else None,
            proof=self.proof,
            damage=self.damage,
            replaces=self.replaces.node.id if self.replaces else 0,
            replaced_proof=self.replaces.proof if self.replaces else b"",
        )

    def on_told(self, message: ToNode | Standby) -> None:
        """A manager said something."""
        if isinstance(message, NodeRefused):
            if message.life == self.life:
                self.refused = message.reason
            return
        assert isinstance(message, TopologyTold)
        self.wanted = message.wanted
        if message.topology is not None:
            self.learn(message.topology)
        if message.may_leave and self.damage:
            self.world.begin_anew(self)

    def learn(self, topology: Topology) -> None:
        """Take a topology, if it is later, and do what that means for what is on the disk."""
        if not topology.is_taken_over(self.topology):
            return
        before, self.topology = self.topology, topology
        change = topology.change
        fills = change is not None and (before is None or before.change is None
                                        or before.change.began != change.began)  # fmt: skip
        for row in list(self.rows):
            replicas = topology.at(row)
            stays = self.node.id in (*replicas.old, *replicas.new)
            gains = self.node.id in replicas.gaining
            if not stays or (gains and fills):
                del self.rows[row]  # R17, or it is not its own any more

    # --- what it gains ---

    def fill(self) -> None:
        """Copy all that it gains, each range from any replica of the old list."""
        topology = self.topology
        if topology is None or topology.change is None or topology.phase != "filling":
            return
        if self.through == topology.change.began:
            return
        for row in ROWS:
            replicas = topology.at(row)
            if self.node.id in replicas.gaining:
                sources = [node for node in replicas.old if self.world.nodes[node].answers]
                if not sources:
                    return
                source = self.world.nodes[self.world.random.choice(sources)]
                if not self.world.exchange(self, source):
                    return
                self._absorb(row, source.rows.get(row, 0))
        self.through = topology.change.began

    def catch_up(self) -> None:
        """Absorb what a majority of each old list has, each answering in the joint version."""
        topology = self.topology
        if topology is None or topology.change is None or topology.phase != "joint":
            return
        for row in ROWS:
            replicas = topology.at(row)
            if self.node.id not in replicas.gaining or self.world.left_out == "joint step":
                continue
            heard = []
            for node in self.world.shuffled(replicas.old):
                other = self.world.nodes[node]
                if other.answers and self.world.exchange(self, other):
                    heard.append(other)
            too_few = len(heard) * 2 <= len(replicas.old)
            if self.world.left_out == "a majority of the old list":
                too_few, heard = not heard, heard[:1]
            if too_few or self.topology is not topology:
                return
            for other in heard:
                self._absorb(row, other.rows.get(row, 0))
        self.through = topology.change.joint

    def _absorb(self, row: bytes, value: int) -> None:
        self.rows[row] = max(self.rows.get(row, 0), value)

    # --- requests ---

    def write(self, row: bytes, value: int) -> bool:
        """Coordinate a write at QUORUM; whether it is acknowledged."""
        replicas = self._replicas(row)
        got = self._ask(replicas, row, value)
        return got is not None

    def read(self, row: bytes) -> int | None:
        """Coordinate a read at QUORUM: the latest, written back to a quorum before it returns."""
        got = self._ask(self._replicas(row), row, None)
        if got is None or not got:
            return got
        return got if self._ask(self._replicas(row), row, got) is not None else None

    def _replicas(self, row: bytes) -> Replicas | None:
        return self.topology.at(row) if self.topology else None

    def _ask(self, replicas: Replicas | None, row: bytes, value: int | None) -> int | None:
        if replicas is None:
            return None
        asked_in = self.version
        answered: dict[int, int] = {}
        for node in self.world.shuffled(replicas.everyone):
            other = self.world.nodes[node]
            self.world.maybe_step()
            if not other.answers or self.world.random.random() < self.world.loss:
                continue
            is_strict = self.world.left_out != "a lower version is refused"
            if (
                is_strict and other.version > asked_in
            ):  # R16: it refuses, and the coordinator learns
                if other.topology is not None:
                    self.learn(other.topology)
                return None
            if self.topology is not None and other.version < asked_in:
                if self.version != asked_in:
                    return None
                other.learn(self.topology)
            if value is not None:
                other._absorb(row, value)
            if self.world.random.random() >= self.world.loss:
                answered[node] = other.rows.get(row, 0)
        lists = replicas.lists if self.world.left_out != "both lists count" else (replicas.new,)
        for each in lists:
            if not each or sum(node in answered for node in each) * 2 <= len(each):
                return None
        return max(answered.values())


class World:
    """All of it, from one seed."""

    def __init__(self, seed: int, nodes: int = 3, placement: Placement | None = None) -> None:
        self.random = Random(seed)
        self.story: list[str] = []
        self.now = Instant(0)
        self.journal_id, self.leadership = 77, 0
        self.records: list[AnyClusterRecord] = []
        self.base: tuple[tuple[ClusterState, ...], int] = ((), 0)
        self.answers: dict[int, ClusterAnswer] = {}
        self.nodes: dict[int, SimulatedNode] = {}
        self.commits_late = False
        self.loss = 0.0
        self.interrupts = 0.0
        self._stepping = False
        self.left_out = ""
        """A rule that nodes do not keep, to see whether that is caught."""
        self.late: list[Callable[[], None]] = []
        self.acknowledged = dict.fromkeys(ROWS, 0)
        self.value = 0
        self._tickets = 0
        self.lsn_base = 0
        self.desk: Desk
        self.take_over()
        placement = placement or Placement("rack_unaware", min(nodes, 3))
        self.ask(CreateCluster(cluster=CLUSTER, id=5, placement=placement, first_nodes=nodes))
        for _ in range(nodes):
            self.add_node()

    # --- managers ---

    def take_over(self, *, keeps_unknown: bool = False) -> None:
        """Let another manager lead. What was under way is lost, or was written nevertheless."""
        if self.leadership:
            self.desk.is_over = True
            if keeps_unknown:
                self.records.extend(self.desk.records)
        self.leadership += 1
        states, passed = self.base
        self.clusters = Clusters(states, passed)
        for record in self.records:
            self.clusters.apply(record)
        self.desk = Desk(self, self.leadership)
        self.leader = TopologyLeader(self.now, self.desk, self.clusters, is_kept=True)

    def restore(self, lsn: int, *, is_lost: bool = False, version: int = 0) -> None:
        """The journal is put back to an earlier state, or is lost with all that it knew but its
        cluster's name, its id and the version that a node has, and restored.
        """
        lost: dict[str, LostCluster] = {}
        if is_lost:
            version = version or max(node.version for node in self.nodes.values())
            lost = {CLUSTER: LostCluster(self.topology.id, version)}
            self.base, self.lsn_base, lsn = ((), 0), 0, 0
        del self.records[lsn:]
        self.take_over()
        self.base = self.clusters.restored(lost), self.clusters.passed_by(lost)
        self.journal_id += 1
        self.records, self.lsn_base = [], self.lsn_base + lsn
        self.take_over()

    def ask(self, question: ClusterQuestion) -> ClusterAnswer:
        """Ask the manager that leads."""
        self._tickets += 1
        self.desk.reply(self._tickets, self.leader.answer(self.now, question))
        self.desk.commit()
        return self.answers[self._tickets]

    @property
    def topology(self) -> Topology:
        """Return the topology that was decided."""
        return self.clusters.states[CLUSTER].topology

    # --- nodes ---

    def add_node(self, rack: str = "r", token: bytes | None = None) -> SimulatedNode:
        """A node at its first start."""
        number = len(self.nodes) + 1
        node = Node(
            id=number,
            name=f"n{number}",
            address=f"h{number}:7500",
            gossip=f"h{number}:7501",
            rack=rack,
            token=token or random_token(self.random),
        )
        made = self.nodes[number] = SimulatedNode(self, node)
        made.start()
        self.say(made)
        return made

    def lose(self, node: SimulatedNode) -> None:
        """The disk of a node loses what it has, and the node notices."""
        node.rows.clear()
        node.damage = "a block of 000011.sst cannot be read"

    def begin_anew(self, old: SimulatedNode) -> SimulatedNode:
        """The process of a damaged node becomes another node, at the same address."""
        old.is_up = False
        node = replace(old.node, id=len(self.nodes) + 1, token=random_token(self.random))
        made = self.nodes[node.id] = SimulatedNode(self, node)
        made.replaces = old
        made.start()
        return made

    def say(self, node: SimulatedNode) -> None:
        """The node asks, and the manager hears it: now, or late, or twice, or never."""
        data = encode_topology(node.request(), 2)
        if self.random.random() >= self.loss:
            self.hear(node.node.id, data)
        if self.random.random() < self.loss:
            self.late.append(lambda: self.hear(node.node.id, data))

    def hear(self, connection: int, data: bytes) -> None:
        """The leader hears a request."""
        self.leader.on_request(self.now, connection, decode_node_request(data, 2))
        self.leader.clusters.invariants()
        if not self.commits_late:
            self.desk.commit()

    def deliver_to_node(self, node: int, data: bytes) -> None:
        """A node hears a manager: now, or late, or twice, or never."""

        def arrive() -> None:
            if self.nodes[node].is_up:
                self.nodes[node].on_told(decode_to_node(data, 2))

        if self.random.random() >= self.loss:
            arrive()
        if self.random.random() < self.loss:
            self.late.append(arrive)

    def exchange(self, one: SimulatedNode, other: SimulatedNode) -> bool:
        """Whether two nodes speak in one version: the one that is behind learns (R16)."""
        version = one.version
        if one.topology is not None:
            other.learn(one.topology)
        if other.topology is not None:
            one.learn(other.topology)
        return one.version == version == other.version and self.random.random() >= self.loss

    def shuffled(self, of: Sequence[int]) -> list[int]:
        """Return them in some order."""
        return self.random.sample(of, len(of))

    # --- what happens ---

    def maybe_step(self) -> None:
        """Let anything happen between two messages of a request."""
        if not self._stepping and self.random.random() < self.interrupts:
            self._stepping = True
            self.step()
            self._stepping = False

    def step(self) -> None:
        """Something happens to a node or the manager."""
        self.now = Instant(self.now + 1_000_000_000)
        node = self.random.choice(list(self.nodes.values()))
        dice = self.random.random()
        if self.late and dice < 0.2:
            self.late.pop(self.random.randrange(len(self.late)))()
        elif dice < 0.5 and node.is_up:
            self.say(node)
        elif dice < 0.65 and node.is_up:
            node.fill()
        elif dice < 0.8 and node.is_up:
            node.catch_up()
        elif dice < 0.85:
            self.desk.commit()
        elif dice < 0.88 and self.interrupts:
            self.take_over(keeps_unknown=self.random.random() < 0.5)
        elif dice < 0.93 and self.interrupts:
            if node.is_up:
                node.is_up = False
            else:
                node.start()

    def request(self) -> None:
        """A node writes or reads, and the judge looks at it."""
        node = self.random.choice(list(self.nodes.values()))
        row = self.random.choice(ROWS)
        if not node.is_up or node.topology is None or node.refused:
            return
        if self.random.random() < 0.5:
            self.value += 1
            value = self.value
            if node.write(row, value):
                self.acknowledged[row] = max(self.acknowledged[row], value)
            return
        known = self.acknowledged[row]
        got = node.read(row)
        if got is not None:
            assert got >= known, f"{row!r}: read {got}, and {known} was acknowledged"
            self.acknowledged[row] = max(self.acknowledged[row], got)

    def settle(self, rounds: int = 40) -> None:
        """All is well: everybody asks, fills and catches up, until nothing changes."""
        self.loss = self.interrupts = 0.0
        self.commits_late = False
        self.desk.commit()
        for _ in range(rounds):
            for node in list(self.nodes.values()):
                if node in [each.replaces for each in self.nodes.values()]:
                    continue
                if not node.is_up:
                    node.start()
                self.say(node)
                node.fill()
                node.catch_up()
                self.say(node)
