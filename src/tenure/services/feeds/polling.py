"""Asks feeds elsewhere for what is new: only if they have changed, and never inwards."""

import asyncio

from tenure.errors import ServiceRefusal
from tenure.services.feeds.feed_state import FeedSource
from tenure.services.feeds.parsing import FeedItem, items_in
from tenure.services.limits import BODY_BYTES
from tenure.services.outward import Outward

POLL_SECONDS = 30.0
"""For a whole feed to arrive."""
OK, NOT_MODIFIED = 200, 304


async def polled(outward: Outward, url: str, source: FeedSource, now: float) -> list[FeedItem]:
    """What is new at a source, and note how that went in it."""
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
        items = await asyncio.to_thread(items_in, found.body)
    except ServiceRefusal as error:
        source.failed(now, str(error))
        return []
    source.succeeded(now, found.headers.get("ETag", ""), found.headers.get("Last-Modified", ""))
    return items
