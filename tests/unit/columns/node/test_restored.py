"""A cluster whose managers' journal was put back, or lost: its real nodes tell what they know."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest

from tenure.base.instants import Instant, seconds
from tenure.columns.node.node_service import NodeService
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tenure.journals import open_copy, open_journal
from tenure.manager.config import ManagerSettings
from tenure.manager.restore import read_copy, restore
from tenure.manager.service import ManagerService
from tenure.protocol.topology.answers import RingRead
from tenure.protocol.topology.history import LostCluster
from tenure.wire.lease_records import LEASE_RECORDS
from tests.patience import until
from tests.unit.columns.node.managed import make_cluster
from tests.unit.columns.node.ringed import CLUSTER, settings_of

pytestmark = pytest.mark.asyncio

MAIL = Table("mail", profile=Family(columns=str))
LATER = Table("later", profile=Family(columns=str))


class Clock:
    """Time that goes on by half a minute whenever somebody looks."""

    def __init__(self) -> None:
        self.now = Instant(0)

    def __call__(self) -> Instant:
        self.now = Instant(self.now + seconds(30))
        return self.now


async def at_once(_: float) -> None:
    """No pause."""


@asynccontextmanager
async def nodes_of(place: Path, manager: ManagerService) -> AsyncIterator[list[NodeService]]:
    async with AsyncExitStack() as stack:
        settings = [
            msgspec.structs.replace(node, managers=(manager.url,), port=0, seeds=())
            for node in settings_of(place, 3)
        ]
        services = [await stack.enter_async_context(NodeService(node)) for node in settings]
        await until(lambda: all(each.has_ring for each in services))
        yield services


def lose(place: Path) -> None:
    for file in place.glob("journal.sqlite*"):
        file.unlink()


async def restored(url: str, lost: dict[str, LostCluster]) -> None:
    journal = open_copy(url, LEASE_RECORDS)
    copy = await read_copy(journal, clusters=lost)
    await restore(journal, copy, lambda _: None, clock=Clock(), pause=at_once)
    await journal.close()


async def ring_without_trouble(url: str) -> RingRead:
    found: list[RingRead] = []
    async with aiohttp.ClientSession() as session:

        async def is_whole() -> bool:
            async with session.get(f"{url}/v1/clusters/{CLUSTER}/ring") as said:
                if said.ok:
                    found.append(msgspec.json.decode(await said.read(), type=RingRead))
                return said.ok and bool(found[-1].ranges) and not found[-1].trouble

        await until(is_whole)
    return found[-1]


@pytest.mark.parametrize("is_lost", [False, True], ids=["an old copy", "nothing left"])
async def test_the_topology_is_read_back_and_changes_go_on(tmp_path: Path, is_lost: bool) -> None:
    url = f"sqlite:{tmp_path / 'journal.sqlite'}"
    settings = ManagerSettings(journal=url, port=0, first_start=True)
    async with AsyncExitStack() as stack:
        async with ManagerService(settings) as manager:
            await make_cluster(manager.url, 3)
            services = await stack.enter_async_context(nodes_of(tmp_path, manager))
            store = "columns:" + ",".join(each.url for each in services)
            async with open_store(store, MAIL) as opened:
                await opened.insert(MAIL, "ann", {"profile": {"name": b"Ann"}})
            before = await ring_without_trouble(manager.url)
            topology = services[0].store.topology
        lost = {CLUSTER: LostCluster(topology.id, topology.version)} if is_lost else {}
        if is_lost:
            lose(tmp_path)
            begun = open_journal(url, LEASE_RECORDS)
            await begun.load()
            await begun.close()
        await restored(url, lost)
        port = int(manager.url.rpartition(":")[2])
        async with ManagerService(msgspec.structs.replace(settings, port=port)) as manager:
            after = await ring_without_trouble(manager.url)
            assert [node.id for node in after.nodes] == [node.id for node in before.nodes]
            assert after.version > 10**12
            async with open_store(store, MAIL, LATER) as opened:  # which is a change
                column = await opened.get(MAIL, "ann", "profile", "name")
                assert column.value == b"Ann"
