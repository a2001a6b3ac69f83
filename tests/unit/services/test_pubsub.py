"""Pubsub over HTTP: subscribers at URLs, numbers, gaps, time to live, and what bad input gets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tenure import reading
from tenure.services.outward import Outward
from tenure.services.pubsub import service, topic_state
from tenure.services.pubsub.topic import MessageSettled, Topic
from tests.patience import until
from tests.unit.manager.serving import serving
from tests.unit.services.stage import ServiceStage, on_service_stage

pytestmark = pytest.mark.asyncio


class Hook:
    """A subscriber at a URL."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.status = 200
        self.answer = b""
        self.url = ""
        self.ids: list[str | None] = []
        self.may = asyncio.Event()
        self.may.set()

    async def take(self, request: web.Request) -> web.Response:
        self.ids.append(request.headers.get("Idempotency-Key"))
        await self.may.wait()
        if self.status == 200:
            self.got.append(msgspec.json.decode(await request.read()))
        headers = {"Location": "http://127.0.0.1:1/"} if self.status == 302 else {}
        return web.Response(status=self.status, headers=headers, body=self.answer)

    @property
    def data(self) -> list[Any]:
        return [each.get("data") for each in self.got]


@asynccontextmanager
async def hooked() -> AsyncIterator[Hook]:
    hook = Hook()
    app = web.Application()
    app.router.add_post("/hook", hook.take)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        hook.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        yield hook
    finally:
        hook.may.set()  # whatever has failed meanwhile
        await runner.cleanup()


async def test_what_is_published_is_with_every_subscriber_when_it_is_answered() -> None:
    async with on_service_stage("pubsub", inward=True) as stage, hooked() as one, hooked() as two:
        for hook in (one, two):
            made = await stage.ask("POST", "/topics/news/subscriptions", {"target": hook.url})
            assert (made.status, made.body["number"]) == (201, 0)
        first = await stage.ask("POST", "/topics/news/messages", {"data": {"a": [1]}})
        assert first.status == 200
        assert {name: first.body[name] for name in ("number", "subscribers", "waiting")} == {
            "number": 1,
            "subscribers": 2,
            "waiting": 0,
        }
        assert one.data == two.data == [{"a": [1]}]
        assert one.got[0]["epoch"] == first.body["epoch"]
        assert one.got[0]["topic"] == "news"
        shown = await stage.ask("GET", "/topics/news")
        assert (shown.body["subscribers"], shown.body["number"]) == (2, 1)


async def test_a_repeated_message_counts_once() -> None:
    async with on_service_stage("pubsub", inward=True) as stage, hooked() as hook:
        await stage.ask("POST", "/topics/t/subscriptions", {"target": hook.url})
        for _ in range(3):
            made = await stage.ask("POST", "/topics/t/messages", {"data": 1}, Idempotency_Key="x")
            assert (made.status, made.body["number"]) == (200, 1)
        assert hook.data == [1]
        for number in range(100):
            message = {"data": number}
            await stage.ask("POST", "/topics/t/messages", message, Idempotency_Key=str(number))
        again = await stage.ask("POST", "/topics/t/messages", {"data": 1}, Idempotency_Key="x")
        assert (again.status, again.body["number"]) == (200, 1), "also when much has come since"
        assert len(hook.data) == 101


async def test_a_topic_that_is_lost_before_all_have_its_message_is_no_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @reading
    async def lost(self: Topic, number: int, seconds: float) -> MessageSettled:
        del self, number, seconds
        return MessageSettled("9.9.a", 0, 0)

    monkeypatch.setattr(Topic, "settled", lost)
    async with on_service_stage("pubsub", inward=True) as stage, hooked() as hook:
        await stage.ask("POST", "/topics/t/subscriptions", {"target": hook.url})
        refused = await stage.ask("POST", "/topics/t/messages", {"data": 1})
        assert (refused.status, refused.body["error"]) == (503, "lost")


async def test_a_subscriber_that_refuses_is_counted_and_hinders_nobody() -> None:
    async with on_service_stage("pubsub", inward=True) as stage, hooked() as good, hooked() as bad:
        for hook in (good, bad):
            await stage.ask("POST", "/topics/t/subscriptions", {"target": hook.url})
        for bad.status in (503, 302):  # a redirect is not an acceptance, and is not followed
            made = await stage.ask("POST", "/topics/t/messages", {"data": 1})
            assert (made.status, made.body["refusing"]) == (200, 1)
        assert good.data == [1, 1]
        assert (await stage.ask("GET", "/topics/t")).body["refusing"] == 1


