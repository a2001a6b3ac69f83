"""The bytes of messages between members of a pool of entities."""

from typing import Final

import msgspec

from tenure.base.keys import KEY_BYTES
from tenure.protocol.entity.messages import (
    ARGUMENT_BYTES,
    MOST_CHAIN,
    EntityAsk,
    EntityMessage,
    PushedFrames,
    Resumed,
    SocketFrame,
    SocketGone,
    SocketOpened,
    SocketResume,
)
from tenure.wire.frame import Bytes, Reader, framed
from tenure.wire.limits import HAND_OFF_BYTES

VERSION: Final = 1
"""The version of what members say to each other."""
MOST_BYTES = ARGUMENT_BYTES + 64 * 1024
"""The most bytes of one message: its arguments, and the fields around them."""
assert MOST_BYTES <= HAND_OFF_BYTES, "one kind of channel carries both"


def encode(message: EntityMessage) -> bytes:
    """The bytes of a message."""
    return framed(message, VERSION)


def decode(data: Bytes) -> EntityMessage:
    """Decode what was received. Raises RemoteProtocolError for any malformed bytes."""
    return _read(data, VERSION)


def _check(message: EntityMessage, _: int) -> None:
    if isinstance(message, EntityAsk):
        call = message.call
        if isinstance(call.key, str) and len(call.key) > KEY_BYTES:
            raise ValueError(f"a key of {len(call.key)} characters")
        if len(call.chain) > MOST_CHAIN:
            raise ValueError(f"a chain of {len(call.chain)} calls")


_read: Reader[EntityMessage] = Reader(msgspec.msgpack.Decoder(EntityMessage), MOST_BYTES, _check)

# --- what calls about sockets carry ---

packed = msgspec.msgpack.Encoder().encode
read_opened = msgspec.msgpack.Decoder(SocketOpened).decode
read_frame = msgspec.msgpack.Decoder(SocketFrame).decode
read_gone = msgspec.msgpack.Decoder(SocketGone).decode
read_resume = msgspec.msgpack.Decoder(SocketResume).decode
read_resumed = msgspec.msgpack.Decoder(Resumed).decode
read_pushed = msgspec.msgpack.Decoder(PushedFrames).decode
read_received = msgspec.msgpack.Decoder(dict[bytes, int]).decode
