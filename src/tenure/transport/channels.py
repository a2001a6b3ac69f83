"""What a channel promises: bytes between two owners, in order, while both read.

- A message arrives whole, after those sent before it, or not at all: then the channel is lost, and
  both sides are told so by their next `send` or `receive`.
- `send` waits while the other side does not read: the amount under way is bounded.
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
    """One end of a channel. For one task that sends and one that receives, in one loop."""

    peer: str
    """Where the other end is: a host for whoever listens, the URL for whoever connects."""

    async def send(self, data: bytes) -> None:
        """Send a message."""
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

    async def listen(self, where: str, serve: Serve) -> str:
        """Listen at "HOST:PORT", port 0 being one that is free; the URL under which that is
        reached. Raises OSError where it cannot be listened.
        """
        ...

    async def connect(self, url: str) -> Channel:
        """A channel to the listener at `url`. Raises ChannelLost if nobody listens, or these
        channels were closed.
        """
        ...

    async def close(self) -> None:
        """Stop listening, and close every channel, even if cancelled."""
        ...
