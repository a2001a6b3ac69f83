"""Whoever may read and write rows cannot speak as a node: neither end nodes nor change the ring."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tenure.base.ranges import WHOLE
from tenure.columns.backends.cluster import STORE_ROLE
from tenure.columns.node.gossip_engine import SEALS_KEY, TOPOLOGY_KEY
from tenure.columns.node.node_service import NodeService
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tenure.protocol.replication.messages import (
    AskTopology,
    NodeBody,
    NodeMessage,
    Outdated,
    TopologySaid,
)
from tenure.protocol.replication.operations import PromiseHorizon
from tenure.protocol.topology.records import Removed, Topology
from tenure.transport.contract import Role
from tenure.transport.websocket import WebSocketTransport
from tenure.wire.columns import ToStore, ToStoreClient, encode_store
from tenure.wire.node_seal import NodeSeal
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.columns.node.ringed import CLUSTER, SECRET, form_ring, running, settings_of

pytestmark = pytest.mark.asyncio
MAIL = Table("mail", profile=Family(columns=str))
HIGHEST = 1 << 62
SEALED = STORE_ROLE._replace(encode=NodeSeal(SECRET, CLUSTER).encode)


class Liar:
    """Connects to nodes as a client does, and says what it likes."""

    def __init__(self, role: Role[ToStoreClient], topology: Topology) -> None:
        self.topology = topology
        self.lost: asyncio.Queue[str] = asyncio.Queue()
        self.transport = WebSocketTransport(role)
        self.transport.start(lambda _, __: None, lambda _, why: self.lost.put_nowait(why))

    def forged(self, *removed: int) -> Topology:
        gone = tuple(Removed(node, f"{node:x}") for node in removed)
        nodes = tuple(node for node in self.topology.nodes if node.id not in removed)
        return msgspec.structs.replace(
            self.topology, version=HIGHEST, nodes=nodes, removed=gone, ranges=()
        )

    def sender_to(self, service: NodeService) -> int:
        receiver = service.directory.identity.node
        return next(node.id for node in self.topology.nodes if node.id != receiver)

    def tell(self, service: NodeService, body: NodeBody) -> None:
        self.transport.send(
            service.url,
            NodeMessage(
                cluster=self.topology.cluster,
                id=self.topology.id,
                sender=self.sender_to(service),
                receiver=service.directory.identity.node,
                version=self.topology.version,
                body=body,
            ),
        )


@asynccontextmanager
async def liar_of(role: Role[ToStoreClient], topology: Topology) -> AsyncIterator[Liar]:
    liar = Liar(role, topology)
    try:
        yield liar
    finally:
        await liar.transport.close()


async def still_there(services: list[NodeService], topology: Topology) -> None:
    """The nodes act by this topology, have it on their disks, and take requests."""
    for service in services:
        assert not service._failed.done()
        assert service.store.topology == service.directory.topology() == topology
        async with open_store(f"columns:{service.url}", MAIL) as store:
            await store.insert(MAIL, "ann", {"profile": {"name": b"Ann"}})
            assert (await store.get(MAIL, "ann", "profile", "name")).value == b"Ann"


@pytest.mark.parametrize(
    "role",
    [
        STORE_ROLE,
        STORE_ROLE._replace(encode=NodeSeal(SECRET[::-1], CLUSTER).encode),
        STORE_ROLE._replace(encode=NodeSeal(SECRET, f"{CLUSTER} of others").encode),
    ],
    ids=["without a seal", "with another secret", "with the seal of another cluster"],
)
async def test_a_client_that_speaks_as_a_node_is_refused(
    tmp_path: Path, role: Role[ToStoreClient]
) -> None:
    nodes = settings_of(tmp_path)
    topology = form_ring(nodes, MAIL)
    async with running(nodes) as services, liar_of(role, topology) as liar:
        for service in services:
            lies: list[NodeBody] = [
                TopologySaid(ticket=1, topology=liar.forged(service.directory.identity.node)),
                Outdated(ticket=2, topology=liar.forged()),
                PromiseHorizon(ticket=3, range=WHOLE, time=HIGHEST),
            ]
            for lie in lies:
                liar.tell(service, lie)
                async with asyncio.timeout(DEADLINE_SECONDS):
                    assert "is not sealed with the cluster's secret" in await liar.lost.get()
        await still_there(services, topology)


async def test_of_a_message_without_a_seal_no_more_than_the_head_is_decoded(tmp_path: Path) -> None:
    """What is decoded first is what a client can make slow: millions of empty parts."""
    nodes = settings_of(tmp_path)
    topology = form_ring(nodes, MAIL)

    def cut(message: ToStore | ToStoreClient, version: int) -> bytes:
        data = encode_store(message, version)
        return data.replace(b"AskTopology", b"NoSuchThing")

    def written_otherwise(message: ToStore | ToStoreClient, version: int) -> bytes:
        return encode_store(message, version).replace(b"\xabNodeMessage", b"\xd9\x0bNodeMessage")

    for encode, said in ((cut, "is not sealed"), (written_otherwise, "malformed")):
        role = STORE_ROLE._replace(encode=encode)
        async with running(nodes) as services, liar_of(role, topology) as liar:
            for service in services:
                liar.tell(service, AskTopology(ticket=1))
                async with asyncio.timeout(DEADLINE_SECONDS):
                    assert said in await liar.lost.get()
            await still_there(services, topology)


async def test_one_node_that_lies_ends_no_other_and_uses_up_no_versions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = settings_of(tmp_path)
    topology = form_ring(nodes, MAIL)

    def doubts(why: str) -> int:
        return sum(why in each and "counts only if a manager" in each for each in caplog.messages)

    async with running(nodes) as services, liar_of(SEALED, topology) as liar:
        for service in services:
            removed = liar.forged(service.directory.identity.node)
            liar.tell(service, TopologySaid(ticket=1, topology=removed))
            liar.tell(service, TopologySaid(ticket=2, topology=liar.forged()))
        await until(lambda: doubts("removes this node") == doubts("leaps") == len(services))
        await still_there(services, topology)
    async with running(nodes) as services:
        await still_there(services, topology)


async def test_who_speaks_for_a_node_of_a_release_without_seals_tells_no_topology(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = settings_of(tmp_path)
    topology = form_ring(nodes, MAIL)
    async with running(nodes) as services, liar_of(STORE_ROLE, topology) as liar:
        service = services[0]
        older = liar.sender_to(service)
        state = service.gossip.machine.states[older]
        await until(lambda: {SEALS_KEY, TOPOLOGY_KEY} <= state.all().keys())
        assert service.gossip.seals(older)
        del state._entries[SEALS_KEY]  # this is all that nodes of such a release leave out
        assert not service.gossip.seals(older)
        liar.tell(service, TopologySaid(ticket=1, topology=liar.forged()))
        await until(lambda: any("which is not proven" in each for each in caplog.messages))
        service.gossip._give_up(older)
        assert service.gossip.seals(older)
        liar.tell(service, AskTopology(ticket=2))
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert "is not sealed with the cluster's secret" in await liar.lost.get()
        await still_there(services[1:], topology)
