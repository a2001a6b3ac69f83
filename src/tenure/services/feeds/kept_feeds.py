"""The feeds that one process has, its own and those that came to it, and their upkeep: feeds that
nobody uses go, and the owner of a feed polls its sources.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from typing import TypeAlias

from tenure import KeyedState
from tenure.errors import ServiceRefusal
from tenure.services.feeds.feed_state import SOURCES, FeedSource, FeedState
from tenure.services.feeds.parsing import FeedItem
from tenure.services.feeds.rules import FeedRules
from tenure.services.limits import BODY_BYTES, OVERLOADED, ServiceLimit
from tenure.services.outward import Outward

FEEDS = ServiceLimit(
    "feeds", 100_000, OVERLOADED, "a process keeps that many, its own and those that came to it"
)
POLLS = 8
"""How many sources are polled at a time."""
POLL_SECONDS = 30.0
"""How long a whole feed may take to arrive."""
OK, NOT_MODIFIED = 200, 304
SWEEP_SECONDS = 1.0
SWEPT = 5000
"""How many feeds are looked at in one step."""
GONE_SECONDS = 86_400.0
logger = logging.getLogger("tenure.services")
FeedReader: TypeAlias = Callable[[bytes], Awaitable[list[FeedItem]]]
"""Finds the items in a body. Raises ServiceRefusal if the body is not a feed, or is malicious."""


class KeptFeeds:
    """All feeds of a process, by name."""

    def __init__(
        self, rules: FeedRules, ttl: float, wall: Callable[[], float], read: FeedReader
    ) -> None:
        self.states: KeyedState[FeedState] = KeyedState(value_type=FeedState)
        self._rules = rules
        self._ttl = ttl
        self._wall = wall
        self._read = read
        self._polling: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._sweep: Iterator[str] = iter(())

    def there(self, key: str) -> FeedState:
        """The feed of this name. Raises ServiceRefusal if there is no such feed."""
        found = self.states.get(key)
        if found is None:
            raise ServiceRefusal(404, "unknown", "there is no such feed here")
        if found.gone_at:
            raise ServiceRefusal(410, "gone", "the feed has gone", gone_at=found.gone_at)
        return found

    def _there_or_new(self, key: str) -> FeedState:
        found = self.states.get(key)
        if found is not None and not found.gone_at:
            return found
        FEEDS.check(len(self.states) + (found is None))
        return FeedState(0.0, updated=self._wall())  # until it is kept

    def keep(self, key: str, state: FeedState) -> None:
        """Keep a feed for longer, as every use of it does."""
        state.expires = self.states.fair_now(self._wall()) + self._ttl
        self.states[key] = state

    def take(self, key: str, items: list[FeedItem]) -> int:
        """Put items in; returns how many are new. Raises ServiceRefusal if there are too many
        feeds.
        """
        state = self._there_or_new(key)
        new = state.take(items, self._wall(), self._rules.one_of)
        self.keep(key, state)
        return new

    def add_source(self, key: str, url: str, every: float) -> FeedSource:
        """Have a source polled. Raises ServiceRefusal if there are too many sources."""
        state = self._there_or_new(key)
        if url not in state.sources:
            SOURCES.check(len(state.sources) + 1)
        source = state.sources.setdefault(url, FeedSource(every))
        source.every = every
        self.keep(key, state)
        return source

    def end(self, key: str) -> None:
        """Let a feed go, and remember for a while when that was."""
        self.states[key] = FeedState(0.0, gone_at=self._wall())

    # --- upkeep ---

    async def sweep_often(self, outward: Outward, owns: Callable[[str], object]) -> None:
        """Look at some feeds each second, for ever."""
        try:
            while True:
                await asyncio.sleep(SWEEP_SECONDS)
                self.sweep(outward, owns)
        finally:
            polls = list(self._polling.values())
            for each in polls:
                each.cancel()
            await asyncio.gather(*polls, return_exceptions=True)

    def sweep(self, outward: Outward, owns: Callable[[str], object]) -> None:
        """Look at some feeds: drop those that nobody uses, and poll sources of our own."""
        now = self._wall()
        fair = self.states.fair_now(now)
        some = list(islice(self._sweep, SWEPT))
        if not some:
            self._sweep = iter([each for each in self.states if isinstance(each, str)])
        for key in some:
            state = self.states.get(key)
            if state is None:
                continue
            if state.gone_at:
                if state.gone_at + GONE_SECONDS <= now:
                    del self.states[key]
            elif state.expires <= fair:
                self.end(key)
            elif owns(key) is not None:
                self._poll_due(outward, key, state, now)

    def _poll_due(self, outward: Outward, key: str, state: FeedState, now: float) -> None:
        for url, source in state.sources.items():
            is_free = len(self._polling) < POLLS and (key, url) not in self._polling
            if source.next_at <= now and is_free:
                self._polling[key, url] = asyncio.create_task(self._poll(outward, key, url, source))

    async def _poll(self, outward: Outward, key: str, url: str, source: FeedSource) -> None:
        try:
            items = await polled(outward, url, source, self._wall(), self._read)
            state = self.states.get(key)
            if state is None or url not in state.sources:
                return  # the source was removed meanwhile
            state.sources[url] = source
            # A source that changes nothing must not keep a feed that nobody reads.
            state.take(self._rules.transformed(items), self._wall(), self._rules.one_of)
            self.states.touch(key)
        except Exception:
            logger.exception("polling %.200s failed", url)
            source.failed(self._wall(), "it failed")
        finally:
            del self._polling[key, url]


async def polled(
    outward: Outward, url: str, source: FeedSource, now: float, read: FeedReader
) -> list[FeedItem]:
    """Return what is new at a source, and note in it how the poll went."""
    headers = {"Accept": "application/atom+xml, application/rss+xml, application/xml;q=0.9"}
    if source.etag:
        headers["If-None-Match"] = source.etag
    if source.modified:
        headers["If-Modified-Since"] = source.modified
    try:
        found = await outward.ask("GET", url, BODY_BYTES.most, POLL_SECONDS, headers=headers)
        if found.status == NOT_MODIFIED:
            source.succeeded(now, source.etag, source.modified)
            return []
        if found.status != OK:
            source.failed(now, f"it answers {found.status}")
            return []
        items = await read(found.body)
    except ServiceRefusal as error:
        source.failed(now, str(error))
        return []
    source.succeeded(now, found.headers.get("ETag", ""), found.headers.get("Last-Modified", ""))
    return items
