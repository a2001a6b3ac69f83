"""Routing for aiohttp: a client middleware, so that any ClientSession can have it.

    routing = route(lookup, key="/carts/{user}")
    async with ClientSession("http://carts", middlewares=[routing]) as session:
        async with session.post("/carts/ann", params={"article": "tea"}) as response: ...

The session sees the URL that was asked for, and the owner the Host that goes with it. So a redirect
within the service is routed again, and cookies belong to the service and not to one of its owners.
"""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import ClientConnectionError, ClientError, ClientRequest, ClientResponse
from aiohttp.client_exceptions import ClientConnectorError, ConnectionTimeoutError
from aiohttp.payload import BytesPayload, IOBasePayload, Payload
from yarl import URL

from tenure.observe.tracing import span
from tenure.routing.attempt_limit import AttemptLimit
from tenure.routing.finder import Finder
from tenure.routing.outstanding import MOST_OUTSTANDING
from tenure.routing.router import Router
from tenure.routing.template import PathKey
from tenure.routing.trying import (
    DRAIN_SECONDS,
    IDEMPOTENCY_KEY,
    Attempted,
    InDoubt,
    Unsent,
    Wanted,
    judge,
)
from tenure.transport.answer_body import read_body

Handler = Callable[[ClientRequest], Awaitable[ClientResponse]]


def route(
    lookup: Finder,
    *,
    key: PathKey,
    deadline: float | None = None,
    outstanding: int = MOST_OUTSTANDING,
    origin: str | None = None,
) -> "AiohttpRoute":
    """A middleware for aiohttp's ClientSession that sends each request to the owner of its key.

    `key` says where the key stands in the path: a template such as "/carts/{user}", several, or a
    function of the path. A request is tried again where that is safe: what no owner has begun, and
    what may be carried out twice (GET, HEAD, OPTIONS, PUT, DELETE, and all that has an
    Idempotency-Key). It raises OutcomeUnknown where it may have been carried out and must not be
    repeated; NoOwner where no owner took it within `deadline` seconds (by default two holds), up to
    the first line of its answer; Overloaded where `outstanding` requests wait for that owner; and
    UsageError for a path without a key. With `origin`, requests to other origins pass untouched.
    """
    router = Router(lookup, key, deadline=deadline, outstanding=outstanding, origin=origin)
    return AiohttpRoute(router)


DROPPED_BYTES = 64 << 10
"""The most that is read of an answer that nobody wants; a longer one costs its connection."""


class AiohttpRoute:
    """The middleware that `route` makes."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def __call__(self, request: ClientRequest, handler: Handler) -> ClientResponse:
        """Send the request, repeatedly if need be, until there is an answer."""
        router, url = self._router, request.url
        if router.only is not None and not router.routes(url.scheme, url.host, url.port):
            return await handler(request)
        path = url.raw_path
        wanted = Wanted(
            router.templates.need_raw(path),
            request.method,
            path,
            IDEMPOTENCY_KEY in request.headers,
        )

        try:
            with span("tenure.request", wanted.attributes) as note:
                response = await self._routed(wanted, request, handler)
                note("http.response.status_code", response.status)
                return response
        finally:
            request.url = url

    async def _routed(
        self, wanted: Wanted, request: ClientRequest, handler: Handler
    ) -> ClientResponse:
        router = self._router
        address = router.lookup.find(wanted.key)
        if address is None:
            return await self._asked(wanted, request, handler)
        # Nearly all requests are answered at once, and pay for no more than this.
        limit = router.limit_of_first(wanted, address)
        came = await self._sent(wanted, address, limit, request, handler)
        if not isinstance(came, Attempted):
            return came
        return await self._asked(wanted, request, handler, limit.deadline, (address, came))

    async def _asked(
        self,
        wanted: Wanted,
        request: ClientRequest,
        handler: Handler,
        deadline: float | None = None,
        first: tuple[str, Attempted] | None = None,
    ) -> ClientResponse:
        async def attempt(address: str, deadline: float) -> ClientResponse | Attempted:
            limit = self._router.limit_of(wanted, address, deadline)
            return await self._sent(wanted, address, limit, request, handler)

        def has_body(came: Attempted) -> bool:
            return isinstance(came, Unsent) or not is_spent(request.body)

        return await self._router.ask(wanted, attempt, has_body, deadline=deadline, first=first)

    async def _sent(
        self,
        wanted: Wanted,
        address: str,
        limit: AttemptLimit,
        request: ClientRequest,
        handler: Handler,
    ) -> ClientResponse | Attempted:
        """Send the request once; return the answer, or the failure."""
        origin = self._router.origin(address)
        request.url = URL.build(
            scheme=origin.scheme,
            authority=origin.authority,
            path=origin.prefix + wanted.path,
            query_string=request.url.raw_query_string,
            encoded=True,
        )
        came: Attempted | None
        try:
            with limit:
                response = await handler(request)
                came = judge(response.status, response.headers.get)
                if came is None:
                    return response
                await drop(response)
        except (ClientConnectorError, ConnectionTimeoutError) as error:
            return Unsent(str(error))
        except (ClientConnectionError, OSError) as error:
            came = limit.ended_it() if isinstance(error, TimeoutError) else broken(error)
            if came is None:
                raise  # a limit of the session's own
        await request.close()  # nothing may still write its body when it is sent again
        return came


def is_spent(body: object) -> bool:
    """Whether a body that was sent cannot be sent again: a stream that was read."""
    if isinstance(body, IOBasePayload):  # a file: newer versions of aiohttp say that it was rewound
        return bool(getattr(body, "consumed", True))
    return isinstance(body, Payload) and not isinstance(body, BytesPayload)


def broken(error: Exception) -> InDoubt:
    """The outcome of an attempt whose connection broke."""
    return InDoubt(f"the connection broke: {error!r}")


async def drop(response: ClientResponse) -> None:
    """Read the rest of an answer, so that its connection can be used again."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            if await read_body(response, DROPPED_BYTES) is None:
                response.close()
    except (ClientError, OSError):
        response.close()
    else:
        response.release()
