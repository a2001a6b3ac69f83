"""One port that speaks HTTP, by aiohttp, behind the bounds of `bounded_port`.

Requests begin one by one, with everything else in the process in between. Otherwise a pass of the
event loop would have a request of each connection, and whoever has a thousand of them would keep
new connections, which are taken one a pass, waiting for minutes.

aiohttp logs a stack trace of every request that is not HTTP. Anybody can send those, and fill a
disk. Here each of them is reported in a line, which the caller may leave out.
"""

import asyncio
import logging
import socket as sockets
import ssl
from collections.abc import Callable

from aiohttp import web
from aiohttp.http import HttpProcessingError

from tenure.base.instants import in_seconds, seconds
from tenure.runtime.clock import boot_clock
from tenure.transport.bounded_port import BACKLOG, BoundedPort, Refused, Unfinished
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.fair_turns import FairTurns
from tenure.transport.frame_socket import LOOKS, FrameSocket
from tenure.transport.handshakes import hand_over
from tenure.transport.newcomers import IDLE_SECONDS
from tenure.transport.rate_bound import RateBound

MOST_PIPELINED = 16
"""The most requests that a peer sends before the first is answered. None of our clients sends two,
but aiohttp parses and keeps all that arrive, thousands in one go.
"""
SILENT_NS = seconds(20)
"""A WebSocket client that has been silent for so long is pinged."""
LIMITS = ConnectionLimits()
PASSIVE = sockets.AI_PASSIVE


