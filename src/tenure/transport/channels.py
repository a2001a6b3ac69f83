"""What a channel promises: bytes between two owners, in order, while both read.

- A message arrives whole, after those sent before it, or not at all: then the channel is lost, and
  both sides are told so by their next `send` or `receive`.
- `send` waits while the other side does not read: the amount under way is bounded, beside what one
  `send` was given.
- Whatever ends a channel, `receive` and `send` raise `ChannelLost`, with why.
- When `close` has returned, nothing of the channel is kept, even if the other side reads nothing.
- `serve` is called for each channel that is opened; when it returns or raises, that channel is
  closed.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from tenure.errors import TenureError


class ChannelLost(TenureError):
    """A channel could not be made, broke, or was closed by the other side."""


class Channel(Protocol):
    """One end of a channel, for one task that sends and one that receives, in one loop."""

    peer: str
    """The other end: the peer's host at the listening end, the URL at the connecting end."""

    async def send(self, *messages: bytes) -> None:
        """Send some messages."""
        ...

    async def receive(self) -> bytes:
        """The next message."""
        ...

    async def close(self) -> None:
        """Close it; a second time does nothing."""
        ...


Serve: TypeAlias = Callable[[Channel], Awaitable[None]]


class Channels(Protocol):
    """Channels of one owner, in the running event loop."""

    async def listen(self, where: str, serve: Serve, address: str | None = None) -> str:
        """Listen at "HOST:PORT", and return the URL that leads there. Port 0 means any free port.
        `address` is another URL by which others reach it. Raises OSError if listening fails.
        """
        ...

    async def connect(self, url: str) -> Channel:
        """Open a channel to the listener at `url`. Raises ChannelLost if nobody listens there, or
        if these channels were closed.
        """
        ...

    async def close(self) -> None:
        """Stop listening, and close every channel, even if cancelled."""
        ...
