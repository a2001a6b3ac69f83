"""The events and actions of a volume's server."""

from typing import Literal, TypeAlias

import msgspec

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.noted import Noted
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.messages import ToCache, ToVolumeServer, Value
from tenure.protocol.volume.server.terms import Terms
from tenure.protocol.volume.server.versions import KnownWrites

Remembers = Literal["longest", "latest end", "nothing"]
"""The memory that survives a server without owners: the longest volume lease that it ever gave, or
the latest instant at which one may end (section 3.1.2 has both)."""
NO_BOUND = 1 << 62
FailedWhy = Literal["moved", "closed", "too many"]


class VolumeMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a server without owners, so that the next server can wait long enough (V16)."""

    number: int
    """The number of the server's life; the store refuses writes under lower numbers (V14)."""
    longest_ns: int
    """The longest volume lease that was ever given."""
    until: Instant = Instant(0)
    """When the last of them ends at the latest, by the clock of the host; 0 if that is not kept."""
    boot_id: str = ""
    """The start of the host from which `until` is counted."""
    drained: bool = False
    """Whether the server closed when nobody held a lease any longer."""


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a volume's server."""

    terms: Terms = Terms()
    alone: bool = True
    """Whether the server has no owner: it serves every key, once it has opened. Otherwise ranges
    come and go.
    """
    durable: bool = False
    """Whether an owner's objects outlive the owner, so that the next owner reads them (V13)."""
    remembers: Remembers = "longest"
    memory: VolumeMemory | None = None
    """The memory as it was found; None if there was no memory."""
    longest_ns: int = 0
    """The longest term that any earlier server may have had, if no memory tells it; at least the
    present one."""
    boot_id: str = ""
    known_writes: int = 0
    """How many writes to remember; 0 for the limit."""
    most_leases: int = 0


# --- events -------------------------------------------------------------------------------------


class ClientAsked(msgspec.Struct, frozen=True):
    """A message of a client has arrived."""

    message: ToVolumeServer


class WriteAsked(msgspec.Struct, frozen=True):
    """The application wants to write these keys; `ticket` is its own number, from 1."""

    ticket: int
    keys: tuple[Key, ...]


class WriteGivenUp(msgspec.Struct, frozen=True):
    """The application no longer wants to write; this has no effect once the body runs."""

    ticket: int


class BodyEnded(msgspec.Struct, frozen=True):
    """The body of a write has ended; `ok` is false if it raised."""

    write: int
    ok: bool = True
    detail: str = ""


class ObjectLoaded(msgspec.Struct, frozen=True):
    """A load has ended."""

    load: int
    value: Value | None
    """The value; None if there is no such object."""
    failed: str = ""


class TermMoved(msgspec.Struct, frozen=True):
    """The owner's term ends then, by this process's clock; it has ended if that time is past."""

    until: Instant
    longest_ns: int = NO_BOUND
    """The longest volume lease of which the owner's manager knows (V13)."""


class RangeGranted(msgspec.Struct, frozen=True, kw_only=True):
    """The owner was granted a range; the same number again ends a drain of it."""

    range: KeyRange
    number: int
    history: int
    quiet_ns: int = 0
    """How long readers of the last owner may still hit (V13)."""
    known: KnownWrites | None = None
    """The knowledge of writes that came along with the state; None if none came."""


class DrainAsked(msgspec.Struct, frozen=True):
    """A range is about to go. `served` says that its state goes too, so that the range is served
    until this event comes again without it; otherwise the belief in the range has ended.
    """

    range: KeyRange
    served: bool


class MemoryPersisted(msgspec.Struct, frozen=True):
    """This memory is durable."""

    memory: VolumeMemory


class FenceRaised(msgspec.Struct, frozen=True):
    """The store refuses writes below `number`; or it has refused the fence, since it has seen
    `refused_by`.
    """

    number: int
    refused_by: int = 0


class StopAsked(msgspec.Struct, frozen=True):
    """Close, once nobody holds a lease."""


ServerEvent: TypeAlias = (
    ClientAsked
    | WriteAsked
    | WriteGivenUp
    | BodyEnded
    | ObjectLoaded
    | TermMoved
    | RangeGranted
    | DrainAsked
    | MemoryPersisted
    | FenceRaised
    | StopAsked
)


# --- actions ------------------------------------------------------------------------------------


class TellCache(msgspec.Struct, frozen=True):
    """Send a message to a client."""

    client: int
    message: ToCache


class LoadObject(msgspec.Struct, frozen=True):
    """Read an object from the store, and say so."""

    load: int
    key: Key
    fence: int = 0
    """The number below which the store must refuse writes of the object before it is read (V14):
    writes of earlier owners may still be on their way. A server without owners has raised it
    already.
    """


class RunBody(msgspec.Struct, frozen=True):
    """Run the body of a write, and say when it has ended."""

    write: int
    ticket: int
    """The application's ticket; 0 for a write of a client, whose value is to be stored."""
    keys: tuple[Key, ...]
    fence: int
    """The fence: the store refuses a write with a lower one than it has seen (V14)."""
    waited_ns: int
    """How long the write has waited since its turn came (C3)."""
    value: Value = b""
    fences: tuple[tuple[Key, int], ...] = ()
    """The fence for each key: ranges of one owner have numbers of their own."""


class FailWrite(msgspec.Struct, frozen=True):
    """The body of the write will not run."""

    ticket: int
    why: FailedWhy


class Drained(msgspec.Struct, frozen=True):
    """Nobody holds a lease on the range, and no more leases on it are given."""

    range: KeyRange
    known: KnownWrites | None = None
    """The knowledge of its writes until now. The last DrainAsked for a range tells what goes with
    its state, because the range is served until the belief ends.
    """
    served: bool = False
    """Whether the range is still served here, without leases."""


class PersistMemory(msgspec.Struct, frozen=True):
    """Make this durable, and say so."""

    memory: VolumeMemory


class RaiseFence(msgspec.Struct, frozen=True):
    """Have the store refuse writes below `number`, and say so."""

    number: int


class VolumeClosed(msgspec.Struct, frozen=True):
    """The server has stopped."""


class TermEnded(msgspec.Struct, frozen=True):
    """The owner's term has ended by this server's clock, and nothing is served until it is granted
    anew. So the owner must not go on holding it, even if it had decided in time that its term
    goes on (S3).
    """


ServerAction: TypeAlias = (
    TellCache
    | LoadObject
    | RunBody
    | FailWrite
    | Drained
    | PersistMemory
    | RaiseFence
    | VolumeClosed
    | TermEnded
    | Noted
)


class ReaderView(msgspec.Struct, frozen=True):
    """A reader, as the server's view shows it."""

    client: int
    heard_at: Instant
    volume_until: Instant
    leases: int
    items: int


class VolumeServerView(msgspec.Struct, frozen=True, kw_only=True):
    """A server, as the shell that runs it may see it."""

    epoch: int
    is_open: bool
    readers: tuple[ReaderView, ...]
    leases: int
    writes: int
    loads: int
    drains: int
    known_writes: int
    count: int
