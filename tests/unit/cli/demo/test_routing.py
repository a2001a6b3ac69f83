"""The way to an owner: tried again when the lookup is told, or after a pause."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

import aiohttp
import pytest
from aiohttp import web

from tenure import KeyChange
from tenure.base.instants import seconds
from tenure.cli.demo import routing
from tenure.cli.demo.presence import Answered, Status
from tenure.cli.demo.routing import PresenceRequest, Router

pytestmark = pytest.mark.asyncio

STATUS = Status("busy", 1)
USER = "ada"
LONG = seconds(60)


class Table:
    """A lookup of one key, that is told what to say."""

    def __init__(self, address: str | None) -> None:
        self.address = address
        self.then: str | None = None
        """What it becomes a moment after somebody has begun to watch."""
        self.watching: list[tuple[Callable[[KeyChange], object], Watching]] = []

    def find(self, key: str, /) -> str | None:
        assert key == USER
        return self.address

    def watch(self, key: str, callback: Callable[[KeyChange], object], /) -> "Watching":
        assert key == USER
        watching = Watching(self)
        self.watching.append((callback, watching))
        if self.then:
            asyncio.get_running_loop().call_soon(self.become, self.then)
        return watching

    def become(self, address: str) -> None:
        self.address = address
        for callback, _ in self.watching:
            callback(KeyChange(USER, address, lost=False))


class Watching:
    def __init__(self, table: Table) -> None:
        self._table = table

    def cancel(self) -> None:
        self._table.watching = [each for each in self._table.watching if each[1] is not self]


class Owner:
    """Answers what it is told to: that it did it, or where else the key is."""

    def __init__(self) -> None:
        self.url = ""
        self.refuses = True
        self.hint: str | None = None
        self.asked = 0
        self.on_refused: Callable[[], None] = lambda: None

    async def answer(self, _: web.Request) -> web.Response:
        self.asked += 1
        if self.refuses:
            asyncio.get_running_loop().call_soon(self.on_refused)
            return web.json_response({"owner": self.hint}, status=421)
        return web.json_response({"text": STATUS.text, "version": STATUS.version})


@asynccontextmanager
async def owner() -> AsyncIterator[Owner]:
    it = Owner()
    app = web.Application()
    app.router.add_get("/presence/{user}", it.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    it.url = f"http://{host}:{port}"
    try:
        yield it
    finally:
        await runner.cleanup()


@asynccontextmanager
async def refusing_and_serving() -> AsyncIterator[tuple[Owner, Owner]]:
    async with owner() as before, owner() as after:
        after.refuses = False
        yield before, after


@pytest.fixture
def long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for one is not done in time."""
    monkeypatch.setattr(routing, "SHORTEST_PAUSE_NS", LONG)


async def ask(table: Table) -> tuple[Answered | None, routing.RequestCounts]:
    async with aiohttp.ClientSession() as session:
        router = Router(session, table, seconds(20), Random(1))
        async with asyncio.timeout(10):
            done = await router.do(PresenceRequest(USER))
        await router.close()
    return done, router.counts


@pytest.mark.usefixtures("long_pauses")
async def test_it_goes_on_as_soon_as_the_lookup_is_told_where() -> None:
    async with refusing_and_serving() as (before, after):
        table = Table(before.url)
        table.then = after.url
        done, counts = await ask(table)
    assert done == Answered(STATUS)
    assert (before.asked, after.asked, counts.rerouted) == (1, 1, 1)
    assert table.watching == []


@pytest.mark.usefixtures("long_pauses")
async def test_what_the_lookup_was_told_while_the_owner_was_asked_is_not_waited_for() -> None:
    async with refusing_and_serving() as (before, after):
        table = Table(before.url)
        before.on_refused = lambda: table.become(after.url)
        done, _ = await ask(table)
    assert done == Answered(STATUS)
    assert (before.asked, after.asked) == (1, 1)


async def test_where_nothing_is_told_it_tries_again_after_a_pause() -> None:
    async with owner() as only:
        table = Table(only.url)

        def grant() -> None:
            only.refuses = only.asked < 3

        only.on_refused = grant
        done, counts = await ask(table)
    assert done == Answered(STATUS)
    assert (only.asked, counts.refused, counts.rerouted) == (4, 3, 0)


async def test_the_owner_that_refuses_may_know_better_than_the_lookup() -> None:
    async with refusing_and_serving() as (before, after):
        before.hint = after.url
        done, counts = await ask(Table(before.url))
    assert done == Answered(STATUS)
    assert (before.asked, after.asked, counts.rerouted) == (1, 1, 1)


async def test_a_hint_that_is_wrong_is_not_followed_to_and_fro() -> None:
    async with owner() as before, owner() as wrong:
        before.hint, wrong.hint = wrong.url, before.url

        def grant() -> None:
            before.refuses = False

        wrong.on_refused = grant
        done, _ = await ask(Table(before.url))
    assert done == Answered(STATUS)
    assert (before.asked, wrong.asked) == (2, 1)


async def test_what_nobody_does_in_time_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "HOLDS_IN_A_DEADLINE", 0)
    async with owner() as only:
        done, counts = await ask(Table(only.url))
    assert done is None
    assert (counts.requests, counts.failed) == (1, 1)
