"""One port that speaks HTTP: who comes in, how many at once, and how long they may be silent.

asyncio's own server takes every connection, hundreds at a time, and tells nobody before TLS is
agreed on. Whoever opens connections and says nothing would then take the files that this process
may open, until nobody else can connect, nor this process to others; and then no owner is renewed.
So connections are taken here one by one, with everything else that the process has to do in
between, and are counted before anything is said on them. `newcomers` has those that say nothing.

aiohttp logs a stack trace of every request that is no HTTP. Anybody can send those, and fill a
disk. Here they are told as what they are, in a line that whoever listens may leave out.
"""

import asyncio
import errno
import logging
import socket as sockets
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web
from aiohttp.http import HttpProcessingError

from tenure.runtime.clock import boot_clock
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.newcomers import IDLE_SECONDS, Newcomers
from tenure.transport.rate_bound import RateBound, RecentFloods

ACCEPT_AGAIN_SECONDS = 1.0
"""Until a connection is taken again when this process has no file left for one."""
TOLD_SECONDS = 1.0
"""A connection that is one too many is told so, and has so long to read it."""
MOST_TOLD = 64
"""So many at once: each takes one of our files for that long."""
MOST_PIPELINED = 16
"""Requests that a peer sends before the first is answered. No client of ours sends two, and aiohttp
takes apart and keeps whatever there is, thousands in one go."""
RECEIVED_BYTES = 65_536
BACKLOG = 1024
"""Connections that the kernel keeps until they are taken: after a failover all clients come at
once."""
_log = logging.getLogger("tenure.transport")
_NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


LIMITS = ConnectionLimits()
PASSIVE = sockets.AI_PASSIVE


def log_refused(peer: str, why: str) -> None:
    """For listeners that nobody watches."""
    _log.debug("%s: %s", peer, why)


class TakenConnection:
    """A connection that was taken."""

    __slots__ = ("is_socket", "peer", "protocol", "rate", "task", "unread")

    def __init__(self, peer: str, protocol: web.RequestHandler, rate: RateBound | None) -> None:
        self.rate = rate
        self.peer = peer
        self.protocol = protocol
        self.task: asyncio.Task[None] | None = None
        self.is_socket = False
        """A WebSocket has a heartbeat, and a bound for what may wait for its peer."""
        self.unread = 0
        """What the peer had not read when that was last looked at."""

    def end(self) -> bool:
        """Cut it off; False where it has ended already."""
        transport = self.protocol.transport
        if transport is None:  # TLS is not agreed on yet
            return self.task is not None and self.task.cancel()
        if transport.is_closing():
            return False
        transport.abort()
        return True


