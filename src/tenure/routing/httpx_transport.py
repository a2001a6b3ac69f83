"""Routing for httpx and httpx2: a transport, for blocking clients and for those of an event loop.

    httpx2.Client(base_url="http://carts", transport=RoutingTransport(lookup, key="/carts/{user}"))

It sees from the first request which of the two libraries it serves; neither is imported here. The
client sees the URL that was asked for, and the owner the Host that goes with it, as in
`aiohttp_middleware`.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

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

if TYPE_CHECKING:
    import httpx
    import httpx2

    class AnyTransport(
        httpx.BaseTransport,
        httpx.AsyncBaseTransport,
        httpx2.BaseTransport,
        httpx2.AsyncBaseTransport,
    ):
        """The transport that clients of both libraries take."""

        def handle_request(self, request: Any) -> Any: ...
        async def handle_async_request(self, request: Any) -> Any: ...
else:
    AnyTransport = object

ATTEMPTS_IN_A_DEADLINE = 2
"""A blocking attempt cannot be ended when the key moves. So one that may be repeated takes at most
half of the remaining time, which leaves time for another.
"""
TIMEOUTS = ("connect", "read", "write", "pool")


class RoutingTransport(AnyTransport):
    """A transport for httpx or httpx2 that sends each request to the owner of its key.

    See `route`, which does the same for aiohttp, for what is sent again, and for the arguments.
    `transport` is what sends; by default the library's own, made at the first request. A blocking
    client waits for the answer of an owner that stands still until half of the deadline is over,
    or the client's own timeout has come.
    """

    def __init__(
        self,
        lookup: Finder,
        *,
        key: PathKey,
        deadline: float | None = None,
        outstanding: int = MOST_OUTSTANDING,
        origin: str | None = None,
        transport: Any = None,
    ) -> None:
        self._router = Router(
            lookup, key, deadline=deadline, outstanding=outstanding, origin=origin
        )
        self._inner = transport
        self._library: ModuleType | None = None

    # --- blocking ---

    def handle_request(self, request: Any) -> Any:
        """Send it, and send it again, until there is an answer."""
        inner = self._inner_of(request, "HTTPTransport")
        router, url = self._router, request.url
        if not self._routes(url):
            return inner.handle_request(request)
        wanted = self._wanted(request)

        def attempt(address: str, deadline: float) -> Any:
            with self._addressed(request, address):
                return self._attempt(inner, request, wanted, address, deadline)

        with span("tenure.request", wanted.attributes) as note:
            has_body = partial(self._has_body, request=request)
            response = router.ask_blocking(wanted, attempt, has_body)
            note("http.response.status_code", response.status_code)
            return response

    def _attempt(
        self,
        inner: Any,
        request: Any,
        wanted: Wanted,
        address: str,
        deadline: float,
    ) -> Any:
        left = max(deadline - time.monotonic(), 0.001)
        if wanted.is_repeatable:
            left = min(left, self._router.limit / ATTEMPTS_IN_A_DEADLINE)
        given = request.extensions.get("timeout", {})
        own = {what: given.get(what) for what in TIMEOUTS}
        limits = {what: left if it is None else min(it, left) for what, it in own.items()}
        before = request.extensions
        request.extensions = {**before, "timeout": limits}
        came: Attempted | None
        try:
            response = inner.handle_request(request)
            came = judge(response.status_code, response.headers.get)
            if came is None:
                return response
            self._drop(response)
        except self._errors() as error:
            came = self._told(error)
            is_patience_over = self._is_timeout(error) and limits["read"] == own["read"]
            if is_patience_over and not self._has_moved(wanted, address):
                raise
        finally:
            request.extensions = before
        return came

    def _has_moved(self, wanted: Wanted, address: str) -> bool:
        return self._router.lookup.find(wanted.key) not in (None, address)

    # --- in an event loop ---

    async def handle_async_request(self, request: Any) -> Any:
        """Send it, and send it again, until there is an answer."""
        inner = self._inner_of(request, "AsyncHTTPTransport")
        router, url = self._router, request.url
        if not self._routes(url):
            return await inner.handle_async_request(request)
        wanted = self._wanted(request)

        async def attempt(address: str, deadline: float) -> Any:
            with self._addressed(request, address):
                limit = router.limit_of(wanted, address, deadline)
                return await self._attempt_async(inner, request, limit)

        with span("tenure.request", wanted.attributes) as note:
            response = await router.ask(wanted, attempt, partial(self._has_body, request=request))
            note("http.response.status_code", response.status_code)
            return response

    async def _attempt_async(self, inner: Any, request: Any, limit: AttemptLimit) -> Any:
        try:
            with limit:
                response = await inner.handle_async_request(request)
                came = judge(response.status_code, response.headers.get)
                if came is None:
                    return response
            await self._drop_async(response)
        except TimeoutError:
            given_up = limit.ended_it()
            if given_up is None:
                raise
            return given_up
        except self._errors() as error:
            if self._is_timeout(error):
                raise  # the client's own limit
            return self._told(error)
        return came

    # --- both ---

    def _drop(self, response: Any) -> None:
        """Read the rest of a refusal, which has said what matters, to use its connection again."""
        try:
            with suppress(*self._errors()):
                for _ in response.stream:
                    pass
        finally:
            response.close()

    async def _drop_async(self, response: Any) -> None:
        try:
            with suppress(*self._errors(), TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    async for _ in response.stream:
                        pass
        finally:
            await response.aclose()

    def _routes(self, url: Any) -> bool:
        port = url.port or (443 if url.scheme == "https" else 80)
        return self._router.routes(url.scheme, url.host, port)

    def _wanted(self, request: Any) -> Wanted:
        path = request.url.raw_path.partition(b"?")[0].decode("ascii")
        key = self._router.templates.need_raw(path)
        return Wanted(key, request.method, path, IDEMPOTENCY_KEY in request.headers)

    @contextmanager
    def _addressed(self, request: Any, address: str) -> Iterator[None]:
        origin, url = self._router.origin(address), request.url
        request.url = url.copy_with(
            scheme=origin.scheme,
            host=origin.host,
            port=origin.port,
            raw_path=origin.prefix.encode() + url.raw_path,
        )
        try:
            yield
        finally:
            request.url = url

    def _has_body(self, came: Attempted, request: Any) -> bool:
        assert self._library is not None
        return isinstance(came, Unsent) or isinstance(request.stream, self._library.ByteStream)

    def _inner_of(self, request: Any, kind: str) -> Any:
        if self._library is None:
            self._library = import_module(type(request).__module__.partition(".")[0])
        if self._inner is None:
            self._inner = getattr(self._library, kind)()
        return self._inner

    def _errors(self) -> tuple[type[Exception], ...]:
        library = self._library
        assert library is not None
        return library.TimeoutException, library.NetworkError, library.RemoteProtocolError

    def _is_timeout(self, error: Exception) -> bool:
        library = self._library
        assert library is not None
        of_sending = (library.ConnectTimeout, library.PoolTimeout)
        return isinstance(error, library.TimeoutException) and not isinstance(error, of_sending)

    def _told(self, error: Exception) -> Attempted:
        library = self._library
        assert library is not None
        if isinstance(error, library.ConnectError | library.ConnectTimeout | library.PoolTimeout):
            return Unsent(f"no connection: {error!r}")
        return InDoubt(f"the connection broke: {error!r}")

    def close(self) -> None:
        """Close the inner transport, as the client does at its end."""
        if self._inner is not None:
            self._inner.close()

    async def aclose(self) -> None:
        """The same, in an event loop."""
        if self._inner is not None:
            await self._inner.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
