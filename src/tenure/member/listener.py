"""The listener that each member has for itself.

Workers of one server share a port, and the kernel chooses which of them gets a connection. So
requests for one worker reach it through a port of its own. The listener goes on after the server
has closed the shared port, while the member hands over its keys.
"""

import asyncio
import socket
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from tenure.base.hosts import is_every_address, is_loopback
from tenure.base.names import shown
from tenure.base.origin import parse
from tenure.client.arguments import LAST_PORT, checked_address
from tenure.errors import ConfigurationError
from tenure.member.asgi import PROBE, App, Receive, Scope, Send
from tenure.member.guarded_asgi import CONNECTION, guarded
from tenure.member.joined_writes import JoinedWrites
from tenure.transport.bounded_port import BACKLOG, BoundedPort, Unfinished, log_refused
from tenure.transport.connection_limits import MOST_CONNECTIONS, ConnectionLimits
from tenure.transport.credentials import NOTHING, Credentials
from tenure.transport.fair_turns import FairTurns
from tenure.transport.port_guard import PortGuard

if TYPE_CHECKING:
    from uvicorn import Server

CLOSE_SECONDS = 5.0
"""How long requests may go on once everything is handed over."""
STUCK_SECONDS = 60.0
"""How long a client may take: a member that relays for a slow client is as slow. Web servers have
the same bound.
"""
MOST_HEAD_BYTES = 65_536
"""The most bytes of a request's head, as with h11. uvicorn bounds none that httptools reads."""
LIMITS = ConnectionLimits(
    of_a_peer=MOST_CONNECTIONS,  # one host may have all members
    stuck_seconds=STUCK_SECONDS,
    buffer_bytes=None,
)


def checked_listen(
    given: object, address: str | None, *, insecure: bool, name: str = "listen"
) -> str:
    """Return where a member listens for the others; `insecure` if no stranger can connect, or the
    caller accepts that.

    Raises ConfigurationError if it cannot listen there.
    """
    host, _, port = given.rpartition(":") if isinstance(given, str) else ("", "", "")
    if not (host and port.isdecimal() and int(port) <= LAST_PORT):
        raise ConfigurationError(
            f'{name} is "HOST:PORT", port 0 for one that is free, not {shown(given)}; write it '
            f'like {name}="127.0.0.1:0"'
        )
    host = host.strip("[]")
    if address is None and is_every_address(host):
        raise ConfigurationError(
            f"{name}={given!r} stands for every address of this machine, and the other members "
            'need one that they can reach: pass it, for example address="http://10.0.0.7:9000"'
        )
    if not insecure and not is_loopback(host):
        raise ConfigurationError(
            f"a member listens on {host}, which other machines reach, and whoever connects can "
            "pretend to be a member: give it certificates and demand them of others, with "
            "credentials=Credentials(ca=..., cert=..., key=..., mutual=True), listen on loopback "
            f'with {name}="127.0.0.1:0", or say with insecure=True that everybody on that network '
            "is trusted"
        )
    return str(given)


def checked_member_address(address: str | None) -> str | None:
    """Return the URL where the other members reach this one, if it was given."""
    if address is None:
        return None
    parse(checked_address(address), "address")
    return address.rstrip("/")  # paths are put behind it


def bound(listen: str) -> socket.socket:
    """A socket for `listen`, which is checked already. Raises ConfigurationError if it is taken."""
    host, _, port = listen.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because loops set TCP_NODELAY only on a socket that says that it is TCP:
    # without it a request waits tens of milliseconds for an acknowledgement.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host.strip("[]"), int(port)))
    except OSError as error:
        found.close()
        raise ConfigurationError(
            f"a member cannot listen on {listen}: {error}. Let it choose a free port, as in "
            'listen="127.0.0.1:0"'
        ) from None
    return found


def url_of(listening: socket.socket, scheme: str) -> str:
    """The URL at which it is reached."""
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class MemberListener(Protocol):
    """Serves an application at an address of this member alone, in the running event loop."""

    url: str

    async def start(self) -> None: ...
    async def stop(self) -> None:
        """Answer what has begun, and close. A second time does nothing."""
        ...


