"""Messages of which some has arrived, and not all: how much of them is kept, and for how long.

Each connection may keep a whole message but for its last byte, and one peer may have many
connections. So what is kept is bounded for each token and for each address together: the message
that began first gives way, as honest ones end within a second or two. And a message must go on.
"""

from collections.abc import Hashable
from typing import NamedTuple, Protocol

from tenure.base.instants import Instant, in_seconds, seconds

KEPT_BYTES = 64 << 20
"""The most bytes that are kept for one token, or one address: four of the largest requests."""
FREE_BYTES = 64 << 10
"""What is kept of a smaller message is not counted, and no message of an owner at rest is larger.
"""
GRACE_NS = seconds(10)
BYTES_A_SECOND = 16 << 10
"""The least that must arrive of a message after the grace: the largest has a quarter of an hour."""


class Receives(Protocol):
    """A connection on which messages arrive."""

    def cut_off(self) -> None:
        """End the connection at once."""
        ...


class Begun(NamedTuple):
    """A message that has not ended."""

    whose: tuple[Hashable, ...]
    since: Instant
    size: int


class UnfinishedMessages:
    """All of one port."""

    def __init__(self) -> None:
        self._begun: dict[Receives, Begun] = {}
        """The one that began first is the first."""

    def __len__(self) -> int:
        return len(self._begun)

    def kept(self, by: Receives, whose: tuple[Hashable, ...], size: int, now: Instant) -> None:
        """So many bytes are kept there, for a peer that has these names."""
        if size <= FREE_BYTES:
            self._begun.pop(by, None)
            return
        before = self._begun.get(by)
        self._begun[by] = Begun(whose, now if before is None else before.since, size)
        for name in whose:
            self._make_room(name)

    def ended(self, by: Receives) -> None:
        """The connection is gone."""
        self._begun.pop(by, None)

    def is_stuck(self, by: Receives, now: Instant) -> bool:
        """Whether the message there does not go on."""
        begun = self._begun.get(by)
        if begun is None:
            return False
        due = BYTES_A_SECOND * in_seconds(now - begun.since - GRACE_NS)
        return begun.size < due

    def _make_room(self, name: Hashable) -> None:
        held = [(by, begun.size) for by, begun in self._begun.items() if name in begun.whose]
        left = sum(size for _, size in held)
        for by, size in held[:-1]:
            if left <= KEPT_BYTES:
                return
            left -= size
            del self._begun[by]
            by.cut_off()
