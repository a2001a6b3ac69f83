"""A manager with a cluster, and nodes that it forms a ring of: all in this process."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from tenure.columns.node.node_service import NodeService, NodeSettings
from tenure.manager.config import ManagerSettings
from tenure.manager.service import ManagerService
from tests.patience import until
from tests.unit.columns.node.ringed import CLUSTER, settings_of


async def make_cluster(url: str, replicas: int) -> None:
    """Have a manager make it, as soon as it leads."""
    body = {"name": CLUSTER, "placement": str(replicas)}
    async with aiohttp.ClientSession() as session:

        async def is_made() -> bool:
            async with session.post(f"{url}/v1/clusters", json=body) as said:
                return said.ok

        await until(is_made)


@asynccontextmanager
async def managed(place: Path, count: int = 3) -> AsyncIterator[list[NodeService]]:
    """Yield this many nodes, with the ring formed; the first one's settings have the
    manager's URL.
    """
    journal = f"sqlite:{place / 'journal.sqlite'}"
    settings = ManagerSettings(journal=journal, port=0, first_start=True)
    async with AsyncExitStack() as stack:
        manager = await stack.enter_async_context(ManagerService(settings))
        await make_cluster(manager.url, count)
        nodes: list[NodeSettings] = [
            msgspec.structs.replace(node, managers=(manager.url,), port=0, seeds=())
            for node in settings_of(place, count)
        ]
        services = [await stack.enter_async_context(NodeService(node)) for node in nodes]
        await until(lambda: all(each.has_ring for each in services))
        yield services
