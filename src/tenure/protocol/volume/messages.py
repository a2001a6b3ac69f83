"""The messages between caches and servers.

A request carries the client's nonce, the server's epoch, the reader number that the server drew for
this client, and a number that rises; its answer repeats that number (V2). A message that gives a
volume lease carries every item that its reader has not acknowledged (V4). Values are bytes that the
protocol does not look into.

Messages are made with keywords only. Fields are only ever added at the end, with defaults.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from tenure.base.numbers import Nonce, Number
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.limits import LISTED, OBJECT_KEY_BYTES, OBJECT_LEASES, VALUE_BYTES

ObjectKey: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=OBJECT_KEY_BYTES)]
Value: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=VALUE_BYTES)]
RefusedWhy = Literal["closed", "quiet", "load failed", "too many", "mute"]
FetchedKind = Literal["value", "absent", "unchanged"]
Detail: TypeAlias = Annotated[str, msgspec.Meta(max_length=2000)]


class VolumeMessage(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The base of all messages between caches and servers."""


class AsOf(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """The write up to which something is known to be current. It can be compared within one history
    only.
    """

    history: Nonce
    number: Number
    """The number of the lease under which the server served the object."""
    count: Number
    """The server's count of writes."""

    @property
    def version(self) -> tuple[int, int]:
        """The pair that is compared within a history."""
        return self.number, self.count

    def covers(self, other: "AsOf") -> bool:
        """Whether something current as of this write is at least as new as something current as of
        `other`.
        """
        return self.history == other.history and self.version >= other.version


class Listed(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """An entry that a client asks about, or that the answer declares live."""

    key: ObjectKey
    number: Number
    count: Number

    @property
    def version(self) -> tuple[int, int]:
        """The version as of which it is known to be current."""
        return self.number, self.count


class Item(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """One invalidation for one reader: of an object, or of a range that is withdrawn."""

    item: Number
    key: ObjectKey
    number: Number
    count: Number
    """Entries that are current as of this count, or later, are not meant."""
    withdrawn: bool = False
    """Whether the range from `key` to `end` is withdrawn; otherwise the object is written."""
    end: ObjectKey | None = None

    @property
    def version(self) -> tuple[int, int]:
        """Entries that are current as of this version, or later, are not meant."""
        return self.number, self.count

    @property
    def range(self) -> KeyRange:
        """The range that is withdrawn."""
        return KeyRange(self.key, self.end)


Items: TypeAlias = Annotated[tuple[Item, ...], msgspec.Meta(max_length=OBJECT_LEASES)]
Entries: TypeAlias = Annotated[tuple[Listed, ...], msgspec.Meta(max_length=LISTED)]


# --- client to server ---------------------------------------------------------------------------


class Reconnect(VolumeMessage, frozen=True, kw_only=True):
    """A request for a place on record. Everything that the client had is dead or suspect, so this
    acknowledges every item (V8).
    """

    client: Nonce
    sequence: Number
    history: Nonce
    listed: Entries = ()
    """Suspects of that history, of which the client asks which are current."""


class Renew(VolumeMessage, frozen=True, kw_only=True):
    """A request for another volume lease, and for object leases on the listed entries."""

    client: Nonce
    epoch: Nonce
    reader: Nonce
    sequence: Number
    history: Nonce
    listed: Entries = ()


class Fetch(VolumeMessage, frozen=True, kw_only=True):
    """A request for an object, with leases. If the client's value is current, the answer only says
    so.
    """

    client: Nonce
    epoch: Nonce
    reader: Nonce
    sequence: Number
    key: ObjectKey
    as_of: AsOf | None = None
    """The version of the client's entry; None if it has none."""


class Acknowledge(VolumeMessage, frozen=True, kw_only=True):
    """The entries that these items are about are dead at the client."""

    client: Nonce
    epoch: Nonce
    reader: Nonce
    items: Annotated[tuple[Number, ...], msgspec.Meta(max_length=OBJECT_LEASES)]


class Write(VolumeMessage, frozen=True, kw_only=True):
    """A request to store a value. The client's own entry is dead already (V9)."""

    client: Nonce
    epoch: Nonce
    reader: Nonce
    sequence: Number
    key: ObjectKey
    value: Value


class Bye(VolumeMessage, frozen=True, kw_only=True):
    """No reader of this client will read any longer."""

    client: Nonce
    epoch: Nonce
    reader: Nonce


# --- server to client ---------------------------------------------------------------------------


class Reconnected(VolumeMessage, frozen=True, kw_only=True):
    """The client is on record, with no item unacknowledged; the listed entries are live."""

    client: Nonce
    sequence: Number
    epoch: Nonce
    history: Nonce
    reader: Nonce
    term_ns: Number
    lease_ns: Number
    live: Entries = ()


class Renewed(VolumeMessage, frozen=True, kw_only=True):
    """A volume lease, which counts from when its request was sent, once the items are applied."""

    epoch: Nonce
    reader: Nonce
    sequence: Number
    term_ns: Number
    lease_ns: Number
    live: Entries = ()
    items: Items = ()


class Fetched(VolumeMessage, frozen=True, kw_only=True):
    """An object as it was at an instant between the request and this answer."""

    epoch: Nonce
    reader: Nonce
    sequence: Number
    key: ObjectKey
    kind: FetchedKind
    value: Value
    number: Number
    count: Number
    term_ns: Number
    lease_ns: Number
    """The length of the object lease; 0 if the value may not be kept."""
    items: Items = ()

    @property
    def version(self) -> tuple[int, int]:
        """The version as of which the value is current."""
        return self.number, self.count


class WriteDone(VolumeMessage, frozen=True, kw_only=True):
    """The body of the write has ended."""

    epoch: Nonce
    reader: Nonce
    sequence: Number
    key: ObjectKey
    ok: bool
    detail: Detail
    number: Number
    count: Number
    term_ns: Number
    lease_ns: Number
    """The length of the object lease; 0 if the written value may not be kept."""
    items: Items = ()

    @property
    def version(self) -> tuple[int, int]:
        """The version as of which the written value is current."""
        return self.number, self.count


class UnknownReader(VolumeMessage, frozen=True, kw_only=True):
    """The request's reader is not on record, and must reconnect."""

    client: Nonce
    sequence: Number


class Elsewhere(VolumeMessage, frozen=True, kw_only=True):
    """This server does not serve the key, as 421 says in HTTP."""

    client: Nonce
    sequence: Number


class RequestRefused(VolumeMessage, frozen=True, kw_only=True):
    """The request cannot be answered: the reason, and when to ask again."""

    client: Nonce
    sequence: Number
    why: RefusedWhy
    detail: Detail = ""
    again_ns: Number = 0


class Invalidate(VolumeMessage, frozen=True, kw_only=True):
    """Items, unasked. It gives no lease."""

    epoch: Nonce
    reader: Nonce
    items: Items


Numbered: TypeAlias = Renew | Fetch | Write
ToVolumeServer: TypeAlias = Reconnect | Renew | Fetch | Acknowledge | Write | Bye
ToCache: TypeAlias = (
    Reconnected
    | Renewed
    | Fetched
    | WriteDone
    | UnknownReader
    | Elsewhere
    | RequestRefused
    | Invalidate
)
