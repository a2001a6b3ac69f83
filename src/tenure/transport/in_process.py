"""Messages within one process, for tests: no sockets, but every message is really serialised.

If a message were handed over as an object, the effects of the codec would be hidden, and one side
could change what the other believes. So bytes are handed over, as by a network, and arrive later,
never during `send`. Each side may have an event loop, and a thread, of its own.
"""

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import Generic, NamedTuple, Protocol

import msgspec

from tenure.errors import RemoteProtocolError
from tenure.transport.contract import Lost, M, NeverConnected, Role
from tenure.transport.doors import Listener, ShowsPage
from tenure.transport.outgoing import older
from tenure.wire.versions import NEWEST

logger = logging.getLogger("tenure.transport")


class MemoryNetwork:
    """The listeners, by address."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._listening: dict[str, _Listening] = {}
        self._connections: dict[_Connection, None] = {}
        self._ports = count(20_000)
        self.carried = 0
        """How many messages and events were carried. While it stands still, nothing is under way.
        """

    def listen(self, manager: str, listener: Listener, newest: int = NEWEST) -> None:
        """Answer at the URL `manager`, in the running event loop, in versions up to `newest`."""
        self._listening[manager] = _Listening(listener, asyncio.get_running_loop(), newest)

    def free_port(self) -> int:
        """A port at which nobody has listened."""
        return next(self._ports)

    def fall_silent(self, manager: str, why: str = "connection lost") -> None:
        """Stop listening at `manager`: its unsent messages are lost, and its connections break."""
        self._listening.pop(manager, None)
        with self._lock:
            broken = [each for each in self._connections if each.manager == manager]
        for connection in broken:
            connection.close(why)

    def transport(self, role: Role[M], newest: int = NEWEST) -> "MemoryTransport[M]":
        """The transport of a client in this network that speaks versions up to `newest`."""
        return MemoryTransport(self, role, newest)

    def connect(self, manager: str, client: "_Client") -> "_Connection | None":
        """A connection to whoever listens at `manager`; None if nobody does."""
        found = self._listening.get(manager)
        if found is None:
            return None
        connection = _Connection(self, manager, client, found)
        with self._lock:
            self._connections[connection] = None
        return connection

    def forget(self, connection: "_Connection") -> bool:
        """Close the connection. Returns whether it was open."""
        with self._lock:
            return self._connections.pop(connection, self) is None

    def is_open(self, connection: "_Connection") -> bool:
        """Whether neither side has closed the connection."""
        return connection in self._connections

    def carry(
        self, loop: asyncio.AbstractEventLoop, arrive: Callable[..., None], *what: object
    ) -> None:
        """Call `arrive` in the thread of `loop`."""
        self.carried += 1
        try:
            loop.call_soon_threadsafe(arrive, *what)
        except RuntimeError:  # the loop is closed, and the receiver is gone
            logger.debug("nobody is there any longer for %s", arrive)


class _Listening(NamedTuple):
    listener: Listener
    loop: asyncio.AbstractEventLoop
    newest: int


class _Client(Protocol):
    loop: asyncio.AbstractEventLoop
    newest: int

    def arrived(self, connection: "_Connection", data: bytes) -> None: ...
    def ended(self, connection: "_Connection", why: str) -> None: ...


class _Connection:
    """The two ends of one connection."""

    def __init__(
        self,
        network: MemoryNetwork,
        manager: str,
        client: _Client,
        listening: _Listening,
    ) -> None:
        self.network = network
        self.manager = manager
        self.client = client
        self.listener = listening.listener
        self.loop = listening.loop
        self.version = min(client.newest, listening.newest)
        self.peer = self.whose = "this process"
        network.carry(self.loop, self.listener.connected, self)

    def send(self, data: bytes) -> None:
        self.network.carry(self.client.loop, self.client.arrived, self, data)

    def close(self, why: str) -> None:
        if self.network.forget(self):
            self.network.carry(self.client.loop, self.client.ended, self, why)

    def send_to_manager(self, data: bytes) -> None:
        self.network.carry(self.loop, self._arrive, data)

    def _arrive(self, data: bytes) -> None:
        if self.network.is_open(self):
            self.listener.received(self, data)

    def close_by_client(self) -> None:
        if self.network.forget(self):
            self.network.carry(self.loop, self.listener.disconnected, self)


class MemoryTransport(Generic[M]):
    """A `Transport` within one process."""

    def __init__(self, network: MemoryNetwork, role: Role[M], newest: int = NEWEST) -> None:
        self.network = network
        self.role = role
        self.newest = newest
        self._connections: dict[str, _Connection] = {}
        self._is_open = False

    def start(self, deliver: Callable[[str, M], None], lost: Lost) -> None:
        self.deliver = deliver
        self.lost = lost
        self.loop = asyncio.get_running_loop()
        self._is_open = True

    def send(self, manager: str, message: msgspec.Struct) -> None:
        encode = self.role.encode
        newest = encode(message, NEWEST)  # raises if the message is too large, connected or not
        if not self._is_open:
            return
        connection = self._connections.get(manager) or self.network.connect(manager, self)
        if connection is None:
            self.network.carry(self.loop, self._refused, manager)
            return
        self._connections[manager] = connection
        version = connection.version
        data = newest if version == NEWEST else older(message, encode, version)
        if data is not None:
            connection.send_to_manager(data)

    def _refused(self, manager: str) -> None:
        if self._is_open:
            self.lost(manager, NeverConnected("connection refused: nothing listens there"))

    def arrived(self, connection: _Connection, data: bytes) -> None:
        """Bytes arrived over one of our connections."""
        if self._connections.get(connection.manager) is not connection:
            return
        try:
            message = self.role.decode(data, connection.version)
        except RemoteProtocolError as error:
            logger.warning("closing the connection to %s: %s", connection.manager, error)
            connection.close_by_client()
            self.ended(connection, f"it sent what cannot be read: {error}")
        else:
            self.deliver(connection.manager, message)

    def ended(self, connection: _Connection, why: str) -> None:
        """One of our connections is gone."""
        if self._connections.get(connection.manager) is connection:
            del self._connections[connection.manager]
            self.lost(connection.manager, why)

    async def close(self) -> None:
        self._is_open = False
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close_by_client()


class MemoryDoor:
    """A `Door` within one process. Clients find it under the address at which it was opened."""

    is_reachable = False

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._url = ""

    async def open(self, where: str, listener: Listener, address: str | None = None) -> str:
        host, _, port = where.rpartition(":")
        self._url = f"http://{host}:{self._network.free_port() if port == '0' else port}"
        self._network.listen(self._url, listener)
        return self._url

    def show(self, page: ShowsPage) -> None:
        """See `Door.show`. No browser connects here."""

    async def close(self, why: str) -> None:
        self._network.fall_silent(self._url, why)
