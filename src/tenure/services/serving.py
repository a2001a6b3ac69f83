"""A service at its port: requests decoded, refusals answered, and an end that loses nothing.

Anybody on the network may connect, even if tokens are required afterwards. So the port has the same
bounds as a manager's port: on connections, on silence before a request is complete, and on clients
that do not read answers.

The end has an order. First the service closes the port and answers all waiting requests, so that
clients go to another process. Then requests under way end. Only then are the keys handed over, and
until that is done this process still serves them to the other processes.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec
from aiohttp import WSCloseCode, hdrs, web

from tenure.errors import ConfigurationError, ServiceRefusal
from tenure.services.limits import BODY_BYTES, KEY_BYTES, REQUESTS
from tenure.services.operations import (
    BoundHandler,
    Operation,
    ServiceAnswer,
    ServiceRequest,
    decoded_body,
    decoded_query,
    operations_of,
)
from tenure.services.problems import PROBLEM_TYPE, ServiceProblem, problem_of
from tenure.services.service import MakePort, Service, SocketHandler

CHECK_SECONDS = 1.0
"""How often the service checks that the tokens of open sockets are still valid."""
ANSWER_SECONDS = 10.0
"""How long requests may go on when the process ends."""
logger = logging.getLogger("tenure.services")


class RequestCheck(Protocol):
    """Decides whether a request is allowed."""

    def __call__(self, request: web.Request, *, is_read: bool) -> None:
        """Raise ServiceRefusal if it is not. `is_read` says whether the request only reads: the
        method alone does not tell, because a WebSocket begins as a GET, whatever it does.
        """


class ServiceDoor:
    """The HTTP side of a service."""

    def __init__(
        self,
        service: Service[Any],
        make_port: MakePort,
        check: RequestCheck | None = None,
        *,
        knows_peers: bool = False,
    ) -> None:
        self._check = check
        self._knows_peers = knows_peers
        """Whether whoever passes the check has proven who it is."""
        self._sockets: dict[asyncio.Future[int], web.Request] = {}
        """The open sockets, by the future that closes each."""
        self._reads: set[web.AbstractRoute] = set()
        """The routes that change nothing. Every other one, and so every socket, may."""
        self._open = 0
        """Requests that are not answered yet."""
        self._is_closing = False
        self._emptied = asyncio.Event()
        self.app = web.Application(middlewares=[self._guarded], client_max_size=BODY_BYTES.most + 1)
        for of, handler in operations_of(service):
            route = self._route(service, of, handler)
            added = self.app.router.add_route(of.method, _any(of.path), route)
            if of.is_read:
                self._reads.add(added)
        for path, socket in service.sockets().items():
            self.app.router.add_route("GET", _any(path), self._socket_route(socket))
        self.app.cleanup_ctx.append(self._watched)
        self.port = make_port(self.app, knows_peers=knows_peers)

    def _route(
        self, service: Service[Any], of: Operation, handler: BoundHandler
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            key = checked_key(request) if "{key}" in of.path else ""
            query = decoded_query(of, request.query)
            body = decoded_body(of, await read_body(request))
            path, headers = request.match_info, request.headers
            again = partial(self._check_request, request)
            asked = ServiceRequest(key, body, query, path, headers, request, again)
            return response_of(await service.carried_out(handler, asked))

        return handle

    def _socket_route(
        self, handler: SocketHandler
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            key = checked_key(request)
            self.port.spoke(request, is_socket=True)
            until: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self._sockets[until] = request
            try:
                return await handler(request, key, until)
            finally:
                del self._sockets[until]

        return handle

    async def _watched(self, _: web.Application) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch_tokens())
        yield
        watching.cancel()
        await asyncio.wait({watching})

    async def _watch_tokens(self) -> None:
        """Close the sockets of clients whose token was removed: they must go, not only stay out."""
        while self._check is not None:
            await asyncio.sleep(CHECK_SECONDS)
            for until, request in self._sockets.items():
                try:
                    self._check_request(request)
                except ServiceRefusal:
                    if not until.done():
                        until.set_result(WSCloseCode.POLICY_VIOLATION)

    @web.middleware
    async def _guarded(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        self._open += 1
        try:
            REQUESTS.check(self._open)
            self._check_request(request)
            if self._knows_peers:
                self.port.proven(request)
            await self._hear(request)
            response = await handler(request)
            if self._is_closing:
                response.force_close()
            return response
        except web.HTTPException as error:  # the router's: no such path, or no such method there
            allow = error.headers.get("Allow")
            detail = f"{error.reason}: GET /openapi.json lists what can be asked"
            problem = ServiceProblem(error.status, "route", detail)
            return problem_response(problem, {"Allow": allow} if allow else {})
        except Exception as error:
            found = problem_of(error)
            if found is None:
                logger.exception("%s %s failed", request.method, request.path)
                found = ServiceProblem(500, "failed", "the request failed"), {}
            return problem_response(*found)
        finally:
            self._open -= 1
            if not self._open:
                self._emptied.set()

    def _check_request(self, request: web.Request) -> None:
        if self._check is None:
            return
        found = request.match_info
        is_answered_by_none = found.http_exception is not None  # so that nothing is changed
        self._check(request, is_read=is_answered_by_none or found.route in self._reads)

    async def _hear(self, request: web.Request) -> None:
        """Read the body. A client that does not finish a body occupies a connection, as a silent
        one does.
        """
        seconds = self.port.silent_seconds
        try:
            async with asyncio.timeout(seconds):
                await read_body(request)
        except TimeoutError:
            why = f"the body was not here within {seconds:g} s: send the request as a whole"
            raise ServiceRefusal(408, "slow", why) from None
        self.port.spoke(request)

    async def emptied(self) -> None:
        """Wait until no request is under way any longer. Clients keep connections, and would go on
        asking here: so each answer tells its client to make a new connection, which another process
        takes.
        """
        self._is_closing = True
        while self._open:
            self._emptied.clear()
            await self._emptied.wait()


def _any(path: str) -> str:
    """The path for aiohttp, whose pattern would otherwise not match braces in names."""
    return path.replace("}", ":[^/]+}")


def checked_key(request: web.Request) -> str:
    """The key in the path. Raises ServiceRefusal if it cannot be a key."""
    try:
        unquote(request.raw_path, errors="strict")
    except UnicodeDecodeError:
        raise ServiceRefusal(400, "key", "the path is not UTF-8") from None
    key = request.match_info["key"]
    KEY_BYTES.check(len(key.encode()))
    return key


async def read_body(request: web.Request) -> bytes:
    """The body of a request. Raises ServiceRefusal if it is too large, or cannot be read."""
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity") != "identity":
        raise ServiceRefusal(415, "encoding", "the body is compressed: send it as it is")
    try:
        found = await request.read()
    except web.RequestPayloadError as error:
        why = f"the body cannot be read: {error}; send it as its headers say"
        raise ServiceRefusal(400, "body", why) from None
    except web.HTTPRequestEntityTooLarge as error:
        size = request.content_length or BODY_BYTES.most + 1
        raise BODY_BYTES.exceeded(size) from error
    BODY_BYTES.check(len(found))  # versions of aiohttp differ by one
    return found


def response_of(answer: ServiceAnswer) -> web.Response:
    """Turn an answer into one of aiohttp."""
    if answer.body is None:
        return web.Response(status=answer.status, headers=answer.headers)
    body = answer.body if isinstance(answer.body, bytes) else msgspec.json.encode(answer.body)
    headers = {"Content-Type": "application/json", **answer.headers}
    return web.Response(status=answer.status, body=body, headers=headers)


def problem_response(problem: ServiceProblem, headers: dict[str, str]) -> web.Response:
    """Turn a refusal into an answer of aiohttp."""
    body = msgspec.json.encode(problem)
    return web.Response(
        status=problem.status, body=body, headers=headers, content_type=PROBLEM_TYPE
    )


@asynccontextmanager
async def served(
    service: Service[Any],
    host: str,
    port: int,
    make_port: MakePort,
    *,
    reuse_port: bool = False,
    tls: ssl.SSLContext | None = None,
    check: RequestCheck | None = None,
    knows_peers: bool = False,
) -> AsyncIterator[str]:
    """Serve until the block ends; yields the URL. With `knows_peers`, whoever passes the check has
    proven who it is, and others give way to it. Raises ConfigurationError if the port is
    taken.
    """
    door = ServiceDoor(service, make_port, check, knows_peers=knows_peers)
    listener = door.port
    async with service.running(make_port):
        try:
            bound = await listener.listen(host, port, tls, reuse_port=reuse_port)
        except OSError as error:
            await listener.close()
            raise ConfigurationError(
                f"{service.name} cannot listen on {host}:{port}: {error.strerror}"
            ) from None
        scheme = "http" if tls is None else "https"
        try:
            yield f"{scheme}://[{host}]:{bound}" if ":" in host else f"{scheme}://{host}:{bound}"
        finally:
            listener.take_no_more()
            service.end_waiting()
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await door.emptied()
            except TimeoutError:
                logger.warning("%s ends with requests that are not answered", service.name)
            await listener.close()
