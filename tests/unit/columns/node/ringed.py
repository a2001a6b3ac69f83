"""Nodes of a ring that was formed before: real ones, in this process, over loopback."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from random import Random

import msgspec

from tenure.cli.demo.ports import free_ports
from tenure.columns.backends.cluster import STORE_ROLE, ClusterBackend
from tenure.columns.blocking import BlockingStore
from tenure.columns.node.node_directory import NodeDirectory
from tenure.columns.node.node_service import NodeService, NodeSettings
from tenure.columns.opening import StoreOpening
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table, by_name, check_same
from tenure.errors import SchemaError
from tenure.protocol.replication.node_events import TopologyLearned
from tenure.protocol.topology.records import Node, Placement, ReplicaRange, Topology
from tenure.runtime.private_files import overwrite
from tenure.transport.credentials import NOTHING, Credentials
from tenure.transport.websocket import WebSocketTransport
from tests.patience import DEADLINE_SECONDS, until

CLUSTER = "mail"
"""All nodes and clients of a test share one loop, on a machine that may have much to do."""
SECRET = b"sixteen bytes or more, of which nobody else has any"


def settings_of(place: Path, count: int = 3) -> list[NodeSettings]:
    """Return the settings of this many nodes in directories of `place`."""
    secret = place / "secret"
    overwrite(secret, SECRET)
    ports = free_ports(count)
    seeds = tuple(f"127.0.0.1:{port}" for port in ports)
    return [
        NodeSettings(
            cluster=CLUSTER,
            data=place / f"n{port}",
            seeds=seeds,
            secret=secret,
            port=port,
            patience_seconds=DEADLINE_SECONDS,
            gossip_seconds=0.2,
        )
        for port in ports
    ]


def form_ring(
    nodes: Iterable[NodeSettings], *tables: Table, cluster_id: int = 9, are_alone: bool = False
) -> Topology:
    """Have all directories know a topology in which each node has everything, or each has a part of
    its own.
    """
    nodes = list(nodes)
    directories = [NodeDirectory.open(node.data, node.cluster, Random(node.port)) for node in nodes]
    members = [
        Node(
            id=each.identity.node,
            name=str(node.port),
            address=f"http://127.0.0.1:{node.port}",
            gossip=f"127.0.0.1:{node.port}",
            token=each.identity.token,
            since=1,
        )
        for each, node in zip(directories, nodes, strict=True)
    ]
    members.sort(key=lambda node: node.id)
    topology = Topology(
        cluster=CLUSTER,
        id=cluster_id,
        version=5,
        placement=Placement("rack_unaware", 1 if are_alone else len(members)),
        first_nodes=len(members),
        nodes=tuple(members),
        ranges=tuple(
            ReplicaRange(bytes([256 * place // len(members)]) if place else b"", (node.id,))
            for place, node in enumerate(members)
        )
        if are_alone
        else (ReplicaRange(b"", tuple(node.id for node in members)),),
        tables={table.name: table.record() for table in tables},
    )
    for each in directories:
        each.keep_topology(topology)
    return topology


@asynccontextmanager
async def running(
    nodes: Iterable[NodeSettings], credentials: Credentials = NOTHING, *, waits: bool = True
) -> AsyncIterator[list[NodeService]]:
    """Run them, and wait until they take part, unless others are needed for that."""
    async with AsyncExitStack() as stack:
        services = [NodeService(node, credentials) for node in nodes]
        for service in services:
            await stack.enter_async_context(service)
        await until(lambda: not waits or all(each.has_ring for each in services))
        yield services


class TablesMade(StoreOpening):
    """An opening of a store whose tables are made before: here is what a manager does otherwise."""

    def __init__(
        self,
        services: Sequence[NodeService],
        tables: Sequence[Table],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._services = services
        self._declared = tables
        self._loop = loop
        urls = [service.url for service in services]
        backend = ClusterBackend(urls, tables, WebSocketTransport(STORE_ROLE), 2 * DEADLINE_SECONDS)
        super().__init__(ColumnStore(backend, by_name(tables)))

    async def _make(self) -> None:
        topology = self._services[0].store.topology
        tables = dict(topology.tables)
        for table in self._declared:
            kept, declared = tables.get(table.name), table.record()
            with suppress(SchemaError):  # the nodes say so, too
                if kept is not None:
                    check_same(table.name, kept, declared)
                    families = kept.families | declared.families
                    declared = msgspec.structs.replace(declared, families=families)
                tables[table.name] = declared
        if tables != topology.tables:
            version = topology.version + 1
            topology = msgspec.structs.replace(topology, tables=tables, version=version)
        for service in self._services:
            service.store.post(TopologyLearned(topology))
        await until(lambda: all(each.store.topology == topology for each in self._services))

    async def __aenter__(self) -> ColumnStore:
        await self._make()
        return await super().__aenter__()

    def __enter__(self) -> BlockingStore:
        asyncio.run_coroutine_threadsafe(self._make(), self._loop).result(DEADLINE_SECONDS)
        return super().__enter__()
