"""Feeds over HTTP: pushed and polled, weakly consistent, capped, and what bad input gets."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import feedparser
import pytest
from aiohttp import web

from tenure.base.instants import Instant, seconds
from tenure.client.hand_off.fair_time import FairTime
from tenure.errors import UsageError
from tenure.services import outward
from tenure.services.feeds import feed_owners, kept_feeds
from tenure.services.feeds.service import Feeds
from tests.patience import until
from tests.unit.services.stage import ServiceStage, on_service_stage
from tests.unit.services.test_feed_items import BOMB, RSS

pytestmark = pytest.mark.asyncio
PATIENCE_SECONDS = 60.0
RULES = """
from tenure.services.feeds.parsing import FeedItem
from tenure.services.feeds.rules import FeedRules

rules = FeedRules()


@rules.event
def online(event):
    return FeedItem(f"{event['topic']}-{event['number']}", f"{event['topic']} is now online")
"""


async def read(stage: ServiceStage, name: str, **headers: str) -> Any:  # noqa: ANN401
    async with stage.session.get(f"{stage.url}/feeds/{name}", headers=headers) as response:
        return response.status, await response.read(), response.headers


def titles(shown: bytes) -> list[str]:
    return [each.title for each in feedparser.parse(shown).entries]


class Origin:
    """A feed elsewhere."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.url = ""

    async def feed(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.headers))
        if request.headers.get("If-None-Match") == '"v1"':
            return web.Response(status=304)
        return web.Response(body=RSS, headers={"ETag": '"v1"', "Last-Modified": "yesterday"})

    async def page(self, request: web.Request) -> web.Response:
        return web.Response(text="<html><body/></html>", content_type="text/html")

    async def inwards(self, request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "http://10.0.0.1/secret"})

    async def circle(self, request: web.Request) -> web.Response:
        there = "/b" if request.path == "/a" else "/a"
        return web.Response(status=302, headers={"Location": there})

    async def on_and_on(self, request: web.Request) -> web.Response:
        there = f"/on/{int(request.match_info['number']) + 1}"
        return web.Response(status=302, headers={"Location": there})

    async def endless(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(2000):
            await response.write(b" " * 1000)
        return response


@asynccontextmanager
async def origin() -> AsyncIterator[Origin]:
    there, app = Origin(), web.Application()
    app.router.add_get("/feed", there.feed)
    app.router.add_get("/endless", there.endless)
    app.router.add_get("/page", there.page)
    app.router.add_get("/inwards", there.inwards)
    app.router.add_get("/on/{number}", there.on_and_on)
    for path in ("/a", "/b"):
        app.router.add_get(path, there.circle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        there.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield there
    finally:
        await runner.cleanup()


async def test_what_is_pushed_is_shown_as_atom_coalesced_and_unchanged_is_304() -> None:
    async with on_service_stage("feeds") as stage:
        taken = await stage.ask("POST", "/feeds/people/bodies", RSS)
        assert (taken.status, taken.body) == (200, {"new": 2})
        assert (await stage.ask("POST", "/feeds/people/bodies", RSS)).body == {"new": 0}
        status, shown, headers = await read(stage, "people")
        assert (status, headers["Content-Type"]) == (200, "application/atom+xml")
        assert titles(shown) == ["Alice updated her profile and added Bob as a friend"]
        status, _, _ = await read(stage, "people", **{"If-None-Match": headers["ETag"]})
        assert status == 304


async def test_rules_of_a_module_make_entries_of_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ours.py").write_text(RULES)
    monkeypatch.syspath_prepend(tmp_path)
    async with on_service_stage("feeds", rules="ours:rules") as stage:
        event = {"topic": "Alice", "epoch": "e", "number": 3, "data": {}}
        assert (await stage.ask("POST", "/feeds/f/events", event)).body == {"new": 1}
        assert (await stage.ask("POST", "/feeds/f/events", event)).body == {"new": 0}
        assert titles((await read(stage, "f"))[1]) == ["Alice is now online"]
        assert (await stage.ask("POST", "/feeds/f/events", {"x": 1})).body == {"new": 0}


async def test_a_source_is_polled_and_asked_only_for_what_has_changed() -> None:
    async with on_service_stage("feeds", inward=True) as stage, origin() as there:
        feeds = cast("Feeds", stage.service)
        url = f"{there.url}/feed"
        made = await stage.ask("PUT", "/feeds/f/sources", {"url": url, "every": 60})
        assert made.status == 201
        await until(lambda: there.asked)
        await until(lambda: feeds.kept.states["f"].sources[url].etag)
        assert len(titles((await read(stage, "f"))[1])) == 1
        feeds.kept.states["f"].sources[url].next_at = 0.0
        await until(lambda: len(there.asked) == 2)
        assert there.asked[1]["If-None-Match"] == '"v1"'
        assert there.asked[1]["If-Modified-Since"] == "yesterday"
        await until(lambda: feeds.kept.states["f"].sources[url].next_at)
        shown = await stage.ask("GET", "/feeds/f/sources")
        assert (shown.body[0]["failures"], shown.body[0]["problem"]) == (0, "")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/a", "circle"),
        ("/on/1", "without end"),
        ("/endless", "more than"),
        ("/nowhere", "404"),
        ("/page", "neither RSS nor Atom"),
    ],
)
async def test_a_source_that_circles_never_ends_or_is_not_there_fails_and_says_how(
    path: str, problem: str
) -> None:
    async with on_service_stage("feeds", inward=True) as stage, origin() as there:
        feeds = cast("Feeds", stage.service)
        url = there.url + path
        await stage.ask("PUT", "/feeds/f/sources", {"url": url})
        await until(lambda: feeds.kept.states["f"].sources[url].failures)
        [shown] = (await stage.ask("GET", "/feeds/f/sources")).body
        assert problem in shown["problem"]
        assert (await read(stage, "f"))[0] == 200  # the feed itself is well
        gone = await stage.ask("DELETE", f"/feeds/f/sources?url={url}")
        assert gone.status == 204
        assert (await stage.ask("DELETE", f"/feeds/f/sources?url={url}")).status == 404


