"""The one port of a manager: WebSockets for owners and lookups, JSON for everything else.

A peer that says what cannot be understood is told why, in the reason with which its connection is
closed, and is the only one to suffer. What a page in somebody's browser sends is refused: browsers
let any page speak to this machine, and nobody has to log in here.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from time import time
from typing import TypeAlias

from aiohttp import WebSocketError, WSCloseCode, WSMessage, WSMsgType, hdrs, web

from tenure.base.instants import MILLISECOND_NS
from tenure.base.noted import Noted
from tenure.errors import RemoteProtocolError
from tenure.manager.access.audit import Audit
from tenure.manager.access.gate import (
    LOOKUP_PATH,
    NODE_PATH,
    OWNER_PATH,
    READS,
    SIGN_IN_PATH,
    Gate,
)
from tenure.manager.access.pages import OwnNames
from tenure.manager.access.roles import Permit
from tenure.manager.api import OPENAPI_PATH, Api
from tenure.manager.config import ManagerSettings
from tenure.manager.engine import ManagerEngine
from tenure.manager.http_errors import HttpRefusal, errors_as_json
from tenure.manager.live import LiveFeed
from tenure.manager.noted import ServiceKind
from tenure.manager.openapi import show_document
from tenure.manager.sign_in_api import SignInApi
from tenure.protocol.lease.answers import Connection
from tenure.protocol.lease.leader.events import ClientLost, ClientSaid, NodeSaid
from tenure.protocol.lease.messages import (
    Attested,
    Hello,
    Join,
    LeaseRequest,
    ShortRequest,
    Sync,
    ToManager,
)
from tenure.runtime.clock import boot_clock
from tenure.transport.http_listener import HttpListener
from tenure.transport.peers import Peers
from tenure.transport.rate_bound import RateBound
from tenure.wire.lease import decode_to_manager
from tenure.wire.limits import REQUEST_BYTES
from tenure.wire.topology import decode_node_request
from tenure.wire.versions import agreed, subprotocol

BODY_BYTES = 16 << 20
"""The most bytes of a POST: as many split points as a pool may have, at a hundred bytes each."""
HEARTBEAT_SECONDS = 45.0
"""After so long without a word a peer is asked whether it is there, and after half as long again
forgotten: its host may have died without closing anything. Nothing but memory depends on it. It is
longer than any preset leaves an owner or a lookup silent (30 s): asking 1,000 lookups at rest each
time, and hearing them, cost as much as answering them."""
CLOSE_SECONDS = 2.0
"""How long a peer has to answer that its connection is closed."""
FAIR_NS = MILLISECOND_NS
"""Messages that come closer than this wait for their turn: all that a flood has in its buffer,
thousands of messages, would otherwise be taken in one go."""
TOKEN_SECONDS = 1.0
"""How often the file of tokens is looked at for those that were taken away."""
REASON_BYTES = 123
"""A close frame carries no more (RFC 6455, 5.5)."""

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ManagerSocket(web.WebSocketResponse):
    """A WebSocket that says why, too, when the message was too large: aiohttp gives only a code."""

    async def close(
        self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True
    ) -> bool:
        """Close the connection, with a reason."""
        if code == WSCloseCode.MESSAGE_TOO_BIG and not message:
            message = f"a message of more than {REQUEST_BYTES} bytes".encode()
        return await super().close(code=code, message=message[:REASON_BYTES], drain=drain)


class Server:
    """The aiohttp application around an engine."""

    def __init__(
        self,
        engine: ManagerEngine,
        peers: Peers,
        api: Api,
        gate: Gate,
        audit: Audit,
        settings: ManagerSettings,
        *,
        is_loopback: bool,
    ) -> None:
        self.engine = engine
        self.gate = gate
        self.audit = audit
        self.peers = peers
        self.listener: HttpListener | None = None
        self.app = web.Application(
            middlewares=[
                self._let_speak,
                errors_as_json,
                self._pace,
                self._refuse_pages,
                self._guard,  # before a body is taken
                self._hear,
                self._audited,
            ],
            client_max_size=BODY_BYTES,
        )
        self.app.router.add_get(OWNER_PATH, self._on_owner)
        self.app.router.add_get(LOOKUP_PATH, self._on_lookup)
        self.app.router.add_get(NODE_PATH, self._on_node)
        SignInApi(gate).add_routes(self.app.router)
        LiveFeed(engine, gate, time).add_routes(self.app)
        api.add_routes(self.app.router)
        self.app.router.add_get(OPENAPI_PATH, show_document)
        self.app.on_shutdown.append(self._close_sockets)
        self.app.cleanup_ctx.append(self._watching_tokens)
        self._is_loopback = is_loopback
        self._known_as = settings.known_as
        self._limits = settings.limits
        self._turn = asyncio.Lock()
        """Of those who ask for much: every HTTP request, and messages that come fast."""
        self._sockets: dict[ManagerSocket, Permit] = {}

    async def _close_sockets(self, app: web.Application) -> None:
        reason = b"this manager stops"
        closing = (
            socket.close(code=WSCloseCode.GOING_AWAY, message=reason)
            for socket in list(self._sockets)
        )
        await asyncio.gather(*closing, return_exceptions=True)

    # --- clients ---

    async def _on_owner(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, (Hello, Join, LeaseRequest, ShortRequest, Attested))

    async def _on_lookup(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, (Sync,))

    async def _on_node(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, None)

    async def _serve(
        self, request: web.Request, takes: tuple[type[ToManager], ...] | None
    ) -> web.StreamResponse:
        """Take messages of these types; of nodes, where there are none."""
        offered = request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "").split(",")
        try:
            version = agreed(each.strip() for each in offered)
        except RemoteProtocolError as error:
            return await self._refuse_version(request, str(error))
        socket = await _accepted(request, subprotocol(version))
        transport = request.transport
        if transport is None:
            return socket
        engine, permit = self.engine, self.gate.let_in(request)
        self._spoke(request, is_socket=True)
        connection = self.peers.add(transport, version)
        self._sockets[socket] = permit
        where = f"from {request.remote}, protocol version {version}"
        engine.observer.note(Noted(ServiceKind.CONNECTED, detail=f"{connection} {where}"))
        try:
            await self._read(socket, connection, version, takes, permit)
        finally:
            self._sockets.pop(socket, None)
            self.peers.remove(connection)
            engine.metrics.gone(connection)
            engine.observer.note(Noted(ServiceKind.DISCONNECTED, detail=str(connection)))
            engine.post(ClientLost(connection))
        return socket

    async def _refuse_version(self, request: web.Request, why: str) -> web.StreamResponse:
        """Accept the connection, to close it: the answer to a handshake has no room for reasons."""
        peer = request.remote or ""
        note = Noted(ServiceKind.NO_COMMON_VERSION, detail=f"with {peer}: {why}")
        self.gate.notes.note(note, peer)
        socket = await _accepted(request)
        await socket.close(code=WSCloseCode.PROTOCOL_ERROR, message=_reason(why))
        return socket

    async def _read(
        self,
        socket: ManagerSocket,
        connection: Connection,
        version: int,
        takes: tuple[type[ToManager], ...] | None,
        permit: Permit,
    ) -> None:
        post, limits = self.engine.post, self._limits
        at_once = limits.syncs_at_once if takes == (Sync,) else limits.messages_at_once
        rate = self._rate_of(socket, at_once)
        last = boot_clock()
        async for received in socket:
            now = boot_clock()
            if now - last < FAIR_NS:
                await self._wait_turn()
            last = now
            if not rate.allows(now):
                why = f"more than {limits.messages_a_second} messages a second"
                await self._let_wait(_peer_of(socket))
                await self._hang_up(
                    socket, connection, WSCloseCode.POLICY_VIOLATION, why, ServiceKind.FLOOD
                )
                return
            if received.type is not WSMsgType.BINARY:
                await self._turn_away(socket, connection, received)
                return
            try:
                if takes is None:
                    post(NodeSaid(connection, decode_node_request(received.data, version)))
                    continue
                message = _decode(received.data, version, takes)
            except RemoteProtocolError as error:
                await self._hang_up(socket, connection, WSCloseCode.PROTOCOL_ERROR, str(error))
                return
            if permit.may_say(message):
                self.engine.metrics.received(connection, message)
                post(ClientSaid(connection, message))
            elif not isinstance(message, Attested):  # of another pool's owner it was asked
                why = f"its {permit} is not for {message.pool!r}"
                await self._hang_up(socket, connection, WSCloseCode.POLICY_VIOLATION, why)
                return

    def _rate_of(self, socket: ManagerSocket, at_once: int) -> RateBound:
        a_second = self._limits.messages_a_second
        if self.listener is None:
            return RateBound(a_second, at_once)
        return self.listener.rate_of(_peer_of(socket), a_second, at_once)

    async def _let_wait(self, peer: str) -> None:
        """A flood came from `peer`: what is still to come of it is not read."""
        if self.listener is not None:
            self.listener.flooded(peer)
        await asyncio.sleep(self._limits.flood_seconds)

    async def _turn_away(
        self, socket: ManagerSocket, connection: Connection, received: WSMessage
    ) -> None:
        if received.type is WSMsgType.TEXT:
            reason = "a text frame, where messages are binary"
            await self._hang_up(socket, connection, WSCloseCode.UNSUPPORTED_DATA, reason)
        elif isinstance(error := received.data, WebSocketError):  # aiohttp has closed it
            is_large = error.code == WSCloseCode.MESSAGE_TOO_BIG
            kind = ServiceKind.OVERSIZED if is_large else ServiceKind.MALFORMED
            self._note(kind, socket, f"from {connection}: {error}")

    def _note(self, kind: ServiceKind, socket: ManagerSocket, what: str) -> None:
        self.gate.notes.note(Noted(kind, detail=what), _peer_of(socket))

    async def _hang_up(
        self,
        socket: ManagerSocket,
        connection: Connection,
        code: int,
        why: str,
        kind: ServiceKind = ServiceKind.MALFORMED,
    ) -> None:
        self._note(kind, socket, f"from {connection}: {why}")
        self.peers.remove(connection)  # nothing may follow a close frame
        with suppress(ConnectionError):
            await socket.close(code=code, message=_reason(why))

    # --- tokens ---

    async def _watching_tokens(self, app: web.Application) -> AsyncIterator[None]:
        if self.gate.tokens is None:
            yield
            return
        watching = asyncio.create_task(self._watch_tokens())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _watch_tokens(self) -> None:
        """Whoever came with a token that was taken away is to go, not only to stay out."""
        while True:
            await asyncio.sleep(TOKEN_SECONDS)
            if self.gate.changed():
                gone = [
                    s for s, permit in self._sockets.items() if not self.gate.still_takes(permit)
                ]
                for socket in gone:
                    note = Noted(ServiceKind.TOKEN_GONE, detail=str(self._sockets.pop(socket)))
                    self.engine.observer.note(note)
                reason = b"its token counts no more"
                closing = (s.close(code=WSCloseCode.POLICY_VIOLATION, message=reason) for s in gone)
                await asyncio.gather(*closing, return_exceptions=True)

    # --- all requests ---

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.gate.let_in(request)
        return await handler(request)

    @web.middleware
    async def _audited(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Every change is written down before it is done, and with what came of it."""
        if request.method in READS or request.path == SIGN_IN_PATH:  # which has a token in it
            return await handler(request)
        permit = self.gate.let_in(request)
        try:
            entry = self.audit.begins(
                who=permit.who,
                role=permit.role,
                origin=request.remote or "",
                method=request.method,
                path=request.path_qs,
                body=await request.read(),
            )
        except OSError as error:
            raise HttpRefusal(
                503,
                f"the audit log cannot be written, so nothing was done: {error.strerror or error}",
                "free space on the manager's disk, and ask again",
            ) from error
        status = 500
        try:
            response = await handler(request)
            status = response.status
        except HttpRefusal as refused:
            status = refused.status
            raise
        except web.HTTPException as error:
            status = error.status
            raise
        finally:
            self.audit.ended(entry, status)
        return response

    @web.middleware
    async def _hear(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Whoever does not finish a body takes a connection, as whoever is silent does."""
        try:
            async with asyncio.timeout(self._limits.silent_seconds):
                await request.read()
        except ConnectionError as error:  # nobody reads this
            raise HttpRefusal(400, "the client has gone", "connect again") from error
        except web.RequestPayloadError as error:
            why = f"the body cannot be read: {error}"
            raise HttpRefusal(400, why, "send it as its headers say") from None
        except TimeoutError:
            why = f"the body was not here within {self._limits.silent_seconds:g} s"
            raise HttpRefusal(408, why, "send the request as a whole") from None
        self._spoke(request)
        return await handler(request)

    def _spoke(self, request: web.Request, *, is_socket: bool = False) -> None:
        if self.listener is not None:
            self.listener.spoke(request, is_socket=is_socket)

    @web.middleware
    async def _let_speak(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Whoever was refused before its body was read has made its request, too."""
        try:
            return await handler(request)
        finally:
            if not request.can_read_body:
                self._spoke(request)

    async def _wait_turn(self) -> None:
        """One after another, and between two the event loop hears everybody else: a table for each
        of a hundred connections would take a second, in which no owner is renewed.
        """
        async with self._turn:
            await asyncio.sleep(0)

    @web.middleware
    async def _pace(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        await self._wait_turn()
        if self.listener is None or self.listener.allows(request):
            return await handler(request)
        peer, most = request.remote or "", self._limits.requests_a_second
        self.gate.notes.note(Noted(ServiceKind.FLOOD, detail=f"from {peer}, over HTTP"), peer)
        await self._let_wait(peer)
        raise HttpRefusal(
            429,
            f"more than {most} requests a second on one connection, or too many at once",
            "wait for each answer, and ask less often",
        )

    @web.middleware
    async def _refuse_pages(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        url, known_as = self.engine.view.url, self._known_as
        names = OwnNames("manager", url, known_as, is_loopback=self._is_loopback)
        names.check(request.headers, asks_tokens=self.gate.tokens is not None)
        return await handler(request)


async def _accepted(request: web.Request, *protocols: str) -> ManagerSocket:
    socket = ManagerSocket(
        protocols=protocols,
        max_msg_size=REQUEST_BYTES + 1,  # aiohttp takes less than it
        compress=False,  # frames are made once for all peers, see `peers`
        heartbeat=HEARTBEAT_SECONDS,
        timeout=CLOSE_SECONDS,
    )
    try:
        await socket.prepare(request)
    except (web.HTTPBadRequest, ValueError) as error:  # a key that is not in ASCII
        raise HttpRefusal(
            400,
            f"{request.method} {request.path} does not begin a WebSocket",
            "open a WebSocket here, as Owner and Lookup do",
        ) from error
    except ConnectionError as error:  # nobody reads this; but aiohttp logs what it does not expect
        raise HttpRefusal(400, "the client has gone", "connect again") from error
    return socket


def _peer_of(socket: ManagerSocket) -> str:
    return str((socket.get_extra_info("peername") or ("",))[0])


def _decode(data: bytes, version: int, takes: tuple[type[ToManager], ...]) -> ToManager:
    message = decode_to_manager(data, version)
    if not isinstance(message, takes):
        raise RemoteProtocolError(f"a {type(message).__name__} has no place here")
    return message


def _reason(why: str) -> bytes:
    return why.encode()[:REASON_BYTES].decode(errors="ignore").encode()
