"""One WebSocket at its edge: what its client has sent, and what is to be written to it."""

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import Any, NamedTuple

from tenure.protocol.entity.socket_end import PassedEnd, SocketEnd
from tenure.protocol.entity.socket_entry import AROUND_BYTES, SLOW_CLIENT, Frame

WAITING_BYTES = 1 << 20
"""The most frames that wait for a client that does not read."""
CLOSE_SECONDS = 5.0
"""How long what was written before may take until a socket is closed."""


class SocketGivenUp(NamedTuple):
    """What another process needs to go on with a socket."""

    end: PassedEnd
    unanswered: Frame | None
    """A frame of the client that the entity may not have handled."""
    unwritten: tuple[Frame, ...]
    """Frames of the entity that have come, and were not written to the client."""


class EdgeSocket:
    """One WebSocket of this process."""

    def __init__(
        self,
        id: bytes,  # noqa: A002
        key: str | int,
        websocket: Any,  # noqa: ANN401
        end: SocketEnd | None = None,
    ) -> None:
        self.id = id
        self.key = key
        self.end = end or SocketEnd()
        self.is_connected = False
        """Whether the entity knows the socket."""
        self.is_asking = False
        self.is_to_ask = False
        """Whether something was lost while no owner could be asked for it."""
        self.attachment = b""
        """What the entity is told of it; nothing once it was."""
        self.until: asyncio.Timeout | None = None
        """For how long it is read; None while nobody reads or writes it. It has no end until the
        socket is to be closed, or given up.
        """
        self.unanswered: Frame | None = None
        """The frame of the client with which the entity is called."""
        self._websocket = websocket
        self._to_write: deque[Frame] | None = None
        self._writing: asyncio.Task[None] | None = None
        """None, as the deque, while nothing is to be written: to most sockets, nearly always."""
        self._bytes = 0
        self._code = 0
        self._left: asyncio.Future[SocketGivenUp | None] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether another process could go on with it: it neither begins nor ends."""
        return self.is_connected and not self._code and not self.is_leaving

    @property
    def is_leaving(self) -> bool:
        """Whether it is being given up."""
        return self._left is not None

    async def accept(self) -> None:
        """Shake hands."""
        await self._websocket.accept()

    def put(self, frames: tuple[Frame, ...]) -> None:
        """Write these to the client."""
        if self._to_write is None:
            self._to_write = deque()
        self._to_write.extend(frames)
        self._bytes += sum(map(len, frames)) + AROUND_BYTES * len(frames)
        self._write_on()
        if self._bytes > WAITING_BYTES:
            self.close(SLOW_CLIENT)

    def close(self, code: int) -> None:
        """Close the socket, after everything that is to be written."""
        if not (self._code or self.is_leaving):
            self._code = code
            self._end_within(CLOSE_SECONDS)
            self._write_on()

    def close_after(self, until: asyncio.Future[int]) -> None:
        """Close it with the code that is there."""
        if not until.cancelled():
            self.close(until.result())

    def _end_within(self, seconds: float) -> None:
        if self.until is not None and not self.until.expired():
            self.until.reschedule(asyncio.get_running_loop().time() + seconds)

    def _write_on(self) -> None:
        if self.until is not None and self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        """Write all, and close if that is asked for."""
        is_over = True
        try:
            while self._to_write:
                frame = self._to_write.popleft()
                self._bytes -= len(frame) + AROUND_BYTES
                kind = "text" if isinstance(frame, str) else "bytes"
                await self._websocket.send({"type": "websocket.send", kind: frame})
            self._to_write = None
            if self._code:
                await self._websocket.close(code=self._code)
            is_over = bool(self._code)
        finally:
            self._writing = None
            if is_over:
                self._end_within(0)

    async def stop(self) -> None:
        """Write no more."""
        self.until = None
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait({self._writing})

    def receive(self) -> Awaitable[dict[str, Any]]:
        """The next message of the client."""
        received: Awaitable[dict[str, Any]] = self._websocket.receive()
        return received

    async def give_up(self) -> SocketGivenUp | None:
        """Neither read nor write any more, and return what another process needs to go on; None if
        the socket has ended by itself.
        """
        assert self.is_settled, "otherwise there is nothing to go on with"
        self._left = asyncio.get_running_loop().create_future()
        self._end_within(0)
        return await self._left

    def left(self, *, has_gone: bool) -> None:
        """Nobody reads or writes it any more. `has_gone` says that its client has gone."""
        assert self._left is not None, "it was to leave"
        end = self.end.passed(unanswered=self.unanswered is not None)
        if not self._left.done():
            given = SocketGivenUp(end, self.unanswered, tuple(self._to_write or ()))
            self._left.set_result(None if has_gone else given)


def frame_of(message: dict[str, Any]) -> Frame | None:
    """What a message of the client says; None if the client has gone."""
    if message["type"] == "websocket.disconnect":
        return None
    text: Frame | None = message.get("text")
    return message["bytes"] if text is None else text