async def test_who_takes_a_message_may_answer_at_any_length() -> None:
    async with on_service_stage("pubsub", inward=True) as stage, hooked() as hook:
        hook.answer = bytes(1 << 20)
        await stage.ask("POST", "/topics/t/subscriptions", {"target": hook.url})
        for _ in range(2):
            made = await stage.ask("POST", "/topics/t/messages", {"data": 1})
            assert (made.status, made.body["waiting"], made.body["refusing"]) == (200, 0, 0)
        assert hook.data == [1, 1]


async def test_a_message_that_some_have_not_taken_in_time_is_accepted_and_said_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "PATIENCE_SECONDS", 0.1)
    async with on_service_stage("pubsub", inward=True) as stage, hooked() as hook:
        await stage.ask("POST", "/topics/t/subscriptions", {"target": hook.url})
        hook.may.clear()
        async with asyncio.timeout(20):
            made = await stage.ask("POST", "/topics/t/messages", {"data": 1})
        assert (made.status, made.body["waiting"], made.body["refusing"]) == (202, 1, 0)
        hook.may.set()
        assert hook.ids == [f"t {made.body['epoch']} 1"], "a repeat is known by its id"


@pytest.mark.parametrize("name", ["a%0Ab", "a%0D%0AX:%20y", "%00", "%C3%A9"])
async def test_a_topic_of_any_name_sends_to_urls(name: str) -> None:
    async with on_service_stage("pubsub", inward=True) as stage, hooked() as hook:
        made = await stage.ask("POST", f"/topics/{name}/subscriptions", {"target": hook.url})
        assert made.status == 201
        async with asyncio.timeout(30):
            made = await stage.ask("POST", f"/topics/{name}/messages", {"data": 1})
        assert (made.status, made.body["waiting"], made.body["refusing"]) == (200, 0, 0)
        assert hook.data == [1]


async def test_who_refreshes_learns_how_far_the_topic_is_and_who_is_late_when_it_went() -> None:
    async with on_service_stage("pubsub", inward=True) as stage, hooked() as hook:
        path = "/topics/t/subscriptions"
        made = await stage.ask("POST", path, {"target": hook.url, "ttl": 60})
        assert (await stage.ask("POST", "/topics/t/messages", {"data": 1})).status == 200
        again = await stage.ask("PUT", f"{path}/{made.body['id']}", {"ttl": 120})
        assert (again.status, again.body["number"]) == (200, 1)
        assert again.body["expires"] > made.body["expires"]
        assert (await stage.ask("PUT", f"{path}/{made.body['id']}")).status == 200
        assert (await stage.ask("DELETE", f"{path}/{made.body['id']}")).status == 204
        for method in ("PUT", "DELETE"):
            unknown = await stage.ask(method, f"{path}/{made.body['id']}")
            assert (unknown.status, unknown.body["error"]) == (404, "unknown")


async def test_a_subscriber_that_is_gone_is_unsubscribed_after_its_time_to_live_and_counted() -> (
    None
):
    async with on_service_stage("pubsub", inward=True) as stage, hooked() as hook:
        await stage.ask("POST", "/topics/t/subscriptions", {"target": hook.url})
        gone = {"target": "http://127.0.0.1:1/gone", "ttl": 2}
        assert (await stage.ask("POST", "/topics/t/subscriptions", gone)).status == 201
        made = await stage.ask("POST", "/topics/t/messages", {"data": 1})
        assert (made.body["subscribers"], made.body["refusing"]) == (2, 1)
        shown = await when_one_is_left(stage, "/topics/t")
        assert (shown["subscribers"], shown["refusing"], shown["expired"]) == (1, 0, 1)
        again = await stage.ask("POST", "/topics/t/messages", {"data": 2})
        assert (again.body["subscribers"], again.body["refusing"]) == (1, 0)
        assert hook.data == [1, 2]


async def when_one_is_left(stage: ServiceStage, path: str) -> Any:  # noqa: ANN401 - JSON
    """Return what is shown of a topic when the second of its subscribers has expired."""

    async def shown() -> Any:  # noqa: ANN401 - JSON
        body = (await stage.ask("GET", path)).body
        assert body["expired"] == 2 - body["subscribers"]
        return body["expired"] and body

    return await until(shown)


async def test_a_topic_with_too_many_subscribers_names_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_state, "SUBSCRIBERS", topic_state.SUBSCRIBERS._replace(most=2))
    async with on_service_stage("pubsub", inward=True) as stage:
        made = [
            await stage.ask(
                "POST", "/topics/t/subscriptions", {"target": f"http://127.0.0.1:1/{n}"}
            )
            for n in (1, 2, 3, 2)
        ]
        assert [each.status for each in made] == [201, 201, 429, 201]
        assert made[2].body["limit"] == "subscribers"


