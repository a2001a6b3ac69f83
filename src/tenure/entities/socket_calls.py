"""What edges and owners say to each other about sockets, and what an owner does about it.

Frames of a client are calls that are numbered instead of having an answer: the entity knows the
last that it has handled, so that a repeat does nothing.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tenure.client.lease import Lease
from tenure.entities.entity import Socket
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.host import EntityHost
from tenure.entities.methods import NOTHING
from tenure.protocol.entity.envelope import Push, SocketEntry
from tenure.protocol.entity.key_line import EntityCall

CONNECT, MESSAGE, DISCONNECT, RESUME = ".connect", ".message", ".disconnect", ".resume"
FRAMES = ".frames"
"""From an owner to an edge."""


class SocketOpened(msgspec.Struct, array_like=True):
    """An edge has accepted a socket."""

    id: bytes
    edge: str
    attachment: bytes


class SocketFrame(msgspec.Struct, array_like=True):
    """Its client has sent something, which has this number."""

    id: bytes
    number: int
    frame: Any


class SocketGone(msgspec.Struct, array_like=True):
    """Its client has gone."""

    id: bytes


class SocketResume(msgspec.Struct, array_like=True):
    """The edge has everything up to this number, and wants what follows."""

    id: bytes
    received: int


class Resumed(msgspec.Struct, array_like=True):
    """What follows."""

    number: int
    """Of the lease."""
    frames: tuple[Any, ...]
    closing: int
    journal: int = 0
    """Of the lease."""


class PushedFrames(msgspec.Struct, array_like=True):
    """Frames for several sockets: id, number of the first frame, and a code to close with, or 0."""

    number: int
    frames: tuple[Any, ...]
    sockets: tuple[tuple[bytes, int, int], ...]
    journal: int = 0

    @classmethod
    def of(cls, push: Push, lease: Lease) -> "PushedFrames":
        """What to say to the edge."""
        return cls(lease.number, push.frames, push.sockets, lease.journal)


UNKNOWN = msgspec.msgpack.encode(None)
"""The answer where the entity does not know the socket."""
DONE = msgspec.msgpack.encode(True)  # noqa: FBT003
_encode = msgspec.msgpack.Encoder().encode
_opened = msgspec.msgpack.Decoder(SocketOpened).decode
_frame = msgspec.msgpack.Decoder(SocketFrame).decode
_gone = msgspec.msgpack.Decoder(SocketGone).decode
_resume = msgspec.msgpack.Decoder(SocketResume).decode


async def _connect(turn: EntityTurn) -> bytes:
    said = _opened(turn.call.data)
    turn.changes.opened[said.id] = SocketEntry(said.edge, said.attachment)
    await turn.live.seen_by(turn).on_connect(Socket(turn, said.id))
    return DONE


async def _message(turn: EntityTurn) -> bytes:
    said = _frame(turn.call.data)
    entry = turn.live.envelope.sockets.get(said.id)
    if entry is None or entry.closing or said.number > entry.received + 1:
        return UNKNOWN
    if said.number == entry.received + 1:
        await turn.live.seen_by(turn).on_message(Socket(turn, said.id), said.frame)
        turn.changes.received = said.id, said.number
        turn.keeps_answer = False  # its number says as much
        turn.live.heard[said.id] = turn.loop.time()
    return DONE


async def _disconnect(turn: EntityTurn) -> bytes:
    said = _gone(turn.call.data)
    if said.id in turn.live.envelope.sockets:
        await turn.live.seen_by(turn).on_disconnect(Socket(turn, said.id))
        turn.changes.gone = said.id
    return NOTHING


async def _resumed(turn: EntityTurn) -> bytes:
    said = _resume(turn.call.data)
    entry = turn.live.envelope.sockets.get(said.id)
    frames = None if entry is None else entry.after(said.received)
    if entry is None or frames is None:
        return UNKNOWN
    turn.live.heard[said.id] = turn.loop.time()
    lease = turn.lease
    return _encode(Resumed(lease.number, frames, entry.closing, lease.journal))


BODIES: dict[str, Callable[[EntityTurn], Awaitable[bytes]]] = {
    CONNECT: _connect,
    MESSAGE: _message,
    DISCONNECT: _disconnect,
}


async def perform_any(host: EntityHost, call: EntityCall) -> bytes:
    """Carry out what was asked of a key that is held here: a call, or something about a socket."""
    body = BODIES.get(call.method)
    if body is not None:
        return await host.take_turn(call, body)
    if call.method != RESUME:
        return await host.perform(call)
    answer = await host.read(call, _resumed)
    said = _resume(call.data)
    if answer != UNKNOWN:
        host.confirm(call.key, {said.id: said.received})
    return answer
