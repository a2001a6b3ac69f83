"""A door over WebSocket: one connection for each client, one binary frame a message.

Nobody waits for a slow client (see `peers`). A client that connects and says nothing is
disconnected, and so is one that lags too far behind.
"""

import asyncio
import logging
from collections.abc import Callable
from hashlib import sha256

from aiohttp import WSCloseCode, hdrs, web
from msgspec.structs import replace

from tenure.base.hosts import is_of_no_site
from tenure.errors import RemoteProtocolError
from tenure.runtime.clock import boot_clock
from tenure.transport.bounded_port import log_refused
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.credentials import NOTHING, Credentials
from tenure.transport.doors import DoorGate, Listener, ShowsPage
from tenure.transport.fair_turns import FRAMES_A_TURN, FairTurns
from tenure.transport.frame_socket import CLOSE_SECONDS
from tenure.transport.guarded_app import check_proof, guard_app
from tenure.transport.handshakes import NoHandshake, answer_handshake
from tenure.transport.http_listener import LIMITS, HttpListener
from tenure.transport.large_messages import LargeMessages, PatientSocket
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.port_guard import PortGuard
from tenure.transport.rate_bound import RateBound
from tenure.transport.unfinished_messages import UnfinishedMessages
from tenure.transport.unread_answers import UnreadAnswers
from tenure.transport.websocket_frames import FrameError, frame
from tenure.wire.limits import REQUEST_BYTES
from tenure.wire.versions import OLDEST, agreed, subprotocol

GATE_SECONDS = 1.0
"""How often the door checks whether clients may stay."""
LAG_BYTES = 16 << 20
"""The bytes that may wait for a client beside one large message: four of the largest values."""
MESSAGES_A_SECOND = 10_000
"""A client that sends more is read more slowly, so that it slows down; none of ours is as fast. A
message counts once for each 8 KiB, so this is 80 MB a second, too.
"""
MESSAGES_AT_ONCE = 20_000
"""Twice as many as a cache may have fetches on their way."""

JOINED_BYTES = 64 << 10
"""As much goes out at once: so little more than the bounds say may wait for a client."""

LINES_A_SECOND = 1.0
LINES_AT_ONCE = 100
"""The lines that are logged of what clients do: they may be cut off as often as they like."""

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_log = logging.getLogger("tenure.transport")


