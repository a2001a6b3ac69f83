"""The environment of a member: a listener of its own, and a way to the listeners of the others.

In production these are always the same. The test kit replaces them by ones in memory; the member,
its relay and the application are the same as in production.
"""

from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from tenure.member.asgi import App
from tenure.member.forwarding import KEEP_ALIVE_SECONDS, Forwarding, KeptConnections
from tenure.member.listener import MemberListener, OwnListener
from tenure.transport.credentials import Credentials
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.port_guard import PortGuard
from tenure.transport.read_size import SmallBlocksSocket

if TYPE_CHECKING:
    from tenure.member.aiohttp_listener import AiohttpDoor

ADDED_BY_AIOHTTP = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Headers that aiohttp would add to requests without them, and must not add to relayed requests."""


class MemberEnvironment(Protocol):
    """The way in which a member listens, and reaches the others."""

    def listener(
        self, app: App, listen: str, credentials: Credentials, guard: PortGuard
    ) -> MemberListener:
        """Serves `app`, once it is started, at "HOST:PORT", to whom the guard lets in. Raises
        ConfigurationError if it cannot listen there.
        """
        ...

    def aiohttp_listener(
        self, door: "AiohttpDoor", listen: str, credentials: Credentials, guard: PortGuard
    ) -> MemberListener:
        """The same for an application of aiohttp."""
        ...

    def session(self) -> ClientSession:
        """The session with which the member relays WebSockets, and asks its own listener."""
        ...

    def forwarding(self, credentials: Credentials, secret: PoolSecret) -> Forwarding:
        """The connections by which the member relays requests."""
        ...


class NetworkOfMembers:
    """Listens and connects by sockets."""

    def listener(
        self, app: App, listen: str, credentials: Credentials, guard: PortGuard
    ) -> MemberListener:
        return OwnListener(app, listen, credentials, guard=guard)

    def aiohttp_listener(
        self, door: "AiohttpDoor", listen: str, credentials: Credentials, guard: PortGuard
    ) -> MemberListener:
        from tenure.member.aiohttp_listener import AiohttpListener  # noqa: PLC0415  # loads servers

        return AiohttpListener(door, listen, credentials, guard=guard)

    def session(self) -> ClientSession:
        return ClientSession(
            connector=TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=ADDED_BY_AIOHTTP,
            timeout=ClientTimeout(total=None),
            ws_response_class=SmallBlocksSocket,
        )

    def forwarding(self, credentials: Credentials, secret: PoolSecret) -> Forwarding:
        return KeptConnections(credentials, secret)


MEMBERS: ContextVar[MemberEnvironment | None] = ContextVar("tenure.member", default=None)
"""The environment of each Member that is entered in this context."""


def member_environment() -> MemberEnvironment:
    """The environment of a member that is entered here."""
    return MEMBERS.get() or NetworkOfMembers()
