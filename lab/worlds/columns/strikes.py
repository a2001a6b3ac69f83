"""The faults of a world of the store."""

from abc import abstractmethod
from itertools import product

from lab.worlds.columns.managers import OperatorAsked
from lab.worlds.columns.operator import command_of
from lab.worlds.columns.places import Places
from lab.worlds.columns.processes import MANAGER, SLOW_SYNC, NodeProcess, StoreSite
from tenure.base.instants import MICROSECOND_NS
from tenure.protocol.topology.records import Node, Topology
from tenure.sim.kernel.faults import (
    LATE_TIMER,
    MESSAGE_FAULTS,
    POINT_FAULTS,
    SKEW,
    Fault,
    FaultTable,
    terms_apart,
)
from tenure.sim.kernel.strikes import PAUSE_PAST_THE_TERM, SHORT_PAUSE, SUSPEND, Strikes

JUMP_US = 5_000_000
"""How far a wall clock is set wrong at most."""
MINUTE_US = 60_000_000
YEAR_US = 365 * 86_400_000_000
CLOCKS_APART = Fault("clocks 10 s apart")
"""A fault that lasts as long as the world: each clock is as wrong as it may be, one way or the
other.
"""


class RingSite(StoreSite):
    """A world whose ring changes."""

    places: Places

    @property
    @abstractmethod
    def topology(self) -> Topology:
        """The topology as the manager has decided it."""

    @abstractmethod
    def lost(self) -> Node | None:
        """A member whose disk is gone."""

    @property
    @abstractmethod
    def is_disk_missing(self) -> bool:
        """Whether a node has lost what it had acknowledged, and is not replaced yet."""

    @abstractmethod
    def put_back(self) -> bool:
        """Put the disk of a member back to a copy that most nodes know to be old. Returns whether
        there is such a copy.
        """

    @abstractmethod
    def back_up(self, node: NodeProcess) -> None:
        """Copy the disk of a node."""

    @abstractmethod
    def empty_disk(self, slot: str) -> None:
        """Let a node that starts at this slot be a new one from now on, which waits to be added."""