class WebSocketDoor:
    """A `Door` over aiohttp, at `path`, for messages of up to `most_bytes`."""

    is_reachable = True

    def __init__(
        self,
        path: str,
        credentials: Credentials = NOTHING,
        most_bytes: int = REQUEST_BYTES,
        gate: DoorGate | None = None,
        limits: ConnectionLimits = LIMITS,
        secret: PoolSecret | None = None,
        is_list: Callable[[bytes], bool] | None = None,
        weigh: Callable[[bytes], int] | None = None,
    ) -> None:
        """`weigh` says as how many bytes a message counts that takes long; 0 for others."""
        self._path = path
        self._is_list, self._weigh = is_list, weigh
        """Tells messages that list much from those that carry much, which are read quickly."""
        self._large = LargeMessages()
        self._guard = None if secret is None else PortGuard(secret)
        self._gate = gate
        self._limits = limits
        self._watching: asyncio.Task[None] | None = None
        self._most_bytes = most_bytes
        self._credentials = credentials
        self._open: set[_DoorSocket] = set()
        self._turns = FairTurns(free=FRAMES_A_TURN)
        self._unfinished = UnfinishedMessages()
        self._unread = UnreadAnswers()
        self._lines = RateBound(LINES_A_SECOND, LINES_AT_ONCE)
        self._listener: Listener
        self._page: ShowsPage | None = None
        self._door: HttpListener | None = None

    async def open(self, where: str, listener: Listener, address: str | None = None) -> str:
        self._listener = listener
        host, _, port = where.rpartition(":")
        app = web.Application()
        app.router.add_get(self._path, self._on_request)
        if self._guard is not None:
            guard_app(app, self._guard)
        if self._page is not None:
            app.router.add_get("/{name:[a-z0-9/]*}", self._on_look)
        limits = replace(self._limits, knows_peers=True)
        self._door = HttpListener(app, log_refused, log_refused, limits, ends_seconds=CLOSE_SECONDS)
        bound = await self._door.listen(
            host.strip("[]"), int(port), self._credentials.for_listening()
        )
        if self._gate is not None:
            self._watching = asyncio.get_running_loop().create_task(self._watch(self._gate))
        url = f"{self._credentials.scheme}://{host}:{bound}"
        if self._guard is not None:
            self._guard.answers_to(url, address)
        return url

    def show(self, page: ShowsPage) -> None:
        self._page = page

    async def close(self, why: str) -> None:
        if self._door is not None:
            self._door.take_no_more()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        leaving = list(self._open)
        for socket in leaving:
            socket.end(WSCloseCode.GOING_AWAY, why)
        await asyncio.gather(*(socket.gone() for socket in leaving))
        if self._door is not None:
            await self._door.close()

    async def _on_look(self, request: web.Request) -> web.Response:
        """Answer a browser. Names of objects are not for pages of other sites, whatever name leads
        here.
        """
        assert self._page is not None
        if self._door is not None:
            self._door.spoke(request)
        asks_nothing = not self._credentials.mutual and self._gate is None
        is_of_site = asks_nothing and not is_of_no_site(request.host)
        if is_of_site or hdrs.ORIGIN in request.headers:
            raise web.HTTPForbidden(text="ask this server by its address, and not from a page")
        self._check_token(request, looks=True)
        shown = self._page(request.path, request.headers.get(hdrs.ACCEPT, ""))
        if shown is None:
            raise web.HTTPNotFound(text="there are /, /v1/status, /metrics and /healthz")
        body, content_type = shown
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type, **PAGE_HEADERS})

    def _check_token(self, request: web.Request, *, looks: bool = False) -> str:
        """The token that counts; empty if none is wanted, whatever the client shows."""
        if self._gate is None:
            return ""
        shown = request.headers.get(hdrs.AUTHORIZATION, "")
        if not (self._gate.may_look if looks else self._gate.admits)(shown):
            raise web.HTTPUnauthorized(text="this server wants a token that counts here")
        if self._door is not None:
            self._door.proven(request)
        return shown

    async def _on_request(self, request: web.Request) -> web.StreamResponse:
        if hdrs.ORIGIN in request.headers:
            raise web.HTTPForbidden(text="a page in a browser may not speak to this server")
        if self._guard is not None:
            check_proof(self._guard, request)
        shown = self._check_token(request)
        offered = request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "").split(",")
        version, why = OLDEST, None
        try:
            version = agreed(each.strip() for each in offered)
        except RemoteProtocolError as error:
            why = str(error)
        try:
            transport = answer_handshake(request, *([subprotocol(version)] if why is None else []))
        except NoHandshake as error:
            raise web.HTTPBadRequest(text="open a WebSocket here") from error
        except ConnectionError as error:
            raise web.HTTPBadRequest(text="the client has gone") from error
        assert self._door is not None
        socket = _DoorSocket(
            transport, version, self._most_bytes, self._turns, self._unfinished, shown
        )
        socket.bound_lists(self._large, self._is_list, self._weigh)
        socket.bound_unread(self._unread)
        socket.bound_lines(self._lines)
        if why is None:
            socket.begin(self._listener, self._open)
        answer = self._door.hand_over(request, socket)
        if why is not None:
            socket.end(WSCloseCode.PROTOCOL_ERROR, why)
        return answer

    async def _watch(self, gate: DoorGate) -> None:
        """Close the connections of clients whose token was revoked."""
        while True:
            await asyncio.sleep(GATE_SECONDS)
            for connection in list(self._open):
                if not gate.admits(connection.shown):
                    connection.end(WSCloseCode.POLICY_VIOLATION, "its token is no longer valid")


