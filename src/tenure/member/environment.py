"""The environment of a member: a listener of its own, and a way to the listeners of the others.

In production these are always the same. The test kit replaces them by ones in memory; the member,
its relay and the application are the same as in production.
"""

from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from tenure.member.aiohttp.session import MemberSession, member_session
from tenure.member.asgi import App
from tenure.member.forwarding import KEEP_ALIVE_SECONDS, Forwarding, KeptConnections
from tenure.member.listener import MemberListener, OwnListener
from tenure.transport.credentials import Credentials
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.port_guard import PortGuard

if TYPE_CHECKING:
    from tenure.member.aiohttp.listener import AiohttpDoor


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

    def session(self) -> MemberSession:
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
        from tenure.member.aiohttp.listener import AiohttpListener  # noqa: PLC0415  # loads servers

        return AiohttpListener(door, listen, credentials, guard=guard)

    def session(self) -> MemberSession:
        return member_session(KEEP_ALIVE_SECONDS)

    def forwarding(self, credentials: Credentials, secret: PoolSecret) -> Forwarding:
        return KeptConnections(credentials, secret)


MEMBERS: ContextVar[MemberEnvironment | None] = ContextVar("tenure.member", default=None)
"""The environment of each Member that is entered in this context."""


def member_environment() -> MemberEnvironment:
    """The environment of a member that is entered here."""
    return MEMBERS.get() or NetworkOfMembers()
