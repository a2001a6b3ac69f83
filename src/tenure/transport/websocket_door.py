"""A door over WebSocket: one connection for each client, one binary frame a message.

Frames are made without aiohttp and handed to the transport, so that nobody waits for a slow client
(see `peers`). Who connects and says nothing is let go, and so is who lags too far behind.
"""

import asyncio
import logging
from contextlib import suppress

from aiohttp import WebSocketError, WSCloseCode, WSMsgType, hdrs, web

from tenure.base.hosts import is_of_no_site
from tenure.errors import RemoteProtocolError
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.credentials import NOTHING, Credentials
from tenure.transport.doors import DoorGate, Listener, ShowsPage
from tenure.transport.http_listener import LIMITS, HttpListener, log_refused
from tenure.transport.peers import ConnectedPeer, frame
from tenure.wire.limits import REQUEST_BYTES
from tenure.wire.versions import agreed, subprotocol

HEARTBEAT_SECONDS = 20.0
"""After so long without a word a client is asked whether it is there, and after half as long again
forgotten: its host may have died without closing anything."""
CLOSE_SECONDS = 2.0
"""How long a client has to answer that its connection is closed."""
REASON_BYTES = 123
"""A close frame carries no more (RFC 6455, 5.5)."""
GATE_SECONDS = 1.0
"""How often it is looked whether clients may stay."""
LAG_BYTES = 16 << 20
"""What may wait for a client beside one large message: four of the largest values."""

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_log = logging.getLogger("tenure.transport")


class WebSocketDoor:
    """A `Door` over aiohttp, at `path`, for messages of so many bytes at most."""

    is_reachable = True

    def __init__(
        self,
        path: str,
        credentials: Credentials = NOTHING,
        most_bytes: int = REQUEST_BYTES,
        gate: DoorGate | None = None,
        limits: ConnectionLimits = LIMITS,
    ) -> None:
        self._path = path
        self._gate = gate
        self._limits = limits
        self._watching: asyncio.Task[None] | None = None
        self._most_bytes = most_bytes
        self._credentials = credentials
        self._open: dict[_DoorConnection, None] = {}
        self._listener: Listener
        self._page: ShowsPage | None = None
        self._door: HttpListener | None = None

    async def open(self, where: str, listener: Listener) -> str:
        """See `Door.open`."""
        self._listener = listener
        host, _, port = where.rpartition(":")
        app = web.Application()
        app.router.add_get(self._path, self._on_request)
        if self._page is not None:
            app.router.add_get("/{name:[a-z0-9/]*}", self._on_look)
        self._door = HttpListener(
            app, log_refused, log_refused, self._limits, ends_seconds=CLOSE_SECONDS
        )
        bound = await self._door.listen(
            host.strip("[]"), int(port), self._credentials.for_listening()
        )
        if self._gate is not None:
            self._watching = asyncio.get_running_loop().create_task(self._watch(self._gate))
        return f"{self._credentials.scheme}://{host}:{bound}"

    def show(self, page: ShowsPage) -> None:
        """See `Door.show`."""
        self._page = page

    async def close(self, why: str) -> None:
        """See `Door.close`."""
        if self._door is not None:
            self._door.take_no_more()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        for connection in list(self._open):
            connection.end(WSCloseCode.GOING_AWAY, why)
        ending = [each.ending for each in self._open if each.ending is not None]
        if ending:
            await asyncio.wait(ending)
        if self._door is not None:
            await self._door.close()

    async def _on_look(self, request: web.Request) -> web.Response:
        """Names of objects are not for pages of other sites, whatever name leads them here."""
        assert self._page is not None
        if self._door is not None:
            self._door.spoke(request)
        is_of_site = not self._credentials.mutual and not is_of_no_site(request.host)
        if is_of_site or hdrs.ORIGIN in request.headers:
            raise web.HTTPForbidden(text="ask this server by its address, and not from a page")
        self._check_token(request)
        shown = self._page(request.path, request.headers.get(hdrs.ACCEPT, ""))
        if shown is None:
            raise web.HTTPNotFound(text="there are /, /v1/status, /metrics and /healthz")
        body, content_type = shown
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type, **PAGE_HEADERS})

    def _check_token(self, request: web.Request) -> str:
        shown = request.headers.get(hdrs.AUTHORIZATION, "")
        if self._gate is not None and not self._gate.admits(shown):
            raise web.HTTPUnauthorized(text="this server wants a token that counts here")
        return shown

    async def _on_request(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if self._door is not None:
            self._door.spoke(request, is_socket=True)
        if hdrs.ORIGIN in request.headers:
            raise web.HTTPForbidden(text="a page in a browser may not speak to this server")
        shown = self._check_token(request)
        offered = request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "").split(",")
        try:
            version = agreed(each.strip() for each in offered)
        except RemoteProtocolError as error:
            socket = await _accepted(request, self._most_bytes)
            await socket.close(code=WSCloseCode.PROTOCOL_ERROR, message=_cut(str(error)))
            return socket
        socket = await _accepted(request, self._most_bytes, subprotocol(version))
        if transport is not None:
            await self._carry(socket, transport, version, shown)
        return socket

    async def _watch(self, gate: DoorGate) -> None:
        """Whoever came with a token that was taken away is to go."""
        while True:
            await asyncio.sleep(GATE_SECONDS)
            for connection in list(self._open):
                if not gate.admits(connection.shown):
                    connection.end(WSCloseCode.POLICY_VIOLATION, "its token counts no more")

    async def _carry(
        self,
        socket: web.WebSocketResponse,
        transport: asyncio.Transport,
        version: int,
        shown: str,
    ) -> None:
        connection = _DoorConnection(socket, ConnectedPeer(transport, version, LAG_BYTES), shown)
        listener = self._listener
        self._open[connection] = None
        listener.connected(connection)
        try:
            async for received in socket:
                if connection.ending is not None:
                    break
                if received.type is WSMsgType.BINARY:
                    listener.received(connection, received.data)
                elif received.type is WSMsgType.TEXT:
                    connection.close("a text frame, where messages are binary")
                elif isinstance(received.data, WebSocketError):  # aiohttp has closed it
                    _log.warning("closed the connection of a client: %s", received.data)
            if connection.ending is not None:
                await connection.ending
        finally:
            del self._open[connection]
            listener.disconnected(connection)


