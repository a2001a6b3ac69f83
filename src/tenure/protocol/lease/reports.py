"""Reports of owners about what they run beside their leases: caches that read there, and entities.

A report travels with renewals, and is shown to people. Nothing is decided by it, a lost report is
replaced by the next, and each list in it is cut: it has the worst, and how many there are in all.
These structs are not arrays as messages are, because pages and tools read them as JSON.
"""

from typing import Annotated, TypeAlias

import msgspec

from tenure.base.numbers import Number

SHOWN_WRITES = 16
SHOWN_READERS = 8
SHOWN_EDGES = 8
SHOWN_CHARACTERS = 200
Shown: TypeAlias = Annotated[str, msgspec.Meta(max_length=SHOWN_CHARACTERS)]


class WaitingWrite(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A write that waits until caches have let go of what it changes."""

    keys: Shown
    seconds: float
    readers: Annotated[tuple[Shown, ...], msgspec.Meta(max_length=SHOWN_READERS)]
    """Whose acknowledgements it waits for; the first of them. Empty where it waits for its time."""
    missing: Number
    """How many acknowledgements in all."""


class VolumeReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A volume, as its server sees it."""

    readers: Number
    leases: Number
    """The leases on objects, of all readers together."""
    unacknowledged: Number
    """Invalidations."""
    writes: Number
    """The number of writes that are asked for and not done."""
    loads: Number
    """The number of loads under way."""
    waiting: Annotated[tuple[WaitingWrite, ...], msgspec.Meta(max_length=SHOWN_WRITES)] = ()
    """The writes that have waited for longest."""


class SocketsAt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Sockets of entities that the clients of one gateway or process have open."""

    edge: Shown
    """Its address, as the owners reach it."""
    sockets: Number


class EntityReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The entities of one process."""

    kind: Shown
    """The name of their class."""
    instances: Number
    turns: Number
    """The number of turns that run now."""
    waiting: Number
    """Calls that wait for a turn."""
    alarms: Number
    longest: Shown = ""
    """The turn that has run for longest, in words."""
    longest_seconds: float = 0.0
    inspects: bool = False
    """Whether managers may ask what its entities are: see `inspecting`."""
    kept_in: Shown = ""
    """The kind of store that keeps them; empty where they are in memory only."""
    sockets: Number = 0
    """The WebSockets that are attached to them, wherever these end."""
    edges: Annotated[tuple[SocketsAt, ...], msgspec.Meta(max_length=SHOWN_EDGES)] = ()
    """Where they end; the places with the most of them."""


class TierReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The whole report of one owner."""

    volume: VolumeReport | None = None
    entities: EntityReport | None = None
