"""Looking into entities from outside: what operators ask of an owner, and what it answers.

Answers are for people, so they are cut: there are bounds on what one shows, and it says what it
leaves out. Contents are a state, items, the names of alarms and the like: everything that the
application wrote. An owner that is not asked for them does not send them.
"""

from typing import Annotated, TypeAlias

import msgspec

from tenure.base.keys import KEY_BYTES, RangeKey
from tenure.base.numbers import Number
from tenure.protocol.entity.copying import CopiedLines, CopyEntity, PutDone, PutEntity
from tenure.protocol.entity.key_line import NAME_CHARACTERS, EntityKey, Name

PAGE_KEYS = 1000
"""The most keys of one answer."""
WALKED_KEYS = 5000
"""The most keys that an owner looks at for one answer, whichever of them are asked for."""
PLACE_BYTES = 4500
"""The most bytes of a place in a list of keys: a key of as many characters as a call may have, as
some store spells it. It travels in URLs, which are not much longer.
"""
PAGE_ITEMS = 100
ITEMS_BYTES = 1 << 18
"""A page of items ends with the one that brings it to this size."""
COUNTED_ITEMS = 1000
"""Up to so many items of a collection are counted."""
SHOWN_PARTS = 100
"""The most alarms, sockets and collections of one entity that are shown."""
JSON_CHARACTERS = 1 << 20
"""The longest state, or item, that is shown."""
WORDS_CHARACTERS = 2000
JsonText: TypeAlias = Annotated[str, msgspec.Meta(max_length=JSON_CHARACTERS)]
"""A value of the application in JSON; empty if it is not shown."""
Words: TypeAlias = Annotated[str, msgspec.Meta(max_length=WORDS_CHARACTERS)]
ListPlace: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=PLACE_BYTES)]
ItemPlace: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=1024)]


class FindKeys(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Ask for keys of which something is kept."""

    start: ListPlace
    end: RangeKey | None
    """The part of the key space whose keys are asked for, of an owner that has only its own."""
    after: ListPlace = b""
    """Where the list before ended."""
    prefix: Annotated[str, msgspec.Meta(max_length=KEY_BYTES)] = ""
    """What the keys begin with: then they are texts."""
    most: Annotated[int, msgspec.Meta(ge=1, le=PAGE_KEYS)] = PAGE_KEYS


class FoundKeys(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Some keys, and where the list goes on."""

    keys: Annotated[tuple[EntityKey, ...], msgspec.Meta(max_length=2 * PAGE_KEYS)]
    """More than were asked for, where no place between them fits into a message."""
    next: ListPlace | None
    """None after the last."""
    of_pool: bool
    """Whether the list is of all keys of the pool: a store has them all."""
    start: ListPlace = b""
    """Where in the key space that is, of an owner that has only its own keys."""


class ShowEntity(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Ask for one entity."""

    key: EntityKey
    contents: bool
    collection: Annotated[str, msgspec.Meta(max_length=NAME_CHARACTERS)] = ""
    """The collection of which a page is asked for."""
    after: ItemPlace | None = None
    """The place of the last item of the page before."""
    most: Annotated[int, msgspec.Meta(ge=1, le=PAGE_ITEMS)] = PAGE_ITEMS


class SeenAlarm(msgspec.Struct, frozen=True, kw_only=True):
    """An alarm that is set. Instants are wall time, in seconds."""

    name: Words
    due: float
    next_at: float
    """When it rings; later than it was due if its handler has failed."""
    attempts: Number


class SeenSocket(msgspec.Struct, frozen=True, kw_only=True):
    """A socket of a client."""

    id: Annotated[str, msgspec.Meta(max_length=128)]
    edge: Words
    """The address of the process that has it."""
    unread: Number
    """How many frames are on their way to it."""
    closing: Number
    """The code with which it is being closed; 0 while it is open."""


class SeenCollection(msgspec.Struct, frozen=True, kw_only=True):
    """A collection, and how large it is."""

    name: Name
    items: Number
    has_more: bool
    """Whether there are more items than were counted."""


class SeenItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a collection."""

    at: Words
    """Its number, or its name."""
    value: JsonText
    added: float | None = None
    """When it was added to a series, in seconds."""


class SeenEntity(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One entity. What is not shown for want of room, or of the right to see it, is empty."""

    number: Number
    """The number of the lease under which its owner has it."""
    journal: Number
    kept: bool
    """Whether anything is kept of it."""
    awake: bool
    """Whether it is in the memory of its owner, ready for calls."""
    turn: Words
    """Which call has the turn; empty if none has."""
    waiting: Number
    """How many calls wait for a turn."""
    state: JsonText
    state_bytes: Number
    version: Number
    """The version of the class that kept the state; 0 without a state, or where it is not shown."""
    answers: Number
    """How many answers of calls are kept."""
    alarms: Annotated[tuple[SeenAlarm, ...], msgspec.Meta(max_length=SHOWN_PARTS)]
    alarms_set: Number
    sockets: Annotated[tuple[SeenSocket, ...], msgspec.Meta(max_length=SHOWN_PARTS)]
    sockets_open: Number
    collections: Annotated[tuple[SeenCollection, ...], msgspec.Meta(max_length=SHOWN_PARTS)]
    page: Annotated[tuple[SeenItem, ...], msgspec.Meta(max_length=PAGE_ITEMS)] = ()
    next: ItemPlace | None = None
    """Where the page of the collection goes on; None after the last."""


class NotSeen(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The owner cannot answer."""

    why: Words
    way_out: Words
    may_repeat: bool = False
    """Whether the same question may be answered in a moment."""


InspectionQuestion: TypeAlias = FindKeys | ShowEntity | CopyEntity | PutEntity
InspectionAnswer: TypeAlias = FoundKeys | SeenEntity | CopiedLines | PutDone | NotSeen
