"""The gateway: takes requests of clients, and passes each to the process that owns its key, or to a
plain server. It owns nothing and keeps nothing, so several may stand beside each other.
"""

import asyncio
import logging
import socket as sockets
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from tenure.entities.edge import Edge
from tenure.entities.socket_offer import TAKE, SocketOffer, TakenSocket
from tenure.errors import TenureError
from tenure.gateway.client_connection import GivenConnection
from tenure.gateway.client_request import ClientRequest, Continuation
from tenure.gateway.gateway_counts import GatewayCounts
from tenure.gateway.gateway_port import LIMITS, GatewayPort
from tenure.gateway.passed_connection import PassedConnection, PassedSocket
from tenure.gateway.passing import Passing
from tenure.gateway.refusals import FORGED, NO_ROUTE, gateway_refusal, patience
from tenure.gateway.routes import GatewayRoutes, RoutedTo
from tenure.gateway.targets import PlainServer, PoolTarget, Target, TargetSettings
from tenure.gateway.tunnel import Tunnel
from tenure.member.asgi import header, respond
from tenure.member.forwarded_answer import SWITCHING, ForwardedAnswer
from tenure.member.forwarding import Forwarded
from tenure.member.http_relay import Body, obtained, pass_on
from tenure.transport.bounded_port import log_refused
from tenure.transport.connection_limits import ConnectionLimits

logger = logging.getLogger("tenure.gateway")
access = logging.getLogger("tenure.gateway.access")
NOBODY = ""
LAST_SECONDS = 1.0
"""How long clients have at least to hear that their sockets are closed."""


class HoldsSockets(Protocol):
    """The sockets of one pool's entities that end here."""

    edge: Edge

    async def offer(self, seconds: float) -> SocketOffer | None:
        """What a handshake is sent on with; None if no socket can be taken so soon."""
        ...

    def attach(self, request: ClientRequest, taken: TakenSocket) -> Coroutine[Any, Any, None]:
        """Be the other end of a client's socket until it closes."""
        ...

    def go_on(self, request: ClientRequest, passed: PassedSocket) -> Coroutine[Any, Any, None]:
        """The same, where another process has stopped."""
        ...

    async def close(self) -> None:
        """Listen to owners no more."""
        ...


