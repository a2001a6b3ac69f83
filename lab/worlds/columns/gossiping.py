"""Simulated nodes with gossipers: a node takes part when others vouch for it (R26).

Gossip costs time, so only worlds in which disks are restored have it. There a node's counter is
raised as by `columns/node/store_engine.py`, and the gossiper decides who may take part, as in
`columns/node/node_service.py`. `Convictions` says who is up, as in all other worlds.
"""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from lab.worlds.columns.disks import Disk
from lab.worlds.columns.processes import NodeProcess, StoreSite
from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.machine import Output
from tenure.columns.node_replica import NodeReplica
from tenure.protocol.gossip.gossiper import Gossiper
from tenure.protocol.gossip.gossiper_events import (
    GossiperConfig,
    GossipHeard,
    GossipPeer,
    KeepPromises,
    MembersKnown,
    PromisesNotKept,
    PromisesRaised,
    SendGossip,
    TellAcquitted,
    TellConvicted,
    TellState,
    TellVouched,
    TellWentBack,
)
from tenure.protocol.gossip.messages import GossipAck, GossipEnd, GossipSyn
from tenure.protocol.replication.node import StoreNode
from tenure.protocol.replication.node_events import NodeConfig
from tenure.protocol.topology.messages import TopologyTold
from tenure.protocol.topology.records import NodeId, Topology
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.process import SimProcess

ROUNDS = 2
"""Rounds of gossip while a request waits: fewer than real nodes make, because each costs time."""
FAN_OUT = 1
COUNT_NS = seconds(5)
_OF_GOSSIP = (GossipHeard, MembersKnown, PromisesRaised, PromisesNotKept)


class GossipingNode(StoreNode):
    """A node and its gossiper: two machines that stop and continue together."""

    def __init__(self, config: NodeConfig, random: Random, gossiper: Gossiper) -> None:
        super().__init__(config, random)
        self.gossiper = gossiper
        self.is_part = False
        """Whether the node takes part in requests."""
        self._gossips_at = FAR_FUTURE
        self._works_at = FAR_FUTURE

    def handle(self, now: Instant, event: Any) -> Output[Any]:
        """Handle an event of one of the two machines. A node that does not take part ignores
        requests.
        """
        actions: list[Any] = []
        if isinstance(event, _OF_GOSSIP):
            actions, self._gossips_at = self.gossiper.handle(now, event)
        elif self.is_part:
            actions, self._works_at = super().handle(now, event)
        return Output(actions, min(self._gossips_at, self._works_at))

    def advance(self, now: Instant) -> Output[Any]:
        """Do what is due."""
        actions: list[Any]
        actions, self._gossips_at = self.gossiper.advance(now)
        if self.is_part and now >= self._works_at:
            done, self._works_at = super().advance(now)
            actions = actions + done
        return Output(actions, min(self._gossips_at, self._works_at))

    def invariants(self) -> None:
        """Assert the invariants of both machines."""
        super().invariants()
        self.gossiper.invariants()


class GossipingProcess(NodeProcess):
    """One life of such a node."""

    machine: GossipingNode
    stops_before = (*NodeProcess.stops_before, SendGossip, KeepPromises)

    def __init__(
        self,
        site: StoreSite,
        slot: str,
        clock: SimClock,
        config: NodeConfig,
        disk: Disk,
        store: NodeReplica,
    ) -> None:
        known = GossiperConfig(
            node=disk.node,
            generation=disk.lives,
            address=slot,
            promises=store.promises,
            known=disk.known,
            interval_ns=config.patience_ns // ROUNDS,
            fan_out=FAN_OUT,
        )
        gossiper = Gossiper(known, Random(site.random.getrandbits(64)))
        machine = GossipingNode(config, Random(site.random.getrandbits(64)), gossiper)
        super().__init__(site, slot, clock, machine, disk, store)
        self.counter = store.promises
        self._counted = 0

    @property
    def is_part(self) -> bool:
        """Whether the node takes part, which it does once others vouch for it."""
        return self.machine.is_part

    @property
    def refused(self) -> frozenset[NodeId]:
        """The nodes whose disks went back."""
        return frozenset(self.machine.gossiper.gone_back)

    def begin(self) -> None:
        """Tell the gossiper which nodes there are."""
        self._follow(self.disk.topology)
        self.ask_manager()

    def _follow(self, topology: Topology) -> None:
        nodes = (*topology.nodes, *topology.waiting)
        self.post(
            MembersKnown(
                tuple(GossipPeer(node.id, self.site.slot_of(node.id)) for node in nodes),
                tuple(node.id for node in topology.removed),
                tuple(node.id for node in topology.nodes),
            )
        )

    def on_message(self, sender: SimProcess, message: Any) -> None:
        """A message for the gossiper or for the node has arrived."""
        match message:
            case GossipSyn() | GossipAck() | GossipEnd():
                self.post(GossipHeard(sender.slot, message))
            case TopologyTold(topology=Topology() as topology) if not self.is_part:
                if topology.version > self.disk.topology.version:
                    self.disk.topology = self.machine.context.topology = topology
                    self._follow(topology)
            case _:
                super().on_message(sender, message)

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        match action:
            case SendGossip(address=address, message=message):
                self.site.network.to_address(self, address, message)
            case KeepPromises(known=known):
                if self.disk.is_full:
                    self.post(PromisesNotKept())
                else:
                    self.disk.known = known
            case TellVouched():
                self._take_part()
            case TellWentBack(node=node):
                if node == self.disk.node:
                    self.site.on_went_back(self)
            case TellConvicted() | TellAcquitted() | TellState():
                pass
            case _:
                super().perform(action)

    def _take_part(self) -> None:
        if self.disk.is_full:  # otherwise it would acknowledge with a life that is not on the disk
            self.site.bring_down(self)
            return
        self.machine.is_part = True
        self._count_once_more()
        self.site.at(self.site.now + COUNT_NS, self._count, None)
        self.site.on_takes_part(self)

    # --- the counter ---

    def _count(self, _: None) -> None:
        if self.alive:
            if not self.is_frozen and not self.disk.is_full and self.store.changes > self._counted:
                self._count_once_more()
            self.site.at(self.site.now + COUNT_NS, self._count, None)

    def _count_once_more(self) -> None:
        self.store.count_once_more()
        self._counted = self.store.changes
        self._sync()

    def _on_durable(self, changes: int, promises: int) -> None:
        super()._on_durable(changes, promises)
        if promises > self.counter:
            self.counter = promises
            self.post(PromisesRaised(promises))
        if self.store.promises > promises:
            self._sync()

    def _keep(self, topology: Topology) -> None:
        super()._keep(topology)
        self._follow(self.disk.topology)


def is_known_to_be_back(copy: Disk, ring: Iterable[NodeId], disks: Mapping[NodeId, Disk]) -> bool:
    """Whether most nodes of a ring have on their disks that this node had a higher counter."""
    nodes = set(ring)
    knowing = [
        node
        for node in sorted(nodes & disks.keys() - {copy.node})
        for known in disks[node].known
        if known.node == copy.node and known.promises > copy.promises
    ]
    return 2 * len(knowing) > len(nodes)
