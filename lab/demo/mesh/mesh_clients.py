"""The clients with which a device asks the services: each request goes to a frontend."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from tenure.services.documents.client import DocumentsClient
from tenure.services.pubsub.client import PubSubClient
from tenure.services.queues.client import QueuesClient

POOL_HEADER = "X-Pool"
"""Two pools have documents, so the path alone does not say which of them is asked."""
DEADLINE_SECONDS = 60.0


class MeshClients(NamedTuple):
    """One client of each pool."""

    devices: DocumentsClient
    activities: DocumentsClient
    topics: PubSubClient
    queues: QueuesClient


@asynccontextmanager
async def mesh_clients(frontends: Sequence[str]) -> AsyncIterator[MeshClients]:
    """Clients of the services behind these frontends."""
    devices, activities = [
        DocumentsClient(frontends, deadline=DEADLINE_SECONDS, headers={POOL_HEADER: pool})
        for pool in ("devices", "activities")
    ]
    topics = PubSubClient(frontends, deadline=DEADLINE_SECONDS)
    queues = QueuesClient(frontends, deadline=DEADLINE_SECONDS)
    async with AsyncExitStack() as stack:
        for each in (devices, activities, topics, queues):
            await stack.enter_async_context(each)
        yield MeshClients(devices, activities, topics, queues)
