"""Where clients come in: connections of bytes, as the server's side has them.

A door is opened in the event loop in which its listener is called. It knows no protocol: the
listener closes a connection whose bytes it cannot read, and gives the reason.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

ShowsPage: TypeAlias = Callable[[str, str], tuple[bytes, str] | None]
"""Called with a path and the content types that are accepted. Returns a body and its type, or None
if there is no such page.
"""


class Connection(Protocol):
    """A client's connection, as the server sees it."""

    @property
    def version(self) -> int:
        """The version of the protocol that is spoken on it."""
        ...

    @property
    def peer(self) -> str:
        """The client's address, for display."""
        ...

    @property
    def whose(self) -> str:
        """The name under which is counted what the client causes: that of its token, or else its
        address.
        """
        ...

    def send(self, data: bytes) -> None:
        """Send bytes to the client. They are lost if the client is gone."""
        ...

    def close(self, why: str) -> None:
        """Close the connection, and tell the client the reason."""
        ...


class Listener(Protocol):
    """The server's side. All its methods are called in the loop in which it began to listen."""

    def connected(self, connection: Connection) -> None:
        """A client connected."""
        ...

    def received(self, connection: Connection, data: bytes) -> None:
        """A client sent bytes."""
        ...

    def disconnected(self, connection: Connection) -> None:
        """The connection is gone. Not called if this side closed it."""
        ...


class DoorGate(Protocol):
    """Decides who may come in at a door."""

    def admits(self, shown: str) -> bool:
        """Whether a client that shows this token, in the form of an HTTP header, may come in and
        stay.
        """
        ...

    def may_look(self, shown: str) -> bool:
        """Whether it may look at what the server shows of itself."""
        ...


class Door(Protocol):
    """One place at which clients come in."""

    is_reachable: bool
    """Whether other processes can connect."""

    async def open(self, where: str, listener: Listener, address: str | None = None) -> str:
        """Listen at "HOST:PORT", and return the URL that leads there. Port 0 means any free port.
        `address` is another URL by which others reach it. Raises OSError if listening fails.
        """
        ...

    def show(self, page: ShowsPage) -> None:
        """Show this page to browsers. Call this before `open`."""
        ...

    async def close(self, why: str) -> None:
        """Stop listening, and close every connection with this reason."""
        ...
