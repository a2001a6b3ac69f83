"""Sockets at their edge: in the process that accepted them, wherever their entity is.

Each message of the client becomes a numbered call, one at a time, which is repeated until the
present owner of the key answers it. Frames of the entity are numbered, too. If a number is missing,
or a connection broke, or nothing was asked for a while, the edge asks the present owner for the
frames after the last one that came. If the owner cannot tell, something is lost, and the edge
closes the client with 1012, which asks it to connect again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any, Protocol

from tenure.entities.caller import Answering
from tenure.entities.sockets import UNKNOWN
from tenure.errors import ClosedError, EntityError, TenureError, UsageError, ValueTypeError
from tenure.member.asgi import SERVICE_RESTART
from tenure.protocol.entity.key_line import ARGUMENT_BYTES
from tenure.protocol.entity.messages import (
    CONNECT,
    DISCONNECT,
    MESSAGE,
    RESUME,
    PushedFrames,
    SocketFrame,
    SocketGone,
    SocketOpened,
    SocketResume,
)
from tenure.protocol.entity.socket_end import SocketEnd
from tenure.protocol.entity.socket_entry import AROUND_BYTES, SLOW_CLIENT, Frame
from tenure.wire.entity import packed, read_resumed

ATTACHMENT_BYTES = 4096
WAITING_BYTES = 1 << 20
"""The most frames that wait for a client that does not read."""
ASK_SECONDS = 10.0
"""Seconds between two questions for further frames, if nothing happens."""
LOST_SECONDS = 0.5
"""Seconds between two questions about every socket, however often connections are lost: any member
can connect and go, again and again.
"""
CLOSE_SECONDS = 5.0
FAILED = 1011
"""The code with which a socket is closed whose entity has raised."""
TOO_LARGE = 1009
"""The code with which a socket is closed whose client sends more than a call may take."""
ID_BYTES = 16
logger = logging.getLogger("tenure.entities")


class EdgeSocket:
    """One WebSocket of this process."""

    def __init__(self, id: bytes, key: str | int, websocket: Any) -> None:  # noqa: A002, ANN401
        self.id = id
        self.key = key
        self.end = SocketEnd()
        self.is_connected = False
        """Whether the entity knows the socket."""
        self.is_asking = False
        self.is_to_ask = False
        """Whether something was lost while no owner could be asked for it."""
        self.is_closing = asyncio.Event()
        self._websocket = websocket
        self._to_write: deque[Frame] = deque()
        self._has_some = asyncio.Event()
        self._bytes = 0
        self._code = 0

    def put(self, frames: tuple[Frame, ...]) -> None:
        """Write these to the client."""
        self._to_write.extend(frames)
        self._bytes += sum(map(len, frames)) + AROUND_BYTES * len(frames)
        self._has_some.set()
        if self._bytes > WAITING_BYTES:
            self.close(SLOW_CLIENT)

    def close(self, code: int) -> None:
        """Close the socket, after everything that is to be written."""
        if not self._code:
            self._code = code
            self.is_closing.set()
            self._has_some.set()

    async def write(self) -> None:
        """Write until the socket is closed."""
        while True:
            await self._has_some.wait()
            self._has_some.clear()
            while self._to_write:
                frame = self._to_write.popleft()
                self._bytes -= len(frame) + AROUND_BYTES
                kind = "text" if isinstance(frame, str) else "bytes"
                await self._websocket.send({"type": "websocket.send", kind: frame})
            if self._code:
                await self._websocket.close(code=self._code)
                return

    async def read(self) -> Frame | None:
        """The next message of the client; None if the client has gone."""
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        text: Frame | None = message.get("text")
        return message["bytes"] if text is None else text


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
        self._has_lost = False
        """Whether a connection was lost since every socket was asked about."""
        self._is_asking = False

    def __len__(self) -> int:
        return len(self._sockets)

    async def attach(
        self,
        key: str | int,
        websocket: Any,  # noqa: ANN401
        attachment: object,
        until: asyncio.Future[int] | None = None,
    ) -> None:
        """See `Entity.attach`."""
        data = checked_attachment(attachment)
        drawn = self._random.getrandbits(8 * ID_BYTES).to_bytes(ID_BYTES, "big")
        socket = EdgeSocket(drawn, key, websocket)
        await websocket.accept()
        self._sockets[socket.id] = socket

        def end(when: asyncio.Future[int]) -> None:
            if not when.cancelled():
                socket.close(when.result())

        if until is not None:
            until.add_done_callback(end)
        tasks = [
            asyncio.ensure_future(each)
            for each in (socket.write(), self._read(socket, data), socket.is_closing.wait())
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[2] in done:  # frames that were written already may still arrive
                await asyncio.wait(tasks[:1], timeout=CLOSE_SECONDS)
        finally:
            if until is not None:
                until.remove_done_callback(end)
            for each in tasks:
                each.cancel()
            try:
                await asyncio.wait(tasks)
            finally:  # even if cancelled again
                del self._sockets[socket.id]
                self._go(self._tell_gone(socket))

    async def _read(self, socket: EdgeSocket, attachment: bytes) -> None:
        try:
            if await self._connect(socket, attachment):
                while (frame := await socket.read()) is not None:
                    number = socket.end.next()
                    said = packed(SocketFrame(socket.id, number, frame))
                    if len(said) > ARGUMENT_BYTES:
                        socket.close(TOO_LARGE)
                        break
                    id_ = socket.id + number.to_bytes(8, "big")
                    if await self._caller.call(socket.key, MESSAGE, said, id_) == UNKNOWN:
                        socket.close(SERVICE_RESTART)
                        break
                else:
                    return
        except Exception as error:
            if _is_of_the_class(error):
                logger.exception(
                    "a socket of %.100r is closed with %d, because its class has failed",
                    socket.key,
                    FAILED,
                )
            socket.close(FAILED if _is_of_the_class(error) else SERVICE_RESTART)
        await asyncio.Event().wait()  # until the socket is closed

    async def _connect(self, socket: EdgeSocket, attachment: bytes) -> bool:
        opened = packed(SocketOpened(socket.id, self._url, attachment))
        await self._caller.call(socket.key, CONNECT, opened, socket.id)
        socket.is_connected = True
        self._ask_if_lost(socket)
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
        for each, first, closing in pushed.sockets:
            socket = self._sockets.get(each)
            if socket is not None:
                lease = pushed.journal, pushed.number
                self._deliver(socket, lease, first, pushed.frames, closing)
                received[each] = socket.end.received
        return received

    def _deliver(
        self,
        socket: EdgeSocket,
        lease: tuple[int, int],
        first: int,
        frames: tuple[Frame, ...],
        closing: int,
    ) -> None:
        new = socket.end.take(lease, first, frames)
        if new == "missing":
            self._go(self._ask(socket))
            return
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
                self.ask_all()
                await asyncio.sleep(LOST_SECONDS)
        finally:
            self._is_asking = False

    def ask_all(self) -> None:
        """Ask for further frames of every socket."""
        for each in self._sockets.values():
            self._go(self._ask(each))

    def close_all(self) -> None:
        """Ask every client to connect again, as this process is about to end."""
        for each in self._sockets.values():
            each.close(SERVICE_RESTART)

    async def keep_asking(self) -> None:
        """Ask regularly, so that owners know that the sockets still exist."""
        while True:
            await asyncio.sleep(ASK_SECONDS)
            self.ask_all()

    async def _ask(self, socket: EdgeSocket) -> None:
        if socket.is_asking or not socket.is_connected:
            socket.is_to_ask = True
            return
        socket.is_asking = True
        received = socket.end.received
        try:
            said = packed(SocketResume(socket.id, received))
            answer = await self._caller.call(socket.key, RESUME, said)
        except Exception as error:  # noqa: BLE001  # whatever it is, nobody knows what follows
            logger.warning("a socket of %.100r is closed: %s", socket.key, error)
            socket.close(SERVICE_RESTART)
            return
        finally:
            socket.is_asking = False
            self._ask_if_lost(socket)
        if answer == UNKNOWN:
            if socket.end.received == received:
                socket.close(SERVICE_RESTART)
            return  # otherwise the question was old, and more has come meanwhile
        found = read_resumed(answer)
        lease = found.journal, found.number
        self._deliver(socket, lease, received + 1, found.frames, found.closing)


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
