"""`AiohttpRelay`: what `Relay` is for ASGI, for the servers of aiohttp.

    member = Member("carts")
    app = web.Application(middlewares=[AiohttpRelay(member=member, key="/carts/{user}")])
    app.cleanup_ctx.append(member.cleanup_ctx)

Relay decides here, too, and relays; see `exchange`.
"""

import asyncio
from contextlib import suppress

from aiohttp import web

from tenure.base.keys import UserKey
from tenure.member.aiohttp.exchange import CURRENT, EXCHANGE, Exchange, Handler
from tenure.member.asgi import SERVICE_RESTART, Receive, Scope, Send, raw_path
from tenure.member.member import Member
from tenure.member.relay import Relay
from tenure.routing.outstanding import MOST_OUTSTANDING
from tenure.routing.template import PathKey


class AiohttpRelay:
    """Middleware for aiohttp: `middlewares=[AiohttpRelay(member=member, key="/carts/{user}")]`.

    Put it first. See `Relay` for the arguments, and for what is relayed and what is refused. The
    application's sockets that came by the port which the processes share are closed with 1012 when
    the server begins to shut down, as aiohttp asks of applications.
    """

    __middleware_version__ = 1
    """The mark that `web.middleware` would set."""

    def __init__(
        self,
        *,
        member: Member,
        key: PathKey,
        relay: bool = True,
        ready: str | None = None,
        deadline: float | None = None,
        outstanding: int = MOST_OUTSTANDING,
    ) -> None:
        self._relay = _RelayOfSegments(
            _serve,
            member=member,
            key=key,
            relay=relay,
            ready=ready,
            deadline=deadline,
            outstanding=outstanding,
        )
        self._open: dict[Exchange, None] = {}

    @property
    def key(self) -> PathKey:
        """The finder of the key in a path."""
        return self._relay.key

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        exchange = Exchange(request, handler)
        scope = exchange.scope()
        CURRENT.set(exchange)
        if scope["type"] == "http":
            await self._relay(scope, exchange.receive, exchange.send)
            return exchange.answer()
        self._open[exchange] = None
        try:
            await self._relay(scope, exchange.receive, exchange.send)
        finally:
            self._open.pop(exchange, None)
        return exchange.answer()

    async def close_sockets(self) -> None:
        """Ask the clients of the shared port to connect again, as the server is about to end."""
        shared = [each for each in self._open if not each.is_private]
        with suppress(ConnectionError):
            await asyncio.gather(*(each.close(SERVICE_RESTART) for each in shared))


class _RelayOfSegments(Relay):
    """aiohttp's router divides a path into segments before it decodes them."""

    def key_in(self, scope: Scope) -> UserKey | None:
        return self.templates.find_raw(raw_path(scope))


async def _serve(scope: Scope, receive: Receive, send: Send) -> None:
    """The application around which Relay stands."""
    await scope[EXCHANGE].serve(scope, receive, send)
