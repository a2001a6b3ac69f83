"""An owner's side of the sockets of its entities, which end in other processes, at an edge.

Frames of a client are calls with a number instead of an answer: the entity knows the last one that
it has handled, so a repeat does nothing.
"""

from collections.abc import Awaitable, Callable

import msgspec

from tenure.client.lease import Lease
from tenure.entities.entity import Socket, seen_by
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.live_entity import LiveEntity
from tenure.entities.methods import NOTHING
from tenure.protocol.entity.messages import (
    CONNECT,
    DISCONNECT,
    MESSAGE,
    MOVE,
    PushedFrames,
    Resumed,
)
from tenure.protocol.entity.socket_entry import Frame, SocketEntry
from tenure.wire.entity import packed, read_frame, read_gone, read_moved, read_opened, read_resume

UNKNOWN = NOTHING
"""The answer if the entity does not know the socket."""
DONE = packed(True)  # noqa: FBT003


async def _connect(turn: EntityTurn) -> bytes:
    said = read_opened(turn.call.data)
    if said.id not in turn.live.envelope.sockets:  # otherwise a repeat, and frames are on their way
        turn.changes.opened[said.id] = SocketEntry(said.edge, said.attachment)
    await seen_by(turn).on_connect(Socket(turn, said.id))
    return DONE


async def _move(turn: EntityTurn) -> bytes:
    """A turn, as a store must keep it: after a crash the next owner asks the edges that it reads
    there, and ends the sockets of one that does not answer.
    """
    said = read_moved(turn.call.data)
    entry = turn.live.envelope.sockets.get(said.id)
    if entry is None:
        return UNKNOWN
    turn.changes.opened[said.id] = msgspec.structs.replace(entry, edge=said.edge)
    turn.live.heard[said.id] = turn.loop.time()
    return DONE


async def _message(turn: EntityTurn) -> bytes:
    said = read_frame(turn.call.data)
    entry = turn.live.envelope.sockets.get(said.id)
    if entry is None or entry.closing or said.number > entry.received + 1:
        return UNKNOWN
    if said.number == entry.received + 1:
        await seen_by(turn).on_message(Socket(turn, said.id), said.frame)
        turn.changes.received = said.id, said.number
        turn.record = "none"  # its number says as much
        turn.live.heard[said.id] = turn.loop.time()
    return DONE


async def _disconnect(turn: EntityTurn) -> bytes:
    said = read_gone(turn.call.data)
    if said.id in turn.live.envelope.sockets:
        await seen_by(turn).on_disconnect(Socket(turn, said.id))
        turn.changes.gone = said.id
        turn.live.heard.pop(said.id, None)
    return NOTHING


TURNS: dict[str, Callable[[EntityTurn], Awaitable[bytes]]] = {
    CONNECT: _connect,
    MOVE: _move,
    MESSAGE: _message,
    DISCONNECT: _disconnect,
}


async def resumed(turn: EntityTurn) -> bytes:
    """The frames after the last one that an edge has. The question confirms the frames that it
    has.
    """
    said = read_resume(turn.call.data)
    entry = turn.live.envelope.sockets.get(said.id)
    frames = None if entry is None else entry.after(said.received)
    if entry is None or frames is None:
        return UNKNOWN
    turn.live.heard[said.id] = turn.loop.time()
    live, lease = turn.live, turn.lease
    turn.gate.confirm(live, {said.id: said.received})
    found = live.found.get(said.id, 0)
    return packed(Resumed(lease.number, frames, entry.closing, lease.journal, live.begun, found))


def pushed(
    live: LiveEntity,
    lease: Lease,
    frames: tuple[Frame, ...],
    sockets: tuple[tuple[bytes, int, int], ...],
) -> PushedFrames:
    """What an edge is told of these sockets."""
    found = tuple(live.found.get(each, 0) for each, _, _ in sockets)
    return PushedFrames(lease.number, frames, sockets, lease.journal, live.begun, found)
