"""RSS and Atom, from strangers.

feedparser reads what real feeds have. It is not made for XML that means harm: entities that grow a
thousandfold, or that read files, and elements so deep that whoever walks them runs out of stack. So
expat looks at the body first, and what it finds there is refused before feedparser sees it.
Entities are refused whatever they say: no feed needs any but those that XML has by itself.
"""

import io
from datetime import UTC, datetime
from time import struct_time
from typing import Any
from xml.parsers import expat

import msgspec

from tenure.errors import ConfigurationError, ServiceRefusal
from tenure.services.limits import TOO_LARGE, ServiceLimit

DEPTH = ServiceLimit("xml_depth", 64, TOO_LARGE, "no feed is that deep; what is, is meant to harm")
ELEMENTS = ServiceLimit(
    "xml_elements", 50_000, TOO_LARGE, "a feed has some hundred entries of some twenty elements"
)
ATTRIBUTES = ServiceLimit("xml_attributes", 100, TOO_LARGE, "of one element")
ENTRIES = ServiceLimit("entries", 1000, TOO_LARGE, "a feed shows its last entries")
TEXT_CHARACTERS = 4000
"""Of an item's text; the rest is cut off."""
NAME_CHARACTERS = 500
"""Of everything else."""


class FeedItem(msgspec.Struct, frozen=True):
    """An entry of a feed."""

    id: str
    title: str
    user: str = ""
    """Whose doing it tells of."""
    link: str = ""
    text: str = ""
    at: float = 0.0
    """When, in seconds since 1970; 0 where the feed does not say."""
    parts: tuple[str, ...] = ()
    """The ids of the items of which this one was made."""


def items_in(body: bytes) -> list[FeedItem]:
    """The items of a feed. Raises ServiceRefusal for what is no feed, or means harm."""
    check_xml(body)
    found: Any = _feedparser().parse(io.BytesIO(body), resolve_relative_uris=False)
    if not found.version:
        raise ServiceRefusal(422, "no_feed", "the body is XML, and neither RSS nor Atom")
    ENTRIES.check(len(found.entries))
    return [_item(each, found.feed) for each in found.entries]


def _feedparser() -> Any:  # noqa: ANN401  # a module without types
    try:
        import feedparser  # noqa: PLC0415  # whoever serves no feeds need not have it
    except ImportError:
        raise ConfigurationError(
            "feeds are read by feedparser, which is not installed: pip install 'tenure[feeds]'"
        ) from None
    return feedparser


def _item(entry: Any, feed: Any) -> FeedItem:  # noqa: ANN401  # dicts of feedparser
    title = _text(entry.get("title"))
    link = _text(entry.get("link"))
    # feedparser's own `get` answers for `updated` what is only published, and warns of it.
    at = dict.get(entry, "updated_parsed") or dict.get(entry, "published_parsed")
    return FeedItem(
        id=_text(entry.get("id")) or link or title,
        title=title,
        user=_text(entry.get("author") or feed.get("author")),
        link=link if link.startswith(("http://", "https://")) else "",
        text=str(entry.get("summary") or "")[:TEXT_CHARACTERS],
        at=_seconds(at) if at else 0.0,
    )


def _text(found: object) -> str:
    return str(found or "").strip()[:NAME_CHARACTERS]


def _seconds(at: struct_time) -> float:
    try:
        return datetime(*at[:6], tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def check_xml(body: bytes) -> None:
    """Raise ServiceRefusal for what is no XML, or XML that means harm."""
    parser = expat.ParserCreate()
    looking = _Looking()
    parser.StartElementHandler = looking.on_start
    parser.EndElementHandler = looking.on_end
    parser.EntityDeclHandler = _refuse_entity
    parser.UnparsedEntityDeclHandler = _refuse_entity
    parser.ExternalEntityRefHandler = _refuse_entity
    parser.SkippedEntityHandler = _refuse_entity
    try:
        parser.Parse(body, True)  # noqa: FBT003  # expat's
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise ServiceRefusal(422, "no_feed", f"the body is no XML: {error}") from None


def _refuse_entity(*_: object) -> int:
    raise ServiceRefusal(422, "entities", "the body declares entities, which no feed needs")


class _Looking:
    """Counts."""

    def __init__(self) -> None:
        self._depth = 0
        self._elements = 0

    def on_start(self, _: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        DEPTH.check(self._depth)
        ELEMENTS.check(self._elements)
        ATTRIBUTES.check(len(attributes))

    def on_end(self, _: str) -> None:
        self._depth -= 1
