"""One socket, as its entity knows it: what has come from its client, and what is on its way there.

It never changes, as the envelope that it is in never does.
"""

from typing import Any, TypeAlias

import msgspec

Frame: TypeAlias = str | bytes
"""The content that a socket sends or gets at a time."""

UNREAD_BYTES = 1 << 18
"""The most bytes on their way to one socket. A client that does not read them is closed."""
AROUND_BYTES = 16
"""The bytes that each further frame counts for beside its content, as even empty ones take room."""
SLOW_CLIENT = 1013
"""The code with which a socket is closed whose client is too slow: try again later."""


class SocketEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A socket, as its entity knows it."""

    edge: str
    """The address of the process that has the socket."""
    attachment: bytes
    received: int = 0
    """The number of the last frame from the client that was handled."""
    sent: int = 0
    unread: tuple[Any, ...] = ()
    """The last frames to the client, up to `sent`, that the edge has not confirmed. Each is a
    Frame, which msgspec has no word for."""
    closing: int = 0
    """The code with which it is to be closed after these; 0 while it is open."""

    def after(self, received: int) -> tuple[Frame, ...] | None:
        """The frames after the one with this number; None if they are no longer kept."""
        missing = self.sent - received
        if not 0 <= missing <= len(self.unread):
            return None
        return self.unread[len(self.unread) - missing :]

    def confirmed(self, received: int) -> "SocketEntry":
        """The socket, if its edge has everything up to `received`."""
        rest = self.after(received)
        if rest is None or len(rest) == len(self.unread):
            return self
        return SocketEntry(self.edge, self.attachment, self.received, self.sent, rest, self.closing)

    def sending(self, frames: tuple[Frame, ...], closing: int = 0) -> "SocketEntry":
        """The socket with more frames on their way, and closed after them if `closing` says so; it
        is closed without them if they are too many.
        """
        unread, sent = self.unread, self.sent
        if frames:
            all_of_them = (*unread, *frames) if unread else frames  # which others share
            size = sum(map(len, all_of_them)) + AROUND_BYTES * (len(all_of_them) - 1)
            if size <= UNREAD_BYTES:
                unread, sent = all_of_them, sent + len(frames)
            else:
                closing = closing or SLOW_CLIENT
        return SocketEntry(self.edge, self.attachment, self.received, sent, unread, closing)
