"""A world of the store: nodes over disks, clients, and the detector that tells nodes who is up."""

from collections import Counter
from collections.abc import Iterable, Mapping
from random import Random

from lab.worlds.columns.client import ClientProcess
from lab.worlds.columns.codec import StoreCodec
from lab.worlds.columns.contention import WRITERS
from lab.worlds.columns.convictions import CONVICTED_AFTER_NS, Convictions
from lab.worlds.columns.damage import DamagedDisks
from lab.worlds.columns.disks import Disk
from lab.worlds.columns.gossiping import GossipingProcess, is_known_to_be_back
from lab.worlds.columns.likeness import first_difference
from lab.worlds.columns.lying import LyingPeers
from lab.worlds.columns.managers import LeadingManager, LeadingProcess, OperatorAsked
from lab.worlds.columns.operator import replacement
from lab.worlds.columns.places import FarNetwork, Places
from lab.worlds.columns.processes import MANAGER, NodeProcess
from lab.worlds.columns.strikes import CLOCKS_APART, FAULTS, PUT_BACK, RingSite, StoreStrikes
from lab.worlds.columns.topologies import TopologyChecker
from lab.worlds.columns.trial import ColumnsTrial
from lab.worlds.columns.workload import OWNED, PLAIN, TABLES, StoreWorkload
from tenure.base.instants import MICROSECOND_NS
from tenure.columns.node_replica import NodeReplica
from tenure.columns.tables import table_of
from tenure.protocol.replication.node import StoreNode
from tenure.protocol.replication.node_events import DelaysMeasured, NodeConfig
from tenure.protocol.topology.history import AnyClusterRecord, TopologySet
from tenure.protocol.topology.records import Node, NodeId, Topology
from tenure.sim.kernel.checkers import InvariantChecker
from tenure.sim.kernel.faults import DUPLICATE, FaultDice
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.scene import random_for
from tenure.sim.kernel.story import Story
from tenure.sim.kernel.world import World

OPENED = [table_of(name, record) for name, record in TABLES.items()]
REPAIRED_AFTER = 6
"""The time between two rounds of repair, as a multiple of the patience: a minute, as real nodes
have it. Most of what nodes do unasked is repair.
"""
COPY_PARTS = 4
PIECE_BYTES = 300
GOSSIPING = 0.2
"""The share of worlds in which nodes gossip and disks are put back, among those in which all faults
may happen: gossip takes about as long as everything else.
"""
HOT_WORLDS = 0.5
"""The share of worlds in which clients rush, among those that say nothing about clients."""
BETWEEN_LIVES = 3
"""Where nodes gossip, faults that strike at times of their own strike so much less often: a life
takes part only after some rounds, and where the next fault always comes before that, nobody does.
"""


