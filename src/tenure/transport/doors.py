"""Where clients come in: connections of bytes, as the server's side has them.

A door is opened in the event loop in which its listener is called. It knows no protocol: the
listener closes a connection whose bytes it cannot read, and gives the reason.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

ShowsPage: TypeAlias = Callable[[str, str], tuple[bytes, str] | None]
"""Of a path, and the types that are accepted: a body and its type; None where nothing is there."""


class Connection(Protocol):
    """A client's connection, as the server's side has it."""

    @property
    def version(self) -> int:
        """The version of the protocol that is spoken on it."""
        ...

    @property
    def peer(self) -> str:
        """Where the client is, to be shown."""
        ...

    def send(self, data: bytes) -> None:
        """Send bytes to the client; to one that is gone they are lost."""
        ...

    def close(self, why: str) -> None:
        """Close the connection, with the reason that the client is to be told."""
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
        """The connection is gone. Not called where this side closed it."""
        ...


class DoorGate(Protocol):
    """Decides who may come in at a door."""

    def admits(self, shown: str) -> bool:
        """Whether a client that shows this token, as HTTP has it, may come in, and stay."""
        ...


class Door(Protocol):
    """One place at which clients come in."""

    is_reachable: bool
    """Whether others than this process may come in."""

    async def open(self, where: str, listener: Listener) -> str:
        """Listen at "HOST:PORT", port 0 being one that is free; the URL under which that is
        reached. Raises OSError where it cannot be listened.
        """
        ...

    def show(self, page: ShowsPage) -> None:
        """Answer whoever looks at it with a browser; to be said before `open`."""
        ...

    async def close(self, why: str) -> None:
        """Stop listening, and close every connection with that reason."""
        ...
