"""The unread answers of a port: how many bytes wait to be sent, at all its connections together.

An answer of megabytes whose reader is slow, or is a gateway with a client that reads nothing, waits
in this process; a thousand of those would fill its memory, and its owner would lose its leases. All
that waits is added up now and then, while requests come. Where it is too much, connections are
ended, and those first whose peers have read nothing since the look before.
"""

from collections.abc import Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from tenure.base.instants import MILLISECOND_NS, Instant

PAUSE_NS = 100 * MILLISECOND_NS
"""In so long a busy member writes a few dozen answers of megabytes."""
EACH_NS = 20_000
"""How much longer the pause is for each connection: so a look takes a fiftieth of the time."""


class HasUnread(Hashable, Protocol):
    """A connection on which answers are sent."""

    def unread_bytes(self) -> int:
        """How many bytes wait there to be sent."""
        ...


A = TypeVar("A", bound=HasUnread)


class PortUnread(Generic[A]):
    """The unread answers of one port."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._sizes: dict[A, int] = {}
        """What waited at the last look, where anything did."""
        self._look_at = Instant(0)

    def is_due(self, now: Instant, connections: int) -> bool:
        """Whether to look again; if so, the next look is put off."""
        if now < self._look_at:
            return False
        self._look_at = Instant(now + PAUSE_NS + connections * EACH_NS)
        return True

    def too_many(self, connections: Iterable[A]) -> list[A]:
        """The connections to end."""
        sizes = {each: size for each in connections if (size := each.unread_bytes())}
        before, self._sizes = self._sizes, sizes
        excess = sum(sizes.values()) - self._most
        ended: list[A] = []
        if excess > 0:
            for each in sorted(sizes, key=lambda a: (sizes[a] < before.get(a, 0), -sizes[a])):
                ended.append(each)
                excess -= sizes[each]
                if excess <= 0:
                    break
        return ended
