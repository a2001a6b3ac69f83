"""The state of one feed, and how items come into it.

Nobody checks who owns the feed (PRS 3.1): a process puts each item that it receives into what it
has of the feed. So two processes may have parts of a feed, and items may be missing or duplicated.
This service accepts that, because people read what it makes.
"""

from hashlib import blake2b

import msgspec

from tenure.services.feeds.parsing import FeedItem
from tenure.services.feeds.rules import Joining
from tenure.services.limits import NONE_REFUSED, TOO_LARGE, TOO_MANY, ServiceLimit

ITEMS = ServiceLimit(
    "items", 100, NONE_REFUSED, "a feed shows its last items; older ones are dropped"
)
SOURCES = ServiceLimit("sources", 20, TOO_MANY, "each is polled for as long as the feed is kept")
URL_BYTES = ServiceLimit(
    "url_bytes", 2000, TOO_LARGE, "a feed moves with all its sources, and with its neighbours"
)
MOST_SEEN = 1000
"""How many ids of items that came already are kept."""
COALESCE_SECONDS = 3600.0
"""Items of one user within this time become one."""
MOST_PARTS = 20
"""The most items of which one is made."""
ITEMS_BYTES = 512 * 1024
"""The most bytes of all items of a feed: a state that is too large to move would keep other states
from moving, too.
"""
MOST_POLL_SECONDS = 86_400.0
_encode = msgspec.msgpack.Encoder().encode


class FeedSource(msgspec.Struct):
    """A feed somewhere, which is polled."""

    every: float
    next_at: float = 0.0
    etag: str = ""
    modified: str = ""
    failures: int = 0
    """How many failures there were in a row."""
    problem: str = ""
    """The text of the last failure."""

    def succeeded(self, now: float, etag: str, modified: str) -> None:
        """The source was read, or was unchanged."""
        self.etag, self.modified = etag[:500], modified[:100]
        self.failures, self.problem, self.next_at = 0, "", now + self.every

    def failed(self, now: float, problem: str) -> None:
        """The source was not read: poll it less and less often."""
        self.failures += 1
        self.problem = problem[:500]
        self.next_at = now + min(self.every * 2.0 ** min(self.failures, 20), MOST_POLL_SECONDS)


class FeedState(msgspec.Struct):
    expires: float
    items: list[FeedItem] = []
    """The newest first."""
    seen: list[str] = []
    """Short names of items that have come already, the oldest first."""
    sources: dict[str, FeedSource] = {}
    updated: float = 0.0
    """When it last changed."""
    gone_at: float = 0.0
    """When the feed ended, in which case nothing else is left of it; 0 if it did not."""

    def take(self, items: list[FeedItem], now: float, join: Joining) -> int:
        """Put items in, coalesced with present ones; returns how many are new."""
        known, new = set(self.seen), dict[str, FeedItem]()
        for each in items:
            if each.title and (name := _short(each.id)) not in known:
                new.setdefault(name, each)
        for each in new.values():
            self._take(each if each.at else msgspec.structs.replace(each, at=now), join)
        if new:
            self.updated = now
            self.seen = [*self.seen, *new][-MOST_SEEN:]
            self.items.sort(key=lambda each: -each.at)
            self._trim()
        return len(new)

    def _take(self, item: FeedItem, join: Joining) -> None:
        for place, there in enumerate(self.items):
            if coalesces(there, item):
                parts = sorted((there, item), key=lambda each: each.at)
                self.items[place] = join(parts)
                return
        self.items.append(item)

    def _trim(self) -> None:
        size = 0
        for place, each in enumerate(self.items):
            size += len(_encode(each))
            if place >= ITEMS.most or size > ITEMS_BYTES:
                del self.items[place:]
                return

    @property
    def tag(self) -> str:
        """The tag of the contents, for `ETag`."""
        return f"{len(self.items)}-{self.updated:.6f}"


def _short(id_: str) -> str:
    return blake2b(id_.encode(), digest_size=9).hexdigest()


def coalesces(one: FeedItem, other: FeedItem) -> bool:
    """Whether two items become one."""
    return (
        bool(one.user)
        and one.user == other.user
        and abs(one.at - other.at) <= COALESCE_SECONDS
        and len(one.parts) + len(other.parts) < MOST_PARTS
    )
