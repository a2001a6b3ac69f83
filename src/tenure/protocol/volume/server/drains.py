"""Ranges that are withdrawn before they go (V12).

A range that goes to another server leaves no lease behind: each holder is told once, and the server
waits for them as for a write. If the state moves too, the range is served meanwhile.
"""

from tenure.base.instants import FAR_FUTURE
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.server.writes import Acknowledgements


class Draining:
    """A range that is withdrawn."""

    __slots__ = ("is_lost", "is_over", "number", "range", "served", "taken_back", "to_come")

    def __init__(self, number: int, key_range: KeyRange, *, served: bool, is_lost: bool) -> None:
        self.number = number
        self.range = key_range
        self.is_lost = is_lost
        """Whether an earlier owner's state died, and reads of that loss still wait here (V13).
        Nothing is told of its writes, so that they wait at the next owner, too.
        """
        self.served = served
        """Whether objects are still read and written here until the belief in the range ends."""
        self.is_over = False
        """Whether nobody can still hit anything of it; no leases on it are given."""
        self.to_come = Acknowledgements()
        self.taken_back = False
        """Whether the range stays. Writers there still wait for those who were told."""


class Drains:
    """All drains of a server."""

    def __init__(self) -> None:
        self._by_number: dict[int, Draining] = {}
        self.next_at = FAR_FUTURE
        """When a drain may be due next; never later than it is."""

    def __len__(self) -> int:
        return len(self._by_number)

    def add(self, drain: Draining) -> None:
        """Add a drain."""
        self._by_number[drain.number] = drain

    def get(self, number: int) -> Draining | None:
        """The drain of that number."""
        return self._by_number.get(number)

    def all(self) -> list[Draining]:
        """All drains, in the order in which they were asked."""
        return list(self._by_number.values())

    def end(self, drain: Draining) -> None:
        """Forget a drain that is over."""
        del self._by_number[drain.number]

    def is_draining(self, key: Key) -> bool:
        """Whether the key is in a range that is being drained: then no more object leases on it are
        given.
        """
        return any(
            key in drain.range and not drain.taken_back for drain in self._by_number.values()
        )

    def clear(self) -> list[Draining]:
        """Forget all drains, and return them."""
        found = self.all()
        self._by_number.clear()
        return found
