"""A feed as Atom (RFC 4287)."""

import re
from datetime import UTC, datetime
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, tostring

from tenure.services.feeds.feed_state import FeedState
from tenure.services.feeds.parsing import FeedItem

ATOM = "http://www.w3.org/2005/Atom"
MEDIA_TYPE = "application/atom+xml"
NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def rendered(name: str, state: FeedState) -> bytes:
    """Render a feed as an Atom document."""
    feed = Element("feed", xmlns=ATOM)
    _put(feed, "id", f"urn:tenure:feed:{quote(name, safe='')}")
    _put(feed, "title", name)
    _put(feed, "updated", _instant(state.updated))
    for each in state.items:
        _entry(SubElement(feed, "entry"), each)
    found: bytes = tostring(feed, encoding="utf-8", xml_declaration=True)
    return found


def _entry(entry: Element, item: FeedItem) -> None:
    _put(entry, "id", f"urn:tenure:item:{quote(item.id, safe='')}")
    _put(entry, "title", item.title)
    _put(entry, "updated", _instant(item.at))
    _put(SubElement(entry, "author"), "name", item.user or "unknown")
    if item.link:
        SubElement(entry, "link", href=_text(item.link))
    if item.text:
        _put(entry, "summary", item.text).set("type", "html")


def _put(parent: Element, name: str, text: str) -> Element:
    child = SubElement(parent, name)
    child.text = _text(text)
    return child


def _text(text: str) -> str:
    """The text without characters that XML cannot have."""
    return NOT_XML.sub("", text)


def _instant(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return "1970-01-01T00:00:00Z"
