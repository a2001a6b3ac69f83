"""The feeds service. Consistency is weak by choice (PRS 3.1), and requests are capped (PRS 3.3).

A request goes to the process that owns the feed, if that is known and answers. Nobody checks it:
whichever process has a request carries it out, on what it has of the feed. Then nothing has to be
refused while an owner is gone, or while a range moves; and items may be missing or double.

What is under way to one owner is capped. A request beyond that is refused at once, so an owner that
is slow does not take the connections of those that are well.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import islice
from typing import Any, ClassVar

import aiohttp
import msgspec
from aiohttp import web

from tenure import Credentials, KeyedState, Lookup, Owner
from tenure.errors import ServiceRefusal
from tenure.services.address_slots import AddressSlots
from tenure.services.feeds.atom import MEDIA_TYPE, rendered
from tenure.services.feeds.feed_state import ITEMS, SOURCES, FeedSource, FeedState
from tenure.services.feeds.parsing import (
    ATTRIBUTES,
    DEPTH,
    ELEMENTS,
    ENTRIES,
    FeedItem,
    items_in,
)
from tenure.services.feeds.polling import polled
from tenure.services.feeds.rules import rules_named
from tenure.services.limits import OVERLOADED, ServiceLimit
from tenure.services.operations import Operation, ServiceAnswer, ServiceRequest, operation
from tenure.services.outward import Outward
from tenure.services.service import Service, ServiceSettings
from tenure.services.serving import ServiceDoor

FEED = "/feeds/{key}"
HOP = "Tenure-Hop"
"""Of a request that another process of the service has passed on: it is carried out here."""
OUTSTANDING = ServiceLimit(
    "outstanding", 100, OVERLOADED, "requests to one owner, which must not take those to others"
)
FEEDS = ServiceLimit(
    "feeds", 100_000, OVERLOADED, "a process has as many, its own and those that came to it"
)
POLLS = 8
"""Sources that are asked at a time."""
LEAST_EVERY = 60.0
SWEEP_SECONDS = 1.0
SWEPT = 5000
"""Feeds that are looked at in one step."""
GONE_SECONDS = 86_400.0
ANSWER_SECONDS = 10.0
"""For the owner to answer."""
AGAIN_SECONDS = 1.0
"""For which an owner is looked for that answers; after that the request is carried out here."""
MOVED = 421
WATCHDOG_SECONDS = 10.0
logger = logging.getLogger("tenure.services")


class ItemsTaken(msgspec.Struct):
    """What came of items."""

    new: int


class SourceGiven(msgspec.Struct, forbid_unknown_fields=True):
    """A feed elsewhere, to be polled."""

    url: str
    every: float = 3600.0
    """Seconds."""


class SourceNamed(msgspec.Struct, forbid_unknown_fields=True):
    """Which one."""

    url: str


class SourceShown(msgspec.Struct):
    """A source, and how it is."""

    url: str
    every: float
    failures: int
    problem: str


class Feeds(Service[Any]):
    """One process of it."""

    name: ClassVar[str] = "feeds"
    port: ClassVar[int] = 8104
    takes: ClassVar[frozenset[str]] = frozenset({"rules", "inward"})
    limits: ClassVar[tuple[ServiceLimit, ...]] = (
        *(ITEMS, SOURCES, ENTRIES, DEPTH, ELEMENTS, ATTRIBUTES),
        *(OUTSTANDING, FEEDS),
    )

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        wall: Callable[[], float] = time.time,
        watchdog: float | None = WATCHDOG_SECONDS,
        credentials: Credentials | None = None,
    ) -> None:
        self.settings = self.checked(settings)
        self._credentials = credentials or Credentials.from_environment()
        self.rules = rules_named(settings.rules)
        self.states: KeyedState[FeedState] = KeyedState(value_type=FeedState)
        self._wall = wall
        self._watchdog = watchdog
        self._until: dict[str, float] = {}
        """Until when feeds last that were used here, by a clock that nobody sets."""
        self._outstanding = AddressSlots(OUTSTANDING.most)
        self._polling: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._sweep: Iterator[str] = iter(())
        self._is_leaving = False
        self.processed_elsewhere = 0
        """Requests that were carried out here, though another process owns their feeds."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """See `Service`."""
        settings = self.settings
        async with AsyncExitStack() as stack:
            self.outward = Outward(inward=self.settings.inward)
            stack.push_async_callback(self.outward.close)
            self._session = await stack.enter_async_context(aiohttp.ClientSession())
            address = await stack.enter_async_context(self.private())
            self.lookup = Lookup(
                settings.managers, pool=settings.pool, credentials=self._credentials
            )
            self.owner = Owner(
                settings.managers,
                pool=settings.pool,
                address=settings.address or address,
                hand_off=self.states,
                lookup=self.lookup,
                watchdog=self._watchdog,
                credentials=self._credentials,
            )
            await stack.enter_async_context(self.owner)  # it makes the pool, if it is the first
            await stack.enter_async_context(self.lookup)
            sweeping = asyncio.create_task(self._sweep_often())
            try:
                yield
            finally:
                self._is_leaving = True
                tasks = [sweeping, *self._polling.values()]
                for each in tasks:
                    each.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    @asynccontextmanager
    async def private(self) -> AsyncIterator[str]:
        """Where the other processes of the service reach this one."""
        runner = web.AppRunner(ServiceDoor(self).app, access_log=None, handle_signals=False)
        await runner.setup()
        host, _, port = self.settings.members.rpartition(":")
        try:
            tls = self._credentials.for_listening()
            await web.TCPSite(runner, host.strip("[]"), int(port), ssl_context=tls).start()
            yield f"{self._credentials.scheme}://{host}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    # --- where ---

    async def _at_owner(self, asked: ServiceRequest) -> ServiceAnswer | None:
        """The owner's answer; None where the request is to be carried out here."""
        if HOP in asked.headers:
            if self._is_leaving and self.owner.check(asked.key) is None:
                raise ServiceRefusal(MOVED, "moved", "the feed has been handed over")
            return None  # its lookup has ended already if this process leaves
        until = asyncio.get_running_loop().time() + AGAIN_SECONDS
        while True:
            address = self.lookup.find(asked.key)
            if address is None or address == self.owner.address:
                return None
            answer = await self._asked_of(address, asked)
            if answer is not None:
                return answer
            if asyncio.get_running_loop().time() > until:
                self.processed_elsewhere += 1
                return None
            await asyncio.sleep(AGAIN_SECONDS / 10)  # if it leaves, another has the feed soon

    async def _asked_of(self, address: str, asked: ServiceRequest) -> ServiceAnswer | None:
        """The answer of an owner; None where it does not answer, or has the feed no more."""
        if self._outstanding.is_full(address):
            raise OUTSTANDING.exceeded(OUTSTANDING.most + 1)
        headers = {HOP: "1"}
        for name in ("Content-Type", "If-None-Match"):
            if name in asked.headers:
                headers[name] = asked.headers[name]
        try:
            async with (
                self._outstanding.slot(address),
                self._session.request(
                    asked.request.method,
                    address + asked.request.rel_url.raw_path_qs,
                    data=await asked.request.read(),
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
                    ssl=self._credentials.to(address) or True,
                ) as response,
            ):
                if response.status == MOVED:
                    return None
                kept = {
                    name: response.headers[name]
                    for name in ("Content-Type", "ETag")
                    if name in response.headers
                }
                return ServiceAnswer(response.status, await response.read() or None, kept)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            logger.info("%s does not answer for %.100r: %s", address, asked.key, error)
            return None

    def _there(self, key: str) -> FeedState:
        found = self.states.get(key)
        if found is None:
            raise ServiceRefusal(404, "unknown", "there is no such feed here")
        if found.gone_at:
            raise ServiceRefusal(410, "gone", "the feed has gone", gone_at=found.gone_at)
        return found

    def _there_or_new(self, key: str) -> FeedState:
        found = self.states.get(key)
        if found is None:
            FEEDS.check(len(self.states) + 1)
        if found is None or found.gone_at:
            found = FeedState(self._wall() + self.settings.ttl, updated=self._wall())
        return found

    def _keep(self, key: str, state: FeedState) -> None:
        """Whoever uses a feed refreshes it."""
        state.expires = self._wall() + self.settings.ttl
        self._until[key] = asyncio.get_running_loop().time() + self.settings.ttl
        self.states[key] = state

    def _take(self, key: str, items: list[FeedItem]) -> int:
        state = self._there_or_new(key)
        new = state.take(items, self._wall(), self.rules.join)
        self._keep(key, state)
        return new

    # --- what can be asked ---

    @operation(
        Operation(
            "POST",
            FEED + "/bodies",
            "Push RSS or Atom into a feed",
            {200: ItemsTaken},
            document="application/xml",
        )
    )
    async def push(self, asked: ServiceRequest) -> ServiceAnswer:
        """The body is the document itself."""
        answer = await self._at_owner(asked)
        if answer is not None:
            return answer
        body = await asked.request.read()
        items = await asyncio.to_thread(items_in, body)
        return ServiceAnswer(200, ItemsTaken(self._take(asked.key, self.rules.transformed(items))))

    @operation(
        Operation(
            "POST",
            FEED + "/events",
            "Tell a feed of an event, of which its rules make entries",
            {200: ItemsTaken},
            body=dict[str, Any],
        )
    )
    async def tell(self, asked: ServiceRequest) -> ServiceAnswer:
        """Such as a message of pubsub, to which the feed's URL is subscribed."""
        answer = await self._at_owner(asked)
        if answer is not None:
            return answer
        items = self.rules.items_of(asked.body)
        return ServiceAnswer(200, ItemsTaken(self._take(asked.key, items) if items else 0))

    @operation(
        Operation(
            "GET",
            FEED,
            "Read a feed as Atom",
            {200: str, 304: None},
            media=MEDIA_TYPE,
            headers={"If-None-Match": "ServiceAnswer 304 if it is still the same"},
            refusals=(404, 410),
        )
    )
    async def read(self, asked: ServiceRequest) -> ServiceAnswer:
        """As the process has it that owns it, if it answers."""
        answer = await self._at_owner(asked)
        if answer is not None:
            return answer
        state = self._there(asked.key)
        tag = {"ETag": f'"{state.tag}"'}
        if asked.headers.get("If-None-Match", "").strip() == tag["ETag"]:
            return ServiceAnswer(304, None, tag)
        return ServiceAnswer(200, rendered(asked.key, state), {**tag, "Content-Type": MEDIA_TYPE})

    @operation(
        Operation(
            "PUT", FEED + "/sources", "Have a feed polled", {201: SourceShown}, body=SourceGiven
        )
    )
    async def add_source(self, asked: ServiceRequest) -> ServiceAnswer:
        """From now on, by the process that owns the feed."""
        given: SourceGiven = asked.body
        if not LEAST_EVERY <= given.every <= GONE_SECONDS:
            raise ServiceRefusal(
                422, "every", f"every is {LEAST_EVERY:g} to {GONE_SECONDS:g} seconds"
            )
        self.outward.checked(given.url)
        answer = await self._at_owner(asked)
        if answer is not None:
            return answer
        state = self._there_or_new(asked.key)
        if given.url not in state.sources:
            SOURCES.check(len(state.sources) + 1)
        source = state.sources.setdefault(given.url, FeedSource(given.every))
        source.every = given.every
        self._keep(asked.key, state)
        return ServiceAnswer(201, _shown(given.url, source))

    @operation(
        Operation(
            "GET",
            FEED + "/sources",
            "List the sources of a feed, and how they are",
            {200: list[SourceShown]},
            refusals=(404, 410),
        )
    )
    async def list_sources(self, asked: ServiceRequest) -> ServiceAnswer:
        """With their last problems."""
        answer = await self._at_owner(asked)
        if answer is not None:
            return answer
        sources = self._there(asked.key).sources
        return ServiceAnswer(200, [_shown(url, source) for url, source in sources.items()])

    @operation(
        Operation(
            "DELETE",
            FEED + "/sources",
            "Poll a source no more",
            {204: None},
            query=SourceNamed,
            refusals=(404, 410),
        )
    )
    async def remove_source(self, asked: ServiceRequest) -> ServiceAnswer:
        """What came from it stays."""
        answer = await self._at_owner(asked)
        if answer is not None:
            return answer
        state = self._there(asked.key)
        if state.sources.pop(asked.query.url, None) is None:
            raise ServiceRefusal(404, "unknown", "the feed has no such source")
        self._keep(asked.key, state)
        return ServiceAnswer(204)

    @operation(
        Operation("POST", FEED + "/refresh", "Keep a feed", {204: None}, refusals=(404, 410))
    )
    async def refresh(self, asked: ServiceRequest) -> ServiceAnswer:
        """As everything does that changes it."""
        answer = await self._at_owner(asked)
        if answer is None:
            self._keep(asked.key, self._there(asked.key))
        return answer or ServiceAnswer(204)

    @operation(Operation("DELETE", FEED, "Delete a feed", {204: None}, refusals=(404, 410)))
    async def delete(self, asked: ServiceRequest) -> ServiceAnswer:
        """With its sources."""
        answer = await self._at_owner(asked)
        if answer is None:
            self._there(asked.key)
            self._end(asked.key)
        return answer or ServiceAnswer(204)

    # --- what happens by itself ---

    async def _sweep_often(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep()

    def sweep(self) -> None:
        """Look at some feeds: those that nobody uses go, and sources are polled."""
        now, steady = self._wall(), asyncio.get_running_loop().time()
        some = list(islice(self._sweep, SWEPT))
        if not some:
            self._sweep = iter([each for each in self.states if isinstance(each, str)])
        for key in some:
            state = self.states.get(key)
            if state is None:
                self._until.pop(key, None)
            elif state.gone_at:
                if state.gone_at + GONE_SECONDS <= now:
                    del self.states[key]
            elif state.expires <= now and self._until.get(key, 0.0) <= steady:
                self._end(key)
            elif self.owner.check(key) is not None:
                self._poll_due(key, state, now)

    def _end(self, key: str) -> None:
        self._until.pop(key, None)
        self.states[key] = FeedState(0.0, gone_at=self._wall())

    def _poll_due(self, key: str, state: FeedState, now: float) -> None:
        for url, source in state.sources.items():
            is_free = len(self._polling) < POLLS and (key, url) not in self._polling
            if source.next_at <= now and is_free:
                self._polling[key, url] = asyncio.create_task(self._poll(key, url, source))

    async def _poll(self, key: str, url: str, source: FeedSource) -> None:
        try:
            items = await polled(self.outward, url, source, self._wall())
            state = self.states.get(key)
            if state is None or url not in state.sources:
                return  # it has gone meanwhile
            state.sources[url] = source
            # A source that changes nothing must not keep a feed that nobody reads.
            state.take(self.rules.transformed(items), self._wall(), self.rules.join)
            with suppress(KeyError):
                self.states.touch(key)
        except Exception:
            logger.exception("polling %.200s failed", url)
            source.failed(self._wall(), "it failed")
        finally:
            del self._polling[key, url]


def _shown(url: str, source: FeedSource) -> SourceShown:
    return SourceShown(url, source.every, source.failures, source.problem)
