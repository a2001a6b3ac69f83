"""A process leaves and another has its keys: clients do not notice."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias, cast

import pytest

from tenure.services.feeds.service import Feeds
from tests.patience import until
from tests.unit.manager.serving import serving
from tests.unit.services.stage import ServiceStage, on_service_stage, set_wall
from tests.unit.services.test_feed_items import RSS
from tests.unit.services.test_pubsub import hooked

pytestmark = pytest.mark.asyncio
Move: TypeAlias = Callable[..., Awaitable[ServiceStage]]


@asynccontextmanager
async def moving(name: str, **settings: Any) -> AsyncIterator[tuple[ServiceStage, Move]]:  # noqa: ANN401
    """One process, and what has another one take over from it."""
    async with serving(preset="default") as serves, AsyncExitStack() as stack:
        manager = serves.service.url
        leaving = AsyncExitStack()
        first = await leaving.enter_async_context(
            on_service_stage(name, manager=manager, **settings)
        )
        stack.push_async_callback(leaving.aclose)

        async def move(ahead: float = 0.0) -> ServiceStage:
            """`ahead` is how far the clock of the other process is."""
            second = await stack.enter_async_context(
                on_service_stage(name, manager=manager, **settings)
            )
            if ahead:
                set_wall(second, ahead)
            await leaving.aclose()
            return second

        yield first, move


async def test_a_document_keeps_its_version_and_a_repeat_gets_the_first_answer() -> None:
    async with moving("documents") as (first, move):
        one = {"Idempotency_Key": "one"}
        made = await first.ask("PUT", "/documents/d", {"sections": {"a": 1}}, **one)
        second = await move()
        again = await second.ask("PUT", "/documents/d", {"sections": {"a": 1}}, **one)
        assert (again.status, again.body) == (made.status, made.body)
        assert (await second.ask("GET", "/documents/d")).tag == made.tag
        updated = await second.ask("PUT", "/documents/d/sections/a", 2, If_Match=made.tag)
        assert updated.status == 200
        assert updated.tag != made.tag


async def test_a_queue_keeps_its_entries_its_reader_and_the_ids_of_its_messages() -> None:
    async with moving("queues") as (first, move):
        await first.ask("PUT", "/queues/q")
        made = await first.ask("POST", "/queues/q/entries", {"message": "x", "id": "one"})
        placed = {"message": "y", "place": {"source": "s", "epoch": "1.0.0", "number": 5}}
        assert (await first.ask("POST", "/queues/q/entries", placed)).status == 201
        before = (await first.ask("POST", "/queues/q/drain")).body
        second = await move()
        again = await second.ask("POST", "/queues/q/entries", {"message": "x", "id": "one"})
        assert again.body == {**made.body, "is_repeat": True}
        late = await second.ask("POST", "/queues/q/entries", placed)
        assert late.body["is_repeat"], "how far a source is moves with the queue"
        after = (await second.ask("POST", "/queues/q/drain", {"reader": before["reader"]})).body
        assert after == before, "the loss with which it began stays until it is acknowledged"
        assert [("loss" in each) for each in after["entries"]] == [
            True,
            False,
            False,
        ]
        said = {"reader": before["reader"], "number": late.body["number"]}
        assert (await second.ask("POST", "/queues/q/acknowledge", said)).status == 200
        assert (await second.ask("POST", "/queues/q/drain")).body["entries"] == []


async def test_a_topic_keeps_its_numbers_and_a_repeat_is_not_published_again() -> None:
    async with moving("pubsub", inward=True) as (first, move), hooked() as hook:
        await first.ask("POST", "/topics/t/subscriptions", {"target": hook.url})
        one = {"Idempotency_Key": "one"}
        made = await first.ask("POST", "/topics/t/messages", {"data": 1}, **one)
        for number in range(2, 81):
            await first.ask("POST", "/topics/t/messages", {"data": number})
        second = await move()
        again = await second.ask("POST", "/topics/t/messages", {"data": 1}, **one)
        assert again.body == made.body, "also when much has come since"
        other = await second.ask("POST", "/topics/t/messages", {"data": 81})
        assert (other.body["epoch"], other.body["number"]) == (made.body["epoch"], 81)
        assert hook.data == list(range(1, 82))


async def test_a_feed_keeps_its_items_and_knows_which_came_already() -> None:
    async with moving("feeds") as (first, move):
        owners = cast("Feeds", first.service).owners
        await until(lambda: owners.owner.check("f"))  # until then, an item stays where it came
        assert (await first.ask("POST", "/feeds/f/bodies", RSS)).body == {"new": 2}
        second = await move()
        kept = cast("Feeds", second.service).kept
        for _ in range(2):
            kept.sweep(cast("Feeds", second.service).outward, lambda _: None)
        assert not kept.states["f"].gone_at, "it lasts as long as it did before"
        assert (await second.ask("POST", "/feeds/f/bodies", RSS)).body == {"new": 0}