class _DoorSocket(PatientSocket):
    """The WebSocket of a door; see `Connection`."""

    __slots__ = (
        "_is_list",
        "_joined",
        "_joined_bytes",
        "_lines",
        "_listener",
        "_open",
        "_unread",
        "_weigh",
        "peer",
        "shown",
        "whose",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        version: int,
        most_bytes: int,
        turns: FairTurns,
        unfinished: UnfinishedMessages,
        shown: str,
    ) -> None:
        address = transport.get_extra_info("peername") or ("gone", 0)
        super().__init__(
            transport,
            version,
            most_bytes=most_bytes,
            lag_bytes=LAG_BYTES,
            turns=turns,
            pace=RateBound(MESSAGES_A_SECOND, MESSAGES_AT_ONCE),
        )
        self.bound_unfinished(unfinished, str(address[0]), *([shown] if shown else []))
        self.shown = shown
        self.peer = f"{address[0]}:{address[1]}"
        # A token is for nobody's eyes, and names are shown.
        self.whose = f"token {sha256(shown.encode()).hexdigest()}" if shown else str(address[0])
        self._joined: list[bytes] = []
        """What was sent in this turn of the loop, which goes out in one piece."""
        self._joined_bytes = 0
        self._unread: UnreadAnswers | None = None
        self._lines: RateBound | None = None
        self._listener: Listener | None = None
        self._open: set[_DoorSocket] = set()

    def bound_lists(
        self,
        large: LargeMessages,
        is_list: Callable[[bytes], bool] | None,
        weigh: Callable[[bytes], int] | None,
    ) -> None:
        """Bound what takes long to read."""
        self.bound_large(large, self.whose)
        self._is_list, self._weigh = is_list, weigh

    def bound_unread(self, unread: UnreadAnswers) -> None:
        """Bound what waits to be read, together with what waits at other connections."""
        self._unread = unread

    def bound_lines(self, lines: RateBound) -> None:
        """Bound what is logged of it, together with what is logged of other connections."""
        self._lines = lines

    def _warn(self, text: str, what: object) -> None:
        if self._lines is None or self._lines.allows(boot_clock()):
            _log.warning(text, what)

    def begin(self, listener: Listener, among: "set[_DoorSocket]") -> None:
        """Pass on to `listener` what the client sends."""
        self._listener, self._open = listener, among
        among.add(self)
        listener.connected(self)

    def send(self, data: bytes) -> None:
        """See `Connection.send`. Nothing may follow a close frame."""
        if self.is_ending:
            return
        if not self.send_frame(frame(data)):
            self._warn("a client does not read: it was cut off with %s bytes unread", LAG_BYTES)
        elif self._unread is not None:
            self._unread.sent(self, self._whose)

    def write(self, data: bytes) -> None:
        """Keep a frame until everything else that is ready has had its turn."""
        if not self._joined:
            asyncio.get_running_loop().call_soon(self._go_out)
        self._joined.append(data)
        self._joined_bytes += len(data)
        if self._joined_bytes >= JOINED_BYTES:
            self._go_out()

    def _go_out(self) -> None:
        joined, self._joined, self._joined_bytes = self._joined, [], 0
        if joined and not self.transport.is_closing():
            self.transport.write(b"".join(joined))

    def on_ending(self) -> None:
        """A close frame comes behind what was sent."""
        self._go_out()

    @property
    def unread_bytes(self) -> int:
        """The bytes that the client has not read, and the kernel does not have."""
        return self.transport.get_write_buffer_size()

    def close(self, why: str) -> None:
        self.end(WSCloseCode.PROTOCOL_ERROR, why)

    def on_message(self, data: bytes) -> None:
        if self._must_wait_for_others(data):
            return
        if self._listener is not None:
            self._listener.received(self, data)

    def _must_wait_for_others(self, data: bytes) -> bool:
        if self._weigh is not None:
            return self.must_wait(data, self._weigh(data))
        return self._is_list is not None and self._is_list(data) and self.must_wait(data)

    def on_refused(self, error: FrameError) -> None:
        self._warn("closed the connection of a client: %s", error)

    def on_lost(self) -> None:
        self._open.discard(self)
        if self._unread is not None:
            self._unread.ended(self)
        if self._listener is not None:
            self._listener.disconnected(self)
