"""A client of feeds: `async with FeedsClient(urls) as feeds`."""

from typing import Any

import msgspec

from tenure.services.client import BlockingService, ServiceClient, blocking, segment
from tenure.services.feeds.service import ItemsTaken, SourceShown

NOT_MODIFIED = 304
_taken = msgspec.json.Decoder(ItemsTaken).decode
_source = msgspec.json.Decoder(SourceShown).decode
_sources = msgspec.json.Decoder(list[SourceShown]).decode


class ReadFeed(msgspec.Struct, frozen=True):
    """A feed that was read."""

    tag: str
    """The tag of these contents: pass it to `read` to get only other contents."""
    atom: bytes


class FeedsClient(ServiceClient):
    """Puts items into feeds, and reads them as Atom.

    Items have ids, so pushing a document again adds nothing twice as long as the same process
    answers: feeds are weakly consistent, and an item may be missing or duplicated.
    """

    async def push(self, feed: str, document: bytes, *, deadline: float | None = None) -> int:
        """Put the items of an RSS or Atom document into a feed; returns how many are new."""
        path, headers = f"{_path(feed)}/bodies", {"Content-Type": "application/xml"}
        reply = await self.ask("POST", path, document, headers=headers, deadline=deadline)
        return _taken(reply.data).new

    async def tell(self, feed: str, event: dict[str, Any], *, deadline: float | None = None) -> int:
        """Tell a feed of an event; returns how many new items its rules have made of it."""
        path = f"{_path(feed)}/events"
        return _taken((await self.ask("POST", path, event, deadline=deadline)).data).new

    async def read(
        self, feed: str, *, if_not: str = "", deadline: float | None = None
    ) -> ReadFeed | None:
        """Read the feed as Atom; None if its contents still have the tag `if_not`."""
        headers = {"If-None-Match": f'"{if_not}"'} if if_not else {}
        reply = await self.ask("GET", _path(feed), headers=headers, deadline=deadline)
        if reply.status == NOT_MODIFIED:
            return None
        return ReadFeed(reply.headers.get("ETag", "").strip('"'), reply.data)

    async def add_source(
        self, feed: str, url: str, *, every: float = 3600.0, deadline: float | None = None
    ) -> SourceShown:
        """Make this feed poll the feed at a URL, every so many seconds."""
        path, body = f"{_path(feed)}/sources", {"url": url, "every": every}
        return _source((await self.ask("PUT", path, body, deadline=deadline)).data)

    async def sources(self, feed: str, *, deadline: float | None = None) -> list[SourceShown]:
        """The sources of a feed, with their last problems."""
        return _sources((await self.ask("GET", f"{_path(feed)}/sources", deadline=deadline)).data)

    async def remove_source(self, feed: str, url: str, *, deadline: float | None = None) -> None:
        """Stop polling a source."""
        path = f"{_path(feed)}/sources?url={segment(url)}"
        await self.ask("DELETE", path, deadline=deadline)

    async def refresh(self, feed: str, *, deadline: float | None = None) -> None:
        """Keep a feed for longer, as every change of it does."""
        await self.ask("POST", f"{_path(feed)}/refresh", deadline=deadline)

    async def delete(self, feed: str, *, deadline: float | None = None) -> None:
        """Delete a feed, with its sources."""
        await self.ask("DELETE", _path(feed), deadline=deadline)


class BlockingFeeds(BlockingService[FeedsClient]):
    """The same for programs without an event loop."""

    push = blocking(FeedsClient.push)
    tell = blocking(FeedsClient.tell)
    read = blocking(FeedsClient.read)
    add_source = blocking(FeedsClient.add_source)
    sources = blocking(FeedsClient.sources)
    remove_source = blocking(FeedsClient.remove_source)
    refresh = blocking(FeedsClient.refresh)
    delete = blocking(FeedsClient.delete)


def _path(feed: str) -> str:
    return f"/feeds/{segment(feed)}"
