"""The listener of a member whose application is one of aiohttp's.

The application is served twice in one process: by the server that was started with it, at the port
that the processes share, and here. aiohttp's public API allows only the first. A second server
needs the two methods with which the first was made: one that makes requests, and one that handles
them.
"""

from asyncio import StreamReader, Task
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from aiohttp import hdrs, web
from aiohttp.http import RawRequestMessage
from msgspec.structs import replace

from tenure.client.refusals import refusal
from tenure.errors import NotOwner
from tenure.member.aiohttp.exchange import IS_PRIVATE, stripped
from tenure.member.asgi import PROBE, RELAYED, Relayed
from tenure.member.guarded_asgi import REFUSED
from tenure.member.listener import CLOSE_SECONDS, LIMITS, bound, url_of
from tenure.transport.bounded_port import BACKLOG, log_refused
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.credentials import Credentials
from tenure.transport.guarded_app import challenged
from tenure.transport.http_listener import HttpListener, logger_of
from tenure.transport.port_guard import HEADER, PATH, PortGuard

RELAYED_NAME = RELAYED.decode()


class AiohttpDoor:
    """An aiohttp application, as the other members reach it."""

    def __init__(self, app: web.Application, name: Callable[[], str]) -> None:
        self._app = app
        self._name = name
        self.listener: HttpListener | None = None
        """Must know of each request; there is no such port in memory."""
        self.guard: PortGuard | None = None
        self._proven: WeakSet[Any] = WeakSet()
        """The connections whose other end has proven itself."""

    def server(self) -> web.Server:
        """The server that makes requests, and handles them."""
        return web.Server(
            self._handle,  # type: ignore[arg-type]  # requests are what `_request` makes
            request_factory=self._request,  # type: ignore[arg-type]
            # The shared port logs relayed requests, and probes come all the time.
            access_log=None,
            logger=logger_of(log_refused),
        )

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self.listener is not None:
            is_socket = hdrs.UPGRADE in request.headers
            self.listener.spoke(request, is_socket=is_socket)
        if request.path == PROBE:
            return web.Response(text=self._name())
        if self.guard is not None:
            if request.path == PATH:
                return challenged(self.guard, request)
            self._check(self.guard, request)
        if not self._app.frozen:  # the application is still starting, without its middlewares
            refused = refusal(NotOwner("it is starting"))
            assert refused is not None
            return web.Response(status=refused.status, headers=refused.headers, text=refused.text)
        IS_PRIVATE.set(True)
        return await self._app._handle(stripped(request))  # noqa: SLF001  # see above

    def _check(self, guard: PortGuard, request: web.Request) -> None:
        """Let a request in, or raise the refusal that says that nothing was begun."""
        connection = request.transport
        if connection in self._proven:
            return
        near, far = (request.get_extra_info(each) for each in ("sockname", "peername"))
        if guard.refuses(request.headers.get(HEADER), near, far):
            raise web.HTTPMisdirectedRequest(headers=REFUSED.headers, text=REFUSED.text)
        if self.listener is not None:
            self.listener.proven(request)
        if connection is not None and guard.secret.is_wanted:
            self._proven.add(connection)

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: Any,  # noqa: ANN401  # aiohttp's own
        task: "Task[None]",
    ) -> web.Request:
        """A request, as the application gets it: from the client that asked the member that relays
        it.
        """
        relayed = Relayed.read(message.headers.get(RELAYED_NAME, "").encode("latin-1", "replace"))
        if RELAYED_NAME in message.headers:
            headers = message.headers.copy()
            headers.popall(RELAYED_NAME)
            raw = tuple(each for each in message.raw_headers if each[0].lower() != RELAYED)
            message = message._replace(headers=type(message.headers)(headers), raw_headers=raw)
        made = self._app._make_request  # noqa: SLF001  # see above
        request = made(message, payload, protocol, writer, task)  # type: ignore[arg-type]
        if relayed is None:
            return request
        return request.clone(remote=relayed.host, scheme=relayed.scheme)


def _is_probe(request: web.BaseRequest) -> bool:
    return request.path == PROBE


class AiohttpListener:
    """Serves an aiohttp application at a socket of its own, in the running event loop."""

    def __init__(
        self,
        door: AiohttpDoor,
        listen: str,
        credentials: Credentials,
        limits: ConnectionLimits = LIMITS,
        guard: PortGuard | None = None,
    ) -> None:
        self._door = door
        door.guard = guard
        self._listening = bound(listen)
        self._credentials = credentials
        self._limits = replace(limits, knows_peers=guard is not None)
        self.url = url_of(self._listening, credentials.scheme)

    async def start(self) -> None:
        """Listen."""
        runner = web.ServerRunner(self._door.server(), shutdown_timeout=CLOSE_SECONDS)
        listener = HttpListener(runner, log_refused, log_refused, self._limits)
        listener.overtakes = _is_probe
        self._door.listener = listener
        await listener.prepare()
        self._listening.listen(BACKLOG)
        listener.open(self._listening, self._credentials.for_listening())

    async def stop(self) -> None:
        """Answer what has begun, and close. A second time does nothing."""
        listener, self._door.listener = self._door.listener, None
        if listener is not None:
            await listener.close()
        self._listening.close()
