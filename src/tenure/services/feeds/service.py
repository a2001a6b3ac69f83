"""The feeds service. Consistency is weak by choice (PRS 3.1), and requests are capped (PRS 3.3).

A request goes to the process that owns the feed, if that is known and answers. Nobody checks it:
whichever process has a request carries it out, on what it has of the feed. Then nothing has to be
refused while an owner is gone, or while a range moves; and items may be missing or double.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated, Any, ClassVar

import aiohttp
import msgspec
from aiohttp import hdrs, web
from yarl import URL

from tenure import Credentials, Lookup, Owner
from tenure.errors import ServiceRefusal
from tenure.services.feeds.atom import MEDIA_TYPE, rendered
from tenure.services.feeds.feed_owners import OUTSTANDING, FeedOwners
from tenure.services.feeds.feed_state import ITEMS, SOURCES, URL_BYTES, FeedSource
from tenure.services.feeds.kept_feeds import FEEDS, GONE_SECONDS, KeptFeeds
from tenure.services.feeds.parser_processes import READING, ParserProcesses
from tenure.services.feeds.parsing import LIMITS
from tenure.services.feeds.rules import rules_named
from tenure.services.limits import OF_PARTS, ServiceLimit, ShortText
from tenure.services.operations import BoundHandler, ServiceAnswer, ServiceRequest, operation
from tenure.services.outward import Outward
from tenure.services.service import MakePort, Service, ServiceSettings
from tenure.services.serving import ServiceDoor

FEED = "/feeds/{key}"
LEAST_EVERY = 60.0
WATCHDOG_SECONDS = 10.0


class ItemsTaken(msgspec.Struct):
    """The fate of the items that were given."""

    new: int


class SourceGiven(msgspec.Struct, forbid_unknown_fields=True):
    """A feed elsewhere, to be polled."""

    url: ShortText
    every: float = 3600.0
    """Seconds."""


class SourceNamed(msgspec.Struct, forbid_unknown_fields=True):
    """The name of one source."""

    url: ShortText


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
        *(ITEMS, SOURCES, URL_BYTES),
        *(*LIMITS, READING, OUTSTANDING, FEEDS),
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
        self._watchdog = watchdog
        self.rules = rules_named(settings.rules)
        self.parsers = ParserProcesses()
        self.kept = KeptFeeds(self.rules, settings.ttl, wall, self.parsers.items_in)
        self.outward: Outward
        self.owners: FeedOwners

    @asynccontextmanager
    async def running(self, make_port: MakePort) -> AsyncIterator[None]:
        settings, credentials = self.settings, self._credentials
        async with AsyncExitStack() as stack:
            self.outward = Outward(inward=settings.inward)
            stack.push_async_callback(self.outward.close)
            stack.push_async_callback(self.parsers.close)
            session = await stack.enter_async_context(aiohttp.ClientSession())
            address = await stack.enter_async_context(self.private(make_port))
            lookup = Lookup(settings.managers, pool=settings.pool, credentials=credentials)
            owner = Owner(
                settings.managers,
                pool=settings.pool,
                address=settings.address or address,
                hand_off=self.kept.states,
                lookup=lookup,
                watchdog=self._watchdog,
                credentials=credentials,
            )
            self.owners = FeedOwners(owner, lookup, session, credentials)
            await stack.enter_async_context(owner)  # it makes the pool, if it is the first
            await stack.enter_async_context(lookup)
            sweeping = asyncio.create_task(self.kept.sweep_often(self.outward, owner.check))
            try:
                yield
            finally:
                self.owners.is_leaving = True
                sweeping.cancel()
                await asyncio.wait({sweeping})

    @asynccontextmanager
    async def private(self, make_port: MakePort) -> AsyncIterator[str]:
        """The address at which the other processes of the service reach this one."""
        announced = self.settings.address or ""

        def check(request: web.Request, *, is_read: bool) -> None:
            """No page in a browser asks this: it would say its origin, or another name for us."""
            del is_read  # processes of this service may do both
            is_for_us = request.host == URL(announced).host_port_subcomponent
            if hdrs.ORIGIN in request.headers or not is_for_us:
                why = "only processes of this service may ask here; clients ask at its --listen"
                raise ServiceRefusal(403, "page", why)

        listener = ServiceDoor(self, make_port, check).port
        host, _, port = self.settings.members.rpartition(":")
        tls = self._credentials.for_listening()
        try:
            bound = await listener.listen(host.strip("[]"), int(port), tls)
            url = f"{self._credentials.scheme}://{host}:{bound}"
            announced = announced or url
            yield url
        finally:
            await listener.close()

    async def carried_out(self, handler: BoundHandler, asked: ServiceRequest) -> ServiceAnswer:
        """Let the owner of the feed carry out an operation, if it answers."""
        answer = await self.owners.answer(asked) if asked.key else None
        return await handler(asked) if answer is None else answer

    # --- what can be asked ---

    @operation(
        "POST",
        FEED + "/bodies",
        "Push RSS or Atom into a feed",
        {200: ItemsTaken},
        document="application/xml",
    )
    async def push(self, asked: ServiceRequest) -> ServiceAnswer:
        """The body is the document itself."""
        body = await asked.request.read()
        items = self.rules.transformed(await self.parsers.items_in(body))
        return ServiceAnswer(200, ItemsTaken(self.kept.take(asked.key, items)))

    @operation(
        "POST",
        FEED + "/events",
        "Tell a feed of an event, of which its rules make entries",
        {200: ItemsTaken},
        body=Annotated[dict[ShortText, Any], OF_PARTS],
    )
    async def tell(self, asked: ServiceRequest) -> ServiceAnswer:
        """Such as a message of pubsub, to which the feed's URL is subscribed."""
        items = self.rules.items_of(asked.body)
        return ServiceAnswer(200, ItemsTaken(self.kept.take(asked.key, items) if items else 0))

    @operation(
        "GET",
        FEED,
        "Read a feed as Atom",
        {200: str, 304: None},
        media=MEDIA_TYPE,
        headers={"If-None-Match": "Answer 304 if it is still the same"},
        refusals=(404, 410),
    )
    async def read(self, asked: ServiceRequest) -> ServiceAnswer:
        """Read the feed as the process has it that owns it, if that answers."""
        state = self.kept.there(asked.key)
        tag = {"ETag": f'"{state.tag}"'}
        if asked.headers.get("If-None-Match", "").strip() == tag["ETag"]:
            return ServiceAnswer(304, None, tag)
        return ServiceAnswer(200, rendered(asked.key, state), {**tag, "Content-Type": MEDIA_TYPE})

    @operation("PUT", FEED + "/sources", "Have a feed polled", {201: SourceShown}, body=SourceGiven)
    async def add_source(self, asked: ServiceRequest) -> ServiceAnswer:
        """Read a source from now on; the process that owns the feed does."""
        given: SourceGiven = asked.body
        if not LEAST_EVERY <= given.every <= GONE_SECONDS:
            raise ServiceRefusal(
                422, "every", f"every is {LEAST_EVERY:g} to {GONE_SECONDS:g} seconds"
            )
        URL_BYTES.check(len(given.url.encode()))
        self.outward.checked(given.url)
        source = self.kept.add_source(asked.key, given.url, given.every)
        return ServiceAnswer(201, _shown(given.url, source))

    @operation(
        "GET",
        FEED + "/sources",
        "List the sources of a feed, and how they are",
        {200: list[SourceShown]},
        refusals=(404, 410),
    )
    async def list_sources(self, asked: ServiceRequest) -> ServiceAnswer:
        """List the sources, with their last problems."""
        sources = self.kept.there(asked.key).sources
        return ServiceAnswer(200, [_shown(url, source) for url, source in sources.items()])

    @operation(
        "DELETE",
        FEED + "/sources",
        "Stop polling a source",
        {204: None},
        query=SourceNamed,
        refusals=(404, 410),
    )
    async def remove_source(self, asked: ServiceRequest) -> ServiceAnswer:
        """Remove a source; the items that came from it stay."""
        state = self.kept.there(asked.key)
        if state.sources.pop(asked.query.url, None) is None:
            raise ServiceRefusal(404, "unknown", "the feed has no such source")
        self.kept.keep(asked.key, state)
        return ServiceAnswer(204)

    @operation("POST", FEED + "/refresh", "Keep a feed", {204: None}, refusals=(404, 410))
    async def refresh(self, asked: ServiceRequest) -> ServiceAnswer:
        """Keep the feed for its whole time from now on, as every change does."""
        self.kept.keep(asked.key, self.kept.there(asked.key))
        return ServiceAnswer(204)

    @operation("DELETE", FEED, "Delete a feed", {204: None}, refusals=(404, 410))
    async def delete(self, asked: ServiceRequest) -> ServiceAnswer:
        """Delete the feed, with its sources."""
        self.kept.there(asked.key)
        self.kept.end(asked.key)
        return ServiceAnswer(204)


def _shown(url: str, source: FeedSource) -> SourceShown:
    return SourceShown(url, source.every, source.failures, source.problem)
