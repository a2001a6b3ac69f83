"""The bytes of messages between caches and servers of volumes.

They go over connections of their own, of the same versions as all others. If both sides speak only
a version that knows no caches, the connection is closed with that reason.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tenure.base.keys import KEY_BYTES, Key
from tenure.errors import MALFORMED, RemoteProtocolError
from tenure.protocol.volume.limits import LISTED, OBJECT_LEASES
from tenure.protocol.volume.messages import (
    Acknowledge,
    Bye,
    Elsewhere,
    Fetch,
    Fetched,
    Invalidate,
    Item,
    Items,
    Listed,
    Reconnect,
    Reconnected,
    Renew,
    Renewed,
    RequestRefused,
    ToCache,
    ToVolumeServer,
    UnknownReader,
    Write,
    WriteDone,
)
from tenure.protocol.volume.versions import KnownWrites
from tenure.wire.checks import check_each
from tenure.wire.frame import MessageWriter, Reader
from tenure.wire.limits import CHUNK_BYTES, MESSAGE_BYTES, REQUEST_BYTES

FIRST_VERSION: Final = 2
"""The version that brought caches."""
VALUE_BYTES: Final = CHUNK_BYTES
"""The most bytes of an object's value: as many as a chunk of hand-off state has, so that both can
carry the same values.
"""
OBJECT_KEY_BYTES: Final = 2 * KEY_BYTES
"""The most bytes of an object's key: the user's key, after the key that it has in its pool."""

TO_SERVER: Final = (Reconnect, Renew, Fetch, Acknowledge, Write, Bye)
TO_CACHE: Final = (
    Reconnected,
    Renewed,
    Fetched,
    WriteDone,
    UnknownReader,
    Elsewhere,
    RequestRefused,
    Invalidate,
)
_SINCE: Final[Mapping[type[ToVolumeServer | ToCache], int]] = dict.fromkeys(
    (*TO_SERVER, *TO_CACHE), FIRST_VERSION
)
_LIMITS: Final[Mapping[type[ToVolumeServer | ToCache], int]] = {
    **dict.fromkeys(TO_SERVER, REQUEST_BYTES),
    **dict.fromkeys(TO_CACHE, MESSAGE_BYTES),
}

encode_volume: MessageWriter[ToVolumeServer | ToCache] = MessageWriter(_SINCE, _LIMITS)
"""Encodes a message for a connection of a version."""


class SharedItems:
    """Encodes items once for all readers that are told of the same write."""

    def __init__(self) -> None:
        self.count = 0
        """How often items were encoded."""
        self._last: Items | None = None
        self._packed: Any = None

    def prepared(self, message: Invalidate) -> Invalidate:
        """The message, with its items replaced by their bytes."""
        if message.items != self._last:
            self.count += 1
            self._last = message.items
            self._packed = msgspec.Raw(msgspec.msgpack.encode(message.items))
        return replace(message, items=self._packed)


def check_knows_caches(version: int) -> None:
    """Raise RemoteProtocolError if the connection's version has no caches."""
    if version < FIRST_VERSION:
        raise RemoteProtocolError(
            f"caches are of protocol version {FIRST_VERSION}, and version {version} is spoken: "
            "upgrade tenure on the older side"
        )


def _check_key(key: Key) -> None:
    if len(key) > OBJECT_KEY_BYTES:
        raise ValueError(f"a key of {len(key)} bytes; at most {OBJECT_KEY_BYTES} are allowed")


def _check_value(value: bytes) -> None:
    if len(value) > VALUE_BYTES:
        raise ValueError(f"a value of {len(value)} bytes; at most {VALUE_BYTES} are allowed")


def _check_listed(listed: tuple[Listed, ...]) -> None:
    if len(listed) > LISTED:
        raise ValueError(f"{len(listed)} entries are listed; at most {LISTED} are allowed")
    for each in listed:
        _check_key(each.key)


def _check_items(items: Iterable[Item]) -> None:
    withdrawn = []
    for item in items:
        _check_key(item.key)
        if item.withdrawn:
            withdrawn.append(item.range)
    check_each(withdrawn)


def _check_to_server(message: ToVolumeServer, version: int) -> None:
    check_knows_caches(version)
    match message:
        case Reconnect(listed=listed) | Renew(listed=listed):
            _check_listed(listed)
        case Fetch(key=key):
            _check_key(key)
        case Write(key=key, value=value):
            _check_key(key)
            _check_value(value)
        case Acknowledge(items=items) if len(items) > OBJECT_LEASES:
            raise ValueError(f"{len(items)} items; at most {OBJECT_LEASES} are allowed")


def _check_to_cache(message: ToCache, version: int) -> None:
    check_knows_caches(version)
    match message:
        case Reconnected(live=live):
            _check_listed(live)
        case Renewed(live=live, items=items):
            _check_listed(live)
            _check_items(items)
        case Fetched(key=key, value=value, items=items):
            _check_key(key)
            _check_value(value)
            _check_items(items)
        case WriteDone(key=key, items=items):
            _check_key(key)
            _check_items(items)
        case Invalidate(items=items):
            _check_items(items)


# --- what is known of writes, from owner to owner -------------------------------------------------

WRITES_PER_CHUNK: Final = 1_000
"""The most writes in a chunk. Each takes a few hundred bytes if keys are long, so a chunk is sent
in milliseconds.
"""
_known_encoder = msgspec.msgpack.Encoder()
_known_decoder: msgspec.msgpack.Decoder[KnownWrites] = msgspec.msgpack.Decoder(KnownWrites)


def encode_known(known: KnownWrites) -> tuple[bytes, ...]:
    """The knowledge of the writes in a range, in chunks that go along with the range."""
    most = WRITES_PER_CHUNK
    count = max(len(known.floors), len(known.writes))
    return tuple(
        _known_encoder.encode(KnownWrites(known.floors[i : i + most], known.writes[i : i + most]))
        for i in range(0, count, most)
    )


def decode_known(data: bytes) -> KnownWrites:
    """Decode one chunk. Raises RemoteProtocolError for any malformed bytes."""
    try:
        known = _known_decoder.decode(data)
        check_each([key_range for key_range, _ in known.floors])
        for key, _ in known.writes:
            _check_key(key)
    except MALFORMED as error:
        raise RemoteProtocolError(f"known writes are malformed: {str(error)[:200]}") from error
    return known


# --- reading --------------------------------------------------------------------------------------

_for_server: msgspec.msgpack.Decoder[ToVolumeServer] = msgspec.msgpack.Decoder(ToVolumeServer)
_for_cache: msgspec.msgpack.Decoder[ToCache] = msgspec.msgpack.Decoder(ToCache)

decode_to_volume_server = Reader(_for_server, REQUEST_BYTES, _check_to_server)
"""Decodes what a server received on a connection of a version."""
decode_to_cache = Reader(_for_cache, MESSAGE_BYTES, _check_to_cache)
"""Decodes what a cache received."""
