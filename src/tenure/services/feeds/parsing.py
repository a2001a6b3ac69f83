"""RSS and Atom, from strangers.

feedparser reads what real feeds have. It is not made for malicious XML: entities that grow a
thousandfold, or that read files, and elements nested so deep that a program that walks them runs
out of stack. So expat looks at the body first, and such bodies are refused before feedparser sees
them. All entities are refused: no feed needs any but those that are built into XML.

feedparser also searches the text with patterns that take hours for a long text, during which its
whole process stands still. So a process of its own reads feeds (`parser_processes`), and the texts
that are known to take long are bounded here: everything before the
first element, in which the patterns even find entities that expat does not, such as in a comment;
the first line; and names of people. Styles of elements in a text are left out for the same reason.
"""

import io
import re
from datetime import UTC, datetime
from time import struct_time
from typing import Any
from xml.parsers import expat

import msgspec

from tenure.errors import ServiceRefusal
from tenure.services.limits import TOO_LARGE, ServiceLimit

DEPTH = ServiceLimit("xml_depth", 64, TOO_LARGE, "no real feed is nested that deep")
ELEMENTS = ServiceLimit(
    "xml_elements", 50_000, TOO_LARGE, "a feed has some hundred entries of some twenty elements"
)
ATTRIBUTES = ServiceLimit("xml_attributes", 100, TOO_LARGE, "of one element")
HEAD_BYTES = ServiceLimit(
    "xml_head_bytes", 2048, TOO_LARGE, "before the first element: declarations and a comment"
)
PERSON_CHARACTERS = ServiceLimit(
    "person_characters", 2000, TOO_LARGE, "of an author's name, in which an address is looked for"
)
ENTRIES = ServiceLimit("entries", 1000, TOO_LARGE, "a feed shows its last entries")
LIMITS = (ENTRIES, DEPTH, ELEMENTS, ATTRIBUTES, HEAD_BYTES, PERSON_CHARACTERS)
TEXT_CHARACTERS = 4000
"""The most characters of an item's text; the rest is cut off."""
NAME_CHARACTERS = 500
"""The most characters of everything else."""
PEOPLE = frozenset(
    {"author", "contributor", "creator", "managingeditor", "owner", "publisher", "webmaster"}
)
ELEMENT = re.compile(rb"<\w")


class FeedItem(msgspec.Struct, frozen=True):
    """An entry of a feed."""

    id: str
    title: str
    user: str = ""
    """The user whose action it describes."""
    link: str = ""
    text: str = ""
    at: float = 0.0
    """When it happened, in seconds since 1970; 0 if the feed does not say."""
    parts: tuple[str, ...] = ()
    """The ids of the items of which this one was made."""


def items_in(body: bytes) -> list[FeedItem]:
    """The items of a feed. Raises ServiceRefusal if the body is not a feed, or is malicious."""
    root = check_xml(body)
    lines = b"\n".join((body[:root], body[root:]))
    reader = load_feedparser()
    try:
        found: Any = reader.parse(io.BytesIO(lines), resolve_relative_uris=False)
    except Exception as error:  # the cause of any failure is in the body
        raise ServiceRefusal(422, "no_feed", f"the feed cannot be read: {error!r:.200}") from error
    if not found.version:
        raise ServiceRefusal(422, "no_feed", "the body is XML, and neither RSS nor Atom")
    ENTRIES.check(len(found.entries))
    return [_item(each, found.feed) for each in found.entries]


def load_feedparser() -> Any:  # noqa: ANN401  # a module without types
    """The module, which whoever serves no feeds need not have."""
    import feedparser  # noqa: PLC0415
    from feedparser.sanitizer import _HTMLSanitizer  # noqa: PLC0415

    _HTMLSanitizer.acceptable_attributes.discard("style")
    return feedparser


def _item(entry: Any, feed: Any) -> FeedItem:  # noqa: ANN401  # dicts of feedparser
    title = _text(entry.get("title"))
    link = _text(entry.get("link"))
    # feedparser's own `get` returns `published` for a missing `updated`, and warns.
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


def check_xml(body: bytes) -> int:
    """The place at which the first element begins. Raises ServiceRefusal if the body is not XML, or
    is malicious.
    """
    if b"\0" in body:
        raise ServiceRefusal(422, "no_feed", "the body has bytes that are zero: send it in UTF-8")
    first = ELEMENT.search(body)
    root = first.start() if first else len(body)
    HEAD_BYTES.check(root)
    if b"<!ENTITY" in body[:root]:
        _refuse_entity()
    parser = expat.ParserCreate()
    looking = _Looking()
    parser.StartElementHandler = looking.on_start
    parser.EndElementHandler = looking.on_end
    parser.CharacterDataHandler = looking.on_text
    parser.EntityDeclHandler = _refuse_entity
    parser.SkippedEntityHandler = _refuse_entity
    try:
        parser.Parse(body, True)  # noqa: FBT003  # expat's
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise ServiceRefusal(422, "no_feed", f"the body is not XML: {error}") from None
    return root


def _refuse_entity(*_: object) -> int:
    raise ServiceRefusal(422, "entities", "the body has entities, which no feed needs")


class _Looking:
    """Counts elements, their depth, and the bytes of names of people."""

    def __init__(self) -> None:
        self._depth = 0
        self._elements = 0
        self._person = 0
        """The depth of the element that describes a person; 0 outside of such elements."""
        self._characters = 0
        """How many characters that element has."""

    def on_start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        DEPTH.check(self._depth)
        ELEMENTS.check(self._elements)
        ATTRIBUTES.check(len(attributes))
        if not self._person and name.rpartition(":")[2].lower() in PEOPLE:
            self._person, self._characters = self._depth, 0

    def on_text(self, text: str) -> None:
        if self._person:
            self._characters += len(text)
            PERSON_CHARACTERS.check(self._characters)

    def on_end(self, _: str) -> None:
        if self._depth == self._person:
            self._person = 0
        self._depth -= 1
