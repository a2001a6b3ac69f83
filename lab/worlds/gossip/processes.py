"""Simulated nodes that only gossip: the machine, what its disk keeps, and its way to the others."""

from typing import Any

import msgspec

from tenure.base.noted import Noted
from tenure.base.numbers import Number
from tenure.protocol.gossip.gossiper import Gossiper
from tenure.protocol.gossip.gossiper_events import (
    GossipHeard,
    KeepPromises,
    PromisesRaised,
    SendGossip,
    StateSet,
    TellAcquitted,
    TellConvicted,
    TellState,
    TellVouched,
    TellWentBack,
)
from tenure.protocol.gossip.limits import MESSAGE_BYTES
from tenure.protocol.gossip.messages import GossipMessage, NodeDigest, NodeId, StateEntry
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.network import Network
from tenure.sim.kernel.process import SimProcess, Site


class GossipDisk(msgspec.Struct):
    """The contents of a node's disk."""

    node: NodeId
    generation: Number = 0
    promises: Number = 0
    known: tuple[NodeDigest, ...] = ()


class Said:
    """Everything that a node said in one life."""

    def __init__(self) -> None:
        self.values: dict[int, StateEntry] = {}
        """The node's values, by version."""
        self.current: list[StateEntry] = []


class GossipCodec:
    """Encodes and decodes datagrams."""

    def encode(self, message: GossipMessage) -> bytes:
        """The bytes of a message, which must fit in a datagram."""
        data = msgspec.msgpack.encode(message)
        if len(data) > MESSAGE_BYTES:
            raise Violation("G1", f"a datagram of {len(data)} bytes")
        return data

    def decode(self, data: bytes, receiver: SimProcess) -> GossipMessage:
        """Decode bytes as any node reads them."""
        message: GossipMessage = msgspec.msgpack.decode(data, type=GossipMessage)
        return message


class GossipSite(Site):
    """A world of nodes, as each of them sees it."""

    network: Network
    disks: dict[str, GossipDisk]
    """The nodes' disks, by slot."""
    convictions: dict[tuple[str, NodeId], int]
    """When each node began to convict each other."""
    histories: dict[tuple[NodeId, int], Said]
    """The values that each node told, by node and generation."""

    def nodes(self) -> "list[GossipProcess]":
        return [each for each in self.slots.values() if isinstance(each, GossipProcess)]

    def is_known_to_be_back(self, disk: GossipDisk) -> bool:
        """Whether most nodes have on their disks that this node has forgotten something."""
        others = [each for each in self.disks.values() if each is not disk]
        knowing = [
            known
            for each in others
            for known in each.known
            if known.node == disk.node and known.promises > disk.promises
        ]
        return 2 * len(knowing) > len(self.disks)

    def peers(self, process: SimProcess) -> list[SimProcess]:
        """No processes, because datagrams need no connection."""
        return []


class GossipProcess(SimProcess):
    """A node that gossips, and says and promises something now and then."""

    site: GossipSite
    machine: Gossiper
    stops_before = (SendGossip, KeepPromises)

    def __init__(self, site: GossipSite, slot: str, clock: SimClock, machine: Gossiper) -> None:
        super().__init__(site, slot, clock, machine)
        self.gossiper = machine
        self.disk = site.disks[slot]
        self.is_known_to_be_back = site.is_known_to_be_back(self.disk)
        for pair in [pair for pair in site.convictions if pair[0] == slot]:
            del site.convictions[pair]

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        site = self.site
        match action:
            case SendGossip(address=address, message=message):
                site.network.to_address(self, address, message)
            case TellConvicted(node=node):
                site.convictions[self.slot, node] = site.now
            case TellAcquitted(node=node):
                site.convictions.pop((self.slot, node), None)
            case TellWentBack(node=node):
                if node == self.disk.node:
                    self.kill()  # as a real node does
            case TellVouched():
                if self.is_known_to_be_back:
                    raise Violation("G6", f"{self.slot} takes part, whose disk went back")
            case KeepPromises(known=known):
                self.disk.known = known
            case TellState():
                pass
            case Noted():
                site.tell(self.slot, action.kind.phrase, action.detail)
                site.count_note(action.kind.phrase)

    def on_message(self, sender: SimProcess, message: GossipMessage) -> None:
        """A datagram has arrived."""
        ahead_ns = self.clock.wall_behind - sender.clock.wall_behind
        self.post(GossipHeard(sender.slot, message, ahead_ns // 1_000))

    def on_disconnected(self, peer: tuple[str, int]) -> None:
        """Do nothing: datagrams need no connection."""

    def say(self, key: str, value: bytes) -> None:
        """The node says something new."""
        self.post(StateSet(key, value))
        self.remember()

    def promise(self) -> None:
        """The node promises a horizon."""
        self.disk.promises += 1
        self.post(PromisesRaised(self.disk.promises))

    def remember(self) -> None:
        """Note what the node says now, for the checker of what others know of it."""
        own = self.gossiper.own
        key = (own.head.node, own.head.generation)
        said = self.site.histories.setdefault(key, Said())
        said.current = list(own.since(0))
        said.values.update((entry.version, entry) for entry in said.current)
