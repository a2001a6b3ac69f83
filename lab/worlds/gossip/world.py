"""A world of nodes that only gossip."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lab.worlds.gossip.processes import GossipCodec, GossipDisk, GossipProcess, GossipSite
from tenure.base.instants import SECOND_NS, in_seconds
from tenure.protocol.gossip.gossiper import Gossiper
from tenure.protocol.gossip.gossiper_events import GossiperConfig, GossipPeer, MembersKnown
from tenure.protocol.gossip.messages import NodeId
from tenure.protocol.gossip.state import NodeState
from tenure.sim.kernel.checkers import InvariantChecker, Violation
from tenure.sim.kernel.faults import (
    DROP,
    LATE_TIMER,
    MESSAGE_FAULTS,
    POINT_FAULTS,
    SKEW,
    Fault,
    FaultTable,
    terms_apart,
)
from tenure.sim.kernel.network import Network
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.scene import random_for
from tenure.sim.kernel.story import Story
from tenure.sim.kernel.strikes import SHORT_PAUSE, SUSPEND, WALL_CLOCKS, Strikes
from tenure.sim.kernel.world import AnyTrial, World

SEEDS = ("n0", "n1")
FAULT_ROUNDS = 10
"""The measure of faults."""
SAYS_ROUNDS = 3
"""Rounds between two things that a node says."""
LOOKS_EVERY = 8
"""How many steps are between two checks: what has gone wrong stays wrong."""


class GossipStrikes(Strikes):
    """The faults of nodes."""

    site: "GossipWorld"

    def crash_node(self) -> None:
        """A node is killed, and comes back later."""
        self.crash(self.site.nodes())

    def cut_nodes(self) -> None:
        """Let nothing pass between two nodes, in both directions or only one."""
        nodes = self.site.nodes()
        one, other = self.random.sample(nodes, 2)
        self.cut(one.slot, other.slot, both_ways=self.random.random() < 0.5)

    def put_back(self) -> None:
        """A node is killed, and its disk is put back to an earlier state."""
        node = self.any_of(self.site.nodes())
        if isinstance(node, GossipProcess) and node.disk.promises:
            earlier = self.random.randrange(node.disk.promises)
            node.kill()
            node.disk.promises = earlier
            node.disk.generation -= self.random.choice((0, 1))
            self.site.put_back.add(node.disk.node)
            self.site.restart_later(node.slot, self.site.faults.span(0.01, 2.0))


TABLE = FaultTable(
    (
        *MESSAGE_FAULTS,
        *POINT_FAULTS,
        LATE_TIMER,
        SKEW,
        SHORT_PAUSE,
        SUSPEND,
        WALL_CLOCKS,
        Fault("node crash", terms_apart, GossipStrikes.crash_node),
        Fault("cut", terms_apart, GossipStrikes.cut_nodes),
        Fault("disk put back", terms_apart, GossipStrikes.put_back),
    )
)


class GossipTrial(AnyTrial, frozen=True, kw_only=True):
    """The settings of a run of one seed of gossip."""

    nodes: int = 5
    interval_ns: int = SECOND_NS
    loss: float | None = None
    """The share of datagrams that is lost; None means that it is drawn."""
    faults: tuple[str, ...] = TABLE.kinds
    skew: int = 1_000
    """How far the rate of a clock may be wrong, in a million."""


class GossipWorld(World, GossipSite):
    """Everything in one run."""

    def __init__(self, trial: GossipTrial) -> None:
        super().__init__(trial, TABLE, Story())
        self.trial = trial
        if trial.loss is not None:
            self.mix.rates[DROP.name] = trial.loss
        interval_ns = trial.interval_ns
        self.phase_ns = FAULT_ROUNDS * interval_ns
        self.heals_every_ns = interval_ns
        self.faults = self.dice(FAULT_ROUNDS * interval_ns)
        self.network = Network(self, GossipCodec())
        self.strikes = GossipStrikes(self, self.network, self.clocks)
        self.disks = {}
        self.convictions = {}
        self.histories = {}
        self.put_back: set[NodeId] = set()
        """The nodes whose disk went back."""
        self.removed: tuple[NodeId, ...] = ()
        self._invariants = InvariantChecker()
        self._steps = 0
        for slot in self.first_slots():
            self.disks[slot] = GossipDisk(self._new_id())
        self.at(interval_ns, self._say_something, 0)

    def _new_id(self) -> NodeId:
        return self.random.getrandbits(62) + 1

    # --- what the kernel asks ---

    @property
    def healing_bound_ns(self) -> int:
        """How long healing takes. A few rounds reach everybody, but a window that was filled in bad
        times empties slowly.
        """
        return 100 * self.trial.interval_ns

    def groups(self) -> Sequence[Sequence[SimProcess]]:
        """The nodes."""
        return (self.nodes(),)

    def first_slots(self) -> Iterable[str]:
        """All nodes."""
        return (f"n{number}" for number in range(self.trial.nodes))

    def make(self, slot: str) -> SimProcess:
        """A new life of a node."""
        disk = self.disks[slot]
        disk.generation += 1
        config = GossiperConfig(
            node=disk.node,
            generation=disk.generation,
            address=slot,
            promises=disk.promises,
            seeds=SEEDS,
            known=disk.known,
            interval_ns=self.trial.interval_ns,
        )
        machine = Gossiper(config, random_for(self.random))
        return GossipProcess(self, slot, self.clock_of(slot, self.trial.skew), machine)

    def on_started(self, process: SimProcess) -> None:
        """Tell the node what its topology says."""
        self._tell_members(process)

    def _tell_members(self, process: SimProcess) -> None:
        members = tuple(GossipPeer(disk.node, slot) for slot, disk in self.disks.items())
        ring = tuple(disk.node for disk in self.disks.values())
        process.post(MembersKnown(members, self.removed, ring))

    def on_step(self, process: SimProcess) -> None:
        """Check that a process knows only what others have said."""
        self._invariants.on_step(process)
        assert isinstance(process, GossipProcess)
        process.remember()
        self._steps += 1
        if self._steps % LOOKS_EVERY == 0:
            for state in process.gossiper.states.values():
                self._check_values(process, state)
        for node in sorted(process.gossiper.gone_back - self.put_back):
            raise Violation("G3", f"{process.slot} refuses {node:x}, which kept its promises")

    def _check_values(self, process: GossipProcess, state: NodeState) -> None:
        """Check that everything the node knows was said, and that it knows everything up to the
        version that is still said.
        """
        head = state.head
        said = self.histories.get((head.node, head.generation))
        if said is None or head.node in self.put_back:
            return
        known = list(state.since(0))
        if any(said.values.get(entry.version) != entry for entry in known):
            raise Violation("G2", f"{process.slot} knows what {head.node:x} did not say")
        if not {each for each in said.current if each.version <= head.version} <= set(known):
            raise Violation("G2", f"{process.slot} misses something of {head.node:x}")

    def _say_something(self, count: int) -> None:
        node = self.random.choice(self.nodes())
        if node.alive and not node.is_frozen:
            if self.random.random() < 0.3:
                node.promise()
            else:
                length = self.random.choice((1, 8, 200))
                node.say(f"key-{self.random.randrange(8)}", count.to_bytes(4) * (length // 4 + 1))
        rounds = 2 * SAYS_ROUNDS * self.random.random()
        self.at(self.now + round(rounds * self.trial.interval_ns), self._say_something, count + 1)

    def seen_by_clients(self) -> Mapping[str, int]:
        """Nothing, because there are no clients."""
        return {}

    # --- healing ---

    def while_healing(self) -> None:
        """Replace a node whose disk went back, once all others have had time to hear of it."""
        waited = self.now - self.mended_at > self.healing_bound_ns // 2
        for slot, disk in self.disks.items():
            if disk.node not in self.put_back or not waited:
                continue
            self._check_refused(disk.node)
            self.slots[slot].kill()
            self.removed = (*self.removed, disk.node)
            self.disks[slot] = GossipDisk(self._new_id())
            self.restart_later(slot, self.trial.interval_ns)
            for process in self.nodes():
                self._tell_members(process)
            self.mended_at = self.now

    def _check_refused(self, node: NodeId) -> None:
        """Check that all nodes refuse a node if any does. It may be that no node noticed: those who
        knew were down, and the node made as many new promises as it had forgotten before they were
        back.
        """
        judges = [
            each for each in self.nodes() if each.alive and each.disk.node not in self.put_back
        ]
        refusing = [node in each.gossiper.gone_back for each in judges]
        if any(refusing) and not all(refusing):
            taking = judges[refusing.index(False)].slot
            raise Violation("G4", f"{taking} takes {node:x}, whose disk went back")

    def not_well(self) -> str | None:
        """What is still missing: every node must know what every other says now."""
        known = {each.disk.node: each for each in self.nodes()}
        for node in sorted(self.put_back & known.keys()):
            return f"{node:x} is not replaced"
        for one in self.nodes():
            for node, other in known.items():
                if one is other:
                    continue
                state = one.gossiper.states[node]
                if one.gossiper.detector.is_convicted(node):
                    return f"{one.slot} convicts {other.slot}"
                if state.all() != other.gossiper.own.all():
                    return f"{one.slot} does not know what {other.slot} says"
        return None

    # --- figures ---

    def run_quietly(self, rounds: int) -> None:
        """Let time pass in which nothing goes wrong except that datagrams are lost."""
        if not self.slots:
            self.start_all()
            self.faults.is_on = True
        self.run_until(self.now + rounds * self.trial.interval_ns)

    def seconds_until_convicted(self, slot: str, most_seconds: float) -> float:
        """Kill a node for good, and measure how long it takes until the last of the others convicts
        it.
        """
        killed = self.slots[slot]
        killed.kill()
        began, node = self.now, self.disks[slot].node
        others = [each.slot for each in self.nodes() if each.slot != slot]
        while in_seconds(self.now - began) < most_seconds:
            self.run_until(self.now + self.trial.interval_ns // 20)
            if all((other, node) in self.convictions for other in others):
                return in_seconds(max(self.convictions[other, node] for other in others) - began)
        raise Violation("G5", f"not everybody convicts {slot} after {most_seconds} s")

    def highest_phi(self) -> float:
        """The highest phi of any node at any living node, now."""
        return max(
            one.gossiper.detector.phi(other.disk.node, one.now())
            for one in self.nodes()
            for other in self.nodes()
            if one is not other and one.alive and other.alive
        )


def quiet(seed: int, nodes: int, *, loss: float = 0.0, interval_ns: int = SECOND_NS) -> GossipWorld:
    """A world in which nothing goes wrong except that datagrams are lost."""
    trial = GossipTrial(seed=seed, nodes=nodes, faults=(), loss=loss, interval_ns=interval_ns)
    return GossipWorld(msgspec.structs.replace(trial, skew=100))
