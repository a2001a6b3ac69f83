"""Real nodes of the store: one is stopped past its conviction, has no room, or reaches nobody.

The two others serve at quorum all the while; when it is over, all three nodes have everything.
"""

import resource
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest

from tenure import open_store
from tenure.columns.node.node_directory import NodeDirectory
from tenure.columns.store import ColumnStore
from tenure.errors import NotEnoughReplicas
from tests.integration.columns.node_processes import NodeProcesses, processes
from tests.integration.etcd.proxy import Proxy, proxy_to
from tests.patience import until
from tests.unit.columns.node.ringed import form_ring, settings_of
from tests.versions.store_node import MAIL

pytestmark = pytest.mark.asyncio
SETTINGS = {"patience_seconds": 2.0, "gossip_seconds": 0.3, "repair_seconds": 2.0}
VALUE = bytes(1_000)


@asynccontextmanager
async def three(place: Path) -> AsyncIterator[NodeProcesses]:
    nodes = settings_of(place)
    form_ring(nodes, MAIL)
    async with processes(nodes, SETTINGS) as ring:
        await ring.start(0, 1, 2)
        yield ring


async def write(store: ColumnStore, rows: range) -> None:
    for number in rows:
        await store.insert(MAIL, f"row-{number}", {"profile": {"name": VALUE}})


async def is_convicted(store: ColumnStore) -> bool:
    """Whether nothing is sent that would need all three."""
    try:
        await store.get(MAIL, "row-0", "profile", "name", consistency="all")
    except NotEnoughReplicas as error:
        return "nothing was sent" in str(error)
    return False


async def all_have(ring: NodeProcesses, rows: range) -> None:
    """Each node by itself: so it is asked alone, and at ONE."""
    for place in range(3):
        async with ring.opening(place, MAIL) as store:

            async def has_them(store: ColumnStore = store) -> bool:
                found = [
                    await store.get(MAIL, f"row-{at}", "profile", "name", consistency="one")
                    for at in rows
                ]
                return all(each is not None and each.value == VALUE for each in found)

            await until(has_them)


async def test_a_node_that_is_stopped_past_its_conviction_gets_what_it_missed(
    tmp_path: Path,
) -> None:
    async with three(tmp_path) as ring, open_store(ring.url(1, 2), MAIL) as store:
        await write(store, range(10))
        ring.running[0].send_signal(signal.SIGSTOP)
        await until(lambda: is_convicted(store))
        await write(store, range(10, 20))
        ring.running[0].send_signal(signal.SIGCONT)
        await all_have(ring, range(20))


async def test_a_node_without_room_on_its_disk_hinders_nobody_and_loses_nothing(
    tmp_path: Path,
) -> None:
    async with three(tmp_path) as ring, open_store(ring.url(1, 2), MAIL) as store:
        await write(store, range(10))
        limits = 100_000, resource.RLIM_INFINITY
        resource.prlimit(ring.running[0].pid, resource.RLIMIT_FSIZE, limits)
        await write(store, range(10, 300))
        await ring.kill(0)
        await ring.start(0)
        await all_have(ring, range(300))


async def test_a_node_that_hears_others_and_reaches_none_gets_what_it_missed(
    tmp_path: Path,
) -> None:
    """The network is parted for requests, and gossip goes on: so nobody is convicted."""
    nodes = settings_of(tmp_path)
    topology = form_ring(nodes, MAIL)
    between: list[Proxy] = []
    async with AsyncExitStack() as stack:
        for place, node in enumerate(nodes):
            directory = NodeDirectory.open(node.data, node.cluster, Random(0))
            seen = []
            for each in topology.nodes:
                if each.id != directory.identity.node:
                    proxy = await stack.enter_async_context(proxy_to(each.address))
                    if not place or each.name == str(nodes[0].port):
                        between.append(proxy)
                    each = msgspec.structs.replace(each, address=proxy.url)  # noqa: PLW2901
                seen.append(each)
            directory.keep_topology(msgspec.structs.replace(topology, nodes=tuple(seen)))
            directory.close()
        assert len(between) == 4
        ring = await stack.enter_async_context(processes(nodes, SETTINGS))
        await ring.start(0, 1, 2)
        store = await stack.enter_async_context(open_store(ring.url(1, 2), MAIL))
        await write(store, range(10))
        for proxy in between:
            proxy.mode = "hold"
        await write(store, range(10, 20))
        async with ring.opening(0, MAIL) as alone:
            with pytest.raises(NotEnoughReplicas):
                await alone.get(MAIL, "row-0", "profile", "name")
        for proxy in between:
            proxy.mode = "pass"
        await all_have(ring, range(20))
