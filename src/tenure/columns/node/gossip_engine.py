"""Runs a node's gossiper: carries its datagrams, and tells the rest of the node the news."""

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import assert_never

from tenure.base.noted import Noted
from tenure.columns.node.node_directory import NodeDirectory, StorePutBack
from tenure.errors import RemoteProtocolError
from tenure.protocol.gossip.gossiper import Gossiper
from tenure.protocol.gossip.gossiper_events import (
    GossiperAction,
    GossiperConfig,
    GossiperEvent,
    GossiperView,
    GossipHeard,
    GossipPeer,
    KeepPromises,
    MembersKnown,
    PromisesNotKept,
    PromisesRaised,
    SendGossip,
    StateSet,
    TellAcquitted,
    TellConvicted,
    TellState,
    TellVouched,
    TellWentBack,
)
from tenure.protocol.topology.records import NodeId, Topology
from tenure.runtime.clock import Clock, boot_clock
from tenure.runtime.driver import Driver
from tenure.transport.datagram import Datagrams, Sealed
from tenure.wire.gossip import decode_gossip, encode_gossip

_log = logging.getLogger("tenure.columns")
TOPOLOGY_KEY = "topology"
SEALS_KEY = "seals"
"""A node says that it seals its messages, before it says its topology: so of a node that has said
its topology, this is known.
"""
VERSION_BYTES = 8


class GossipEngine:
    """Runs a `Gossiper` from `start` to `stop`.

    `on_convicted` is called with all convicted nodes, each time they change; `on_newer` with a node
    that acts by a higher version of the topology, and the version; `fail` with an error after which
    the node cannot go on. `on_vouched` is called when this life may take part.
    """

    def __init__(
        self,
        directory: NodeDirectory,
        datagrams: Datagrams,
        on_convicted: Callable[[tuple[NodeId, ...]], None],
        on_newer: Callable[[NodeId, int], None],
        fail: Callable[[Exception], None],
        clock: Clock = boot_clock,
    ) -> None:
        self._directory = directory
        self._datagrams = datagrams
        self._on_convicted = on_convicted
        self._on_newer = on_newer
        self._fail = fail
        self._clock = clock
        self._driver: Driver[GossiperEvent, GossiperAction] | None = None
        self._down: dict[NodeId, None] = {}
        self._names: dict[str, str] = {}
        """The names of nodes, by the addresses of their datagrams."""
        self._sealed_otherwise: set[str] = set()
        """The nodes whose wrong seals were told of."""
        self.on_vouched: Callable[[], None] = lambda: None

    def start(self, config: GossiperConfig, random: Random) -> None:
        """Begin to talk; datagrams already arrive at its address."""
        self.machine = Gossiper(config, random)
        self._driver = Driver(self.machine, self._clock, self._perform, fail=self._fail)
        self._datagrams.on_other_seal = self._on_other_seal
        self._driver.start()
        self.say(SEALS_KEY, b"")

    async def stop(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.stop()
        await self._datagrams.close()

    def heard(self, address: str, sealed: Sealed) -> None:
        try:
            message = decode_gossip(sealed.data)
        except RemoteProtocolError:
            self._datagrams.dropped["malformed"] += 1
            return
        self._post(GossipHeard(address, message, sealed.ahead_us))

    def _on_other_seal(self, address: str) -> None:
        """Tell once who has another secret: nobody else can know why a node is never heard."""
        name = self._names.get(address)
        if name is not None and name not in self._sealed_otherwise:
            self._sealed_otherwise.add(name)
            _log.warning(
                "datagrams of %s at %s are dropped, because their seal is wrong: give all nodes of "
                "the cluster the same file as --secret",
                name,
                address,
            )

    def _post(self, event: GossiperEvent) -> None:
        if self._driver is not None:
            self._driver.post(event)

    def say(self, key: str, value: bytes) -> None:
        self._post(StateSet(key, value))

    def promise(self, promises: int) -> None:
        """Tell how often the counter of the disk was raised (R26)."""
        self._post(PromisesRaised(promises))

    def follow(self, topology: Topology) -> None:
        """These are the nodes, and this is the version by which the node acts."""
        nodes = (*topology.nodes, *topology.waiting)
        peers = tuple(GossipPeer(node.id, node.gossip) for node in nodes if node.gossip)
        self._names = {node.gossip: node.name for node in nodes}
        removed = tuple(node.id for node in topology.removed)
        ring = tuple(node.id for node in topology.nodes)
        self._datagrams.follow(node.id for node in nodes)
        self._post(MembersKnown(peers, removed, ring))
        self.say(TOPOLOGY_KEY, topology.version.to_bytes(VERSION_BYTES))
        for node in [node for node in self._down if topology.is_removed(node)]:
            del self._down[node]

    def seals(self, node: NodeId) -> bool:
        """Whether messages of a node count only with a seal: all but those of nodes that are up,
        and of a release before there were seals.
        """
        state = self.machine.states.get(node)
        if state is None or node in self._down or state.get(TOPOLOGY_KEY) is None:
            return True
        return state.get(SEALS_KEY) is not None

    @property
    def down(self) -> tuple[NodeId, ...]:
        return tuple(self._down)

    def view(self) -> GossiperView:
        return self.machine.view(self._clock())

    def _perform(self, action: GossiperAction) -> None:
        match action:
            case SendGossip(address=address, message=message):
                self._datagrams.send(address, encode_gossip(message))
            case TellConvicted(node=node) | TellWentBack(node=node):
                self._give_up(node)
            case TellAcquitted(node=node):
                self._down.pop(node, None)
                self._on_convicted(self.down)
            case TellVouched():
                self.on_vouched()
            case TellState(node=node, key=key, value=value):
                if key == TOPOLOGY_KEY and len(value) == VERSION_BYTES:
                    self._on_newer(node, int.from_bytes(value))
            case KeepPromises(known=known):
                kept = self._directory.soon(self._directory.keep_known, known)
                kept.add_done_callback(self._on_kept)
            case Noted():
                _log.log(action.kind.level, "%s", action.text)
            case _:
                assert_never(action)

    def _on_kept(self, kept: "asyncio.Future[None]") -> None:
        if not kept.cancelled() and (error := kept.exception()):
            _log.warning("what others have promised is not kept yet: %s", error)
            self._post(PromisesNotKept())

    def _give_up(self, node: NodeId) -> None:
        if node == self._directory.identity.node:
            self._fail(
                StorePutBack(
                    f"{self._directory.path} was put back to an earlier state: other nodes know "
                    "a later one. It lacks what it has acknowledged since, so it may not take part "
                    "again. Have the node replaced by a new one, with an empty directory: tenure "
                    "columns replace. Keep this directory until that is done"
                )
            )
        else:
            self._down[node] = None
            self._on_convicted(self.down)
