"""A client's connection to the gateway: requests come, one after the other, and are answered in
that order.
"""

import asyncio
import socket as sockets
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol, cast

from tenure.client.refusals import HttpAnswer
from tenure.gateway.client_request import ClientRequest, Continuation, Stays
from tenure.gateway.passed_connection import PassedConnection
from tenure.gateway.request_reader import WEBSOCKET, Malformed, RequestHead, RequestReader
from tenure.member.asgi import respond
from tenure.member.forwarded_answer import ALWAYS, SWITCHING
from tenure.transport.bounded_port import TOLD_SECONDS, Unfinished
from tenure.transport.handles import handle_when_written

FIRST_SECONDS = 2.0
"""How long a connection on which nothing has been asked yet is kept by a gateway that ends."""
MOST_PIPELINED = 16
"""The most requests that a client sends before the first is answered."""
NOBODY = ("-", 0)


class GivenConnection(NamedTuple):
    """A connection that was given up."""

    socket: sockets.socket
    passed: PassedConnection
    behind: sockets.socket | None = None
    """The connection to the server behind, if it is a tunnel."""

    @property
    def handles(self) -> list[sockets.socket]:
        """What is passed, in this order."""
        return [self.socket] if self.behind is None else [self.socket, self.behind]

    def close(self) -> None:
        """Close them here."""
        for each in self.handles:
            each.close()


class ClientDoor(Protocol):
    """The port of a connection."""

    scheme: str

    def spoke(self, connection: "ClientConnection", /) -> None:
        """The head of a request has come."""
        ...

    def switched(self, connection: "ClientConnection") -> None:
        """The connection is a WebSocket."""
        ...

    def gone(self, connection: "ClientConnection") -> None:
        """The connection has ended."""
        ...

    @property
    def is_leaving(self) -> bool:
        """Whether connections go to another process as soon as nothing is under way on them."""
        ...

    def rests(self) -> None:
        """A request was answered, and none is under way on its connection."""
        ...

    def serve(self, request: ClientRequest, /) -> Coroutine[Any, Any, None]:
        """Answer a request."""
        ...

    def go_on(self, request: ClientRequest, given: Continuation) -> Coroutine[Any, Any, None]:
        """Serve a WebSocket that was passed on."""
        ...


