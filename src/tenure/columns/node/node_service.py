"""A whole node: its directory, its door, its datagrams, and the machines between them.

    async with NodeService(settings) as node:
        await node.wait()

A node that has been part of its cluster before starts with the topology on its disk, and needs no
manager for that. Any other node asks a manager until it is told a topology. Either takes part when
the ring is formed and other nodes vouch for it, because its disk may have been put back to an
earlier state, even to one in which it had never taken part (R26).
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from shutil import disk_usage
from typing import Self

import msgspec

from tenure.base.hosts import host_of
from tenure.base.instants import seconds
from tenure.base.names import shown, wrong_with_name
from tenure.columns.backends.cluster import STORE_PATH, STORE_ROLE
from tenure.columns.engines.contract import StorageEngine
from tenure.columns.engines.rocksdb import RocksEngine
from tenure.columns.node.disk_trouble import DiskTrouble
from tenure.columns.node.gossip_engine import GossipEngine
from tenure.columns.node.manager_link import NODE_ROLE, ManagerLink
from tenure.columns.node.node_directory import ROWS, NodeDirectory, read_secret
from tenure.columns.node.node_gate import NodeGate
from tenure.columns.node.node_pages import DiskShown, NodeShown, NodeStatus, node_page
from tenure.columns.node.request_timings import SLOW_SECONDS
from tenure.columns.node.scrub import Scrub
from tenure.columns.node.store_engine import StoreEngine
from tenure.columns.node.table_openings import TableOpenings
from tenure.errors import ConfigurationError, TenureError
from tenure.manager.access.tokens import TokenFile
from tenure.protocol.gossip.gossiper_events import GossiperConfig
from tenure.protocol.replication.node_events import (
    CompareAsked,
    Convicted,
    NodeConfig,
    NumbersTold,
    TopologyGossiped,
    TopologyLearned,
)
from tenure.protocol.topology.messages import (
    NodeReport,
    NodeRequest,
    NodeScrubbed,
    NodeSeen,
    RangeWeight,
)
from tenure.protocol.topology.records import NO_NODE, Node, NodeId, Topology
from tenure.runtime.clock import wall_us
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.credentials import NOTHING, Credentials
from tenure.transport.datagram import DatagramSeal, UdpDatagrams, host_and_port
from tenure.transport.websocket import WebSocketTransport
from tenure.transport.websocket_door import WebSocketDoor
from tenure.wire.columns import STORE_BYTES, weight
from tenure.wire.message_parts import continues
from tenure.wire.node_seal import NodeSeal

_log = logging.getLogger("tenure.columns")
HIGHEST_PORT = 65_535
WAITING_BYTES = 512 << 20
"""The bytes that may wait for another node, beside a row in parts: twice what all requests under
way have. A node that reads nothing is given up after some seconds, and may be sent much until then.
"""
SMALL_BYTES = 64 << 10
"""What is larger goes to another node on a connection of its own: what one client reads may be
large, and what others ask must not wait for it. Messages of nodes may come in any order.
"""
LIMITS = ConnectionLimits(buffer_bytes=None)
"""Pieces of copies are a megabyte long, and a client that connects is trusted with the whole
store.
"""


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    cluster: str
    data: Path
    managers: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    """The addresses at which some nodes receive datagrams, "HOST:PORT"."""
    secret: Path
    """A file with a secret that all nodes of the cluster have, and nobody else."""
    tokens: Path | None = None
    """A client must show one of the tokens in this file."""
    host: str = "127.0.0.1"
    port: int = 7500
    advertise: str = ""
    """The host by which others reach the node, if it is not `host`."""
    name: str = ""
    rack: str = "rack"
    datacentre: str = "datacentre"
    patience_seconds: float = 5.0
    """How long a request may take. After that nobody knows what became of it (R9)."""
    gossip_seconds: float = 1.0
    """Seconds between two rounds of gossip, the same at all nodes of a cluster. A silent node is
    convicted after about eleven and a half rounds.
    """
    copy_bytes_a_second: int = 100_000_000
    """The highest rate at which the node copies ranges that it gains."""
    repair_seconds: float = 60.0
    """Seconds between two rounds in which replicas are compared, and their load is weighed."""
    repair_bytes_a_second: int = 16 << 20
    """The highest rate of comparing."""
    scrub_bytes_a_second: int = 1_000_000
    """The rate at which all that is kept is read, so that damage is found."""
    slow_seconds: float = SLOW_SECONDS
    """A request that takes longer is logged, and counted as slow."""

    def __post_init__(self) -> None:
        """Raises ConfigurationError for what no manager and no other node would take."""
        named = {"cluster": self.cluster, "rack": self.rack, "datacentre": self.datacentre}
        for what, name in (named | ({"name": self.name} if self.name else {})).items():
            why = wrong_with_name(name)
            if why is not None:
                raise ConfigurationError(f"the {what} is {shown(name)}: {why}")
        if not 0 <= self.port <= HIGHEST_PORT:
            raise ConfigurationError(
                f"there is no port {self.port}; they go from 1 to {HIGHEST_PORT}, and 0 takes a "
                "free one"
            )
        hosts = {"host": self.host, "advertised host": self.advertise or self.host}
        for what, host in hosts.items():
            is_one = host_of(f"http://{_in_url(host)}:1") == host.strip("[]").lower()
            if not is_one or any(map(str.isspace, host)):
                raise ConfigurationError(
                    f"the {what} is {shown(host)}, and not the name or the address of a host: "
                    "write it like n1.example or 10.0.0.7, without a port"
                )

    @property
    def reached_at(self) -> str:
        """The host by which others reach the node, as it stands in a URL."""
        return _in_url(self.advertise or self.host)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


@contextmanager
def _listening(where: str) -> Iterator[None]:
    """Turn the system's refusal into an error with the way out."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen at {where}: {error.strerror or error}. Stop what listens there, "
            "perhaps another node, or choose another port with --port; it is for TCP and UDP"
        ) from error


