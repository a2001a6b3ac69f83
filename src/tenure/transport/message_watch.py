"""Watches what is kept of one client's WebSocket messages where a library reads them.

`FrameSocket` knows what it keeps. aiohttp and `websockets` do not tell: a client may send all of
a message but its last byte on each of many connections, and nothing would ever end. So the bytes
are counted on their way, frame by frame, without being kept a second time. What a message has so
far shares the bounds of `UnfinishedMessages`, and so does a message that is whole and is not passed
on yet, because whom it is for does not read.

A frame costs a library ten microseconds and its sender six bytes. So a message has no more pieces
than elsewhere, frames that carry nothing come at a bounded rate, and whoever can reads some frames
at a time (`take`).
"""

import asyncio
from collections.abc import Callable, Hashable

from aiohttp import WSCloseCode

from tenure.runtime.clock import boot_clock
from tenure.transport.rate_bound import RateBound
from tenure.transport.unfinished_messages import FREE_BYTES, UnfinishedMessages
from tenure.transport.websocket_frames import MOST_PIECES, FrameError

LOOKS_SECONDS = 5.0
"""How often a message is looked at that is large and not whole."""
FRAMES_A_PASS = 64
"""The most frames that are taken at a time: less than a millisecond of work."""
IDLE_AT_ONCE, IDLE_A_SECOND = 512, 100
"""The most frames that carry nothing: control frames, and empty pieces that do not end a message.
Honest clients send one every few seconds.
"""
MOST_CONTROL_BYTES = 125
_CONTROL = 8
_LAST, _MASKED, _OPCODE, _LENGTH = 0x80, 0x80, 0x0F, 0x7F
_WIDE = {126: 2, 127: 8}
"""How many bytes a length has that does not fit into the head."""
_WHOLE = (0x81, 0x82, 0xC1, 0xC2)
"""How a text or binary message begins that is in one piece, compressed or not."""
_SHORT_HEAD = 6
"""The bytes of a head with a mask, and a length that fits into it."""


class MessageMeter:
    """Counts what the bytes so far have of a message that has not ended."""

    def __init__(self) -> None:
        self.kept = 0
        self.idle = 0
        """The frames that carry nothing, since the last `take` began."""
        self.whole = 0
        """Up to where in what was taken last the frames are whole."""
        self._pieces = 0
        self._frames = 0
        self._head = bytearray()
        self._left = 0
        """The bytes of the present frame that are still to come."""
        self._is_control = self._is_last = False

    def feed(self, data: bytes) -> None:
        """More has come. Raises FrameError if a message has too many pieces."""
        at = 0
        while at < len(data):
            at = self.take(data, at)

    def take(self, data: bytes, at: int) -> int:
        """Count some frames of what has come, from there on. Returns where they end."""
        self._frames = self.idle = 0
        self.whole = at
        while at < len(data) and self._frames < FRAMES_A_PASS:
            if self._left:
                came = min(self._left, len(data) - at)
                at += came
                self._left -= came
                self.kept += 0 if self._is_control else came
                self._end_of_frame()
            elif ends := self._whole(data, at):
                self._frames += 1
                at = ends
            else:
                self._head.append(data[at])
                at += 1
                if len(self._head) >= 2 and len(self._head) == self._head_bytes():  # noqa: PLR2004 - without a length
                    self._begin()
            if not (self._left or self._head):
                self.whole = at
        return at

    @property
    def expected(self) -> int:
        """What will be kept once the present frame is whole."""
        return self.kept + self._left

    def _whole(self, data: bytes, at: int) -> int:
        """Where a short message ends that begins there and is all here; 0 if none does. It leaves
        nothing behind, and nearly all messages are such.
        """
        if self._head or self._pieces or at + 1 >= len(data) or data[at] not in _WHOLE:
            return 0
        size = data[at + 1] - _MASKED
        ends = at + _SHORT_HEAD + size
        return ends if 0 <= size < min(_WIDE) and ends <= len(data) else 0

    def _head_bytes(self) -> int:
        second = self._head[1]
        return 2 + _WIDE.get(second & _LENGTH, 0) + (4 if second & _MASKED else 0)

    def _begin(self) -> None:
        first, second = self._head[0], self._head[1]
        wide = _WIDE.get(second & _LENGTH, 0)
        self._left = int.from_bytes(self._head[2 : 2 + wide], "big") if wide else second & _LENGTH
        self._is_control = first & _OPCODE >= _CONTROL
        self._is_last = bool(first & _LAST)
        if self._is_control and self._left > MOST_CONTROL_BYTES:
            why = f"a control frame of more than {MOST_CONTROL_BYTES} bytes"
            raise FrameError(WSCloseCode.PROTOCOL_ERROR, why)
        # A piece without bytes is something, too: otherwise there could be any number.
        self.kept += 0 if self._is_control else len(self._head)
        self._head.clear()
        self._frames += 1
        self.idle += self._is_control or not (self._left or self._is_last)
        self._pieces += not self._is_control
        if self._pieces > MOST_PIECES:
            why = f"a message in more than {MOST_PIECES} pieces"
            raise FrameError(WSCloseCode.POLICY_VIOLATION, why)
        self._end_of_frame()

    def _end_of_frame(self) -> None:
        if not self._left and self._is_last and not self._is_control:
            self.kept = self._pieces = 0


