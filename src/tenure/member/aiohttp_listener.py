"""The listener of a member whose application is one of aiohttp's.

The application is served twice in one process: by the server that was started with it, at the port
which the processes share, and here. aiohttp has public ways to do the first only. A second server
needs the two methods with which the first was made: the one that makes requests, and the one that
handles them.
"""

from asyncio import StreamReader, Task
from collections.abc import Callable
from socket import socket
from typing import Any

from aiohttp import web
from aiohttp.http import RawRequestMessage

from tenure.client.refusals import refusal
from tenure.errors import NotOwner
from tenure.member.asgi import RELAYED, Relayed
from tenure.member.exchange import IS_PRIVATE
from tenure.member.listener import BACKLOG, CLOSE_SECONDS, url_of
from tenure.member.member import PROBE
from tenure.transport.credentials import Credentials

RELAYED_NAME = RELAYED.decode()


class AiohttpListener:
    """Serves an aiohttp application at a socket of its own, in the running event loop."""

    def __init__(
        self,
        app: web.Application,
        listening: socket,
        name: Callable[[], str],
        credentials: Credentials,
    ) -> None:
        self._app = app
        self._listening = listening
        self._credentials = credentials
        self.url = url_of(listening, credentials.scheme)
        self._name = name
        self._runner: web.ServerRunner | None = None

    async def start(self) -> None:
        """Listen."""
        server = web.Server(
            self._handle,  # type: ignore[arg-type]  # requests are what `_request` makes
            request_factory=self._request,  # type: ignore[arg-type]
            # What is relayed is in the log of the shared port, and probes come all the time.
            access_log=None,
        )
        runner = self._runner = web.ServerRunner(server, shutdown_timeout=CLOSE_SECONDS)
        await runner.setup()
        tls = self._credentials.for_listening()
        await web.SockSite(runner, self._listening, ssl_context=tls, backlog=BACKLOG).start()

    async def stop(self) -> None:
        """Answer what has begun, and close. A second time does nothing."""
        if self._runner is not None:
            await self._runner.cleanup()
        self._listening.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == PROBE:
            return web.Response(text=self._name())
        if not self._app.frozen:  # it is starting yet, and its middlewares are not in place
            refused = refusal(NotOwner("it is starting"))
            assert refused is not None
            return web.Response(status=refused.status, headers=refused.headers, text=refused.text)
        IS_PRIVATE.set(True)
        return await self._app._handle(request)  # noqa: SLF001  # see above

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: Any,  # noqa: ANN401  # aiohttp's own
        task: "Task[None]",
    ) -> web.Request:
        """A request, as the application gets it: from who asked the member that relays it."""
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