class HttpGateway:
    """One gateway, in the running event loop. See `GoesOn`."""

    def __init__(
        self,
        routes: GatewayRoutes,
        settings: TargetSettings,
        *,
        drain: float,
        limits: ConnectionLimits = LIMITS,
    ) -> None:
        self._settings = settings
        self._drain = drain
        self._limits = limits
        self._targets: dict[str, Target] = {}
        self.counts = GatewayCounts()
        self._sockets: dict[str, HoldsSockets] = {}
        self._ports: list[GatewayPort] = []
        self._successor: Passing | None = None
        self._loop = asyncio.get_running_loop()
        self.reroute(routes)

    def reroute(self, routes: GatewayRoutes) -> None:
        """Take these routes for all requests from now on."""
        for pool in sorted(routes.pools - self._targets.keys()):
            self._targets[pool] = PoolTarget(pool, self._settings)
        for url in sorted(routes.servers - self._targets.keys()):
            self._targets[url] = PlainServer(url, self._settings)
        self._routes = routes

    def pool(self, name: str) -> PoolTarget:
        """The owners of a pool, whether a route leads to them or not."""
        found = self._targets.get(name)
        if not isinstance(found, PoolTarget):
            found = self._targets[name] = PoolTarget(name, self._settings)
        return found

    def hold(self, pool: str, sockets: "HoldsSockets") -> None:
        """Have sockets of the pool's entities end here."""
        self._sockets[pool] = sockets

    @asynccontextmanager
    async def listening(
        self, listening: sockets.socket, tls: ssl.SSLContext | None
    ) -> AsyncIterator[GatewayPort]:
        """Take requests at a socket that is bound, until the block ends."""
        port = GatewayPort(self.serve, self._on_refused, tls, self._limits, self._go_on)
        self._ports.append(port)
        port.open(listening)
        try:
            yield port
        finally:
            self._ports.remove(port)
            drain = self._drain
            if self._successor is not None:
                drain = await self._leave(port, self._successor)
            for each in self._sockets.values():
                each.edge.close_all()
            await port.close(drain)

    async def _leave(self, port: GatewayPort, successor: Passing) -> float:
        """Pass on what can be passed. Returns for how many seconds the rest may go on."""
        ends_at = self._loop.time() + self._drain
        if port.scheme == "http":
            await port.pass_rest(successor, self._drain)
            logger.warning("the successor has %d connections of this gateway", successor.count)
        elif len(port):
            logger.warning(
                "TLS cannot be passed on: %d connections end with this gateway, as soon as what "
                "was asked on them is answered, and sockets of entities with code 1012",
                len(port),
            )
        successor.close()
        return max(LAST_SECONDS, ends_at - self._loop.time())

    async def pass_on(self, passing: Passing) -> bool:
        """Pass a successor what can be passed at this moment, and the rest when this gateway ends.
        Returns False if the successor has ended; then this gateway goes on.
        """
        for each in self._ports:
            if each.scheme == "http":
                await each.pass_on(passing)
        if not await passing.end_round():
            return False
        self._successor = passing
        return True

    def may_go_on(self, passed: PassedConnection) -> bool:
        if passed.socket is not None and passed.socket.pool not in self._sockets:
            return False
        if passed.tunnel is not None and passed.tunnel.behind not in self._targets:
            return False
        return any(each.scheme == "http" for each in self._ports)

    def go_on(self, given: GivenConnection) -> None:
        next(each for each in self._ports if each.scheme == "http").adopt(given)

    async def close(self) -> None:
        """Pass nothing more on."""
        for held in self._sockets.values():
            await held.close()
        for each in self._targets.values():
            await each.close()

    @property
    def waits_for(self) -> list[str]:
        """The targets of routes that cannot be reached yet."""
        wanted = self._routes.pools | self._routes.servers
        return [name for name in sorted(wanted) if not self._targets[name].is_ready]

    async def until_known(self, seconds: float) -> None:
        """Wait until the owners of all pools are known to which routes lead, or whose sockets end
        here. Raises NoOwner if they are not in time.
        """
        pools = sorted({*self._routes.pools, *self._sockets})
        await asyncio.gather(*(self._targets[each].routed(seconds) for each in pools))

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return sum(map(len, self._ports))

    def _on_refused(self, peer: str, why: str) -> None:
        self.counts.refused_connections += 1
        log_refused(peer, why)

    # --- requests ---

    async def serve(self, request: ClientRequest) -> None:
        """Answer a request."""
        began = self._loop.time()
        self.counts.under_way += 1
        found: RoutedTo | None = None
        try:
            path = request.scope["raw_path"].decode("ascii")
            found = self._routes.find(path, request.scope["headers"])
            if found is None:
                await respond(request.send, NO_ROUTE)
            else:
                follows = await self._pass(request, found, began)
                if follows is not None:  # what the handshake has needed is gone by now
                    with suppress(ConnectionError):
                        await follows
        finally:
            self._over(request, NOBODY if found is None else found.target, began)

    def _over(self, request: ClientRequest, target: str, began: float) -> None:
        self.counts.under_way -= 1
        self.counts.answered(target, request.status, self._loop.time() - began)
        if access.isEnabledFor(logging.INFO):
            self._log(request, target, self._loop.time() - began)

    async def _go_on(self, request: ClientRequest, given: Continuation) -> None:
        began = self._loop.time()
        self.counts.under_way += 1
        passed, name = given.passed, NOBODY
        try:
            if passed.socket is not None:
                name = passed.socket.pool
                await self._sockets[name].go_on(request, passed.socket)
            elif passed.tunnel is not None and given.behind is not None:
                name = passed.tunnel.behind
                forwarding = self._targets[name].forwarding
                answer = await forwarding.go_on(given.behind, passed.tunnel.unread)
                await self._through(request, answer, name)
        finally:
            self._over(request, name, began)

    async def _through(self, request: ClientRequest, answer: Forwarded, name: str) -> None:
        assert isinstance(answer, ForwardedAnswer), "no other one has both directions"
        try:
            await Tunnel(name, request, answer).run()
        finally:
            answer.close()

    async def _pass(
        self, request: ClientRequest, found: RoutedTo, began: float
    ) -> Coroutine[Any, Any, None] | None:
        """Have a request answered; what is returned then holds its socket, if it has one here."""
        target, scope = self._targets[found.target], request.scope
        seconds = patience(scope["headers"], self._settings.deadline)
        if "upgrade" in scope:
            held = (each for pool, each in self._sockets.items() if target.may_give(pool))
            offers = [await each.offer(seconds) for each in held]
            scope["offers"] = [each for each in offers if each is not None]
        has_body = request.head.has_body
        receive = request.receive
        body = await Body.of(scope, receive) if has_body else Body(receive, b"")
        if body is None:
            return None
        key = "" if found.key is None else found.key
        try:
            router = await target.routed(seconds)
            came = await obtained(target, router, scope, key, body, seconds)
        except TenureError as error:
            is_late = self._loop.time() - began >= self._settings.answer_seconds
            is_plain = found.key is None
            answer = gateway_refusal(error, is_plain=is_plain, is_late=is_late)
            if answer is None:
                raise
            await respond(request.send, answer)
            return None
        assert came is not None, "it owns nothing"
        try:
            if "upgrade" not in scope and (whole := came.whole()) is not None:
                request.answer(came.status, came.headers, whole)
                return None
            with suppress(ConnectionError):  # the client's connection is broken off, too
                return await self._give(request, came, body, target.name)
        finally:
            came.close()
        return None

    async def _give(
        self, request: ClientRequest, came: Forwarded, body: Body, target: str
    ) -> Coroutine[Any, Any, None] | None:
        """Give a client the answer of an owner, which may give the socket over. See `_pass`."""
        if came.status == SWITCHING:
            request.switch(came.headers)
            await self._through(request, came, target)
            return None
        answer = header(came.headers, TAKE.encode()) if "upgrade" in request.scope else None
        if answer is None:
            await pass_on(came, body, request.send)
            return None
        offers: list[SocketOffer] = request.scope["offers"]
        taken = next((got for each in offers if (got := each.taken(answer))), None)
        if taken is None:
            logger.warning(
                "%s gave a socket over, but to no offer of this handshake: refused", target
            )
            await respond(request.send, FORGED)
            return None
        return self._sockets[taken.pool].attach(request, taken)

    def _log(self, request: ClientRequest, target: str, seconds: float) -> None:
        head = request.head
        access.info(
            '%s "%s %s HTTP/%s" %d %d %.1f ms %s',
            request.scope["client"][0],
            head.method,
            head.target.decode("ascii"),
            head.version,
            request.status,
            request.sent,
            seconds * 1000,
            target or "-",
        )
