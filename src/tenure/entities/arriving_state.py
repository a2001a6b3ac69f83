"""The arriving state: says of an entity that an import has brought only a part of it.

No version of any class can read it, so whoever owns the key, nobody is answered from a half of an
entity, whatever dies meanwhile. It counts the parts that are there.
"""

import msgspec

from tenure.base.numbers import Number
from tenure.entities.state_versions import ARRIVING, VERSION_FIELD
from tenure.errors import MALFORMED
from tenure.protocol.entity.copying import Digest


class ArrivingState(msgspec.Struct, frozen=True):
    """The state of an entity that is not there yet."""

    version: Number = msgspec.field(name=VERSION_FIELD)
    digest: Digest
    """Of what is arriving."""
    parts: Number
    """How many parts are there."""


_encode = msgspec.msgpack.Encoder().encode
read_arriving = msgspec.msgpack.Decoder(ArrivingState).decode


def arriving(state: bytes) -> ArrivingState | None:
    """What says that an entity is arriving; None for any other state."""
    if VERSION_FIELD.encode() not in state:
        return None
    try:
        found = read_arriving(state)
    except MALFORMED:
        return None
    return found if found.version == ARRIVING else None


def arriving_state(digest: bytes, parts: int) -> bytes:
    """The state of an entity of which so many parts are there."""
    return _encode(ArrivingState(ARRIVING, digest, parts))