class HttpListener:
    """Serves an aiohttp application at one port.

    `refused` is told of whoever is refused, and why; `silent` of whoever said nothing. `cancels`
    says that a request whose client has gone is carried out no further.
    """

    def __init__(
        self,
        app: web.Application,
        refused: Callable[[str, str], object],
        silent: Callable[[str, str], object],
        limits: ConnectionLimits = LIMITS,
        ends_seconds: float = 2.0,
        *,
        cancels: bool = False,
    ) -> None:
        self.limits = limits
        self._refused = refused
        self._most, self._most_of_a_peer = limits.most, limits.most_of_a_peer
        self._newcomers = Newcomers[TakenConnection](
            silent, limits.silent_seconds, limits.most_silent
        )
        self._arrivals: dict[web.RequestHandler, TakenConnection] = {}
        self._of_peer: Counter[str] = Counter()
        self._floods = RecentFloods()
        self._told: set[sockets.socket] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._tls: ssl.SSLContext | None = None
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            handler_cancellation=cancels,
            shutdown_timeout=ends_seconds,
            keepalive_timeout=IDLE_SECONDS,
            logger=_logger(refused),
            auto_decompress=False,  # nobody of ours compresses, and little can become very much
        )

    @property
    def silent_seconds(self) -> float:
        """For TLS, and for a whole request."""
        return self.limits.silent_seconds

    def __len__(self) -> int:
        return len(self._arrivals)

    # --- opening, closing ---

    async def prepare(self) -> None:
        """Start the application."""
        await self._runner.setup()
        server = self._server
        tell_lost = server.connection_lost

        def lost(handler: web.RequestHandler, error: BaseException | None = None) -> None:
            tell_lost(handler, error)
            self._gone(handler)

        # aiohttp has no other way to say that a connection has ended.
        server.connection_lost = lost  # type: ignore[method-assign, assignment]

    def open(self, listening: sockets.socket, tls: ssl.SSLContext | None) -> None:
        """Take connections from a socket that is bound, and closed with this listener."""
        listening.settimeout(0)
        if self.limits.buffer_bytes is not None:
            listening.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, self.limits.buffer_bytes)
        self._tls = tls
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._take(listening)),
            loop.create_task(self._watch()),
        ]
        # Not by the task: one that is cancelled before its first step never runs.
        self._tasks[0].add_done_callback(lambda _: listening.close())

    async def listen(
        self, host: str, port: int, tls: ssl.SSLContext | None, *, reuse_port: bool = False
    ) -> int:
        """Prepare, bind an address and open; the port. Raises OSError where it cannot be bound."""
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
        """Those that there are go on until `close`."""
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Take none any more, and end those that there are."""
        self.take_no_more()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._newcomers.close()
        beginning = [each.task for each in self._arrivals.values() if each.task is not None]
        for task in beginning:
            task.cancel()
        if beginning:
            await asyncio.wait(beginning)
        await self._runner.cleanup()
        for told in list(self._told):
            self._hang_up(told)

    @property
    def _server(self) -> web.Server:
        assert self._runner.server is not None
        return self._runner.server

    # --- connections ---

    async def _take(self, listening: sockets.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno in _NO_FILES:
                    self._refused("", f"no connection can be taken: {error.strerror}")
                    await asyncio.sleep(ACCEPT_AGAIN_SECONDS)
                continue  # otherwise who came has gone already
            self._arrived(accepted, str(address[0]))
            await asyncio.sleep(0)  # where many come, it is the others' turn too

    def _arrived(self, accepted: sockets.socket, peer: str) -> None:
        if len(self._arrivals) >= self._most:
            self._turn_away(accepted, peer, f"there are {self._most} connections already")
            return
        if self._of_peer[peer] >= self._most_of_a_peer:
            why = f"there are {self._most_of_a_peer} connections from {peer} already"
            self._turn_away(accepted, peer, why)
            return
        limits = self.limits
        rate = None
        if limits.requests_a_second is not None:
            rate = self.rate_of(peer, limits.requests_a_second, limits.requests_at_once)
        arrival = TakenConnection(peer, self._server(), rate)
        self._arrivals[arrival.protocol] = arrival
        self._of_peer[peer] += 1
        self._newcomers.arrived(arrival)
        arrival.task = asyncio.get_running_loop().create_task(self._begin(arrival, accepted))

    async def _begin(self, arrival: TakenConnection, accepted: sockets.socket) -> None:
        seconds = None if self._tls is None else self.limits.silent_seconds
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: arrival.protocol, accepted, ssl=self._tls, ssl_handshake_timeout=seconds
            )
        except BaseException as error:
            accepted.close()
            if arrival.protocol.transport is None:
                self._gone(arrival.protocol)
            if not isinstance(error, OSError):  # of TLS, too: who came speaks another language
                raise
        finally:
            arrival.task = None

    def _gone(self, protocol: web.RequestHandler) -> None:
        arrival = self._arrivals.pop(protocol, None)
        if arrival is None:
            return
        self._newcomers.spoke(arrival)
        self._of_peer[arrival.peer] -= 1
        if not self._of_peer[arrival.peer]:
            del self._of_peer[arrival.peer]

    def spoke(self, request: web.Request, *, is_socket: bool = False) -> None:
        """A whole request was read; with `is_socket`, messages follow on its connection."""
        arrival = self._arrivals.get(request.protocol)
        if arrival is not None:
            arrival.is_socket = is_socket
            self._newcomers.spoke(arrival)

    def allows(self, request: web.Request) -> bool:
        """Whether its connection has not made too many requests; to be asked once for each."""
        if len(request.protocol._messages) > MOST_PIPELINED:  # noqa: SLF001 - it tells nobody
            return False
        arrival = self._arrivals.get(request.protocol)
        return arrival is None or arrival.rate is None or arrival.rate.allows(boot_clock())

    def rate_of(self, peer: str, a_second: float, at_once: int) -> RateBound:
        """The bound of a new connection: of less at once where a flood came from its address."""
        return RateBound(a_second, self._floods.at_once(peer, at_once, boot_clock()))

    def flooded(self, peer: str) -> None:
        """More came from `peer` than is allowed."""
        self._floods.add(peer, boot_clock())

    # --- one too many ---

    def _turn_away(self, accepted: sockets.socket, peer: str, why: str) -> None:
        self._refused(peer, why)
        if self._tls is not None or len(self._told) >= MOST_TOLD:
            accepted.close()
            return
        text = f"{why}; try again later\n".encode()
        head = (
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 5\r\n"
            f"Connection: close\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        with suppress(OSError):
            accepted.settimeout(0)
            accepted.send(head.encode() + text)
            accepted.shutdown(sockets.SHUT_WR)
        self._told.add(accepted)
        asyncio.get_running_loop().call_later(TOLD_SECONDS, self._hang_up, accepted)

    def _hang_up(self, told: sockets.socket) -> None:
        with suppress(OSError):  # what is unread at the end takes away what was sent
            told.recv(RECEIVED_BYTES)
        told.close()
        self._told.discard(told)

    # --- those that do not read ---

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.limits.stuck_seconds)
            for arrival in list(self._arrivals.values()):
                transport = arrival.protocol.transport
                if transport is None or arrival.is_socket:
                    continue
                unread = transport.get_write_buffer_size()
                if unread and unread == arrival.unread and arrival.end():
                    why = f"read nothing of its answer for {self.limits.stuck_seconds:g} s"
                    self._refused(arrival.peer, why)
                arrival.unread = unread


def _logger(refused: Callable[[str, str], object]) -> logging.Logger:
    """aiohttp's, but for what is the fault of whoever asked."""

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
