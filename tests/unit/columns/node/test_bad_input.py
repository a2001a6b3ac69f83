"""A node copes with ports in use, removed nodes, noise, and the absence of managers."""

import asyncio
import socket
from pathlib import Path

import msgspec
import pytest

from tenure.cli.demo.ports import free_ports
from tenure.columns.backends.cluster import STORE_ROLE
from tenure.columns.node.node_directory import IDENTITY
from tenure.columns.node.node_service import NodeService
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tenure.errors import ConfigurationError, SchemaError, StoreInUse
from tenure.protocol.replication.messages import AskTopology, NodeMessage
from tenure.protocol.replication.node_events import TopologyLearned
from tenure.protocol.topology.records import Removed
from tenure.runtime.clock import wall_us
from tenure.transport.datagram import DatagramSeal, host_and_port
from tenure.transport.websocket import WebSocketTransport
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.columns.node.ringed import CLUSTER, SECRET, form_ring, running, settings_of

pytestmark = pytest.mark.asyncio
MAIL = Table("mail", profile=Family(columns=str))


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
async def test_a_port_in_use_is_named(tmp_path: Path, kind: socket.SocketKind) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    with socket.socket(socket.AF_INET, kind) as other:
        other.bind(("127.0.0.1", nodes[0].port))
        if kind is socket.SOCK_STREAM:
            other.listen()
        with pytest.raises(ConfigurationError, match=rf"127.0.0.1:{nodes[0].port}: .*--port"):
            async with running(nodes[:1]):
                pass


async def test_a_removed_node_is_turned_away_by_who_knows_it(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    topology = form_ring(nodes[:1], MAIL)
    gone = 4711
    newer = msgspec.structs.replace(
        topology, version=topology.version + 1, removed=(Removed(gone, "gone"),)
    )
    message = NodeMessage(
        cluster=topology.cluster,
        id=topology.id,
        sender=gone,
        receiver=topology.nodes[0].id,
        version=topology.version,
        body=AskTopology(ticket=7),
    )
    lost: asyncio.Queue[str] = asyncio.Queue()
    transport = WebSocketTransport(STORE_ROLE)
    transport.start(lambda _node, _said: None, lambda _node, why: lost.put_nowait(why))
    try:
        async with running(nodes[:1]) as [service]:
            service.store.post(TopologyLearned(newer))
            async with asyncio.timeout(DEADLINE_SECONDS):
                await until(lambda: service.store.topology == newer)
                transport.send(service.url, message)
                assert f"the node {gone:x} was removed from 'mail'" in await lost.get()
    finally:
        await transport.close()


async def test_datagrams_of_strangers_and_noise_are_dropped_and_counted(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    topology = form_ring(nodes, MAIL)
    # One that does not run: of others an earlier life is dropped for that.
    other = next(each.id for each in topology.nodes if each.name == str(nodes[2].port))

    def sealed(secret: bytes, cluster: str) -> bytes:
        return DatagramSeal(secret, cluster, other, 1, wall_us).seal(b"no gossip")

    thrown = {
        "noise": b"\xff" * 300,
        "another secret": sealed(SECRET[::-1], CLUSTER),
        "another cluster": sealed(SECRET, f"{CLUSTER} of others"),
        "malformed": sealed(SECRET, CLUSTER),
    }
    async with running(nodes[:2]) as [service, _]:
        address = host_and_port(service.gossip_address)
        dropped = service._datagrams.dropped
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as thrower:
            for what, datagram in thrown.items():
                before = dropped.total()
                async with asyncio.timeout(DEADLINE_SECONDS):
                    while dropped.total() == before:
                        thrower.sendto(datagram, address)
                        await asyncio.sleep(0.01)
                assert dropped["malformed"] > 0 or what != "malformed"
        async with open_store(f"columns:{service.url}", MAIL) as store:
            await store.insert(MAIL, "ann", {"profile": {"name": b"Ann"}})


async def test_a_node_that_has_another_secret_is_named_by_both_sides(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    other = tmp_path / "other-secret"
    other.write_bytes(SECRET[::-1])
    odd = msgspec.structs.replace(nodes[2], secret=other)

    def said(of: int) -> str:
        return (
            f"datagrams of {of} at 127.0.0.1:{of} are dropped, because their seal is wrong: give "
            "all nodes of the cluster the same file as --secret"
        )

    async with running([*nodes[:2], odd], waits=False):
        await until(lambda: sum("seal is wrong" in each for each in caplog.messages) >= 4)
        await asyncio.sleep(0.4)  # more are dropped, and nothing more is said of it
    told = sorted(each for each in caplog.messages if "seal is wrong" in each)
    first, second, third = (each.port for each in nodes)
    assert told == sorted([said(first), said(second), said(third), said(third)])


async def test_without_a_manager_requests_go_on_and_changes_say_so(tmp_path: Path) -> None:
    [port] = free_ports(1)
    manager = f"http://127.0.0.1:{port}"
    nodes = [msgspec.structs.replace(each, managers=(manager,)) for each in settings_of(tmp_path)]
    form_ring(nodes, MAIL)
    async with running(nodes) as services:
        url = f"columns:{services[0].url}"
        async with open_store(url, MAIL) as store:
            await store.insert(MAIL, "ann", {"profile": {"name": b"Ann"}})
            assert (await store.get(MAIL, "ann", "profile", "name")).value == b"Ann"
        with pytest.raises(SchemaError, match=f"{manager} does not answer"):
            async with open_store(url, Table("chat", lines=Family(columns=int))):
                pass


async def test_a_directory_that_another_process_has_is_said(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path, 1)
    form_ring(nodes, MAIL)
    async with running(nodes):
        again = msgspec.structs.replace(nodes[0], port=0)
        before = (nodes[0].data / IDENTITY).read_bytes()
        with pytest.raises(StoreInUse, match="open already"):
            async with NodeService(again):
                pass
        assert (nodes[0].data / IDENTITY).read_bytes() == before  # no life was counted