class _DoorConnection:
    """See `Connection`."""

    def __init__(self, socket: web.WebSocketResponse, peer: ConnectedPeer, shown: str) -> None:
        self.shown = shown
        self._socket = socket
        self._peer = peer
        self.version = peer.version
        address = socket.get_extra_info("peername") or ("gone", 0)
        self.peer = f"{address[0]}:{address[1]}"
        self.ending: asyncio.Task[None] | None = None

    def send(self, data: bytes) -> None:
        if self.ending is None and not self._peer.send(frame(data)):
            _log.warning("a client does not read: it was cut off with %s bytes unread", LAG_BYTES)

    def close(self, why: str) -> None:
        self.end(WSCloseCode.PROTOCOL_ERROR, why)

    def end(self, code: int, why: str) -> None:
        if self.ending is None:  # nothing may follow a close frame
            self.ending = asyncio.get_running_loop().create_task(self._end(code, why))

    async def _end(self, code: int, why: str) -> None:
        with suppress(ConnectionError):
            await self._socket.close(code=code, message=_cut(why))


class _DoorSocket(web.WebSocketResponse):
    """One that says why, too, when a message was too large: aiohttp gives only a code."""

    most_bytes = REQUEST_BYTES

    async def close(
        self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True
    ) -> bool:
        if code == WSCloseCode.MESSAGE_TOO_BIG and not message:
            message = f"a message of more than {self.most_bytes} bytes".encode()
        return await super().close(code=code, message=message, drain=drain)


async def _accepted(
    request: web.Request, most_bytes: int, *protocols: str
) -> web.WebSocketResponse:
    socket = _DoorSocket(
        protocols=protocols,
        max_msg_size=most_bytes + 1,  # aiohttp takes less than it
        compress=False,  # frames are made without aiohttp
        heartbeat=HEARTBEAT_SECONDS,
        timeout=CLOSE_SECONDS,
    )
    socket.most_bytes = most_bytes
    await socket.prepare(request)
    return socket


def _cut(why: str) -> bytes:
    return why.encode()[:REASON_BYTES].decode(errors="ignore").encode()
