"""What `Series` and `Mapping` share: a place in a class of entities, reads, and tokens of pages.

A collection stands in the class, and has no items itself. Read through `self` it is a view: the
collection of one key, as the turn sees it.
"""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec
from xxhash import xxh3_64_digest

from tenure.base.names import shown
from tenure.entities.item_codec import ItemCodec
from tenure.entities.turn_items import PAGE_ITEMS
from tenure.errors import ConfigurationError, UsageError
from tenure.protocol.entity.items import ItemSpan

if TYPE_CHECKING:
    from tenure.entities.entity import Entity
    from tenure.entities.entity_turn import EntityTurn

T = TypeVar("T")
FIRST = 50
"""How many items a page has unless it is said."""
MOST_TOKEN = 4096
"""The most characters of a page's token, which has two places at most."""


class Collection:
    """A collection in a class of entities."""

    def __init__(self, item: Any) -> None:  # noqa: ANN401  # of any form
        self.name = self.label = ""
        self.codec = ItemCodec(item)

    def __set_name__(self, owner: type, name: str) -> None:
        if self.name:
            raise ConfigurationError(
                f"{self.label} and {owner.__name__}.{name} are one collection: make another for "
                "each name"
            )
        self.name, self.label = name, f"{owner.__name__}.{name}"

    def __set__(self, entity: "Entity[Any]", value: object) -> None:
        raise UsageError(
            f"{self.label} is a collection, and cannot be assigned: change its items, as with "
            f"self.{self.name}.remove"
        )


class ItemRead(Generic[T]):
    """A read of a collection: await it. In a plain `def` method, which has a thread, `wait()`."""

    __slots__ = ("_loop", "_reading")

    def __init__(self, turn: "EntityTurn", reading: Coroutine[Any, Any, T]) -> None:
        self._loop = turn.loop
        self._reading = reading

    def __await__(self) -> Generator[Any, None, T]:
        return self._reading.__await__()

    def wait(self) -> T:
        """Wait for it in a thread. Raises UsageError in the event loop itself."""
        try:
            is_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_loop = False
        if is_loop:
            self._reading.close()
            raise UsageError("wait() would block the event loop: await the read instead")
        return asyncio.run_coroutine_threadsafe(self._reading, self._loop).result()


PlaceBytes: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=1024)]


class PageToken(msgspec.Struct, array_like=True):
    """Where a page ends, and the next one begins."""

    of: Annotated[bytes, msgspec.Meta(max_length=8)]
    """Which collection of which key it is of, as a digest."""
    low: PlaceBytes
    high: PlaceBytes | None
    reverse: bool


_token: msgspec.msgpack.Decoder[PageToken] = msgspec.msgpack.Decoder(PageToken)


def token_of(turn: "EntityTurn", name: str, rest: ItemSpan | None) -> str | None:
    """The token of the page that comes next, as a text that may be part of a URL."""
    if rest is None:
        return None
    token = PageToken(_digest(turn, name), *rest)
    return urlsafe_b64encode(msgspec.msgpack.encode(token)).decode()


def span_of(turn: "EntityTurn", collection: Collection, token: object) -> ItemSpan:
    """The span that a token tells. Raises UsageError for one of another key or collection."""
    found = read_token(token)
    if found.of != _digest(turn, collection.name):
        raise UsageError(
            f"this next is of a page of another key, or of another collection, than "
            f"{collection.label} of {turn.call.key!r:.100}"
        )
    return ItemSpan(found.low, found.high, found.reverse)


def read_token(token: object) -> PageToken:
    """What a token says. Raises UsageError for what is none."""
    if isinstance(token, str | bytes) and len(token) <= MOST_TOKEN:
        try:
            return _token.decode(urlsafe_b64decode(token))
        except ValueError:  # also of base64, and of a str that is not ASCII
            pass
    raise UsageError(f"next is what a page has as its next, not {shown(token)}")


def _digest(turn: "EntityTurn", name: str) -> bytes:
    return xxh3_64_digest(msgspec.msgpack.encode((turn.live.pool, turn.call.key, name)))


def check_page(first: object, token: object, **given: object) -> None:
    """Raise UsageError for a page that cannot be asked for: a token says the rest itself."""
    if type(first) is not int or not 0 < first <= PAGE_ITEMS:
        raise UsageError(f"first is a number from 1 to {PAGE_ITEMS}, not {shown(first)}")
    for name, value in given.items():
        if token is not None and value is not None and value is not False:
            raise UsageError(f"next goes on as the page before did: leave out {name}=")