class ColumnsWorld(World, RingSite):
    """Everything in one run."""

    def __init__(self, trial: ColumnsTrial) -> None:
        super().__init__(trial, FAULTS, Story())
        self.trial = trial
        self.offsets_us = {}
        self.present = {}
        self._unread: set[bytes] = set()
        self._reads = False
        share = GOSSIPING if trial.faults == FAULTS.kinds else 1.0
        if self.random.random() >= share:
            self.mix.rates.pop(PUT_BACK.name, None)
        elif PUT_BACK.name in self.mix.rates:
            # Faults that strike at times of their own strike less often between lives.
            striking = [each.name for each in FAULTS.faults if each.strike and each is not PUT_BACK]
            for name in filter(self.mix.rates.__contains__, striking):
                self.mix.rates[name] /= BETWEEN_LIVES
        self._backups: dict[str, Disk] = {}
        self._put_back: set[NodeId] = set()
        lag_ns = self.random.choice((1, 4, 12)) * trial.patience_ns // 2
        self.lag_us = lag_ns // MICROSECOND_NS
        self.heals_every_ns = trial.patience_ns
        self.phase_ns = trial.patience_ns * 6
        self.faults: FaultDice = self.dice(trial.patience_ns)
        self.places = Places(trial.nodes, self.random)
        self.network = FarNetwork(self, StoreCodec())
        self.network.places = self.places
        first = self.places.first_topology(TABLES)
        self.journal: list[AnyClusterRecord] = [TopologySet(first)]
        self._nodes: dict[str, NodeProcess] = {}
        self._slots: dict[NodeId, str] = {}
        self.disks: dict[str, Disk] = {}
        for node in first.nodes:
            self._have_disk(node.name, Disk(node, first))
        for number in range(trial.spares):
            self.empty_disk(f"n{self.places.nodes + number}")
        self._clients = trial.clients or self.random.choice((2, 3, 5))
        hot = Random(f"{trial.seed} hot")
        self._is_hot = not trial.clients and hot.random() < HOT_WORLDS
        if self._is_hot:
            self._clients = hot.choice(WRITERS)
        self.workload = StoreWorkload(
            self,
            trial.keys or self.random.choice((1, 2, 3)),
            trial.patience_ns,
            is_doubled=DUPLICATE.name in self.mix.rates,
        )
        if CLOCKS_APART.name in self.mix.rates:
            self.faults.counts[CLOCKS_APART.name] += 1
        self.strikes = StoreStrikes(self, self.network, self.clocks)
        self._convictions = Convictions(self)
        self._liars = LyingPeers(self, trial.seed)
        self._damages = DamagedDisks(self, trial.seed, may_be=bool(trial.faults))
        self._invariants = InvariantChecker()
        self._topologies = TopologyChecker(self.journal)

    @property
    def topology(self) -> Topology:
        """The topology as the manager has decided it."""
        record = self.journal[-1]
        assert isinstance(record, TopologySet)
        return record.topology

    def slot_of(self, node: NodeId) -> str:
        """The slot of a node."""
        return self._slots[node]

    def nodes(self) -> list[NodeProcess]:
        return list(self._nodes.values())

    def members(self) -> list[NodeProcess]:
        """The nodes of the ring, as the manager has decided it."""
        members = {node.id for node in self.topology.nodes}
        return [node for node in self.nodes() if node.disk.node in members] or self.nodes()

    # --- disks ---

    def _have_disk(self, slot: str, disk: Disk) -> None:
        self.disks[slot] = disk
        self._slots[disk.node] = slot

    def empty_disk(self, slot: str) -> None:
        """Let a node that starts at this slot be a new one from now on, which waits to be added."""
        number = len(self._slots)
        node = self.places.node(slot, f"a{number}")
        self._have_disk(slot, Disk(node, self.topology))

    def on_refused(self, node: NodeProcess) -> None:
        """The node was removed: replace its disk by an empty one."""
        assert self.topology.is_removed(node.disk.node), "a node is refused that was not removed"
        self.workload.counts["removed nodes refused"] += 1
        node.kill()
        self.empty_disk(node.slot)
        self.restart_later(node.slot, self.faults.span(0.01, 2.0))

    def on_went_back(self, node: NodeProcess) -> None:
        """All others refuse the node, so its disk is replaced by an empty one, and the node will be
        replaced.
        """
        assert node.disk.node in self._put_back, "a node is refused whose disk was not put back"
        self.workload.counts["nodes refused whose disks were put back"] += 1
        node.kill()
        self.empty_disk(node.slot)
        self.mended_at = self.now
        self.restart_later(node.slot, self.faults.span(0.01, 2.0))

    @property
    def has_damage(self) -> bool:
        return self._damages.is_on

    def on_may_leave(self, node: NodeProcess) -> None:
        """The node begins anew in an empty directory, and says whose place it takes."""
        self.workload.counts["damaged nodes that left"] += 1
        node.kill()
        self.empty_disk(node.slot)
        self.disks[node.slot].replaces = node.disk
        self.restart_later(node.slot, self.faults.span(0.01, 2.0))

    def damaged(self) -> NodeProcess | None:
        """A node whose disk has lost something."""
        return next((node for node in self.nodes() if node.disk.engine.damaged), None)

    def back_up(self, node: NodeProcess) -> None:
        self.tell(node.slot, "disk copied")
        self._backups[node.slot] = node.disk.copy()

    def put_back(self) -> bool:
        """See `RingSite`. Nobody can notice what most nodes do not know yet."""
        disks = {disk.node: disk for disk in self.disks.values()}
        for slot, copy in self._backups.items():
            node = self.slots[slot]
            old = [node.id for node in copy.topology.nodes]
            now = [node.id for node in self.topology.nodes]
            is_member = copy.node in now and self.disks[slot].node == copy.node
            if is_member and all(is_known_to_be_back(copy, ring, disks) for ring in (old, now)):
                self.tell(slot, "disk put back")
                self.bring_down(node)
                copy.lives = self.disks[slot].lives  # the number of lives follows the clock
                self.disks[slot] = self._backups.pop(slot)
                self._put_back.add(copy.node)
                return True
        return False

    @property
    def is_disk_missing(self) -> bool:
        there = {disk.node for disk in self.disks.values()}
        lacks = self.lost() is not None or bool(self._put_back & there)
        return lacks or self.damaged() is not None

    def lost(self) -> Node | None:
        """A member whose disk is gone."""
        disks = {disk.node for disk in self.disks.values()}
        return next((node for node in self.topology.nodes if node.id not in disks), None)

    def seen_by_clients(self) -> Mapping[str, int]:
        """How often clients' operations had each outcome."""
        shape = Counter({f"rings {self.places}": 1})
        return self.workload.counts + self._topologies.counts + shape

    def first_offset_us(self) -> int:
        """How far the wall clock of a host is wrong at first: with clocks apart, as far as it may
        be.
        """
        apart = self.trial.apart_us
        if CLOCKS_APART.name in self.mix.rates:
            return self.random.choice((-apart, apart))
        return self.random.randint(-apart, apart) // 100

    # --- processes ---

    def first_slots(self) -> Iterable[str]:
        """The slots of the nodes, and of the clients."""
        return (MANAGER, *self.disks, *(f"c{i}" for i in range(self._clients)))

    def make(self, slot: str) -> SimProcess:
        """A new life at a slot."""
        clock = self.clock_of(slot, self.trial.skew)
        self.offsets_us.setdefault(slot, self.first_offset_us())
        if slot == MANAGER:
            leading = LeadingManager(clock.local(self.now), self.journal, self.next_uid())
            return LeadingProcess(self, slot, clock, leading, self.journal)
        if slot not in self.disks:
            return ClientProcess(self, slot, clock)
        disk = self.disks[slot]
        disk.lives += 1
        disk.engine.sync()  # what a store finds when it is opened is on the disk from then on
        store = NodeReplica(disk.engine, lambda: self.wall_us(slot), self.lag_us)
        store.open(OPENED)
        store.load()
        config = NodeConfig(
            node=disk.node,
            topology=disk.topology,
            patience_ns=self.trial.patience_ns,
            spare_ns=self.trial.patience_ns // 10,
            hint_ns=2 * self.trial.patience_ns,
            repair_ns=REPAIRED_AFTER * self.trial.patience_ns,
            filling=store.filling,
            copy_parts=COPY_PARTS,
            piece_bytes=PIECE_BYTES,
        )
        if PUT_BACK.name in self.mix.rates:
            return GossipingProcess(self, slot, clock, config, disk, store)
        machine = StoreNode(config, random_for(self.random))
        return NodeProcess(self, slot, clock, machine, disk, store)

    def put(self, process: SimProcess) -> None:
        """Let a process begin at its slot."""
        former = self.slots.get(process.slot)
        if former is not None:
            del self.present[former.uid]
        self.present[process.uid] = process
        if isinstance(process, NodeProcess):
            self._nodes[process.slot] = process
        super().put(process)

    def start_all(self) -> None:
        """Start everybody; in some worlds clients rush from then on."""
        super().start_all()
        if self._is_hot:
            self.workload.rush(self.random)

    def when_well(self, left_ns: int) -> None:
        """Judge what was recorded."""
        self.workload.recording.judge()

    def on_started(self, process: SimProcess) -> None:
        """Give a process its work."""
        if isinstance(process, ClientProcess):
            self.workload.start(process)
        elif isinstance(process, NodeProcess):
            process.begin()

    def on_takes_part(self, node: NodeProcess) -> None:
        """Tell a node which nodes are near, and which are up."""
        others = {
            self.slot_of(other.id): other.id
            for other in self.topology.nodes
            if other.id != node.disk.node
        }
        node.post(DelaysMeasured(self.places.nearest_first(node.slot, others)))
        self._convictions.begin(node)
        if self.has_damage:
            node.scrub()

    def on_step(self, process: SimProcess) -> None:
        """The machine of a process has handled an event."""
        self._invariants.on_step(process)
        if isinstance(process, NodeProcess):
            self._topologies.on_step(process)

    # --- healing ---

    @property
    def healing_bound_ns(self) -> int:
        """The time until nobody is convicted, and every request that was under way has ended."""
        return CONVICTED_AFTER_NS + (24 + 3 * REPAIRED_AFTER) * self.trial.patience_ns

    def end_faults(self) -> None:
        """Let no more faults happen."""
        super().end_faults()
        self._damages.end()
        for disk in self.disks.values():
            disk.is_full = False
        self._unread = set(self.workload.sets)
        self._reads = False

    def while_healing(self) -> None:
        """Read what should be there, and replace nodes whose disks are lost."""
        lost = self.lost()
        if lost is not None:
            command = replacement(self.topology, lost)
            if command is not None:
                self.slots[MANAGER].post(OperatorAsked(command))
        client = next((each for each in self.clients() if isinstance(each, ClientProcess)), None)
        if client is not None and not self._reads and client.alive:
            self._reads = True
            self.workload.read_sets(client, self._unread.discard)

    def not_well(self) -> str | None:
        """What is still missing."""
        change, lost = self.topology.change, self.lost()
        if change is not None or lost is not None:
            return f"the disk of {lost.name} is lost" if lost else f"{change} goes on"
        for node in self.nodes():
            there = {disk.node for disk in self.disks.values()}
            if down := node.machine.context.down & there:
                return f"{node.slot} holds {down} to be down"
        if damaged := self.damaged():
            return f"the disk of {damaged.slot} is damaged"
        if self._put_back & {disk.node for disk in self.disks.values()}:
            return "a disk that was put back is not refused"
        if self._unread:
            return f"{sorted(self._unread)} cannot be read"
        spared_us = 2 * self.trial.patience_ns // MICROSECOND_NS + self.trial.apart_us
        stores = {node.disk.node: node.store for node in self.nodes()}
        rows = [(PLAIN, key) for key in (*self.workload.rows, *self.workload.sets)]
        rows += [(OWNED, key) for key in self.workload.owned]
        return first_difference(self.topology, stores, rows, self.wall_us("") - spared_us)
