"""The bytes of messages between members of a pool of entities."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from tenure.base.keys import KEY_BYTES
from tenure.protocol.entity.key_line import MOST_BYTES, is_too_long
from tenure.protocol.entity.messages import (
    EntityAsk,
    EntityMessage,
    PushedFrames,
    Received,
    Resumed,
    SocketFrame,
    SocketGone,
    SocketMoved,
    SocketOpened,
    SocketResume,
)
from tenure.wire.frame import Bytes, Reader, framed
from tenure.wire.limits import HAND_OFF_BYTES

VERSION: Final = 1
"""The version of what members say to each other."""
assert MOST_BYTES <= HAND_OFF_BYTES, "one kind of channel carries both"


def encode(message: EntityMessage) -> bytes:
    """The bytes of a message. Raises ValueError if the other side could not read them: it would end
    the connection, and with it every other call that is under way there.
    """
    if isinstance(message, EntityAsk):
        for key in (message.call.key, *(key for _, key in message.call.chain)):
            if is_too_long(key):
                raise ValueError(
                    f"the key {key!r:.40}... has more than {KEY_BYTES:,} characters, and so cannot "
                    "be sent to the process that owns it"
                )
    data = framed(message, VERSION)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has {len(data):,} bytes with its keys; at most {MOST_BYTES:,}")
    return data


def decode(data: Bytes) -> EntityMessage:
    """Decode what was received. Raises RemoteProtocolError for any malformed bytes."""
    return _read(data, VERSION)


def _check(message: EntityMessage, version: int) -> None:
    """Check nothing: the types express every rule."""


_read: Reader[EntityMessage] = Reader(msgspec.msgpack.Decoder(EntityMessage), MOST_BYTES, _check)

# --- what calls about sockets carry ---

packed = msgspec.msgpack.Encoder().encode
read_opened = msgspec.msgpack.Decoder(SocketOpened).decode
read_moved = msgspec.msgpack.Decoder(SocketMoved).decode
read_gone = msgspec.msgpack.Decoder(SocketGone).decode
read_resume = msgspec.msgpack.Decoder(SocketResume).decode
read_received: Callable[[bytes], dict[bytes, int]] = msgspec.msgpack.Decoder(Received).decode
_frames = msgspec.msgpack.Decoder(SocketFrame).decode
_resumed = msgspec.msgpack.Decoder(Resumed).decode
_pushed = msgspec.msgpack.Decoder(PushedFrames).decode


def read_frame(data: bytes) -> SocketFrame:
    """Decode a frame of a client."""
    said = _frames(data)
    _check_frames((said.frame,))
    return said


def read_resumed(data: bytes) -> Resumed:
    """Decode the frames that an edge asked for."""
    said = _resumed(data)
    _check_frames(said.frames)
    return said


def read_pushed(data: bytes) -> PushedFrames:
    """Decode frames for several sockets."""
    said = _pushed(data)
    _check_frames(said.frames)
    return said


def _check_frames(frames: Iterable[object]) -> None:
    for frame in frames:
        if not isinstance(frame, str | bytes):
            raise ValueError(  # noqa: TRY004  # of what came, as all errors here
                f"a frame is text or bytes, and not {type(frame).__name__}"
            )