class MessageWatch:
    """What is kept for one connection; `abort` ends it."""

    def __init__(
        self,
        all_of_port: UnfinishedMessages,
        whose: tuple[Hashable, ...],
        abort: Callable[[], None],
    ) -> None:
        self._all_of_port = all_of_port
        self._whose = whose
        self._abort = abort
        self._meter = MessageMeter()
        self._idle = RateBound(IDLE_A_SECOND, IDLE_AT_ONCE)
        self._held = 0
        self._looks: asyncio.TimerHandle | None = None
        self._has_ended = False

    def feed(self, data: bytes) -> None:
        """The client has sent this. Raises FrameError if it may not."""
        at = 0
        while at < len(data):
            at = self.take(data, at)

    def take(self, data: bytes, at: int) -> int:
        """Count some frames of what the client has sent, from there on. Returns where they end.
        Raises FrameError if it may not send them.
        """
        before = self._meter.kept
        at = self._meter.take(data, at)
        idle = self._meter.idle
        if idle and not self._idle.allows(boot_clock(), idle):
            raise FrameError(WSCloseCode.POLICY_VIOLATION, "too many frames that carry nothing")
        if max(before, self._meter.kept) > FREE_BYTES:
            self._note()
        return at

    @property
    def whole(self) -> int:
        """Up to where in what was taken last the frames are whole."""
        return self._meter.whole

    @property
    def expected(self) -> int:
        """The bytes of the present message, and of the frames around it, as far as it has said."""
        return self._meter.expected

    def hold(self, size: int) -> None:
        """A whole message of this size is to be passed on; 0 once it is."""
        before, self._held = self._held, size
        if max(before, size) > FREE_BYTES:
            self._note()

    def cut_off(self) -> None:
        """End the connection: others of its client have begun more since."""
        self.end()
        self._abort()

    def end(self) -> None:
        """The connection is gone."""
        self._has_ended = True
        self._all_of_port.ended(self)
        if self._looks is not None:
            self._looks.cancel()

    def _note(self) -> None:
        if self._has_ended:
            return
        kept = self._meter.kept + self._held
        self._all_of_port.kept(self, self._whose, kept, boot_clock())
        if self._looks is None and not self._has_ended and self._meter.kept > FREE_BYTES:
            self._looks = asyncio.get_running_loop().call_later(LOOKS_SECONDS, self._look)

    def _look(self) -> None:
        self._looks = None
        if self._meter.kept <= FREE_BYTES:  # what is whole may wait for whom it is for
            return
        if self._all_of_port.is_stuck(self, boot_clock()):
            self.cut_off()
        else:
            self._note()
