"""The events and actions of a cache."""

from typing import Literal, TypeAlias

import msgspec

from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.base.noted import Noted
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.messages import AsOf, ToCache, ToVolumeServer, Value

Outcome = Literal["hit", "value", "absent", "unchanged", "unreachable", "failed"]
WriteOutcome = Literal["written", "failed", "elsewhere", "unknown", "unreachable"]


class CacheConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a cache."""

    server: str = ""
    """The server of every key; empty if `RoutesChanged` says which server has which range."""
    retry_ns: int = seconds(0.5)
    """The time after which a request is repeated, under a new number."""
    patience_ns: int = seconds(5)
    """The time after which a reader is told that its server cannot be reached (V19)."""
    write_patience_ns: int = seconds(30)
    """The time after which a writer is told that the outcome of its write is unknown."""


# --- events -------------------------------------------------------------------------------------


class ServerSaid(msgspec.Struct, frozen=True):
    """A message of a server has arrived."""

    server: str
    message: ToCache


class ObjectWanted(msgspec.Struct, frozen=True):
    """A reader found no entry that it may take; `ticket` is its own number."""

    ticket: int
    key: Key


class WriteWanted(msgspec.Struct, frozen=True):
    """The application writes by the server's store."""

    ticket: int
    key: Key
    value: Value


class RoutesChanged(msgspec.Struct, frozen=True):
    """The server of each range, from here on; None if no server is known."""

    routes: tuple[tuple[KeyRange, str | None], ...]


class WasUsed(msgspec.Struct, frozen=True):
    """There were hits since the last question; `keys` lists the entries whose object leases end
    soon.
    """

    server: str
    keys: tuple[Key, ...] = ()


class Evicted(msgspec.Struct, frozen=True):
    """These entries had to make room: their values are gone."""

    keys: tuple[Key, ...]


class Saw(msgspec.Struct, frozen=True):
    """The application has seen the object as of then: it must not read an older one (C5)."""

    key: Key
    as_of: AsOf


class AuditWanted(msgspec.Struct, frozen=True):
    """A hit of this object is to be compared with the value that its server reads now."""

    key: Key


class LeaveAsked(msgspec.Struct, frozen=True):
    """No reader will read here any longer."""


CacheEvent: TypeAlias = (
    ServerSaid
    | ObjectWanted
    | WriteWanted
    | RoutesChanged
    | WasUsed
    | Evicted
    | Saw
    | AuditWanted
    | LeaveAsked
)


# --- actions ------------------------------------------------------------------------------------


class TellServer(msgspec.Struct, frozen=True):
    """Send a message to a server."""

    server: str
    message: ToVolumeServer


class Believe(msgspec.Struct, frozen=True):
    """The volume lease of that reader ends then. A reader not met before has begun."""

    server: str
    reader: int
    until: Instant


class KeepEntry(msgspec.Struct, frozen=True):
    """A new entry, live under its reader's volume lease and until its own lease ends."""

    key: Key
    server: str
    reader: int
    until: Instant
    as_of: AsOf
    kind: Literal["value", "absent", "unchanged"]
    """The kind of value; `unchanged` stands for the value of the present entry."""
    value: Value = b""


class DropEntries(msgspec.Struct, frozen=True):
    """These entries are dead: their values are old, or may be."""

    keys: tuple[Key, ...]


class DoubtEntries(msgspec.Struct, frozen=True):
    """These entries are suspect: they are kept only to ask about them."""

    keys: tuple[Key, ...]


class TellReaders(msgspec.Struct, frozen=True):
    """The answer to these readers. A `hit` is read from the entry, which is live now."""

    tickets: tuple[int, ...]
    key: Key
    outcome: Outcome
    value: Value = b""
    as_of: AsOf | None = None
    detail: str = ""


class TellWriter(msgspec.Struct, frozen=True):
    """The outcome of a write."""

    ticket: int
    key: Key
    outcome: WriteOutcome
    as_of: AsOf | None = None
    detail: str = ""


class JudgeHit(msgspec.Struct, frozen=True):
    """The entry may be hit at this moment, and its server has read this meanwhile: hits of it are
    stale if the two differ.
    """

    key: Key
    kind: Literal["value", "absent"]
    value: Value


class AskWhetherUsed(msgspec.Struct, frozen=True):
    """A question whether there were hits under this server's leases, to be answered if
    there were.
    """

    server: str
    ending_before: Instant
    """The time by which the object leases in the answer end."""


CacheAction: TypeAlias = (
    TellServer
    | Believe
    | KeepEntry
    | DropEntries
    | DoubtEntries
    | TellReaders
    | TellWriter
    | JudgeHit
    | AskWhetherUsed
    | Noted
)


class CacheView(msgspec.Struct, frozen=True, kw_only=True):
    """A cache, as the shell that runs it may see it."""

    entries: int
    live: int
    flights: int
    writes: int
    in_touch: tuple[str, ...]
    """Servers whose volume lease runs."""
