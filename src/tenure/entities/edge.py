"""Sockets at their edge: in the process that accepted them, wherever their entity is.

Each message of the client becomes a numbered call, one at a time, which is repeated until the
present owner of the key answers it. Frames of the entity are numbered, too. If a number is missing,
or a connection broke, or nothing was asked for a while, the edge asks the present owner for the
frames after the last one that came. If the owner cannot tell, something is lost, and the edge
closes the client with 1012, which asks it to connect again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from itertools import chain, repeat
from random import Random
from typing import Any, Protocol, TypeAlias

from tenure.entities.caller import Answering
from tenure.entities.edge_socket import EdgeSocket, frame_of
from tenure.entities.sockets import UNKNOWN
from tenure.errors import ClosedError, EntityError, TenureError, UsageError, ValueTypeError
from tenure.member.asgi import SERVICE_RESTART
from tenure.protocol.entity.key_line import ARGUMENT_BYTES, is_too_long
from tenure.protocol.entity.messages import (
    CONNECT,
    DISCONNECT,
    MESSAGE,
    MOVE,
    RESUME,
    PushedFrames,
    SocketFrame,
    SocketGone,
    SocketMoved,
    SocketOpened,
    SocketResume,
)
from tenure.protocol.entity.socket_end import NumberedFrames, Numbering
from tenure.wire.entity import packed, read_resumed

ATTACHMENT_BYTES = 4096
ASK_SECONDS = 10.0
"""Seconds between two questions for further frames, if nothing happens."""
ASKED_AT_ONCE = 64
"""Questions for all of ten thousand sockets at once would hold everything else up for a second, and
take memory for each.
"""
LOST_SECONDS = 0.5
"""Seconds between two questions about every socket, however often connections are lost: any member
can connect and go, again and again.
"""
FAILED = 1011
"""The code with which a socket is closed whose entity has raised."""
TOO_LARGE = 1009
"""The code with which a socket is closed whose client sends more than a call may take."""
ID_BYTES = 16
logger = logging.getLogger("tenure.entities")
Begin: TypeAlias = Callable[[EdgeSocket], Awaitable[bool]]
"""Tells an owner of a socket; returns whether it is to be read."""


class CallsEntities(Protocol):
    """The part of a `Caller` that an edge needs."""

    def call(self, key: str | int, method: str, data: bytes, id: bytes = b"") -> Answering:  # noqa: A002
        """Return the answer of the entity."""
        ...


class Edge:
    """All WebSockets of this process."""

    def __init__(
        self,
        caller: CallsEntities,
        url: str,
        random: Random,
        go: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._caller = caller
        self._url = url
        self._random = random
        self._go = go
        self._sockets: dict[bytes, EdgeSocket] = {}
        self._given_up: dict[bytes, int] = {}
        """Sockets that were given up, and the number of the last frame that went along. Owners that
        ask for them here, before they have heard of the next edge, must not take them for gone.
        """
        self._has_lost = False
        """Whether a connection was lost since every socket was asked about."""
        self._is_asking = False

    def __len__(self) -> int:
        return len(self._sockets)

    def socket(self, key: str | int, websocket: Any) -> EdgeSocket:  # noqa: ANN401
        """A socket of that key, which nobody knows yet."""
        drawn = self._random.getrandbits(8 * ID_BYTES).to_bytes(ID_BYTES, "big")
        return EdgeSocket(drawn, key, websocket)

    async def attach(
        self,
        socket: EdgeSocket,
        attachment: object,
        until: asyncio.Future[int] | None = None,
    ) -> None:
        """See `Entity.attach`."""
        socket.attachment = checked_attachment(attachment)
        await socket.accept()
        if until is not None:
            until.add_done_callback(socket.close_after)
        try:
            await self._hold(socket, self._connect)
        finally:
            if until is not None:
                until.remove_done_callback(socket.close_after)

    async def go_on(self, socket: EdgeSocket) -> None:
        """As `attach`, with a socket that another edge has given up."""
        await self._hold(socket, self._move)

    async def _hold(self, socket: EdgeSocket, begin: Begin) -> None:
        self._sockets[socket.id] = socket
        self._given_up.pop(socket.id, None)
        has_gone = False
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(None) as socket.until:
                    await self._read(socket, begin)
                    has_gone = True
        finally:
            try:
                await socket.stop()
            finally:  # even if cancelled again
                del self._sockets[socket.id]
                self._over(socket, has_gone=has_gone)

    def _over(self, socket: EdgeSocket, *, has_gone: bool) -> None:
        if socket.is_leaving:
            socket.left(has_gone=has_gone)
        if socket.is_leaving and not has_gone:
            self._given_up[socket.id] = socket.end.received
        else:
            self._go(self._tell_gone(socket))

    def gone(self, socket: EdgeSocket) -> None:
        """A socket that was given up has ended before anybody went on with it."""
        del self._given_up[socket.id]
        self._go(self._tell_gone(socket))

    async def _read(self, socket: EdgeSocket, begin: Begin) -> None:
        try:
            if await begin(socket):
                while (frame := frame_of(await socket.receive())) is not None:
                    number = socket.end.next()
                    said = packed(SocketFrame(socket.id, number, frame))
                    if len(said) > ARGUMENT_BYTES:
                        socket.close(TOO_LARGE)
                        break
                    id_ = socket.id + number.to_bytes(8, "big")
                    socket.unanswered = frame
                    if await self._caller.call(socket.key, MESSAGE, said, id_) == UNKNOWN:
                        socket.close(SERVICE_RESTART)
                        break
                    socket.unanswered = None
                else:
                    return
        except Exception as error:
            # Who connects chooses the key, and could fill the log.
            if _is_of_the_class(error) and not is_too_long(socket.key):
                logger.exception(
                    "a socket of %.100r is closed with %d, because its class has failed",
                    socket.key,
                    FAILED,
                )
            socket.close(FAILED if _is_of_the_class(error) else SERVICE_RESTART)
        await asyncio.Event().wait()  # until the socket is closed

    async def _connect(self, socket: EdgeSocket) -> bool:
        opened = packed(SocketOpened(socket.id, self._url, socket.attachment))
        socket.attachment = b""
        await self._caller.call(socket.key, CONNECT, opened, socket.id)
        socket.is_connected = True
        self._ask_if_lost(socket)
        return True

    async def _move(self, socket: EdgeSocket) -> bool:
        moved = packed(SocketMoved(socket.id, self._url))
        try:
            is_unknown = await self._caller.call(socket.key, MOVE, moved) == UNKNOWN
        except TenureError as error:  # among others, of an owner that is older than this
            logger.warning("a socket of %.100r is closed: %s", socket.key, error)
            is_unknown = True
        if is_unknown:
            socket.close(SERVICE_RESTART)
            return False
        socket.is_connected = True
        self._go(self._ask(socket))  # for what was sent to the former edge, and came too late
        return True

    def _ask_if_lost(self, socket: EdgeSocket) -> None:
        if socket.is_to_ask:
            socket.is_to_ask = False
            self._go(self._ask(socket))

    async def _tell_gone(self, socket: EdgeSocket) -> None:
        with suppress(Exception):  # nobody waits for this, and the owner notices by itself
            await self._caller.call(socket.key, DISCONNECT, packed(SocketGone(socket.id)))

    # --- what owners send ---

    def take(self, pushed: PushedFrames) -> dict[bytes, int]:
        """Take frames of an owner; return up to which number each socket now has everything."""
        received = {}
        by = Numbering(pushed.journal, pushed.number, pushed.begun)
        known = chain(pushed.found, repeat(None))
        for (each, first, closing), found in zip(pushed.sockets, known, strict=False):
            socket = self._sockets.get(each)
            if socket is not None:
                came = NumberedFrames(by, found, first, pushed.frames)
                self._deliver(socket, came, closing)
                received[each] = socket.end.received
            elif each in self._given_up:
                received[each] = self._given_up[each]
        return received

    def _deliver(self, socket: EdgeSocket, came: NumberedFrames, closing: int) -> None:
        new = socket.end.take(came)
        if new == "missing":
            self._go(self._ask(socket))
            return
        if new == "forked":
            socket.close(SERVICE_RESTART)
            return
        if new:
            socket.put(new)
        if closing:
            socket.close(closing)

    def lost(self) -> None:
        """A connection to another member was lost, and frames on their way with it."""
        self._has_lost = True
        if not self._is_asking:
            self._is_asking = True
            self._go(self._ask_after_loss())

    async def _ask_after_loss(self) -> None:
        try:
            while self._has_lost:
                self._has_lost = False
                for each in self._sockets.values():
                    self._go(self._ask(each))
                await asyncio.sleep(LOST_SECONDS)
        finally:
            self._is_asking = False

    def close_all(self) -> None:
        """Ask every client to connect again, as this process is about to end."""
        for each in self._sockets.values():
            each.close(SERVICE_RESTART)

    async def keep_asking(self) -> None:
        """Ask regularly, so that owners know that the sockets still exist."""
        while True:
            due = list(self._sockets)
            parts = 1 + len(due) // ASKED_AT_ONCE
            for part in range(parts):
                await asyncio.sleep(ASK_SECONDS / parts)
                for each in due[part::parts]:
                    if (socket := self._sockets.get(each)) is not None:
                        self._go(self._ask(socket))

    async def _ask(self, socket: EdgeSocket) -> None:
        if socket.is_asking or not socket.is_connected:
            socket.is_to_ask = True
            return
        socket.is_asking = True
        received = socket.end.received
        try:
            said = packed(SocketResume(socket.id, received))
            answer = await self._caller.call(socket.key, RESUME, said)
            found = None if answer == UNKNOWN else read_resumed(answer)
        except Exception as error:  # noqa: BLE001  # whatever it is, nobody knows what follows
            logger.warning("a socket of %.100r is closed: %s", socket.key, error)
            socket.close(SERVICE_RESTART)
            return
        finally:
            socket.is_asking = False
            self._ask_if_lost(socket)
        if found is None:
            if socket.end.received == received:
                socket.close(SERVICE_RESTART)
            return  # otherwise the question was old, and more has come meanwhile
        by = Numbering(found.journal, found.number, found.begun)
        came = NumberedFrames(by, found.found, received + 1, found.frames)
        self._deliver(socket, came, found.closing)


def _is_of_the_class(error: Exception) -> bool:
    """Whether a call ended with this error because of the entity's class, and a repeat would,
    too.
    """
    if not isinstance(error, TenureError):
        return True
    if isinstance(error, ClosedError):
        return False
    return isinstance(error, EntityError | UsageError | ValueTypeError)


def checked_attachment(attachment: object) -> bytes:
    """The attachment's bytes. Raises ValueTypeError if it cannot be one."""
    try:
        data = packed(attachment)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueTypeError(f"an attachment is what msgpack has: {error}") from None
    if len(data) > ATTACHMENT_BYTES:
        raise ValueTypeError(
            f"an attachment of {len(data)} bytes; at most {ATTACHMENT_BYTES} are allowed: it says "
            "who the client is, and the state has the rest"
        )
    return data