async def test_a_source_that_redirects_inwards_is_not_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of all addresses that are not public, the service accepts only that of the test's
    own origin.
    """
    monkeypatch.setattr(outward, "is_outward", lambda address: address == "127.0.0.1")
    async with on_service_stage("feeds") as stage, origin() as there:
        feeds, url = cast("Feeds", stage.service), f"{there.url}/inwards"
        assert (await stage.ask("PUT", "/feeds/f/sources", {"url": url})).status == 201
        await until(lambda: feeds.kept.states["f"].sources[url].failures)
        [shown] = (await stage.ask("GET", "/feeds/f/sources")).body
        assert shown["problem"] == "http://10.0.0.1/secret leads to an address that is not public"


async def test_an_entry_is_made_of_what_is_published_in_another_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_events.py").write_text(RULES)
    monkeypatch.syspath_prepend(tmp_path)
    async with (
        on_service_stage("feeds", rules="of_events") as feeds,
        on_service_stage("pubsub", manager=feeds.manager, inward=True) as topics,
    ):
        target = {"target": f"{feeds.url}/feeds/friends/events"}
        assert (await topics.ask("POST", "/topics/Alice/subscriptions", target)).status == 201
        for number in (1, 2):
            made = await topics.ask("POST", "/topics/Alice/messages", {"data": {"online": True}})
            assert (made.status, made.body["number"], made.body["refusing"]) == (200, number, 0)
        shown = (await read(feeds, "friends"))[1]
        assert titles(shown) == ["Alice is now online", "Alice is now online"]


async def test_whichever_process_has_an_item_takes_it_where_the_owner_does_not_answer() -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(on_service_stage("feeds"))
        second = await stack.enter_async_context(on_service_stage("feeds", manager=first.manager))
        one, two = cast("Feeds", first.service), cast("Feeds", second.service)
        await until(lambda: one.owners.owner.ranges and two.owners.owner.ranges)
        name = next(f"f{i}" for i in range(1000) if two.owners.owner.check(f"f{i}"))
        await until(lambda: one.owners.lookup.find(name) == two.owners.owner.address)
        assert (await first.ask("POST", f"/feeds/{name}/bodies", RSS)).body == {"new": 2}
        assert name in two.kept.states
        assert name not in one.kept.states
        tag = (await read(first, name))[2]["ETag"]
        assert (await read(first, name, **{"If-None-Match": tag}))[0] == 304
        two.owners.lookup = cast("Any", Left())  # as while it hands over
        assert (await first.ask("POST", f"/feeds/{name}/bodies", RSS)).body == {"new": 0}
        one.owners.lookup = cast("Any", Elsewhere())  # its belief is out of date
        assert (await first.ask("POST", f"/feeds/{name}/bodies", RSS)).body == {"new": 2}
        assert name in one.kept.states
        assert one.owners.processed_elsewhere == 1


async def test_who_leaves_says_that_a_feed_is_handed_over_and_its_new_owner_is_asked() -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(on_service_stage("feeds"))
        second = await stack.enter_async_context(on_service_stage("feeds", manager=first.manager))
        one, two = cast("Feeds", first.service), cast("Feeds", second.service)
        await until(lambda: one.owners.owner.ranges and two.owners.owner.ranges)
        two.owners.is_leaving = True
        mine = next(f"f{i}" for i in range(1000) if one.owners.owner.check(f"f{i}"))
        private = two.owners.owner.address
        async with first.session.post(
            f"{private}/feeds/{mine}/bodies", data=RSS, headers={feed_owners.HOP: "1"}
        ) as response:
            assert response.status == feed_owners.MOVED
        assert mine not in two.kept.states
        one.owners.lookup = cast("Any", Late([private, one.owners.owner.address]))
        assert (await first.ask("POST", f"/feeds/{mine}/bodies", RSS)).body == {"new": 2}
        assert (len(one.kept.states[mine].seen), one.owners.processed_elsewhere) == (2, 0)


async def test_an_owner_that_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets an answer all the same: the request is carried out here."""
    monkeypatch.setattr(feed_owners, "ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(feed_owners, "AGAIN_SECONDS", 0.1)

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    async with silent, on_service_stage("feeds") as stage:
        owners = cast("Feeds", stage.service).owners
        owners.lookup = cast("Any", Late([address] * 100))
        async with asyncio.timeout(20):
            assert (await stage.ask("POST", "/feeds/f/bodies", RSS)).body == {"new": 2}
        assert owners.processed_elsewhere == 1


async def test_what_an_owner_refuses_is_passed_on_with_when_to_come_again() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    busy = await asyncio.start_server(refuse, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{busy.sockets[0].getsockname()[1]}"
    async with busy, on_service_stage("feeds") as stage:
        cast("Feeds", stage.service).owners.lookup = cast("Any", Late([address]))
        answer = await stage.ask("POST", "/feeds/f/bodies", RSS)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "7")


async def test_where_an_owner_sends_to_another_place_nobody_is_asked() -> None:
    asked: list[str] = []

    async def inside(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")
        writer.close()

    async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        to = f"Location: http://127.0.0.1:{hidden.sockets[0].getsockname()[1]}/keys".encode()
        writer.write(b"HTTP/1.1 302 No\r\n" + to + b"\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    hidden = await asyncio.start_server(inside, "127.0.0.1", 0)
    liar = await asyncio.start_server(lie, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{liar.sockets[0].getsockname()[1]}"
    async with hidden, liar, on_service_stage("feeds") as stage:
        cast("Feeds", stage.service).owners.lookup = cast("Any", Late([address]))
        answer = await stage.ask("POST", "/feeds/f/bodies", RSS)
    assert (answer.status, asked) == (302, [])


class Late:
    """Learns only later which process has a feed now."""

    def __init__(self, addresses: list[str]) -> None:
        self.addresses = addresses

    def find(self, _: object) -> str:
        return self.addresses.pop(0)


class Left:
    """Has ended, before the process that it belongs to."""

    def find(self, _: object) -> str:
        raise UsageError("this Lookup was left")


class Elsewhere:
    """Finds an owner that does not answer."""

    def find(self, _: object) -> str:
        return "http://127.0.0.1:1"


async def test_a_feed_that_nobody_uses_goes_and_says_when_it_went() -> None:
    async with on_service_stage("feeds") as stage:
        feeds = cast("Feeds", stage.service)
        wall, steady = [1e9], [0.0]
        feeds.kept._wall = lambda: wall[0]
        feeds.kept.states._fair = FairTime(lambda: Instant(seconds(steady[0])))
        assert (await stage.ask("GET", "/feeds/f")).status == 404
        await stage.ask("POST", "/feeds/f/bodies", RSS)
        sweep_all(feeds)
        assert (await stage.ask("POST", "/feeds/f/refresh")).status == 204
        wall[0] += feeds.settings.ttl  # somebody has set the clock
        sweep_all(feeds)
        assert (await read(stage, "f"))[0] == 200
        steady[0] += feeds.settings.ttl
        wall[0] += feeds.settings.ttl
        sweep_all(feeds)
        gone = await stage.ask("GET", "/feeds/f")
        assert (gone.status, gone.body["gone_at"] > 1e9) == (410, True)
        feeds.kept.states["f"].gone_at = 1.0
        sweep_all(feeds)
        assert (await stage.ask("GET", "/feeds/f")).status == 404
        assert not feeds.kept.states


async def test_feeds_are_swept_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_feeds, "SWEPT", 2)
    async with on_service_stage("feeds") as stage:
        feeds = cast("Feeds", stage.service)
        for number in range(5):
            await stage.ask("POST", f"/feeds/{number}/bodies", RSS)
            feeds.kept.states[str(number)].expires = 0.0
        gone = []
        for _ in range(8):
            feeds.kept.sweep(feeds.outward, feeds.owners.owner.check)
            gone.append(sum(1 for each in feeds.kept.states.values() if each.gone_at))
        assert gone[-1] == 5
        assert all(after - before <= 2 for before, after in itertools.pairwise(gone))


def sweep_all(feeds: Feeds) -> None:
    for _ in range(3):
        feeds.kept.sweep(feeds.outward, feeds.owners.owner.check)


BAD_BODIES: list[tuple[str, bytes, int, str]] = [
    ("bodies", b"no xml", 422, "no_feed"),
    ("bodies", BOMB, 422, "entities"),
    ("bodies", b" " * 800_000, 413, "limit"),
    ("events", b"[1]", 422, "shape"),
    ("events", b"{", 400, "json"),
]
BAD_SOURCES: list[tuple[object, str]] = [
    ({"url": "http://10.0.0.1/feed"}, "inward"),
    ({"url": "file:///etc/passwd"}, "url"),
    ({"url": "http://8.8.8.8/", "every": 1}, "every"),
    ({"url": 7}, "shape"),
    ({"url": "http://8.8.8.8/" + "\u00e9" * 1000}, "limit"),
]


async def test_the_document_says_that_bodies_are_xml_and_feeds_are_atom() -> None:
    async with on_service_stage("feeds") as stage:
        paths = (await stage.ask("GET", "/openapi.json")).body["paths"]
        (pushed,) = paths["/feeds/{key}/bodies"]["post"]["requestBody"]["content"]
        answers = paths["/feeds/{key}"]["get"]["responses"]
        assert pushed == "application/xml"
        assert list(answers["200"]["content"]) == ["application/atom+xml"]
        assert {"401", "403"} <= set(answers)


async def test_bad_bodies_and_sources_get_a_clear_answer_and_make_no_feed() -> None:
    async with on_service_stage("feeds") as stage:
        for path, body, status, error in BAD_BODIES:
            refused = await stage.ask("POST", f"/feeds/f/{path}", body)
            assert (refused.status, refused.body["error"]) == (status, error)
        for source, error in BAD_SOURCES:
            refused = await stage.ask("PUT", "/feeds/f/sources", source)
            assert (refused.status, refused.body["error"]) == (
                413 if error == "limit" else 422,
                error,
            )
        assert (await stage.ask("GET", "/feeds/f")).status == 404


async def test_a_client_that_goes_away_disturbs_nobody() -> None:
    async with on_service_stage("feeds") as stage:
        with pytest.raises(TimeoutError):
            await stage.session.post(
                f"{stage.url}/feeds/f/bodies",
                data=RSS,
                timeout=aiohttp.ClientTimeout(total=0.0001),
            )
        assert (await stage.ask("POST", "/feeds/g/bodies", RSS)).status == 200
