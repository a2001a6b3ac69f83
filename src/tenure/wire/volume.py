"""The bytes of messages between caches and servers of volumes.

They go over connections of their own, of the same versions as all others. If both sides speak only
a version that knows no caches, the connection is closed with that reason.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tenure.errors import MALFORMED, RemoteProtocolError
from tenure.protocol.lease.limits import CHUNK_BYTES
from tenure.protocol.volume.limits import VALUE_BYTES, WRITES_PER_CHUNK
from tenure.protocol.volume.messages import (
    Acknowledge,
    Bye,
    Elsewhere,
    Fetch,
    Fetched,
    Invalidate,
    Item,
    Items,
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
from tenure.protocol.volume.server.versions import KnownWrites
from tenure.wire.checks import check_each
from tenure.wire.frame import MessageWriter, Reader
from tenure.wire.limits import MESSAGE_BYTES, REQUEST_BYTES

FIRST_VERSION: Final = 2
"""The version that brought caches."""
assert VALUE_BYTES == CHUNK_BYTES, "a chunk of state can carry every value"
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


def _check_items(items: Iterable[Item]) -> None:
    check_each([item.range for item in items if item.withdrawn])


def _check_to_server(message: ToVolumeServer, version: int) -> None:
    del message  # its types say all
    check_knows_caches(version)


def _check_to_cache(message: ToCache, version: int) -> None:
    check_knows_caches(version)
    match message:
        case (
            Renewed(items=items)
            | Fetched(items=items)
            | WriteDone(items=items)
            | Invalidate(items=items)
        ):
            _check_items(items)


# --- what is known of writes, from owner to owner -------------------------------------------------

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


def is_list(data: bytes) -> bool:
    """Whether a message to a server may list much, which takes long to decode, and carries no
    value, which does not.
    """
    return data[2:8] != b"\xa5Write"  # behind the version, and the array's head
