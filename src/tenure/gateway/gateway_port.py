"""The gateway's port: bounded as every port of ours, with requests read by `ClientConnection`."""

import asyncio
import socket as sockets
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

from tenure.gateway.client_connection import ClientConnection
from tenure.gateway.client_request import ClientRequest
from tenure.transport.bounded_port import BACKLOG, BoundedPort, Refused
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.newcomers import IDLE_SECONDS

LIMITS = ConnectionLimits(buffer_bytes=None)
LOOKS_SECONDS = 5.0
"""How often connections without a request are looked at."""
Serve = Callable[[ClientRequest], Coroutine[Any, Any, None]]


class GatewayPort:
    """One port. See `ClientDoor`."""

    def __init__(
        self, serve: Serve, refused: Refused, tls: ssl.SSLContext | None, limits: ConnectionLimits
    ) -> None:
        self._serve = serve
        self._tls = tls
        self.scheme = "http" if tls is None else "https"
        self._port: BoundedPort[ClientConnection] = BoundedPort(
            self._connection, ClientConnection.unfinished, refused, refused, limits
        )
        self._looking: asyncio.Task[None] | None = None
        self._has_changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._port)

    def _connection(self) -> ClientConnection:
        return ClientConnection(self, asyncio.get_running_loop().time)

    def open(self, listening: sockets.socket) -> None:
        """Take connections from a socket that is bound; it is closed with the port."""
        listening.listen(BACKLOG)
        self._port.open(listening, self._tls)
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        # One look at all: a timer for each would be set again with every request.
        while True:
            await asyncio.sleep(LOOKS_SECONDS)
            self._close_idle(asyncio.get_running_loop().time() - IDLE_SECONDS)

    def _close_idle(self, since: float) -> None:
        for each in self._port.protocols():
            if each.idle_since is not None and each.idle_since <= since:
                each.close()

    async def close(self, drain: float) -> None:
        """Take no more, answer what has begun, for `drain` seconds at most, and end the rest."""
        await self._port.close()
        if self._looking is not None:
            self._looking.cancel()
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + drain
        for each in self._port.protocols():
            each.end_soon()
        while len(self._port) and (left := ends_at - loop.time()) > 0:
            self._has_changed.clear()
            await asyncio.wait({loop.create_task(self._has_changed.wait())}, timeout=left)
        for each in self._port.protocols():
            each.break_off()

    # --- for connections ---

    def spoke(self, connection: ClientConnection) -> None:
        self._port.spoke(connection)

    def switched(self, connection: ClientConnection) -> None:
        """See `ClientDoor`. Its silence is no fault from now on."""
        self._port.spoke(connection, is_socket=True)

    def gone(self, connection: ClientConnection) -> None:
        self._port.gone(connection)
        self._has_changed.set()

    def serve(self, request: ClientRequest) -> Coroutine[Any, Any, None]:
        return self._serve(request)
