"""The one port of a manager: WebSockets for owners and lookups, JSON for everything else.

The server refuses requests of other sites' pages: browsers let any page speak to this machine, and
nobody has to log in here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import time
from typing import TypeAlias

from aiohttp import web

from tenure.base.noted import Noted
from tenure.manager.access.audit import CHANGES_A_SECOND, Audit
from tenure.manager.access.gate import LOOKUP_PATH, NODE_PATH, OWNER_PATH, READS, SIGN_IN_PATH, Gate
from tenure.manager.access.pages import OwnNames
from tenure.manager.access.roles import Permit
from tenure.manager.api import OPENAPI_PATH, Api
from tenure.manager.config import ManagerSettings
from tenure.manager.engine import ManagerEngine
from tenure.manager.entity_files import IMPORT_BYTES, IMPORT_PATH
from tenure.manager.hot_keys_api import HotKeysApi
from tenure.manager.http_errors import HttpRefusal, errors_as_json
from tenure.manager.last_hour import LastHour
from tenure.manager.live import LiveFeed
from tenure.manager.noted import ServiceKind
from tenure.manager.openapi import show_document
from tenure.manager.other_managers import OtherManagers
from tenure.manager.peer_socket import LOOKUPS, NODES, OWNERS, PeerSockets
from tenure.manager.sign_in_api import SignInApi
from tenure.transport.fair_turns import FairTurns
from tenure.transport.http_listener import HttpListener
from tenure.transport.peers import Peers

BODY_BYTES = 16 << 20
"""The most bytes of a new pool: as many split points as it may have, at a hundred bytes each."""
MOST_BODY_BYTES = {"/v1/pools": BODY_BYTES, SIGN_IN_PATH: 4 << 10, IMPORT_PATH: IMPORT_BYTES}
OTHER_BODY_BYTES = 1 << 20
"""The most bytes of any other body: a store's table with a thousand families and long names."""

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


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
        self.listener: HttpListener
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
        OtherManagers(engine, settings.others).add_routes(self.app.router)
        LiveFeed(engine, gate, time).add_routes(self.app)
        LastHour(api, time).add_routes(self.app)
        hot_keys = HotKeysApi(api, gate.let_in, hides=settings.hide_hot_keys)
        hot_keys.add_routes(self.app.router)
        api.add_routes(self.app.router, gate.let_in)
        self.app.router.add_get(OPENAPI_PATH, show_document)
        self._is_loopback = is_loopback
        self._known_as = settings.known_as
        self._limits = settings.limits
        self.turns = FairTurns()
        """The turns of those that ask for much: every HTTP request, and messages that come fast."""
        self._sockets = PeerSockets(
            engine, peers, gate, settings.limits, self.turns, api.inspections
        )
        self.app.on_shutdown.append(self._close_sockets)
        self.app.cleanup_ctx.append(self._sockets.watching_tokens)

    def listen_by(self, listener: HttpListener) -> None:
        """Set the listener that takes connections, before the first comes."""
        self.listener = self._sockets.listener = listener

    async def _close_sockets(self, app: web.Application) -> None:
        await self._sockets.close()

    # --- clients ---

    async def _on_owner(self, request: web.Request) -> web.StreamResponse:
        return await self._sockets.accept(request, OWNERS)

    async def _on_lookup(self, request: web.Request) -> web.StreamResponse:
        return await self._sockets.accept(request, LOOKUPS)

    async def _on_node(self, request: web.Request) -> web.StreamResponse:
        return await self._sockets.accept(request, NODES)

    # --- all requests ---

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        permit = self.gate.let_in(request)
        if self.gate.proves(request, permit):
            self.listener.proven(request)
        try:
            return await handler(request)
        except HttpRefusal as refused:
            raise (refused.with_names() if permit.may_read(None) else refused) from None

    @web.middleware
    async def _audited(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Every change is written down before it is made, and again with its result."""
        if (
            request.method in READS
            or request.path == SIGN_IN_PATH  # which has a token in it
            or request.match_info.http_exception is not None  # nothing is there to be changed
        ):
            return await handler(request)
        permit = self.gate.let_in(request)
        self._check_rate(request, permit)
        try:
            entry = self.audit.begins(
                who=permit.who,
                role="" if self.gate.tokens is None else permit.role,
                origin=request.remote or "",
                method=request.method,
                path=request.path_qs,
                body=b"" if _path_of(request) == IMPORT_PATH else await request.read(),
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

    def _check_rate(self, request: web.Request, permit: Permit) -> None:
        if self.audit.allows(permit.who):
            return
        peer = request.remote or ""
        self.gate.notes.note(Noted(ServiceKind.FLOOD, detail=f"of changes, by {permit}"), peer)
        raise HttpRefusal(
            429,
            f"more than {CHANGES_A_SECOND} changes a second by one token; nothing was done",
            "wait a second, and make fewer changes",
        )

    @web.middleware
    async def _hear(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A client that does not finish a body takes a connection, as a silent one does."""
        if request.can_read_body:
            most = MOST_BODY_BYTES.get(_path_of(request), OTHER_BODY_BYTES)
            request = request.clone(client_max_size=most)
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
        self.listener.spoke(request)
        return await handler(request)

    @web.middleware
    async def _let_speak(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A client that was refused before its body was read has made its request, too."""
        try:
            return await handler(request)
        finally:
            if not request.can_read_body:
                self.listener.spoke(request)

    @web.middleware
    async def _pace(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.listener.allows(request):
            return await handler(request)
        peer, most = request.remote or "", self._limits.requests_a_second
        self.gate.notes.note(Noted(ServiceKind.FLOOD, detail=f"from {peer}, over HTTP"), peer)
        self.listener.flooded(peer)  # what is still to come of it is not read
        await asyncio.sleep(self._limits.flood_seconds)
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


def _path_of(request: web.Request) -> str:
    """The path as the API lists it, whatever names stand in it."""
    resource = request.match_info.route.resource
    return request.path if resource is None else resource.canonical
