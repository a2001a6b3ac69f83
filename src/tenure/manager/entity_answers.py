"""The answers of the JSON API about entities."""

from typing import Any, Literal

import msgspec

from tenure.protocol.entity.inspection import (
    SeenAlarm,
    SeenCollection,
    SeenEntity,
    SeenItem,
    SeenSocket,
)
from tenure.protocol.entity.key_line import EntityKey
from tenure.protocol.lease.answers import OwnerSummary


class EntityName(msgspec.Struct, frozen=True):
    """The key of an entity, in the form in which requests give it: `?key=attic` or `?int=7`."""

    form: Literal["key", "int"]
    key: str


class KeysPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some keys of a pool, and the token of those that follow; no token after the last."""

    pool: str
    keys: tuple[EntityName, ...]
    next: str | None
    unowned: int
    """How many ranges were passed over because nobody has them."""


class ShownItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a collection: its number or name, when it was added to a series, and its value."""

    at: str
    added: float | None
    value: Any


class ShownEntity(msgspec.Struct, frozen=True, kw_only=True):
    """One entity. Without `contents`, all that the application wrote is left out."""

    pool: str
    key: EntityName
    owner: str
    address: str
    number: int
    """The number of the lease under which the owner has it."""
    journal: str
    kept: bool
    """Whether anything is kept of it."""
    awake: bool
    """Whether it is in the memory of its owner, ready for calls."""
    contents: bool
    turn: str
    """The method that has the turn."""
    waiting: int
    """How many calls wait for a turn."""
    state: Any
    state_bytes: int
    version: int
    answers: int
    alarms: tuple[SeenAlarm, ...]
    alarms_set: int
    sockets: tuple[SeenSocket, ...]
    sockets_open: int
    collections: tuple[SeenCollection, ...]
    items: tuple[ShownItem, ...]
    """A page of the collection that was asked for."""
    next: str | None


def named(key: EntityKey) -> EntityName:
    """A key as it is given back. Browsers know no integers of 64 bits."""
    return EntityName("int" if isinstance(key, int) else "key", str(key))


def shown_entity(
    pool: str, key: EntityKey, owner: OwnerSummary, seen: SeenEntity, *, contents: bool
) -> ShownEntity:
    """What an owner has told, for people. Raises ValueError for what is no JSON."""
    return ShownEntity(
        pool=pool,
        key=named(key),
        owner=owner.name,
        address=owner.address,
        number=seen.number,
        journal=f"{seen.journal:016x}",
        kept=seen.kept,
        awake=seen.awake,
        contents=contents,
        turn=seen.turn,
        waiting=seen.waiting,
        state=value_of(seen.state),
        state_bytes=seen.state_bytes,
        version=seen.version,
        answers=seen.answers,
        alarms=seen.alarms,
        alarms_set=seen.alarms_set,
        sockets=seen.sockets,
        sockets_open=seen.sockets_open,
        collections=seen.collections,
        items=tuple(map(_item, seen.page)),
        next=None,
    )


def _item(seen: SeenItem) -> ShownItem:
    return ShownItem(at=seen.at, added=seen.added, value=value_of(seen.value))


def value_of(text: str) -> Any:  # noqa: ANN401  # of any form
    """The value of the application that an owner has told. Raises ValueError for what is none."""
    return msgspec.json.decode(text) if text else None
