"""Either end of a WebSocket: a protocol of its own, without a task to read it.

One object is called with the bytes that come (see `handshakes`). If a peer sends much at once, a
few of its frames are read at a time, and in between it is everybody else's turn (`fair_turns`).
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Hashable

from aiohttp import WSCloseCode

from tenure.base.instants import MILLISECOND_NS, Instant, in_seconds
from tenure.runtime.clock import boot_clock
from tenure.transport.fair_turns import TURN_NS, FairTurns
from tenure.transport.peers import ConnectedPeer
from tenure.transport.rate_bound import TIMES_OF_NOTHING, RateBound, times
from tenure.transport.unfinished_messages import FREE_BYTES, UnfinishedMessages
from tenure.transport.websocket_frames import (
    BINARY,
    CLOSE,
    PIECE,
    PING,
    PONG,
    FrameError,
    FrameReader,
    close_frame,
    closed_because,
    frame,
    masked_frame,
)

FAIR_NS = MILLISECOND_NS
"""Messages that come closer together than this wait for their turn. Otherwise all that a flood has
in its buffer, thousands of messages, would be handled in one go.
"""
WAITING_BYTES = 4096
"""The bytes that may wait for their turn before reading pauses: some tens of renewals."""
CLOSE_SECONDS = 2.0
"""How long a peer has to answer that its connection is closed."""
LOOKS = 4
"""How often it is looked whether a peer is silent, in the time after which it is asked."""


class FrameSocket(ConnectedPeer, asyncio.Protocol):
    """The WebSocket of one peer. A subclass decides what its messages mean.

    Some of its frames are read before it waits for another of its `turns`. A peer that sends more
    than its `rate` is refused; one that sends more than its `pace` is not read until it has kept to
    it. `is_dialled` says that this process has made the connection, and so
    masks its frames.
    """

    __slots__ = (
        "_ending",
        "_frames",
        "_gone",
        "_is_asked",
        "_is_dialled",
        "_is_paused",
        "_is_unfinished",
        "_is_waiting",
        "_pace",
        "_rate",
        "_turns",
        "_unfinished",
        "_whose",
        "heard_at",
        "left",
        "why",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        version: int,
        *,
        most_bytes: int,
        lag_bytes: int,
        turns: FairTurns,
        rate: RateBound | None = None,
        pace: RateBound | None = None,
        is_dialled: bool = False,
    ) -> None:
        super().__init__(transport, version, lag_bytes)
        self.transport: asyncio.Transport
        self.heard_at: Instant = boot_clock()
        """When bytes last arrived."""
        self.left: Callable[[FrameSocket], None] | None = None
        """Called when the connection is gone; whoever counts connections sets it."""
        self.why = ""
        """The reason why the connection ends, once it is known, for people to read."""
        self._is_dialled = is_dialled
        self._frames: FrameReader | None = FrameReader(most_bytes, is_masked=not is_dialled)
        """The frames read so far; None once a frame cannot be read: later bytes are dropped until
        the connection ends.
        """
        self._turns = turns
        self._rate = rate
        self._pace = pace
        self._unfinished: UnfinishedMessages | None = None
        self._whose: tuple[Hashable, ...] = ()
        self._is_unfinished = False
        self._is_waiting = False
        """Whether it waits for its turn, for its pace, or, after a flood, for its end."""
        self._is_paused = False
        """Whether reading is paused, because more bytes wait than a client usually sends at once.
        """
        self._ending: asyncio.TimerHandle | None = None
        """Cuts the connection off, unless it ends before. Nothing is sent any more."""
        self._gone: asyncio.Future[None] | None = None
        self._is_asked = False
        """Whether it was asked, and has said nothing since."""

    def bound_unfinished(self, all_of_port: UnfinishedMessages, *whose: Hashable) -> None:
        """Bound what is kept of unfinished messages, for each of these names of the peer."""
        self._unfinished, self._whose = all_of_port, whose

    # --- what each kind of socket says ---

    @abstractmethod
    def on_message(self, data: bytes) -> None:
        """The client sent a message."""

    def on_refused(self, error: FrameError) -> None:
        """A frame of the client was refused: the client is told why, and its connection ends."""

    def on_flood(self) -> None:
        """The client sent more than its rate allows: nothing more from it is read."""

    def on_ending(self) -> None:
        """A close frame is about to be sent: nothing may follow it."""

    def on_lost(self) -> None:
        """The connection is gone."""

    # --- reading ---

    def data_received(self, data: bytes) -> None:
        now = boot_clock()
        is_close_behind = now - self.heard_at < FAIR_NS
        self.heard_at = now
        self._is_asked = False
        frames = self._frames
        if frames is None:
            return
        frames.feed(data)
        if self._is_waiting:
            if len(frames) > WAITING_BYTES:
                self._pause()
        elif self._turns.must_wait(is_close_behind=is_close_behind) or self._take_some(now):
            self._wait_for_turn()
        self._note_unfinished(now)

    def _note_unfinished(self, now: Instant) -> None:
        size = self._kept_bytes()
        if self._unfinished is not None and (self._is_unfinished or size > FREE_BYTES):
            self._is_unfinished = size > FREE_BYTES
            self._unfinished.kept(self, self._whose, size, now)

    def _kept_bytes(self) -> int:
        """The bytes that are kept of what the client has sent, in one message or more."""
        return 0 if self._frames is None else self._frames.unfinished

    def _wait_for_turn(self) -> None:
        self._is_waiting = True
        self._turns.put(self)

    def _pause(self) -> None:
        if not self._is_paused and not self.transport.is_closing():
            self._is_paused = True
            self.transport.pause_reading()

    def take_turn(self) -> None:
        """Read some frames, and wait again if there may be another."""
        if self.transport.is_closing() or self._frames is None:
            return
        self._is_waiting = False
        now = boot_clock()
        try:
            is_more = self._take_some(now)
        except BaseException:
            self.transport.abort()  # as a loop does if `data_received` raises
            raise
        self._note_unfinished(now)
        if is_more:
            self._wait_for_turn()
        elif self._is_paused and not self._is_waiting and not self.transport.is_closing():
            self._is_paused = False
            self.transport.resume_reading()

    def _take_some(self, now: Instant) -> bool:
        """Take the frames of one turn. Returns whether there may be another."""
        left, spent_ns, is_more = self._turns.frames, 0, True
        while left and is_more and spent_ns < TURN_NS:
            is_more = self._take(now)
            left -= 1
            spent_ns = boot_clock() - now
        self._turns.count(self._turns.frames - left, spent_ns)
        return is_more

    def _take(self, now: Instant) -> bool:
        """Take one frame, if there is one. Returns whether there may be another."""
        assert self._frames is not None
        try:
            taken = self._frames.take()
        except FrameError as error:
            self._frames = None
            if self._ending is None:
                self.on_refused(error)
                self.end(error.code, str(error))
            return False
        if taken is None:
            return False
        code, payload = taken
        if code == CLOSE:
            self._on_close(payload)
            return False
        if self._ending is None and not self._on_frame(code, payload, now):
            return False
        return len(self._frames) > 0

    def _on_frame(self, code: int, payload: bytes, now: Instant) -> bool:
        """Do what a frame says. Returns False if none may follow it now."""
        carries = code == BINARY or (code == PIECE and payload)
        counts = times(payload) if carries else TIMES_OF_NOTHING
        if self._rate is not None and not self._rate.allows(now, counts):
            self._is_waiting = True
            self.on_flood()
            return False
        if code == BINARY:
            self.on_message(payload)
        elif code == PING:
            self.send_frame(self._framed(payload, PONG))
        rest_ns = 0 if self._pace is None else self._pace.rest_ns(now, counts)
        if rest_ns:
            self._rest(rest_ns)
        return not self._is_waiting

    def _rest(self, rest_ns: int) -> None:
        self.hold()
        asyncio.get_running_loop().call_later(in_seconds(rest_ns), self.read_on)

    def hold(self) -> None:
        """Read nothing more until `read_on`."""
        self._is_waiting = True
        self._pause()

    def read_on(self) -> None:
        """Read again, when it is its turn."""
        self._turns.put(self)

    def _framed(self, payload: bytes, opcode: int = BINARY) -> bytes:
        return masked_frame(payload, opcode) if self._is_dialled else frame(payload, opcode)

    def _on_close(self, payload: bytes) -> None:
        self.why = self.why or closed_because(payload)
        self.end(WSCloseCode.OK, "")
        self.transport.close()

    def eof_received(self) -> None:
        """The peer sends nothing more, and the transport closes when what waits has been read."""
        if self._ending is None:
            self._cut_off_soon()

    def _cut_off_soon(self) -> None:
        """A peer that leaves may be one that reads nothing: closing would wait for it for ever."""
        self._ending = asyncio.get_running_loop().call_later(CLOSE_SECONDS, self.cut_off)

    # --- ending ---

    @property
    def is_ending(self) -> bool:
        """Whether nothing is sent any more."""
        return self._ending is not None

    def end(self, code: int, why: str) -> None:
        """Close the connection, and tell the peer the reason."""
        if self._ending is None and not self.transport.is_closing():
            self.on_ending()
            self._cut_off_soon()
            self.transport.write(close_frame(code, why, self._framed))

    async def gone(self) -> None:
        """Wait until the connection is gone."""
        if self._gone is None:
            self._gone = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._gone)

    def cut_off(self) -> None:
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._unfinished is not None:
            self._unfinished.ended(self)
        if self._ending is not None:
            self._ending.cancel()
        if self._gone is None:
            self._gone = asyncio.get_running_loop().create_future()
        self._gone.set_result(None)
        self.why = self.why or str(exc or "") or "it broke off the connection"
        if self.left is not None:
            self.left(self)
        self.on_lost()

    def is_there(self, now: Instant, silent_ns: int) -> None:
        """Ask a peer that has been silent for `silent_ns`. Cut it off if it has not answered for
        half as long again: its host may have died without closing anything.
        """
        silent = now - self.heard_at
        is_stuck = self._unfinished is not None and self._unfinished.is_stuck(self, now)
        # If it is this process that has stopped for so long, an answer may be there to be read.
        if is_stuck or (silent >= silent_ns + silent_ns // 2 and self._is_asked):
            self.why = self.why or "it has not answered a ping"
            self.transport.abort()
        elif silent >= silent_ns and self._ending is None:
            self._is_asked = True
            self.send_frame(self._framed(b"", PING))

    def look_for_silence(self, silent_ns: int) -> None:
        """See `is_there` every now and then, where no listener does it for all its sockets."""
        if not self.transport.is_closing():
            self.is_there(boot_clock(), silent_ns)
            loop = asyncio.get_running_loop()
            loop.call_later(in_seconds(silent_ns) / LOOKS, self.look_for_silence, silent_ns)