class OwnListener:
    """Serves `app` at a socket of its own, in the running event loop: with TLS, where `credentials`
    have a certificate.

    Raises ConfigurationError if it cannot listen there.
    """

    def __init__(
        self,
        app: App,
        listen: str,
        credentials: Credentials = NOTHING,
        limits: ConnectionLimits = LIMITS,
        guard: PortGuard | None = None,
    ) -> None:
        self._listening = bound(listen)
        self._credentials = credentials
        self.url = url_of(self._listening, credentials.scheme)
        self._server = _server(in_turn(app if guard is None else guarded(app, guard)))
        limits = replace(limits, knows_peers=guard is not None)
        self._port = BoundedPort[Any](
            self._connection, _unfinished, log_refused, log_refused, limits
        )
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen."""
        # What `Server.serve` does, but for the signals, which are the shared server's, and for the
        # connections, which a port takes that has bounds.
        server = self._server
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        server.servers = []
        server.started = True
        self._listening.listen(BACKLOG)
        self._port.open(self._listening, self._credentials.for_listening())
        self._running = asyncio.get_running_loop().create_task(server.main_loop())

    async def stop(self) -> None:
        """Answer what has begun, and close. A second time does nothing."""
        if self._running is None:
            self._listening.close()
            return
        if self._server.should_exit:
            return
        self._server.should_exit = True
        with suppress(asyncio.CancelledError):
            await self._running
        await self._port.close()
        await self._server.shutdown()

    def _connection(self) -> Any:  # noqa: ANN401  # of one of uvicorn's classes
        """A connection of uvicorn's, which tells the port what becomes of it."""
        port, server = self._port, self._server
        config = server.config
        made: Any = config.http_protocol_class(  # type: ignore[call-arg]  # typed as any protocol
            config=config, server_state=server.server_state, app_state={}
        )
        # The shared port logs relayed requests already, and probes come all the time.
        # `access_log=False` would take the handlers from uvicorn's logger, which that server uses.
        made.access_log = False
        made.heard = made.head = 0
        made.is_proven, made.came_in = False, partial(port.proven, made)
        receive, serve, socket = made.data_received, made.app, made.ws_protocol_class
        begin = made.connection_made

        def connection_made(transport: asyncio.Transport) -> None:
            begin(transport)
            made.transport = JoinedWrites(transport)

        def data_received(data: bytes) -> None:
            made.heard += len(data)
            receive(data)
            made.head = made.head + len(data) if _is_between(made.cycle) else 0
            if made.head > MOST_HEAD_BYTES and not made.transport.is_closing():
                made.transport.abort()

        def app(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
            port.spoke(made)
            scope[CONNECTION] = made
            return serve(scope, receive, send)  # type: ignore[no-any-return]

        def app_of_socket(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
            scope[CONNECTION] = made
            return serve(scope, receive, send)  # type: ignore[no-any-return]

        def upgraded(**given: Any) -> Any:  # noqa: ANN401
            port.spoke(made, is_socket=True)
            made.transport = made.transport.plain
            upgrade = told_when_lost(socket(**given))
            upgrade.app = app_of_socket
            return upgrade

        def told_when_lost(protocol: Any) -> Any:  # noqa: ANN401
            lose = protocol.connection_lost

            def connection_lost(error: Exception | None) -> None:
                lose(error)
                port.gone(made)

            protocol.connection_lost = connection_lost
            return protocol

        made.connection_made, made.data_received, made.app = connection_made, data_received, app
        made.ws_protocol_class = upgraded if socket is not None else None
        return told_when_lost(made)


def in_turn(app: App) -> App:
    """The application, of which one request begins in each pass of the loop. A gateway may bring a
    thousand at once: if all began in one pass, and each wrote megabytes, nothing else would run for
    half a minute, the member would not answer its own probe, and lose its leases.
    """
    turns = FairTurns()

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != PROBE:
            await turns.wait()
        await app(scope, receive, send)

    return serve


def _is_between(cycle: Any) -> bool:  # noqa: ANN401
    """Whether what comes is of no request whose head is there."""
    return cycle is None or (cycle.response_complete and not cycle.more_body)


def _unfinished(connection: Any) -> Unfinished:  # noqa: ANN401
    """The port bounds the wait for the first request, and uvicorn that between two requests."""
    cycle = connection.cycle
    if cycle is None:
        return None
    is_idle = connection.timeout_keep_alive_task is not None
    is_heard = is_idle if cycle.response_complete else not cycle.more_body
    return None if is_heard else (cycle, connection.heard)


def _server(app: App) -> "Server":
    try:
        from uvicorn import Config, Server  # noqa: PLC0415  # only members need it
    except ImportError:
        raise ConfigurationError(
            "a Member listens by uvicorn, which is not installed: pip install 'tenure[asgi]'"
        ) from None
    config = Config(
        app,
        lifespan="off",
        log_config=None,
        proxy_headers=False,
        # The member that relays an answer adds both of these itself.
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=int(CLOSE_SECONDS),
    )
    return Server(config)
