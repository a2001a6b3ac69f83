"""A WebSocket at the side that accepted it: a protocol of its own, without a task to read it.

aiohttp reads the request that begins a WebSocket, so that this request passes all checks of any
other request. What aiohttp keeps for the socket after that is large: the request, the response, a
task with its call stack, a parser, a queue, and two timers. At rest that is nearly all that a
connection costs. So the connection is taken from aiohttp after the handshake: one object is left,
which is called with the bytes that come.

If a client sends much at once, a few of its frames are read at a time, and in between it is
everybody else's turn (`fair_turns`).
"""

import asyncio
import base64
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Hashable

from aiohttp import WSCloseCode, hdrs, web

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
    frame,
)

FAIR_NS = MILLISECOND_NS
"""Messages that come closer together than this wait for their turn. Otherwise all that a flood has
in its buffer, thousands of messages, would be handled in one go.
"""
WAITING_BYTES = 4096
"""The bytes that may wait for their turn before reading pauses: some tens of renewals."""
CLOSE_SECONDS = 2.0
"""How long a client has to answer that its connection is closed."""
_KEY_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_PING = frame(b"", PING)


class AcceptedSocket(ConnectedPeer, asyncio.Protocol):
    """One client's WebSocket. The acceptor decides what its messages mean.

    At most `frames_a_turn` of its frames are read before it waits for another of its `turns`. A
    client that sends more than its `rate` is refused; one that sends more than its `pace` is not
    read until it has kept to it.
    """

    __slots__ = (
        "_ending",
        "_frames",
        "_frames_a_turn",
        "_gone",
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
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        version: int,
        *,
        most_bytes: int,
        lag_bytes: int,
        turns: FairTurns,
        frames_a_turn: int = 1,
        rate: RateBound | None = None,
        pace: RateBound | None = None,
    ) -> None:
        super().__init__(transport, version, lag_bytes)
        self.transport: asyncio.Transport
        self.heard_at: Instant = boot_clock()
        """When bytes last arrived."""
        self.left: Callable[[AcceptedSocket], None] | None = None
        """Called when the connection is gone; whoever counts connections sets it."""
        self._frames: FrameReader | None = FrameReader(most_bytes)
        """The frames read so far; None once a frame cannot be read: later bytes are dropped until
        the connection ends.
        """
        self._turns = turns
        self._frames_a_turn = frames_a_turn
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
        """The time until which the client may answer a close frame, after which nothing else is
        sent.
        """
        self._gone: asyncio.Future[None] | None = None

    def bound_unfinished(self, all_of_port: UnfinishedMessages, *whose: Hashable) -> None:
        """Bound what is kept of unfinished messages, for each of these names of the peer."""
        self._unfinished, self._whose = all_of_port, whose

    # --- what each kind of server says ---

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
        left, spent_ns, is_more = self._frames_a_turn, 0, True
        while left and is_more and spent_ns < TURN_NS:
            is_more = self._take(now)
            left -= 1
            spent_ns = boot_clock() - now
        self._turns.count(self._frames_a_turn - left, spent_ns)
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
            self._on_close()
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
            self.send_frame(frame(payload, PONG))
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

    def _on_close(self) -> None:
        if self._ending is None:
            self.transport.write(close_frame(WSCloseCode.OK, ""))
        self.transport.close()

    # --- ending ---

    @property
    def is_ending(self) -> bool:
        """Whether the client was sent a close frame."""
        return self._ending is not None

    def end(self, code: int, why: str) -> None:
        """Close the connection, and tell the client the reason."""
        if self._ending is None and not self.transport.is_closing():
            self.on_ending()
            self._ending = asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._give_up)
            self.transport.write(close_frame(code, why))

    def _give_up(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

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
        if self.left is not None:
            self.left(self)
        self.on_lost()

    def is_there(self, now: Instant, silent_ns: int) -> None:
        """Ping a client that has been silent for `silent_ns`. Cut it off if it has not answered for
        half as long again: its host may have died without closing anything.
        """
        silent = now - self.heard_at
        is_stuck = self._unfinished is not None and self._unfinished.is_stuck(self, now)
        if is_stuck or silent >= silent_ns + silent_ns // 2:
            self.transport.abort()
        elif silent >= silent_ns and self._ending is None:
            self.send_frame(_PING)


class NoHandshake(ValueError):
    """A request that does not begin a WebSocket."""


class _HandedOver(web.StreamResponse):
    """The response that aiohttp gets, after which it leaves the connection alone."""

    async def prepare(self, request: web.BaseRequest) -> None:
        """Do nothing: the request was answered already."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the connection continues."""


class _Rest:
    """Takes the bytes that come after the request."""

    def __init__(self, socket: AcceptedSocket) -> None:
        self._socket = socket

    def feed_data(self, data: bytes) -> None:
        """See aiohttp's `WebSocketReader`."""
        self._socket.data_received(data)

    def feed_eof(self) -> None:
        """See aiohttp's `WebSocketReader`."""


def answer_handshake(request: web.Request, *protocols: str) -> asyncio.Transport:
    """Agree to a WebSocket that speaks the first of these protocols that the client offers.

    Raises NoHandshake if the request does not begin a WebSocket, and ConnectionError if the client
    has gone.
    """
    said = request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "")
    offered = [each.strip() for each in said.split(",")]
    try:
        # As if all were ours: aiohttp logs those that are not, as many and as long as they are.
        begins = web.WebSocketResponse(protocols=offered).can_prepare(request)
    except ValueError as error:  # a key that is not in ASCII
        raise NoHandshake(str(error)) from error
    # aiohttp gives a HEAD to the handler of a GET, and no answer to one has anything after its head
    if not begins or request.can_read_body or request.method != hdrs.METH_GET:
        raise NoHandshake("the headers do not begin a WebSocket")
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionError("the client has gone")
    key = request.headers[hdrs.SEC_WEBSOCKET_KEY].encode()
    accepted = base64.b64encode(hashlib.sha1(key + _KEY_SUFFIX, usedforsecurity=False).digest())
    found = next((each for each in offered if each in protocols), "")
    chosen = f"Sec-WebSocket-Protocol: {found}\r\n" if found else ""
    head = (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        f"Sec-WebSocket-Accept: {accepted.decode()}\r\n{chosen}\r\n"
    )
    try:
        transport.write(head.encode())
    except RuntimeError as error:  # uvloop: the handle is closed, and `is_closing` does not say so
        request.protocol.force_close()  # otherwise aiohttp writes to it, too, and logs two stacks
        raise ConnectionError("the client has gone") from error
    return transport


def hand_over(request: web.Request, socket: AcceptedSocket) -> web.StreamResponse:
    """Let `socket` read everything that arrives on the request's connection from now on. The
    request's handler must return what this returns.

    aiohttp has no way to let go of a connection. What it does when it loses one is what we want,
    except that it closes the connection.
    """
    handler = request.protocol
    socket.transport.set_protocol(socket)
    handler.transport = None
    socket.transport.resume_reading()  # if more came after the request than aiohttp keeps
    handler.set_parser(_Rest(socket))  # type: ignore[arg-type]
    handler.connection_lost(None)
    return _HandedOver()
