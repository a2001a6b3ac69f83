"""Answers that clients do not read: how many bytes of them are kept for one token or address.

Each connection has a bound of its own on what waits to be sent. A client with many connections
would multiply it, so all connections of a token share a bound, and so do those of an address. The
one at which most waits is ended.
"""

from collections.abc import Hashable
from typing import Protocol

UNREAD_BYTES = 256 << 20
"""The most bytes that wait for one token, or one address: some of the largest answers."""
FREE_BYTES = 64 << 10
"""What is kept at a connection with less is not counted: honest ones read as fast as they ask."""


class Sends(Protocol):
    """A connection at which answers wait."""

    @property
    def unread_bytes(self) -> int:
        """The bytes that wait there to be sent."""
        ...

    def cut_off(self) -> None:
        """End the connection at once."""
        ...


class UnreadAnswers:
    """All of one port."""

    def __init__(self) -> None:
        self._waiting: dict[Sends, tuple[Hashable, ...]] = {}
        """The connections at which something may wait, with the names of their clients."""

    def __len__(self) -> int:
        return len(self._waiting)

    def sent(self, by: Sends, whose: tuple[Hashable, ...]) -> None:
        """Something was sent on a connection of a client that has these names."""
        if by.unread_bytes <= FREE_BYTES:
            self._waiting.pop(by, None)
            return
        self._waiting[by] = whose
        for name in whose:
            self._make_room(name)

    def ended(self, by: Sends) -> None:
        """The connection is gone."""
        self._waiting.pop(by, None)

    def _make_room(self, name: Hashable) -> None:
        sizes = {by: by.unread_bytes for by, whose in self._waiting.items() if name in whose}
        left = sum(sizes.values())
        for by in sorted(sizes, key=sizes.__getitem__, reverse=True):
            if left <= UNREAD_BYTES:
                return
            left -= sizes[by]
            del self._waiting[by]
            by.cut_off()
