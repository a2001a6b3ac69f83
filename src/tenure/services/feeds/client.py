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
    """Of these contents: ask with it for others."""
    atom: bytes


class FeedsClient(ServiceClient):
    """Puts items into feeds, and reads them as Atom.

    Items have ids of their own, so pushing a document again puts nothing in twice, as long as the
    same process answers: feeds are weakly consistent, and an item may be missing or double.
    """

    async def push(self, feed: str, document: bytes, *, deadline: float | None = None) -> int:
        """Put in the items of an RSS or Atom document; how many of them are new."""
        path, headers = f"{_path(feed)}/bodies", {"Content-Type": "application/xml"}
        reply = await self.ask("POST", path, document, headers=headers, deadline=deadline)
        return _taken(reply.data).new

    async def tell(self, feed: str, event: dict[str, Any], *, deadline: float | None = None) -> int:
        """Tell it of an event; how many new items its rules have made of that."""
        path = f"{_path(feed)}/events"
        return _taken((await self.ask("POST", path, event, deadline=deadline)).data).new

    async def read(
        self, feed: str, *, if_not: str = "", deadline: float | None = None
    ) -> ReadFeed | None:
        """The feed as Atom; None where it still has the contents that have the tag `if_not`."""
        headers = {"If-None-Match": f'"{if_not}"'} if if_not else {}
        reply = await self.ask("GET", _path(feed), headers=headers, deadline=deadline)
        if reply.status == NOT_MODIFIED:
            return None
        return ReadFeed(reply.headers.get("ETag", "").strip('"'), reply.data)

    async def add_source(
        self, feed: str, url: str, *, every: float = 3600.0, deadline: float | None = None
    ) -> SourceShown:
        """Have the feed at a URL polled, every so many seconds."""
        path, body = f"{_path(feed)}/sources", {"url": url, "every": every}
        return _source((await self.ask("PUT", path, body, deadline=deadline)).data)

    async def sources(self, feed: str, *, deadline: float | None = None) -> list[SourceShown]:
        """What is polled for it, and what the last problems were."""
        return _sources((await self.ask("GET", f"{_path(feed)}/sources", deadline=deadline)).data)

    async def remove_source(self, feed: str, url: str, *, deadline: float | None = None) -> None:
        """Poll it no more."""
        path = f"{_path(feed)}/sources?url={segment(url)}"
        await self.ask("DELETE", path, deadline=deadline)

    async def refresh(self, feed: str, *, deadline: float | None = None) -> None:
        """Keep it for longer, as everything does that changes it."""
        await self.ask("POST", f"{_path(feed)}/refresh", deadline=deadline)

    async def delete(self, feed: str, *, deadline: float | None = None) -> None:
        """Delete it, with its sources."""
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