class StoreStrikes(Strikes):
    """The faults of nodes, their disks and their clocks, and of clients."""

    site: RingSite

    def ring_change(self) -> None:
        """Ask for a change of the ring, or cancel the one that runs."""
        manager = self.site.slots[MANAGER]
        command = command_of(self.site.topology, self.site.lost(), self.random)
        if command is not None and manager.alive:
            self.site.tell("operator", type(command).__name__)
            manager.post(OperatorAsked(command))

    def crash_of_the_manager(self) -> None:
        """Kill the manager. The next one leads with what is in the journal."""
        self.crash([self.site.slots[MANAGER]])

    def disk_lost(self) -> None:
        """Lose a disk, one at a time: if two of three were lost, what was acknowledged would be
        gone.
        """
        node = self.any_of(self.site.members())
        topology = self.site.topology
        if node is None or topology.change is not None or self.site.is_disk_missing:
            return
        self.site.tell(node.slot, "disk lost")
        self.site.bring_down(node)
        self.site.empty_disk(node.slot)

    def disk_put_back(self) -> None:
        """Put a disk back, or copy one to be put back later. A disk that is put back counts as
        lost, so only one at a time.
        """
        site = self.site
        may_lose = site.topology.change is None and not site.is_disk_missing
        if may_lose and site.put_back():
            return
        node = self.any_of(site.members())
        if node is not None:
            site.back_up(node)

    def crash_of_a_node(self) -> None:
        """Kill a node, which comes back with its disk."""
        self.crash(self.site.nodes())

    def crash_of_two_nodes(self) -> None:
        """Kill two nodes at once."""
        self.crash_of_a_node()
        self.crash_of_a_node()

    def power_failure(self) -> None:
        """Cut the power of most nodes, or of all, as if they shared a building."""
        for node in self.site.nodes():
            if node.alive and self.random.random() < 0.8:
                node.lose_power()

    def quick_restart(self) -> None:
        """Restart a node whose next life begins at once."""
        node = self.any_of(self.site.nodes())
        if node is not None:
            node.kill()
            self.site.restart_later(node.slot, self.random.randrange(1, 1_000_000))

    def crash_of_a_client(self) -> None:
        """Kill a client; another takes its place."""
        self.crash(self.site.clients())

    def cut_between_nodes(self) -> None:
        """Let nothing pass between two nodes."""
        self.cut_between(self.site.nodes(), self.site.nodes(), both_ways=True)

    def cut_one_way_between_nodes(self) -> None:
        """Let nothing pass from one node to another."""
        self.cut_between(self.site.nodes(), self.site.nodes(), both_ways=False)

    def node_cut_off(self) -> None:
        """Cut a node off from all others, while clients still reach it."""
        node = self.any_of(self.site.nodes())
        if node is not None:
            for other in self.site.nodes():
                if other is not node:
                    self.cut(node.slot, other.slot, both_ways=True)

    def cut_from_a_client(self) -> None:
        """Let nothing pass between a client and a node."""
        self.cut_between(self.site.clients(), self.site.nodes(), both_ways=True)

    def disk_full(self) -> None:
        """Fill a disk: nothing can be written for a while."""
        node: NodeProcess | None = self.any_of(self.site.nodes())
        if node is not None and not node.disk.is_full:
            node.disk.is_full = True
            self.site.tell(node.slot, "disk full")
            self.site.at(self.site.now + self.span(0.1, 5.0), self._empty, node)

    @staticmethod
    def _empty(node: NodeProcess) -> None:
        node.disk.is_full = False

    def network_parted(self) -> None:
        """Part the network in two, with nodes, clients and managers on both sides: between data
        centres if there are several.
        """
        slots = list(self.site.slots)
        self.random.shuffle(slots)
        lasts_ns = self.span(0.1, 2.5)
        centre = self.site.places.of(slots[0])[0]
        side = {slot for slot in slots if self.site.places.of(slot)[0] == centre}
        if len(side) == len(slots):
            side = set(slots[: len(slots) // 2])
        self.site.tell("world", "parted", sorted(side))
        here = [slot for slot in slots if slot in side]
        there = [slot for slot in slots if slot not in side]
        self.network.cut_pairs([*product(here, there), *product(there, here)], lasts_ns)

    def wall_clock_jumps(self) -> None:
        """Set the wall clock of one host wrong."""
        slot = self.random.choice(list(self.site.slots))
        self.site.offsets_us[slot] = self.random.randint(-JUMP_US, JUMP_US)
        self.site.tell(slot, "wall clock jumps", self.site.offsets_us[slot] * MICROSECOND_NS)

    def wall_clock_far_ahead(self) -> None:
        """Set a client's wall clock ahead for a while, by more than replicas accept: a minute, or a
        year.
        """
        slot = self.random.choice(self.site.clients()).slot
        ahead_us = self.random.choice((MINUTE_US + 2 * JUMP_US, YEAR_US))
        self.site.offsets_us[slot] += ahead_us
        self.site.tell(slot, "wall clock far ahead", ahead_us * MICROSECOND_NS)
        self.site.at(self.site.now + self.span(0.1, 3.0), self._set_right, slot)

    def _set_right(self, slot: str) -> None:
        self.site.offsets_us[slot] = self.random.randint(-JUMP_US, JUMP_US)


PUT_BACK = Fault("disk put back", terms_apart, StoreStrikes.disk_put_back)
"""These strike only if nodes gossip: otherwise nobody could notice."""
RING = (
    Fault("ring change", terms_apart, StoreStrikes.ring_change),
    Fault("crash of the manager", terms_apart, StoreStrikes.crash_of_the_manager),
    Fault("disk lost", lambda strength: 0.1 * terms_apart(strength), StoreStrikes.disk_lost),
    PUT_BACK,
)
CRASHES = (
    Fault("crash of a node", terms_apart, StoreStrikes.crash_of_a_node),
    Fault("crash of two nodes", terms_apart, StoreStrikes.crash_of_two_nodes),
    Fault("power failure", terms_apart, StoreStrikes.power_failure),
    Fault("quick restart", terms_apart, StoreStrikes.quick_restart),
    Fault("crash of a client", terms_apart, StoreStrikes.crash_of_a_client),
)
PAUSES = (SHORT_PAUSE, PAUSE_PAST_THE_TERM, SUSPEND)
CUTS = (
    Fault("cut between nodes", terms_apart, StoreStrikes.cut_between_nodes),
    Fault("one-way cut between nodes", terms_apart, StoreStrikes.cut_one_way_between_nodes),
    Fault("node cut off", terms_apart, StoreStrikes.node_cut_off),
    Fault("cut from a client", terms_apart, StoreStrikes.cut_from_a_client),
    Fault("network parted", terms_apart, StoreStrikes.network_parted),
)
DISKS = (SLOW_SYNC, Fault("disk full", terms_apart, StoreStrikes.disk_full))
CLOCKS = (
    Fault("wall clock jumps", terms_apart, StoreStrikes.wall_clock_jumps),
    Fault("wall clock far ahead", terms_apart, StoreStrikes.wall_clock_far_ahead),
    CLOCKS_APART,
    SKEW,
)
WRONGLY_CONVICTED = Fault("wrongly convicted")
FAULTS = FaultTable(
    (
        *CRASHES,
        *PAUSES,
        *CUTS,
        *DISKS,
        *CLOCKS,
        WRONGLY_CONVICTED,
        *MESSAGE_FAULTS,
        *POINT_FAULTS,
        LATE_TIMER,
        *RING,
    ),
    {
        "ring": RING,
        "crash": CRASHES,
        "pause": PAUSES,
        "cut": CUTS,
        "disk": DISKS,
        "clock": CLOCKS,
        "message": MESSAGE_FAULTS,
        "point": POINT_FAULTS,
    },
)