class ClientConnection(asyncio.Protocol):
    """One connection. See `Carrier`, `TakesRequests`."""

    def __init__(
        self,
        door: ClientDoor,
        now: Callable[[], float],
        given: Continuation | None = None,
    ) -> None:
        self._door = door
        self._loop = asyncio.get_running_loop()
        self._now = now
        self._transport: asyncio.Transport
        self._is_made = False
        self._reader = RequestReader(self)
        # Lists, here and in each request: an empty deque has 768 bytes, and there are few of each.
        self._requests: list[ClientRequest] = []
        """Those that are not answered yet; the first is at work."""
        self._task: asyncio.Task[None] | None = None
        self._may_write = ALWAYS
        self._client = NOBODY
        self._is_reading = True
        self._takes_more = True
        self._given = given
        """What to go on with, if another process had the connection."""
        self._is_given_up = False
        self._is_ending = False
        """Whether the next request is the last."""
        self.heard = 0
        """How many bytes have come."""
        self.idle_since: float | None = None
        """Since when there is no request; None while there is one."""

    # --- for the loop ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._is_made = True
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._client = peer[0], peer[1]
        if self._given is not None:
            given, self._given = self._given, None
            self._go_on(given)
            # uvloop reads after this in any case.
            asyncio.get_running_loop().call_soon(self._stay_paused)

    def data_received(self, data: bytes) -> None:
        self.heard += len(data)
        self.idle_since = None
        if not self._takes_more:
            self._add_raw(data)
            return
        try:
            rest = self._reader.feed(data)
        except Malformed as refused:
            self._take_no_more()
            self._refuse(refused.answer)
            return
        if rest is not None:
            self._take_no_more()
            self._add_raw(rest)
        if len(self._requests) > 1:
            self.read_on(goes_on=False)

    def connection_lost(self, error: Exception | None) -> None:
        self._take_no_more()
        self._may_write.set()
        for each in self._requests:
            each.lose()
        self._door.gone(self)

    def pause_writing(self) -> None:
        self._may_write = asyncio.Event()  # few clients are slow, and each event has 800 bytes

    def resume_writing(self) -> None:
        self._may_write.set()

    # --- for the reader ---

    def on_request(self, head: RequestHead) -> None:
        if len(self._requests) >= MOST_PIPELINED:
            raise Malformed(400, f"more than {MOST_PIPELINED} requests before an answer")
        self._door.spoke(self)
        request = ClientRequest(head, self, self._client, self._door.scheme)
        if self._is_ending:
            request.keeps = False
        self._requests.append(request)
        if len(self._requests) == 1:
            self._begin()

    def on_part(self, part: bytes) -> None:
        self._requests[-1].add(part)

    def on_end(self) -> None:
        last = self._requests[-1]
        if not (last.has_come or last.head.upgrade):
            last.end()

    def _add_raw(self, data: bytes) -> None:
        if data and self._requests and self._requests[-1].head.upgrade:
            self._requests[-1].add(data)

    # --- for requests ---

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    async def drained(self) -> None:
        await self._may_write.wait()

    def read_on(self, *, goes_on: bool) -> None:
        if goes_on == self._is_reading or self._transport.is_closing():
            return
        if goes_on and (self._is_given_up or len(self._requests) > 1):
            return
        self._is_reading = goes_on
        if goes_on:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def switched(self) -> None:
        """See `Carrier`. A client that vanishes without a word is noticed by its kernel."""
        keep_alive(self._transport.get_extra_info("socket"))
        self._door.switched(self)

    def finished(self, request: ClientRequest) -> None:
        if not self._requests or self._requests[0] is not request:
            return
        self._requests.pop(0)
        if not request.has_come:
            self._hang_up()
        elif not request.keeps:
            self.close()
        elif self._requests:
            self._begin()
        else:
            self._task = None  # it ends in this turn of the loop
            self.idle_since = self._now()
            # With half a request that nobody could go on with, it is read on, and leaves later.
            leaves = self._door.is_leaving and self._reader.unread is not None
            if leaves or not self._is_reading:
                self.read_on(goes_on=not leaves)
            if leaves:
                self._door.rests()

    def break_off(self) -> None:
        self._take_no_more()
        self._transport.abort()

    # --- for the port ---

    def unfinished(self) -> Unfinished:
        """The request that has not come whole, and how many bytes have come in all."""
        last = self._requests[-1] if self._requests else None
        is_partial = last is not None and not (last.has_come or last.head.upgrade)
        if is_partial and self._is_reading:
            return last, self.heard
        return (self._reader, self.heard) if self._reader.has_begun and last is None else None

    def end_soon(self) -> None:
        """End once the request that is at work is answered; at once if there is none.

        A client that has just connected has asked already, or does so in a moment: its request may
        be on the way, and to end now would refuse it.
        """
        if not self._requests:
            self._is_ending = True
            if self.heard and not self._reader.has_begun:
                self.close()
            else:
                asyncio.get_running_loop().call_later(FIRST_SECONDS, self._end_unasked)
            return
        self._requests[-1].keeps = False
        if self._requests[-1].has_come:
            self._take_no_more()

    def _end_unasked(self) -> None:
        if not self._requests:
            self.close()

    # --- to and from another process ---

    @property
    def may_leave(self) -> bool:
        """Whether another process could go on with it at this moment."""
        if not self._is_made or self._is_given_up:
            return False
        if self._transport.is_closing() or self._transport.get_write_buffer_size():
            return False
        if not self._requests:
            return self._takes_more and self._reader.unread is not None
        leaves = self._requests[0].leaves
        return leaves is not None and leaves.is_settled

    async def give_up(self, seconds: float) -> GivenConnection | None:
        """Neither read nor write any more, and return what another process needs to go on; None if
        that is not possible after all.
        """
        if not self.may_leave:  # a request came before this began
            return None
        self._is_given_up = True
        self.read_on(goes_on=False)
        given = await self._given_up(seconds)
        if given is None:  # it ends, and nobody goes on; or nothing has changed
            return None
        handle = None
        if given.passed.is_bounded:
            handle = await handle_when_written(self._transport, self.drained, seconds)
        if handle is None:
            self._stay(given)
            return None
        self._take_no_more()
        self._transport.abort()  # without a word to the client, as there is another handle
        return GivenConnection(handle, *given)

    async def _given_up(self, seconds: float) -> Continuation | None:
        if not self._requests:
            return Continuation(PassedConnection(self.heard > 0, self._reader.unread or b""))
        request = self._requests[0]
        assert request.leaves is not None, "it may leave"
        request.is_over = True
        try:
            given = await request.leaves.give_up(seconds)
        except Stays:
            request.is_over = self._is_given_up = False
            self.read_on(goes_on=True)
            return None
        if given is None:
            self.close()
        elif self._transport.is_closing():
            request.leaves.gone()
            return None
        return given

    def _stay(self, given: Continuation) -> None:
        self._is_given_up = False
        if given.passed.opens_socket:
            self._requests.clear()
            self._go_on_with(given)
        self.read_on(goes_on=True)

    def _stay_paused(self) -> None:
        if not (self._is_reading or self._transport.is_closing()):
            self._transport.pause_reading()

    def _go_on(self, given: Continuation) -> None:
        passed = given.passed
        if passed.has_asked:
            self.heard = 1
            self.idle_since = self._now()
            self._door.spoke(self)
        if passed.opens_socket:
            self._go_on_with(given)
        elif passed.unread:
            self.data_received(passed.unread)

    def _go_on_with(self, given: Continuation) -> None:
        self._take_no_more()
        passed = given.passed
        head = RequestHead(
            *("GET", passed.target, passed.headers, "1.1"),
            has_body=False,
            is_chunked=False,
            keeps=False,
            upgrade=WEBSOCKET,
        )
        request = ClientRequest(head, self, self._client, self._door.scheme)
        request.status = SWITCHING
        request.forget()
        self._requests.append(request)
        self.idle_since = None
        self.switched()
        if passed.unread:
            request.add(passed.unread)
        if passed.unsent:
            self.write(passed.unsent)
        work = self._until_over(request, self._door.go_on(request, given))
        self._task = asyncio.get_running_loop().create_task(work)
        if self._transport.is_closing():  # nobody may tell it again
            request.lose()

    # --- ends ---

    def close(self) -> None:
        """Send what was written, and end."""
        self._take_no_more()
        if not self._transport.is_closing():
            self._transport.close()

    def _hang_up(self) -> None:
        """End, but let the client read the answer first: closing with unread bytes discards it."""
        self._take_no_more()
        if not self._transport.can_write_eof() or self._transport.is_closing():
            self.close()
            return
        self._transport.write_eof()
        asyncio.get_running_loop().call_later(TOLD_SECONDS, self._transport.abort)

    def _take_no_more(self) -> None:
        self._takes_more = False
        self._reader.end()

    def _begin(self) -> None:
        request = self._requests[0]
        if self._may_write.is_set():
            work = self._until_over(request, self._door.serve(request))
        else:
            work = self._begin_when_read(request)
        self._task = self._loop.create_task(work)

    async def _begin_when_read(self, request: ClientRequest) -> None:
        """Begin it when the client has read the answers before: whoever asks and reads nothing
        would otherwise have us keep all of them.
        """
        await self._may_write.wait()
        if not self._transport.is_closing():
            await self._until_over(request, self._door.serve(request))

    async def _until_over(self, request: ClientRequest, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            if not request.is_over:  # it broke off in the middle: nobody may take it for the end
                self.break_off()

    def _refuse(self, answer: HttpAnswer) -> None:
        if self._requests:  # earlier ones are answered first, and then the client must go
            self._requests[-1].keeps = False
            if not self._requests[-1].has_come:
                self.break_off()
            return
        nothing = RequestHead("GET", b"/", [], "1.1", has_body=True, is_chunked=False, keeps=False)
        refused = ClientRequest(nothing, self, self._client, self._door.scheme)
        self._requests.append(refused)
        self._task = asyncio.get_running_loop().create_task(respond(refused.send, answer))


def keep_alive(socket: sockets.socket) -> None:
    """Have the kernel ask the other end whether it is there, and end the connection if not."""
    socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(sockets, name):  # macOS has other names
            socket.setsockopt(sockets.IPPROTO_TCP, getattr(sockets, name), value)