class HttpListener:
    """Serves an aiohttp application at one port; or the application of a runner that exists
    already.

    `refused` is told of each refused peer, and why; `silent` is told of each peer that said
    nothing. A peer of a socket that was handed over is pinged after `silent_ns` without a word.
    `cancels` says that a request whose client has gone is cancelled. Each request waits for one of
    the `turns`, which it may share with others.
    """

    def __init__(
        self,
        app: web.Application | web.BaseRunner,
        refused: Refused,
        silent: Refused,
        limits: ConnectionLimits = LIMITS,
        ends_seconds: float = 2.0,
        *,
        silent_ns: int = SILENT_NS,
        cancels: bool = False,
        turns: FairTurns | None = None,
    ) -> None:
        self._port: BoundedPort[web.RequestHandler | FrameSocket] = BoundedPort(
            self._protocol, _unfinished, refused, silent, limits
        )
        self._silent_ns = silent_ns
        self._turns = turns or FairTurns()
        self.overtakes: Callable[[web.BaseRequest], bool] = lambda _: False
        """Says which requests wait for no turn."""
        self._looking: asyncio.Task[None] | None = None
        self._runner: web.BaseRunner
        if isinstance(app, web.BaseRunner):
            self._runner = app
            return
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            handler_cancellation=cancels,
            shutdown_timeout=ends_seconds,
            keepalive_timeout=IDLE_SECONDS,
            logger=logger_of(refused),
            auto_decompress=False,  # none of our clients compresses; little may become very much
        )

    @property
    def silent_seconds(self) -> float:
        """The time for TLS, and for a whole request."""
        return self._port.limits.silent_seconds

    def __len__(self) -> int:
        return len(self._port)

    def _protocol(self) -> web.RequestHandler:
        return self._server()

    @property
    def _server(self) -> web.Server:
        assert self._runner.server is not None
        return self._runner.server

    # --- opening, closing ---

    async def prepare(self) -> None:
        """Start the application."""
        await self._runner.setup()
        server = self._server
        tell_lost = server.connection_lost

        def lost(handler: web.RequestHandler, error: BaseException | None = None) -> None:
            tell_lost(handler, error)
            self._port.gone(handler)

        # aiohttp has no other way to say that a connection has ended.
        server.connection_lost = lost  # type: ignore[method-assign, assignment]
        handle = server.request_handler

        async def in_turn(request: web.BaseRequest) -> web.StreamResponse:
            if not self.overtakes(request):
                await self._turns.wait()
            return await handle(request)

        server.request_handler = in_turn

    def open(self, listening: sockets.socket, tls: ssl.SSLContext | None) -> None:
        """Take connections from a socket that is already bound. The listener closes the socket when
        it closes.
        """
        self._port.open(listening, tls)
        self._looking = asyncio.get_running_loop().create_task(self._look_for_silent())

    async def _look_for_silent(self) -> None:
        """Look at all sockets at once: a timer for each would be set again with every message."""
        while True:
            await asyncio.sleep(in_seconds(self._silent_ns) / LOOKS)
            now = boot_clock()
            for each in self._port.protocols():
                if isinstance(each, FrameSocket):
                    each.is_there(now, self._silent_ns)

    async def listen(
        self, host: str, port: int, tls: ssl.SSLContext | None, *, reuse_port: bool = False
    ) -> int:
        """Prepare, bind an address, open, and return the port. Raises OSError if binding fails."""
        await self.prepare()
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host or None, port, type=sockets.SOCK_STREAM, flags=PASSIVE)
        family, _, _, _, address = found[0]
        listening = sockets.create_server(
            address[:2], family=family, backlog=BACKLOG, reuse_port=reuse_port
        )
        self.open(listening, tls)
        return int(listening.getsockname()[1])

    def take_no_more(self) -> None:
        """Take no more connections; existing ones continue until `close`."""
        self._port.take_no_more()

    async def close(self) -> None:
        """Stop taking connections, and end the existing ones."""
        await self._port.close()
        if self._looking is not None:
            self._looking.cancel()
        await self._runner.cleanup()
        for each in self._port.protocols():
            if isinstance(each, FrameSocket):
                each.transport.abort()

    # --- requests ---

    def spoke(self, request: web.BaseRequest, *, is_socket: bool = False) -> None:
        """A whole request was read. With `is_socket`, messages follow on its connection."""
        self._port.spoke(request.protocol, is_socket=is_socket)

    def proven(self, request: web.BaseRequest) -> None:
        """The peer of a request has shown that it may be here."""
        self._port.proven(request.protocol)

    def hand_over(self, request: web.Request, socket: FrameSocket) -> web.StreamResponse:
        """Let `socket` read what arrives on the request's connection from now on. The request's
        handler must return what this returns.
        """
        self._port.hand_over(request.protocol, socket)
        socket.left = self._port.gone
        return hand_over(request, socket)

    def allows(self, request: web.BaseRequest) -> bool:
        """Count a request, and return whether its connection may make it. Call this once for each
        request.
        """
        if len(request.protocol._messages) > MOST_PIPELINED:  # noqa: SLF001 - it tells nobody
            return False
        return self._port.allows(request.protocol)

    def rate_of(self, peer: str, a_second: float, at_once: int) -> RateBound:
        """The bound of a new connection, which is tighter if a flood recently came from its
        address.
        """
        return self._port.rate_of(peer, a_second, at_once)

    def flooded(self, peer: str) -> None:
        """A peer sent more than it may."""
        self._port.flooded(peer)


def _unfinished(handler: web.RequestHandler | FrameSocket) -> Unfinished:
    assert isinstance(handler, web.RequestHandler), "sockets have other bounds"
    request = handler._current_request  # noqa: SLF001 - it tells nobody
    if request is None or request.content.is_eof():
        return None
    return request.content, request.content.total_bytes


def logger_of(refused: Refused) -> logging.Logger:
    """The logger for aiohttp. Errors that a peer caused go to `refused` instead."""

    def is_ours(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError | web.RequestPayloadError):
            return True
        what = " ".join(str(error).removeprefix("400, message:").split())
        peer = str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""
        refused(peer, f"what it sent is not HTTP: {what[:100]}")
        return False

    logger = logging.Logger("aiohttp.server")  # noqa: LOG001 - of this listener, with its filter
    logger.parent = logging.getLogger(logger.name)
    logger.addFilter(is_ours)
    return logger
