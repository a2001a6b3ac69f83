"""A change of a document that was acknowledged reaches its subscribers, whoever is killed: real
processes, with stores.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from lab.demo.mesh.service_processes import ServiceProcess
from tenure.cli.demo.ports import free_ports
from tenure.services.documents.client import DocumentsClient
from tenure.services.pubsub.client import PubSubClient
from tenure.services.queues.client import QueuesClient
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio


async def test_what_was_answered_is_published_although_everybody_was_killed(
    tmp_path: Path,
) -> None:
    urls = [f"http://127.0.0.1:{port}" for port in free_ports(3)]
    manager = ServiceProcess(
        "manager", ("manager", "--port", "0", "--journal", "memory", "--first-start")
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(manager.end)
        at = await manager.start()

        def of(service: str, url: str, *more: str) -> ServiceProcess:
            options = ("serve", service, "--manager", at, "--log-level", "error")
            store = ("--store", f"sqlite:{tmp_path / service}")
            listen = ("--listen", url.removeprefix("http://"))
            made = ServiceProcess(service, (*options, *store, *listen, *more))
            stack.push_async_callback(made.end)
            return made

        documents = of("documents", urls[0], "--publish-to", urls[1])
        topics = of("pubsub", urls[1], "--queues", urls[2])
        queues = of("queues", urls[2], "--watch", "pubsub")
        await asyncio.gather(documents.start(), topics.start(), queues.start())
        clients = DocumentsClient(urls[0]), PubSubClient(urls[1]), QueuesClient(urls[2])
        for each in clients:
            await stack.enter_async_context(each)
        client, subscribing, reading = clients
        await reading.begin("work-pc")
        await subscribing.subscribe("home-pc", "queue:work-pc")
        await topics.kill()
        written = await client.write("home-pc", {"address": "10.0.0.7"})
        await documents.kill()
        await asyncio.gather(topics.start(), documents.start())
        reader = reading.reader("work-pc")
        async with asyncio.timeout(2 * DEADLINE_SECONDS):
            while True:
                entries = await reader.next(wait=5.0)
                found = [each.message["data"] for each in entries if each.loss is None]
                if found:
                    break
                if entries:
                    await reader.acknowledge(entries[-1].number)
        assert found[0] == {
            "document": "home-pc",
            "version": written.version,
            "sections": ["address"],
            "values": {"address": "10.0.0.7"},
        }
