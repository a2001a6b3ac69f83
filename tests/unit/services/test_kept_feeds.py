"""A process keeps its feeds by itself: it polls the sources of the feeds that it owns, some at a
time, and polling keeps nothing that nobody uses.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from tenure.services.feeds.kept_feeds import POLLS, SWEEP_SECONDS, KeptFeeds
from tenure.services.feeds.parsing import FeedItem, items_in
from tenure.services.feeds.rules import FeedRules
from tenure.services.outward import Outward, OutwardAnswer
from tenure.testing.clock import come_to_rest
from tests.unit.services.test_feed_items import RSS, item

pytestmark = pytest.mark.asyncio
TTL = 100.0


class SlowOrigins:
    """Feeds of others, none of which answers before the test lets it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_asked = asyncio.Event()
        self.may = asyncio.Event()
        self.fails = False
        self.given_up = 0

    async def ask(self, method: str, url: str, *_: object, **__: object) -> OutwardAnswer:
        assert method == "GET"
        self.asked.append(url)
        self.is_asked.set()
        try:
            await self.may.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.fails:
            raise ArithmeticError("a fault of ours")
        return OutwardAnswer(200, {}, RSS)


async def read_at_once(body: bytes) -> list[FeedItem]:
    return items_in(body)


class Polled:
    """The feeds of a process, with a clock that is turned."""

    def __init__(self, owned: set[str]) -> None:
        self.now = 1000.0
        self.origins = SlowOrigins()
        self.owned = owned
        self.kept = KeptFeeds(FeedRules(), TTL, lambda: self.now, read_at_once)

    @property
    def outward(self) -> Outward:
        return cast("Outward", self.origins)

    def owns(self, key: str) -> object:
        return True if key in self.owned else None

    async def sweep(self) -> None:
        for _ in range(2):  # one of them looks which there are
            self.kept.sweep(self.outward, self.owns)
        await come_to_rest()

    async def answer(self) -> None:
        self.origins.may.set()
        async with asyncio.timeout(60):
            await asyncio.gather(*self.kept._polling.values(), return_exceptions=True)


@asynccontextmanager
async def polled(*owned: str) -> AsyncIterator[Polled]:
    there = Polled(set(owned))
    try:
        yield there
    finally:
        await there.answer()


async def test_so_many_sources_are_asked_at_a_time_and_none_twice() -> None:
    async with polled("f") as there:
        for number in range(POLLS + 5):
            there.kept.add_source("f", f"http://a.test/{number}", 60.0)
        await there.sweep()
        await there.sweep()
        assert len(there.origins.asked) == POLLS
        await there.answer()
        await there.sweep()
        assert sorted(there.origins.asked) == sorted(there.kept.states["f"].sources)


async def test_a_source_that_is_slow_is_asked_once() -> None:
    async with polled("f") as there:
        there.kept.add_source("f", "http://a.test/", 60.0)
        for _ in range(3):
            await there.sweep()
        assert there.origins.asked == ["http://a.test/"]


async def test_sources_are_polled_by_the_owner_of_their_feed_alone() -> None:
    async with polled("ours") as there:
        for name in ("ours", "theirs"):
            there.kept.add_source(name, f"http://{name}.test/", 60.0)
        await there.sweep()
        assert there.origins.asked == ["http://ours.test/"]


@pytest.mark.parametrize("is_feed_gone", [False, True])
async def test_what_a_source_brings_that_was_removed_meanwhile_is_left(is_feed_gone: bool) -> None:
    async with polled("f") as there:
        there.kept.take("f", [item("1")])
        there.kept.add_source("f", "http://a.test/", 60.0)
        await there.sweep()
        if is_feed_gone:
            del there.kept.states["f"]
        else:
            del there.kept.states["f"].sources["http://a.test/"]
        await there.answer()
        if is_feed_gone:
            assert not there.kept.states
        else:
            state = there.kept.states["f"]
            assert ([each.id for each in state.items], state.sources) == (["1"], {})


async def test_a_poll_that_fails_by_our_fault_is_a_failure_of_the_source_and_of_no_other() -> None:
    async with polled("f") as there:
        source = there.kept.add_source("f", "http://a.test/", 60.0)
        there.origins.fails = True
        await there.sweep()
        await there.answer()
        assert (source.failures, source.problem) == (1, "it failed")
        assert source.next_at == there.now + 120.0


async def test_what_a_poll_brings_is_kept_and_moves_but_keeps_no_feed_that_nobody_uses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with polled("f") as there:
        there.kept.add_source("f", "http://a.test/", 60.0)
        before, touched = there.kept.states["f"].expires, list[Any]()
        monkeypatch.setattr(there.kept.states, "touch", touched.append)
        there.now += 50.0
        await there.sweep()
        await there.answer()
        state = there.kept.states["f"]
        assert (len(state.items), state.expires, touched) == (1, before, ["f"])


async def test_who_ends_gives_up_what_is_being_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.services.feeds.kept_feeds.SWEEP_SECONDS", 0.0)
    assert SWEEP_SECONDS
    async with polled("f") as there, asyncio.timeout(60):
        there.kept.add_source("f", "http://a.test/", 60.0)
        sweeping = asyncio.create_task(there.kept.sweep_often(there.outward, there.owns))
        await there.origins.is_asked.wait()
        sweeping.cancel()
        await asyncio.wait({sweeping})
        assert (there.origins.given_up, there.kept._polling) == (1, {})