class NodeService:
    """See above. Raises ConfigurationError for settings with which it cannot run."""

    def __init__(self, settings: NodeSettings, credentials: Credentials = NOTHING) -> None:
        if not settings.managers and not settings.seeds:
            raise ConfigurationError(
                "a node must know somebody: name managers with --manager, or nodes with --seeds"
            )
        self.settings = settings
        self._credentials = credentials
        self._failed: asyncio.Future[None]
        self._openings = TableOpenings(
            settings.cluster,
            credentials,
            lambda: self.store.topology,
            lambda: None if self._link is None else self._link.leader,
        )
        self._random = SystemRandom()
        self.url = ""
        self.gossip_address = ""
        self._link: ManagerLink | None = None
        self._storage: StorageEngine | None = None
        self._has_started = False
        self._topology: Topology | None = None
        """The topology by which it will take part."""
        self._newer: tuple[NodeId, int] | None = None
        """The node that has meanwhile announced a newer topology, and its version."""
        self._disk = DiskTrouble(settings.data, self.on_failed)
        self._scrub: Scrub | None = None
        self._weights_told = 0
        """The weighings that the managers have been told of."""

    # --- running ---

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    async def wait(self) -> None:
        """Wait until the node cannot go on; raises the reason."""
        await asyncio.shield(self._failed)

    @property
    def has_ring(self) -> bool:
        """Whether the ring is formed, and this node is on it."""
        if not self._has_started:
            return False
        topology = self.store.topology
        return bool(topology.ranges) and topology.node(self.directory.identity.node) is not None

    async def _start(self) -> None:
        settings = self.settings
        self._failed = asyncio.get_running_loop().create_future()
        secret = read_secret(settings.secret)
        self.directory = NodeDirectory.open(settings.data, settings.cluster, self._random)
        self._storage = await asyncio.to_thread(RocksEngine.open, settings.data / ROWS)
        self.directory.begin_life()
        seal = NodeSeal(secret, settings.cluster)
        role = STORE_ROLE._replace(
            encode=seal.encode,
            waiting_bytes=WAITING_BYTES,
            continues=continues,
            small_bytes=SMALL_BYTES,
        )
        transport = WebSocketTransport(role, self._credentials)
        self.store = StoreEngine(
            self.directory,
            self._storage,
            transport,
            seal,
            wall_us,
            self.on_failed,
            slow_seconds=settings.slow_seconds,
        )
        self.store.on_refused = self._disk.refused
        self.store.on_opening = self._openings.open
        self.store.on_topology = self._on_topology
        self.store.on_news = self._poke
        await self._listen(secret)
        topology = self.directory.topology()
        if topology is not None:
            self._prepare(topology)
        if settings.managers:
            manager = WebSocketTransport(NODE_ROLE, self._credentials)
            self._link = ManagerLink(
                settings.managers, manager, self._request, self._on_told, self.on_failed
            )
            self._link.on_compare = self._on_compare
            self._link.on_numbers = lambda *told: self.store.post(NumbersTold(*told))
            self._link.on_may_leave = self._disk.leave
            self._disk.on_damaged = self._poke
            self._link.start()

    async def _listen(self, secret: bytes) -> None:
        settings, identity = self.settings, self.directory.identity
        gate = None
        if settings.tokens is not None:
            tokens = TokenFile(settings.tokens)
            tokens.load()
            gate = NodeGate(tokens)
        self._door = WebSocketDoor(
            STORE_PATH, self._credentials, STORE_BYTES, gate, LIMITS, weigh=weight
        )
        self._door.show(lambda path, accept: node_page(self._shown(), path, accept))
        where = f"{settings.host}:{settings.port}"
        with _listening(where):
            bound = await self._door.open(where, self.store)
        scheme, _, taken = bound.partition("://")
        port = taken.rpartition(":")[2]
        host = settings.reached_at
        self.url = f"{scheme}://{host}:{port}"
        # The cluster's id is not known before a manager has told it, so the seal has its name.
        seal = DatagramSeal(secret, settings.cluster, identity.node, identity.generation, wall_us)
        self._datagrams = UdpDatagrams(seal)
        self.gossip = GossipEngine(
            self.directory,
            self._datagrams,
            lambda nodes: self.store.post(Convicted(nodes)),
            self._on_newer,
            self.on_failed,
        )
        self.store.on_promised = self.gossip.promise
        self.gossip.on_vouched = self._take_part
        self.store.seals = self.gossip.seals
        where = f"{settings.host}:{port}"
        with _listening(where):
            heard = await self._datagrams.listen(where, self.gossip.heard)
        self.gossip_address = f"{host}:{host_and_port(heard)[1]}"

    async def _stop(self) -> None:
        self._failed.cancel()
        await self._openings.stop()
        await self._disk.stop()
        if self._scrub is not None:
            await self._scrub.stop()
        if self._link is not None:
            await self._link.stop()
        if self.url:
            await self._door.close("this node stops")
        if self.gossip_address:
            await self.gossip.stop()
        storage, self._storage = self._storage, None
        if storage is not None:
            await self.store.stop()
            await asyncio.to_thread(storage.close)
            await asyncio.to_thread(self.directory.close)

    def on_failed(self, error: Exception) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    # --- topology ---

    def _prepare(self, topology: Topology) -> None:
        self._topology = topology
        self.store.load(topology)
        settings = self.settings
        known = GossiperConfig(
            node=self.directory.identity.node,
            generation=self.directory.identity.generation,
            address=self.gossip_address,
            promises=self.store.promises,
            seeds=tuple(seed for seed in settings.seeds if seed != self.gossip_address),
            known=self.directory.known(),
            interval_ns=seconds(settings.gossip_seconds),
        )
        self.gossip.start(known, self._random)
        self.gossip.follow(topology)

    def _take_part(self) -> None:
        topology = self._topology
        if self._has_started or topology is None:
            return
        self._has_started = True
        settings = self.settings
        config = NodeConfig(
            node=self.directory.identity.node,
            topology=topology,
            patience_ns=seconds(settings.patience_seconds),
            repair_ns=seconds(settings.repair_seconds),
            repair_bytes_a_second=settings.repair_bytes_a_second,
            copy_bytes_a_second=settings.copy_bytes_a_second,
            has_managers=bool(settings.managers),
        )
        self.store.start(self._random, config)
        assert self._storage is not None
        self._scrub = Scrub(self._storage, settings.scrub_bytes_a_second, self._disk.refused)
        self._scrub.start()
        self.store.post(Convicted(self.gossip.down))
        if self._newer is not None:
            self._on_newer(*self._newer)

    def _on_told(self, topology: Topology) -> None:
        if self._has_started:
            self.store.post(TopologyLearned(topology))
            return
        if not self.store.can_open(topology):
            return
        try:
            if self._topology is None:
                self.directory.keep_topology(topology)
                self._prepare(topology)
            elif topology.version > self._topology.version:
                self.directory.keep_topology(topology)
                self._topology = topology
                self._on_topology(topology)
        except TenureError as error:
            self.on_failed(error)

    def _on_newer(self, node: NodeId, version: int) -> None:
        if not self._has_started:
            self._newer = node, version
        else:
            self.store.post(TopologyGossiped(node, version))

    def _on_topology(self, topology: Topology) -> None:
        if topology.is_removed(self.directory.identity.node):
            # No node answers it any longer, so its clients must go on with other nodes at once.
            self.on_failed(
                ConfigurationError(
                    f"a manager says that this node was removed from {topology.cluster!r}, for "
                    f"ever: `tenure columns ring {topology.cluster}` shows whether the ring has "
                    "what it had. A new node needs a directory of its own"
                )
            )
        self.gossip.follow(topology)
        self._openings.look_again()
        self._poke()

    def _poke(self) -> None:
        """Have a manager asked, because there is something to say or to ask."""
        if self._link is not None:
            self._link.poke()

    def _request(self, sequence: int, *, tells: bool) -> NodeRequest:
        settings, identity = self.settings, self.directory.identity
        topology = self.store.topology if self._has_started else self._topology
        is_in_place = self._is_in_place
        filler = self.store.machine.filler if self._has_started else None
        weights: tuple[RangeWeight, ...] = ()
        if self._has_started:
            upkeep = self.store.machine.upkeep
            weights = upkeep.weights if upkeep.weighed > self._weights_told else ()
            self._weights_told = upkeep.weighed
        return NodeRequest(
            cluster=settings.cluster,
            cluster_id=topology.id if topology else 0,
            node=Node(
                id=identity.node,
                name=settings.name or self.url.partition("://")[2],
                address=self.url,
                gossip=self.gossip_address,
                rack=settings.rack,
                datacentre=settings.datacentre,
                token=identity.token,
            ),
            life=identity.generation,
            sequence=sequence,
            version=topology.version if topology else 0,
            through=filler.through if filler else 0,
            copied=filler.copied if filler else 0,
            to_copy=filler.to_copy if filler else 0,
            counter=self.store.promises,
            weights=weights,
            topology=topology if tells else None,
            report=self._report() if self._has_started else NodeReport(),
            proof=identity.proof,
            damage=self._disk.damage,
            replaces=NO_NODE if is_in_place else identity.replaces,
            replaced_proof=b"" if is_in_place else identity.replaced_proof,
        )

    @property
    def _is_in_place(self) -> bool:
        """Whether it has taken the place of the node that had this directory before."""
        topology = self.store.topology if self._has_started else self._topology
        return topology is not None and topology.is_removed(self.directory.identity.replaces)

    def _report(self) -> NodeReport:
        seen = tuple(
            NodeSeen(
                node=each.node,
                phi=each.phi,
                is_convicted=each.is_convicted or each.has_gone_back,
                clock_ahead_us=each.clock_ahead_us,
            )
            for each in self.gossip.view().nodes
        )
        report = self.store.report()
        return msgspec.structs.replace(report, seen=seen, scrubbed=self._scrubbed())

    def _shown(self) -> NodeShown:
        topology = self.store.topology if self._has_started else self._topology
        filler = self.store.machine.filler if self._has_started else None
        disk = disk_usage(self.settings.data)
        status = NodeStatus(
            cluster=self.settings.cluster,
            url=self.url,
            version=topology.version if topology else 0,
            takes_part=self.has_ring,
            damage=self._disk.damage,
            under_way=self.store.timings.under_way,
            slow=self.store.timings.slow,
            copied=filler.copied if filler else 0,
            to_copy=filler.to_copy if filler else 0,
            disk=DiskShown(free=disk.free, total=disk.total),
            spaces={} if self._storage is None else self._storage.figures(),
            names={node.id: node.name for node in topology.nodes} if topology else {},
            report=self._report() if self._has_started else NodeReport(),
        )
        return NodeShown(status=status, requests=self.store.timings.taken, syncs=self.store.syncs)

    def _scrubbed(self) -> NodeScrubbed:
        before, scrub = self.directory.identity.damages, self._scrub
        return NodeScrubbed(
            entries=scrub.entries if scrub else 0,
            passes=scrub.passes if scrub else 0,
            damages=before + bool(self._disk.damage),
            mended=before if self._is_in_place or not before else before - 1,
        )

    def _on_compare(self) -> None:
        if self._has_started:
            self.store.post(CompareAsked())