async def test_what_was_refused_for_long_is_told_as_a_gap_before_the_next_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_state, "LOG_MESSAGES", topic_state.LOG_MESSAGES._replace(most=3))
    async with on_service_stage("pubsub", inward=True) as stage, hooked() as hook:
        await stage.ask("POST", "/topics/t/subscriptions", {"target": hook.url})
        hook.status = 503
        for number in range(1, 8):
            assert (await stage.ask("POST", "/topics/t/messages", {"data": number})).status == 200
        hook.status = 200
        await until(lambda: len(hook.got) >= 4)
        assert [each.get("missed") for each in hook.got] == [[1, 4], None, None, None]
        assert hook.data == [None, 5, 6, 7]


BAD: list[tuple[str, object, int, str]] = [
    ("subscriptions", b"{", 400, "json"),
    ("subscriptions", {}, 422, "shape"),
    ("subscriptions", {"target": "queue:x", "more": 1}, 422, "shape"),
    ("subscriptions", {"target": "http://8.8.8.8/", "ttl": -1}, 422, "shape"),
    ("subscriptions", {"target": "x" * 501}, 413, "limit"),
    ("subscriptions", {"target": "ftp://8.8.8.8/"}, 422, "url"),
    ("subscriptions", {"target": "http://ann:secret@8.8.8.8/"}, 422, "url"),
    ("subscriptions", {"target": "http://127.0.0.1/"}, 422, "inward"),
    ("subscriptions", {"target": "http://[::ffff:10.0.0.1]/"}, 422, "inward"),
    ("messages", b"not json", 400, "json"),
    ("messages", {"data": "x" * 70_000}, 413, "limit"),
    ("messages", [1], 422, "shape"),
]


async def test_bad_input_gets_a_clear_answer_and_changes_nothing() -> None:
    async with on_service_stage("pubsub") as stage:
        for path, body, status, error in BAD:
            refused = await stage.ask("POST", f"/topics/t/{path}", body)
            assert (refused.status, refused.body["error"]) == (status, error), body
        assert (await stage.ask("GET", "/topics/t")).body["subscribers"] == 0


async def test_a_name_that_leads_inwards_is_refused_when_it_is_connected_to() -> None:
    outward = Outward()
    try:
        with pytest.raises(Exception, match="not public"):
            await outward.ask("GET", "http://localhost:1/", 1000, 10.0)
    finally:
        await outward.close()


async def test_messages_go_into_queues_which_are_told_when_the_topic_is_lost() -> None:
    async with serving(preset="default") as serves:
        manager = serves.service.url
        async with on_service_stage("pubsub", manager=manager):
            pass  # which makes the pool that queues watch
        async with (
            on_service_stage("queues", manager=manager, watch=("pubsub",)) as queues,
            on_service_stage("pubsub", manager=manager, queues=(queues.url,)) as stage,
        ):
            await into_queues(stage, queues)


async def into_queues(stage: ServiceStage, queues: ServiceStage) -> None:
    path = "/topics/news/subscriptions"
    unknown = await stage.ask("POST", path, {"target": "queue:ann"})
    assert (unknown.status, unknown.body["error"]) == (404, "unknown")
    await queues.ask("PUT", "/queues/ann", {"watch": {"pubsub": ["other"]}})
    assert (await stage.ask("POST", path, {"target": "queue:ann"})).status == 201
    watched = (await queues.ask("GET", "/queues/ann")).body["watch"]
    assert watched == {"pubsub": ["other", "news"]}
    made = await stage.ask("POST", "/topics/news/messages", {"data": {"a": 1}})
    assert (made.status, made.body["number"]) == (200, 1)
    entries = (await queues.ask("POST", "/queues/ann/drain")).body["entries"]
    assert entries[0]["loss"]["began"]
    assert entries[1]["message"]["data"] == {"a": 1}
    assert entries[1]["message"]["number"] == 1
    await unsubscribed_when_its_queue_is_gone(stage, queues)


async def unsubscribed_when_its_queue_is_gone(stage: ServiceStage, queues: ServiceStage) -> None:
    await queues.ask("PUT", "/queues/bob")
    shortly = {"target": "queue:bob", "ttl": 2}
    assert (await stage.ask("POST", "/topics/news/subscriptions", shortly)).status == 201
    assert (await queues.ask("DELETE", "/queues/bob")).status == 204
    made = await stage.ask("POST", "/topics/news/messages", {"data": 2})
    assert (made.body["subscribers"], made.body["refusing"]) == (2, 1)
    shown = await when_one_is_left(stage, "/topics/news")
    assert (shown["subscribers"], shown["refusing"], shown["expired"]) == (1, 0, 1)
