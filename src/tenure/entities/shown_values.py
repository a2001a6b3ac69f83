"""Values of the application in JSON, for people: states, items, and where items are."""

from collections.abc import Callable
from datetime import datetime
from struct import error as StructError  # noqa: N812  # a class
from typing import Any

import msgspec

from tenure.base.names import shown
from tenure.entities.collection import Collection
from tenure.entities.mapping import Mapping
from tenure.entities.series import Series, series_item
from tenure.entities.state_versions import FIRST, VERSION_FIELD
from tenure.errors import MALFORMED
from tenure.protocol.entity.inspection import JSON_CHARACTERS, WORDS_CHARACTERS, SeenItem

_unpack: Callable[[bytes], Any] = msgspec.msgpack.Decoder().decode
NOT_SHOWN = '"(too large to be shown: {} bytes)"'


def state_in_json(data: bytes) -> tuple[str, int]:
    """A kept state, and the version of the class that kept it; empty, and 0, before any."""
    if not data:
        return "", 0
    try:
        plain = _unpack(data)
    except MALFORMED as error:
        return in_json(f"this cannot be read: {error}"), 0
    version = FIRST
    if isinstance(plain, dict):
        version = plain.pop(VERSION_FIELD, FIRST)
    return in_json(plain), version if type(version) is int and version > 0 else 0


def in_json(plain: Any) -> str:  # noqa: ANN401  # of any form
    """A plain value. What JSON has no word for is shown as Python writes it."""
    try:
        data = msgspec.json.encode(plain)
    except (TypeError, ValueError, RecursionError):
        data = msgspec.json.encode(shown(plain))
    if len(data) > JSON_CHARACTERS:
        return NOT_SHOWN.format(f"{len(data):,}")
    return data.decode()


def seen_item(collection: Collection | None, place: bytes, data: bytes) -> SeenItem:
    """An item of a collection; None is one that the class does not have any more."""
    at: object = place.hex()
    added: datetime | None = None
    try:
        if isinstance(collection, Series):
            at, added, data = series_item(place, data)
        elif isinstance(collection, Mapping):
            at = collection.named(place)
        value = in_json(_unpack(data))
    except (*MALFORMED, OverflowError, OSError, StructError) as error:
        value = in_json(f"this cannot be read: {error}")
    when = None if added is None else added.timestamp()
    return SeenItem(at=str(at)[:WORDS_CHARACTERS], value=value, added=when)
