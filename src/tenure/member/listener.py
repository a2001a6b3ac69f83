"""The listener that each member has for itself.

Workers of one server share a port, and the kernel chooses which of them gets a connection. So what
belongs to one worker reaches it through a port of its own. The listener goes on when the server has
closed the shared port, while the member hands over its keys.
"""

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from tenure.base.hosts import is_every_address, is_loopback
from tenure.client.arguments import LAST_PORT
from tenure.errors import ConfigurationError
from tenure.member.asgi import App
from tenure.transport.credentials import NOTHING, Credentials

if TYPE_CHECKING:
    from uvicorn import Server

BACKLOG = 2048
CLOSE_SECONDS = 5.0
"""For requests that are being answered when everything is handed over."""


def checked_listen(given: object, address: str | None, *, insecure: bool) -> str:
    """Where a member listens for the others; `insecure` where strangers cannot come, or may.

    Raises ConfigurationError if it cannot listen there.
    """
    host, _, port = given.rpartition(":") if isinstance(given, str) else ("", "", "")
    if not (host and port.isdecimal() and int(port) <= LAST_PORT):
        raise ConfigurationError(
            f'listen is "HOST:PORT", port 0 for one that is free, not {given!r}; write it like '
            'listen="127.0.0.1:0"'
        )
    host = host.strip("[]")
    if address is None and is_every_address(host):
        raise ConfigurationError(
            f"listen={given!r} stands for every address of this machine, and the other members "
            'need one that they can reach: pass it, for example address="http://10.0.0.7:9000"'
        )
    if not insecure and not is_loopback(host):
        raise ConfigurationError(
            f"a member listens on {host}, which other machines reach, and whoever connects can "
            "pretend to be a member: give it certificates and demand them of others, with "
            "credentials=Credentials(ca=..., cert=..., key=..., mutual=True), listen on loopback "
            'with listen="127.0.0.1:0", or say with insecure=True that everybody on that network '
            "is trusted"
        )
    return str(given)


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
    """Where it is reached."""
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class MemberListener(Protocol):
    """Serves an application where this member alone is reached, in the running event loop."""

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

    def __init__(self, app: App, listen: str, credentials: Credentials = NOTHING) -> None:
        self._listening = bound(listen)
        self._credentials = credentials
        self.url = url_of(self._listening, credentials.scheme)
        self._server = _server(app)
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen."""
        # What `Server.serve` does, but for the signals: these are the shared server's.
        config = self._server.config
        config.load()
        config.ssl = self._credentials.for_listening()  # it knows only files that never change
        _log_no_access(config)
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=[self._listening])
        self._running = asyncio.get_running_loop().create_task(self._server.main_loop())

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
        await self._server.shutdown(sockets=[self._listening])


def _log_no_access(config: Any) -> None:  # noqa: ANN401  # uvicorn types it as a class
    """What is relayed is in the log of the shared port already, and probes come all the time.

    `access_log=False` would take the handlers from uvicorn's logger, which the shared server uses.
    """
    protocol = config.http_protocol_class

    def made(**given: Any) -> Any:  # noqa: ANN401
        connection = protocol(**given)
        connection.access_log = False
        return connection

    config.http_protocol_class = made


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
        backlog=BACKLOG,
        timeout_graceful_shutdown=int(CLOSE_SECONDS),
    )
    return Server(config)
