"""The client of pubsub, async and blocking."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tenure.errors import ServiceRefusal
from tenure.services.pubsub.client import BlockingPubSub, PubSubClient
from tests.unit.services.stage import ServiceStage, on_service_stage

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def inbox(received: list[object]) -> AsyncIterator[str]:
    """The URL of a subscriber that takes everything."""

    async def take(request: web.Request) -> web.Response:
        received.append((await request.json())["data"])
        return web.Response()

    application = web.Application()
    application.router.add_post("/inbox", take)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/inbox"
    finally:
        await runner.cleanup()


async def test_what_is_published_arrives_once_for_each_id() -> None:
    received: list[object] = []
    async with (
        on_service_stage("pubsub", inward=True) as stage,
        inbox(received) as target,
        PubSubClient(stage.url) as topics,
    ):
        mine = await topics.subscribe("home-pc", target)
        first = await topics.publish("home-pc", {"address": "10.0.0.9"}, id="moved")
        again = await topics.publish("home-pc", {"address": "10.0.0.9"}, id="moved")
        assert (first.number, first.subscribers, first.waiting) == (mine.number + 1, 1, 0)
        assert (again.epoch, again.number) == (first.epoch, first.number)
        assert received == [{"address": "10.0.0.9"}]
        assert (await topics.refresh("home-pc", mine.id, ttl=60)).number == first.number
        assert (await topics.show("home-pc")).subscribers == 1
        await topics.unsubscribe("home-pc", mine.id)
        assert (await topics.publish("home-pc", "nobody")).subscribers == 0
        with pytest.raises(ServiceRefusal, match="no such subscription"):
            await topics.refresh("home-pc", mine.id)


async def test_a_program_without_a_loop_does_the_same() -> None:
    received: list[object] = []
    async with (
        on_service_stage("pubsub", inward=True) as stage,
        inbox(received) as target,
    ):
        assert await asyncio.to_thread(blocking, stage, target) == 1
        assert received == ["hello"]


def blocking(stage: ServiceStage, target: str) -> int:
    with BlockingPubSub(PubSubClient(stage.url)) as topics:
        mine = topics.subscribe("attic", target)
        published = topics.publish("attic", "hello")
        assert topics.refresh("attic", mine.id).number == topics.show("attic").number
        topics.unsubscribe("attic", mine.id)
        return published.subscribers
