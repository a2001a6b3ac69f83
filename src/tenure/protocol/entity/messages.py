"""The messages between members of a pool of entities, over connections that the asking side makes.

Either side asks: a caller asks the owner of a key, and an owner asks the process that has its
sockets.
"""

from typing import Annotated, Any, TypeAlias

import msgspec

from tenure.base.numbers import Number
from tenure.protocol.entity.key_line import CallId, Data, EntityCall, Name

TEXT_CHARACTERS = 4000
ADDRESS_CHARACTERS = 2000
FRAMES_AT_ONCE = 1 << 16
"""The most frames, and the most sockets, in one message: what is on its way to a socket, and the
sockets of one key, are bounded more tightly by their bytes.
"""
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=TEXT_CHARACTERS)]
Address: TypeAlias = Annotated[str, msgspec.Meta(max_length=ADDRESS_CHARACTERS)]
FrameContent: TypeAlias = Any
"""Text or bytes, which msgspec cannot tell apart in a type: `wire.entity` does."""
Frames: TypeAlias = Annotated[tuple[FrameContent, ...], msgspec.Meta(max_length=FRAMES_AT_ONCE)]
Received: TypeAlias = Annotated[dict[CallId, Number], msgspec.Meta(max_length=FRAMES_AT_ONCE)]
"""The number of the last frame that an edge has, by the ids of sockets."""


class EntityAsk(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Carry out a call, and answer under this number."""

    seq: Number
    call: EntityCall


class EntityReply(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The result of a call."""

    seq: Number
    data: Data


class EntityFailure(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The error that a call ended with."""

    seq: Number
    module: Name
    name: Name
    text: Text
    arguments: Data = b""
    """The details of the error, so that the caller can raise it as what it was."""
    address: Address | None = None
    """The address at which the key is believed to live, if the error is NotOwner."""


EntityMessage: TypeAlias = EntityAsk | EntityReply | EntityFailure

# --- what edges and owners say to each other about sockets, as calls ---

CONNECT, MESSAGE, DISCONNECT, RESUME = ".connect", ".message", ".disconnect", ".resume"
MOVE = ".move"
FRAMES = ".frames"
"""The path of messages from an owner to an edge."""


class SocketOpened(msgspec.Struct, array_like=True):
    """An edge has accepted a socket."""

    id: CallId
    edge: Address
    attachment: Data


class SocketMoved(msgspec.Struct, array_like=True):
    """A socket is at another edge from now on: a gateway has passed it to its successor."""

    id: CallId
    edge: Address


class SocketFrame(msgspec.Struct, array_like=True):
    """A client has sent a frame, which has this number."""

    id: CallId
    number: Number
    frame: FrameContent


class SocketGone(msgspec.Struct, array_like=True):
    """The client of a socket has gone."""

    id: CallId


class SocketResume(msgspec.Struct, array_like=True):
    """The edge has everything up to this number, and wants the frames that follow."""

    id: CallId
    received: Number


class Resumed(msgspec.Struct, array_like=True):
    """The frames that follow."""

    number: Number
    """The number of the lease."""
    frames: Frames
    closing: Number
    journal: Number = 0
    """The journal of the lease."""
    begun: Number = 0
    found: Number | None = None
    """The number of the last frame that was kept when the entity began, and which beginning that
    was; see `NumberedFrames`. An earlier release does not say it."""


class PushedFrames(msgspec.Struct, array_like=True):
    """Frames for several sockets: id, number of the first frame, and a code to close with, or 0."""

    number: Number
    frames: Frames
    sockets: Annotated[
        tuple[tuple[CallId, Number, Number], ...], msgspec.Meta(max_length=FRAMES_AT_ONCE)
    ]
    journal: Number = 0
    begun: Number = 0
    found: Annotated[tuple[Number, ...], msgspec.Meta(max_length=FRAMES_AT_ONCE)] = ()
    """As in `Resumed`, of each of these sockets."""
