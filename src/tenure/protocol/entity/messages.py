"""The messages between members of a pool of entities, over connections that the asking side makes.

Either side asks: a caller asks the owner of a key, and an owner asks the process that has its
sockets.
"""

from typing import Any, TypeAlias

import msgspec

from tenure.protocol.entity.key_line import EntityCall

ARGUMENT_BYTES = 1 << 20
"""The most bytes of the arguments of a call, and of its answer."""
MOST_CHAIN = 64
"""How deep calls into calls may be. A deeper chain goes round in a circle of ever new keys."""


class EntityAsk(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Carry out a call, and answer under this number."""

    seq: int
    call: EntityCall


class EntityReply(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The result of a call."""

    seq: int
    data: bytes


class EntityFailure(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The error that a call ended with."""

    seq: int
    module: str
    name: str
    text: str
    arguments: bytes = b""
    """The details of the error, so that the caller can raise it as what it was."""
    address: str | None = None
    """The address at which the key is believed to live, if the error is NotOwner."""


EntityMessage: TypeAlias = EntityAsk | EntityReply | EntityFailure

# --- what edges and owners say to each other about sockets, as calls ---

CONNECT, MESSAGE, DISCONNECT, RESUME = ".connect", ".message", ".disconnect", ".resume"
FRAMES = ".frames"
"""The path of messages from an owner to an edge."""


class SocketOpened(msgspec.Struct, array_like=True):
    """An edge has accepted a socket."""

    id: bytes
    edge: str
    attachment: bytes


class SocketFrame(msgspec.Struct, array_like=True):
    """A client has sent a frame, which has this number."""

    id: bytes
    number: int
    frame: Any


class SocketGone(msgspec.Struct, array_like=True):
    """The client of a socket has gone."""

    id: bytes


class SocketResume(msgspec.Struct, array_like=True):
    """The edge has everything up to this number, and wants the frames that follow."""

    id: bytes
    received: int


class Resumed(msgspec.Struct, array_like=True):
    """The frames that follow."""

    number: int
    """The number of the lease."""
    frames: tuple[Any, ...]
    closing: int
    journal: int = 0
    """The journal of the lease."""


class PushedFrames(msgspec.Struct, array_like=True):
    """Frames for several sockets: id, number of the first frame, and a code to close with, or 0."""

    number: int
    frames: tuple[Any, ...]
    sockets: tuple[tuple[bytes, int, int], ...]
    journal: int = 0
