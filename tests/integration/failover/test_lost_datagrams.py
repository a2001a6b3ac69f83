"""Real nodes of the store lose their datagrams, but not their connections."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest

from tenure import open_store
from tenure.columns.node.node_directory import NodeDirectory
from tenure.columns.store import ColumnStore
from tenure.errors import NotEnoughReplicas
from tests.integration.columns.datagram_relay import TOLD_HOST, DatagramRelay, relay_for
from tests.integration.columns.node_processes import NodeProcesses, processes
from tests.integration.failover.test_store_faults import SETTINGS, all_have, is_convicted, write
from tests.patience import until
from tests.unit.columns.node.ringed import form_ring, settings_of
from tests.versions.store_node import MAIL

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def three(place: Path) -> AsyncIterator[tuple[NodeProcesses, DatagramRelay]]:
    """Nodes that hear each other's datagrams by way of a relay."""
    nodes = settings_of(place)
    topology = form_ring(nodes, MAIL)
    told = {node.port: f"{TOLD_HOST}:{node.port}" for node in nodes}
    members = tuple(
        msgspec.structs.replace(each, gossip=told[int(each.name)]) for each in topology.nodes
    )
    for node in nodes:
        directory = NodeDirectory.open(node.data, node.cluster, Random(0))
        directory.keep_topology(msgspec.structs.replace(topology, nodes=members))
        directory.close()
    nodes = [msgspec.structs.replace(node, seeds=tuple(told.values())) for node in nodes]
    async with (
        relay_for(told) as relay,
        processes(nodes, {**SETTINGS, "advertise": TOLD_HOST}) as ring,
    ):
        await ring.start(0, 1, 2)
        yield ring, relay


def part(ring: NodeProcesses, relay: DatagramRelay, one: int, *others: int) -> None:
    ports = [node.port for node in ring.nodes]
    relay.parted |= {frozenset({ports[one], ports[other]}) for other in others}


async def all_answer(store: ColumnStore) -> bool:
    """Whether no replica is left out."""
    try:
        await store.get(MAIL, "row-0", "profile", "name", consistency="all")
    except NotEnoughReplicas:
        return False
    return True


async def test_where_datagrams_of_two_nodes_are_lost_a_third_tells_each_of_the_other(
    tmp_path: Path,
) -> None:
    """No node is left out for long, and a node that starts then takes part, too."""
    async with (
        three(tmp_path) as (ring, relay),
        open_store(ring.url(1, 2), MAIL) as store,
    ):
        await write(store, range(10))
        part(ring, relay, 0, 1)
        await ring.kill(0)
        await write(store, range(10, 20))
        await ring.start(0)  # until it takes part
        assert relay.lost
        await until(lambda: all_answer(store))
        await write(store, range(20, 30))
        await all_have(ring, range(30))


async def test_a_node_whose_datagrams_are_lost_is_left_out_and_gets_what_it_missed(
    tmp_path: Path,
) -> None:
    async with (
        three(tmp_path) as (ring, relay),
        open_store(ring.url(1, 2), MAIL) as store,
        ring.opening(0, MAIL) as alone,
    ):
        await write(store, range(10))
        part(ring, relay, 0, 1, 2)
        await until(lambda: is_convicted(store))
        await write(store, range(10, 20))
        await until(lambda: refuses(alone))
        relay.parted.clear()
        await until(lambda: all_answer(store))
        await all_have(ring, range(20))


async def refuses(store: ColumnStore) -> bool:
    """Whether its only node has nobody whom it could ask."""
    try:
        await store.get(MAIL, "row-0", "profile", "name")
    except NotEnoughReplicas as error:
        return "nothing was sent" in str(error)
    return False
