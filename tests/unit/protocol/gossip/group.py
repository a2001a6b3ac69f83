"""Some gossipers, whose datagrams arrive at once."""

from collections.abc import Iterable
from random import Random

import msgspec

from tenure.base.instants import SECOND_NS, Instant
from tenure.protocol.gossip.gossiper import Gossiper
from tenure.protocol.gossip.gossiper_events import (
    GossiperAction,
    GossiperConfig,
    GossiperEvent,
    GossipHeard,
    PromisesRaised,
    SendGossip,
)
from tenure.protocol.gossip.messages import GossipMessage

A, B, C = 1, 2, 3


class Group:
    """Some gossipers, whose datagrams arrive at once, and one clock."""

    def __init__(self) -> None:
        self.now = Instant(1_000 * SECOND_NS)
        self.machines: dict[str, Gossiper] = {}
        self.told: dict[str, list[GossiperAction]] = {}
        self.longest = 0
        self.parted: set[frozenset[str]] = set()
        """The pairs between which no datagram passes."""

    def start(self, node: int, generation: int = 1, **more: object) -> Gossiper:
        address = f"n{node}"
        seeds = tuple(self.machines) or (address,)
        config = GossiperConfig(node=node, generation=generation, address=address, seeds=seeds)
        config = msgspec.structs.replace(config, **more)
        self.machines[address] = made = Gossiper(config, Random(node))
        self.told[address] = []
        self._carry_out(address, made.advance(self.now).actions)
        return made

    def stop(self, node: int) -> None:
        del self.machines[f"n{node}"]

    def tell(self, node: int, event: GossiperEvent) -> None:
        self._carry_out(f"n{node}", self.machines[f"n{node}"].handle(self.now, event).actions)

    def _carry_out(self, address: str, actions: Iterable[GossiperAction]) -> None:
        for action in actions:
            if not isinstance(action, SendGossip):
                self.told[address].append(action)
                continue
            data = msgspec.msgpack.encode(action.message)
            self.longest = max(self.longest, len(data))
            if {address, action.address} in self.parted:
                continue
            if receiver := self.machines.get(action.address):
                message: GossipMessage = msgspec.msgpack.decode(data, type=GossipMessage)
                heard = GossipHeard(address, message)
                self._carry_out(action.address, receiver.handle(self.now, heard).actions)
                receiver.invariants()

    def pass_rounds(self, rounds: int) -> None:
        for _ in range(rounds):
            self.now = Instant(self.now + SECOND_NS)
            for address, machine in list(self.machines.items()):
                self._carry_out(address, machine.advance(self.now).actions)
                machine.invariants()


def three() -> Group:
    group = Group()
    for node in (A, B, C):
        group.start(node)
    group.pass_rounds(4)
    return group


def with_promises() -> Group:
    group = three()
    group.tell(A, PromisesRaised(7))
    group.pass_rounds(3)
    group.stop(A)
    return group
