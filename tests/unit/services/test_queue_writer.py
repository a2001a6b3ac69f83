"""Topics that write into queues: many puts are one request, and each has its own answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web

from tenure.errors import ServiceRefusal
from tenure.services.pubsub.queue_writer import HttpQueueWriter
from tenure.services.pubsub.targets import MOST_OUTSTANDING, TopicEvent
from tenure.services.queues.entries import EntryPut

pytestmark = pytest.mark.asyncio


class Puts:
    """Queues that count requests, and answer each put as they are told."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.answer: object = None

    async def take(self, request: web.Request) -> web.Response:
        puts = msgspec.json.decode(await request.read(), type=list[EntryPut])
        self.asked.append([put.queue for put in puts])
        answers = [
            {"problem": {"status": 404, "error": "unknown", "detail": "no queue"}}
            if put.queue == "gone"
            else {"enqueued": {"number": 7}}
            for put in puts
        ]
        found = answers if self.answer is None else self.answer
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")


@asynccontextmanager
async def writing() -> AsyncIterator[tuple[HttpQueueWriter, Puts]]:
    puts, app = Puts(), web.Application()
    app.router.add_post("/entries", puts.take)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with HttpQueueWriter([url], "topics") as writer:
            yield writer, puts
    finally:
        await runner.cleanup()


def event(data: object = 1) -> TopicEvent:
    return TopicEvent("news", "1.1.a", 1, data=data)


async def test_what_is_put_at_one_moment_is_one_request_and_each_hears_its_own_answer() -> None:
    async with writing() as (writer, puts):
        names = [f"q{number}" for number in range(MOST_OUTSTANDING - 1)]
        found = await asyncio.gather(
            *(writer.put(name, event()) for name in (*names, "gone", "more")),
            return_exceptions=True,
        )
        assert puts.asked == [[*names, "gone"], ["more"]]
        assert [each for each in found if each is not None] == [found[-2]]
        assert isinstance(found[-2], ServiceRefusal)
        assert found[-2].error == "unknown"


async def test_large_messages_are_several_requests_that_the_queues_take() -> None:
    async with writing() as (writer, puts):
        await asyncio.gather(*(writer.put(f"q{n}", event("x" * 65_000)) for n in range(20)))
        assert [len(each) for each in puts.asked] == [7, 7, 6]


@pytest.mark.parametrize("answer", [[], {}, [{}], 7])
async def test_nobody_waits_for_ever_where_the_answer_is_nonsense(answer: object) -> None:
    async with writing() as (writer, puts):
        puts.answer = answer
        async with asyncio.timeout(60):
            found = await asyncio.gather(
                *(writer.put(name, event()) for name in "ab"), return_exceptions=True
            )
        assert all(isinstance(each, ServiceRefusal) for each in found)


async def test_who_has_gone_meanwhile_keeps_no_other_from_its_answer() -> None:
    async with writing() as (writer, _):
        gone, stays = (asyncio.create_task(writer.put(name, event())) for name in "ab")
        await asyncio.sleep(0)
        gone.cancel()
        async with asyncio.timeout(20):
            await stays
        assert gone.cancelled()
