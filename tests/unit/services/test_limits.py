"""Every limit of every service is exceeded once, over HTTP: the answer says which one it is.

The tests go through what each service lists. So a limit without a way to exceed it here fails, and
so does one that is named in a module and not listed.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeAlias, cast

import pytest
from aiohttp import web

from tenure.services import limits, serving
from tenure.services.catalogue import PLACES, service_type
from tenure.services.feeds import kept_feeds
from tenure.services.feeds.parser_processes import ParserProcesses
from tenure.services.feeds.service import Feeds
from tenure.services.limits import NONE_REFUSED, OF_ALL, OVERLOADED, TOO_LARGE, TOO_MANY
from tenure.services.limits import ServiceLimit as Limit
from tenure.services.pubsub import topic_state
from tenure.services.queues.entries import SourcePlace
from tests.unit.services.feed_bodies import ENDLESS
from tests.unit.services.stage import Replied, ServiceStage, on_service_stage

Refused: TypeAlias = Callable[[ServiceStage, int], Awaitable[Replied | None]]
"""Goes beyond a limit of this much; returns the answer, or None if the oldest has gone."""
ONE_KEY = {
    "documents": "/documents/{}",
    "feeds": "/feeds/{}",
    "pubsub": "/topics/{}",
    "queues": "/queues/{}",
}
RSS = b"<rss version='2.0'><channel>%s</channel></rss>"
ITEM = b"<item><guid>%d</guid><title>t</title></item>"


def asking(method: str, path: str, body: Callable[[int], object]) -> Refused:
    """A request is enough."""

    async def ask(stage: ServiceStage, most: int) -> Replied:
        return await stage.ask(method, path, body(most))

    return ask


# --- of all services ---


async def long_key(stage: ServiceStage, most: int) -> Replied:
    return await stage.ask("GET", ONE_KEY[stage.service.name].format("k" * (most + 1)))


async def large_body(stage: ServiceStage, most: int) -> Replied:
    paths = {"documents": "", "feeds": "/bodies", "pubsub": "/messages", "queues": "/entries"}
    name = stage.service.name
    method = "PUT" if name == "documents" else "POST"
    return await stage.ask(method, ONE_KEY[name].format("k") + paths[name], b" " * (most + 1))


async def deep_body(stage: ServiceStage, most: int) -> Replied:
    asked = {
        "documents": ("PUT", "/documents/k", b'{"sections":%s}'),
        "feeds": ("POST", "/feeds/k/events", b'{"a":%s}'),
        "pubsub": ("POST", "/topics/k/messages", b'{"data":%s}'),
        "queues": ("POST", "/queues/q/entries", b'{"message":%s}'),
    }
    method, path, around = asked[stage.service.name]
    return await stage.ask(method, path, around % (b'{"a":' * most + b"1" + b"}" * most))


async def many_requests(stage: ServiceStage, most: int) -> Replied:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "REQUESTS", limits.REQUESTS._replace(most=0))
        assert most
        return await stage.ask("GET", "/limits")


async def long_id(stage: ServiceStage, most: int) -> Replied:
    asked = {
        "documents": ("PUT", "/documents/k", {"sections": {}}),
        "pubsub": ("POST", "/topics/k/messages", {"data": 1}),
        "queues": ("POST", "/queues/q/entries", {"message": 1}),
    }
    return await stage.ask(*asked[stage.service.name], Idempotency_Key="i" * (most + 1))


# --- of queues ---


async def put(stage: ServiceStage, key: str, messages: int, size: int = 1) -> Any:  # noqa: ANN401
    """Fill a new queue with this many messages of one size; return what it has then."""
    queue = stage.service.entities[key]
    await queue.begin(60.0, None)
    for number in range(messages):
        await queue.enqueue(b'"%s"' % (b"x" * size), str(number))
        await asyncio.sleep(0)  # the manager is in this loop, too
    return (await stage.ask("POST", f"/queues/{key}/drain", {"most": 1000})).body["entries"]


async def many_entries(stage: ServiceStage, most: int) -> None:
    entries = await put(stage, "many", most)  # beside the first, which says that it has begun
    assert (len(entries), entries[0]["loss"]) == (most, {"began": True, "dropped": 1})


async def many_bytes(stage: ServiceStage, most: int) -> None:
    entries = await put(stage, "large", most // 60_000 + 1, 60_000)
    assert entries[0]["loss"]["dropped"] == 1
    assert len(entries) == most // 60_000 + 1


async def many_ids(stage: ServiceStage, most: int) -> None:
    await put(stage, "ids", most + 1)
    for number, is_repeat in ((1, True), (0, False)):
        again = await stage.ask("POST", "/queues/ids/entries", {"message": 1, "id": str(number)})
        assert again.body["is_repeat"] == is_repeat


async def many_sources(stage: ServiceStage, most: int) -> None:
    await put(stage, "sources", 0)
    queue = stage.service.entities["sources"]
    for number in range(most + 1):
        await queue.enqueue(b"1", "", SourcePlace(f"s{number}", "1.1.a", 1))
    for number, is_repeat in ((1, True), (0, False)):
        place = {"source": f"s{number}", "epoch": "1.1.a", "number": 1}
        again = await stage.ask("POST", "/queues/sources/entries", {"message": 1, "place": place})
        assert again.body["is_repeat"] == is_repeat


# --- of topics ---


async def many_subscribers(stage: ServiceStage, most: int) -> Replied:
    topic = stage.service.entities["many"]
    for number in range(most):
        await topic.subscribe(f"http://127.0.0.1:1/{number}", 60.0)
    target = {"target": "http://127.0.0.1:1/more"}
    return await stage.ask("POST", "/topics/many/subscriptions", target)


async def many_ids_of_messages(stage: ServiceStage, most: int) -> None:
    topic = stage.service.entities["ids"]
    await topic.subscribe("http://127.0.0.1:1/", 60.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic_state, "IDS", topic_state.IDS._replace(most=2))
        assert most
        found = [(await topic.publish(b"1", name)).number for name in "abacba"]
        assert found == [1, 2, 1, 3, 2, 4]


def behind(size: int) -> Refused:
    """Make a subscriber that takes nothing and refuses nothing, and for which this many messages
    wait.
    """

    async def publish(stage: ServiceStage, most: int) -> Replied:
        never, app, key = asyncio.Event(), web.Application(), f"behind-{size}"

        async def take(_: web.Request) -> web.Response:
            await never.wait()
            return web.Response()

        app.router.add_post("/", take)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            topic = stage.service.entities[key]
            await topic.subscribe(f"http://127.0.0.1:{runner.addresses[0][1]}/", 60.0)
            for _ in range(most // size):
                await topic.publish(b'"%s"' % (b"x" * (size - 2)))
            return await stage.ask("POST", f"/topics/{key}/messages", {"data": "x" * 100})
        finally:
            never.set()
            await runner.cleanup()

    return publish


# --- of feeds ---


async def many_items(stage: ServiceStage, most: int) -> None:
    body = RSS % b"".join(ITEM % number for number in range(most + 1))
    assert (await stage.ask("POST", "/feeds/many/bodies", body)).body == {"new": most + 1}
    assert len(cast("Feeds", stage.service).kept.states["many"].items) == most


async def many_sources_of_feed(stage: ServiceStage, most: int) -> Replied:
    for number in range(most):
        source = {"url": f"http://127.0.0.1:1/{number}"}
        assert (await stage.ask("PUT", "/feeds/sources/sources", source)).status == 201
    return await stage.ask("PUT", "/feeds/sources/sources", {"url": "http://127.0.0.1:1/more"})


class Elsewhere:
    """Finds an owner that does not answer."""

    def find(self, _: object) -> str:
        return "http://127.0.0.1:1"


async def much_outstanding(stage: ServiceStage, most: int) -> Replied:
    feeds = cast("Feeds", stage.service)
    async with AsyncExitStack() as stack:
        for _ in range(most):
            await stack.enter_async_context(feeds.owners.outstanding.slot("http://127.0.0.1:1"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(feeds.owners, "lookup", Elsewhere())
            return await stage.ask("POST", "/feeds/f/events", {"a": 1})


async def many_feeds(stage: ServiceStage, most: int) -> Replied:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_feeds, "FEEDS", kept_feeds.FEEDS._replace(most=0))
        assert most
        return await stage.ask("POST", "/feeds/more/bodies", RSS % ITEM % 1)


def pushing(body: Callable[[int], bytes]) -> Refused:
    return asking("POST", "/feeds/f/bodies", body)


async def long_reading(stage: ServiceStage, most: int) -> Replied:
    feeds = cast("Feeds", stage.service)
    feeds.parsers = ParserProcesses(1)  # of which it takes longer, too
    try:
        return await stage.ask("POST", "/feeds/f/bodies", ENDLESS)
    finally:
        await feeds.parsers.close()


A_PUT = {"queue": "q", "message": 1, "place": {"source": "s", "epoch": "1.1.a", "number": 1}}
BEYOND: dict[str, dict[str, Refused]] = {
    "every service": {
        "key_bytes": long_key,
        "body_bytes": large_body,
        "json_depth": deep_body,
        "requests": many_requests,
        "id_bytes": long_id,
    },
    "documents": {
        "sections": asking(
            "PUT", "/documents/k", lambda n: {"sections": dict.fromkeys(map(str, range(n + 1)))}
        ),
        "section_bytes": asking("PUT", "/documents/k/sections/a", lambda n: "x" * n),
        "document_bytes": asking(
            "PUT", "/documents/k", lambda n: {"sections": dict.fromkeys("abc", "x" * (n // 3))}
        ),
        "section_name_bytes": asking(
            "PUT", "/documents/k", lambda n: {"sections": {"n" * (n + 1): 1}}
        ),
        "ttl_seconds": asking("PUT", "/documents/k", lambda n: {"sections": {}, "ttl": n + 1}),
    },
    "queues": {
        "entries": many_entries,
        "queue_bytes": many_bytes,
        "message_bytes": asking("POST", "/queues/q/entries", lambda n: {"message": "x" * n}),
        "watched_keys": asking("PUT", "/queues/q", lambda n: {"watch": {"p": ["k"] * (n + 1)}}),
        "ids": many_ids,
        "sources": many_sources,
        "wait_seconds": asking("POST", "/queues/q/drain", lambda n: {"wait": n + 1}),
        "puts": asking("POST", "/entries", lambda n: [A_PUT] * (n + 1)),
        "ttl_seconds": asking("PUT", "/queues/q", lambda n: {"ttl": n + 1}),
    },
    "pubsub": {
        "subscribers": many_subscribers,
        "target_bytes": asking(
            "POST", "/topics/t/subscriptions", lambda n: {"target": "x" * (n + 1)}
        ),
        "message_bytes": asking("POST", "/topics/t/messages", lambda n: {"data": "x" * n}),
        "log_bytes": behind(1 << 16),
        "log_messages": behind(1),
        "ids": many_ids_of_messages,
        "ttl_seconds": asking(
            "POST", "/topics/t/subscriptions", lambda n: {"target": "queue:q", "ttl": n + 1}
        ),
    },
    "feeds": {
        "items": many_items,
        "sources": many_sources_of_feed,
        "url_bytes": asking(
            "PUT", "/feeds/f/sources", lambda n: {"url": "http://8.8.8.8/".ljust(n + 1, "x")}
        ),
        "entries": pushing(lambda n: RSS % (ITEM % 1 * (n + 1))),
        "xml_depth": pushing(lambda n: b"<a>" * (n + 1)),
        "xml_elements": pushing(lambda n: b"<a>" + b"<b/>" * n + b"</a>"),
        "xml_attributes": pushing(
            lambda n: b"<a " + b" ".join(b'x%d=""' % i for i in range(n + 1)) + b"/>"
        ),
        "xml_head_bytes": pushing(lambda n: b"<!--" + b" " * n + b"-->" + RSS % ITEM % 1),
        "person_characters": pushing(
            lambda n: RSS % (b"<item><author>%s</author></item>" % (b"x" * (n + 1)))
        ),
        "reading_seconds": long_reading,
        "outstanding": much_outstanding,
        "feeds": many_feeds,
    },
}
"""How each limit is exceeded, by the service whose it is."""


def listed(name: str) -> tuple[Limit, ...]:
    return (*OF_ALL, *service_type(name).limits)


@pytest.mark.asyncio
@pytest.mark.parametrize("name", PLACES)
async def test_what_goes_beyond_a_limit_is_answered_with_its_name(name: str) -> None:
    settings: dict[str, Any] = {"inward": True} if name in ("pubsub", "feeds") else {}
    async with on_service_stage(name, **settings) as stage:
        if name == "queues":
            await stage.ask("PUT", "/queues/q")
        for limit in listed(name):
            exceed = {**BEYOND["every service"], **BEYOND[name]}[limit.name]
            answer = await exceed(stage, limit.most)
            assert (answer is None) == (limit.status == NONE_REFUSED), limit.name
            if answer is not None:
                found = answer.status, answer.body.get("error"), answer.body.get("limit")
                assert found == (limit.status, "limit", limit.name)
                assert ("Retry-After" in answer.headers) == (limit.status != TOO_LARGE)
        shown = (await stage.ask("GET", "/limits")).body
        assert [each["name"] for each in shown] == [each.name for each in listed(name)]


@pytest.mark.parametrize("name", PLACES)
def test_every_limit_that_a_service_names_is_listed_with_a_reason(name: str) -> None:
    service_type(name)
    there = {limit.name: limit for limit in listed(name)}
    assert len(there) == len(listed(name)), "two limits have one name"
    assert set(BEYOND[name]) <= set(there)
    for limit in there.values():
        assert limit.why
        assert limit.most
        assert limit.status in (NONE_REFUSED, TOO_LARGE, TOO_MANY, OVERLOADED)
    for module in [each for each in sys.modules if each.startswith(f"tenure.services.{name}.")]:
        for found in vars(sys.modules[module]).values():
            assert not isinstance(found, Limit) or there[found.name] == found
