"""The client of feeds, async and blocking."""

import asyncio

import pytest

from tenure.errors import OutcomeUnknown, ServiceRefusal
from tenure.services.feeds.client import BlockingFeeds, FeedsClient
from tests.unit.services.stage import ServiceStage, on_service_stage
from tests.unit.services.test_feed_items import BOMB, RSS
from tests.unit.services.test_feeds import titles

pytestmark = pytest.mark.asyncio
SOURCE = "http://192.0.2.1/feed?a=1&b=%20"


async def test_a_feed_is_pushed_into_read_and_read_again_only_when_it_has_changed() -> None:
    async with on_service_stage("feeds") as stage, FeedsClient(stage.url) as feeds:
        assert await feeds.push("people/all", RSS) == 2
        assert await feeds.push("people/all", RSS) == 0
        assert await feeds.tell("people/all", {"data": 1}) == 0
        first = await feeds.read("people/all")
        assert first is not None
        assert titles(first.atom) == ["Alice updated her profile and added Bob as a friend"]
        assert await feeds.read("people/all", if_not=first.tag) is None
        await feeds.refresh("people/all")
        await feeds.delete("people/all")
        with pytest.raises(ServiceRefusal, match="has gone"):
            await feeds.read("people/all")


async def test_sources_are_added_listed_and_removed() -> None:
    async with on_service_stage("feeds", inward=True) as stage, FeedsClient(stage.url) as feeds:
        added = await feeds.add_source("f", SOURCE, every=60.0)
        assert (added.url, added.every) == (SOURCE, 60.0)
        assert [each.url for each in await feeds.sources("f")] == [SOURCE]
        await feeds.remove_source("f", SOURCE)
        assert await feeds.sources("f") == []


async def test_a_refusal_arrives_whole_and_a_deadline_ends_a_call() -> None:
    async with on_service_stage("feeds") as stage, FeedsClient(stage.url) as feeds:
        with pytest.raises(ServiceRefusal) as refused:
            await feeds.push("f", BOMB)
        assert (refused.value.status, refused.value.error) == (422, "entities")
    async with FeedsClient("http://127.0.0.1:1") as feeds:
        with pytest.raises(OutcomeUnknown, match=r"timed out after 0\.2 s"):
            await feeds.push("f", RSS, deadline=0.2)


async def test_a_program_without_a_loop_does_the_same() -> None:
    async with on_service_stage("feeds", inward=True) as stage:
        assert await asyncio.to_thread(blocking, stage) == 1


def blocking(stage: ServiceStage) -> int:
    with BlockingFeeds(FeedsClient(stage.url)) as feeds:
        assert feeds.push("f", RSS) == 2
        assert feeds.tell("f", {}) == 0
        shown = feeds.read("f")
        assert shown is not None
        assert feeds.read("f", if_not=shown.tag) is None
        assert feeds.sources("f") == []
        feeds.add_source("f", SOURCE)
        feeds.remove_source("f", SOURCE)
        feeds.refresh("f")
        feeds.delete("f")
        return len(titles(shown.atom))
