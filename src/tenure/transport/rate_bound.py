"""How often something may happen: so many times at once, and so many a second after that."""

from tenure.base.instants import SECOND_NS, Instant


class RateBound:
    """Counts for one that is bounded."""

    __slots__ = ("_at", "_at_once", "_each_ns", "_left_ns")

    def __init__(self, a_second: float, at_once: int) -> None:
        self._each_ns = SECOND_NS / a_second
        self._at_once = at_once
        self._left_ns = at_once * self._each_ns
        self._at: Instant | None = None

    def allows(self, now: Instant) -> bool:
        """Whether it may happen once more, now; and count it."""
        if self._at is not None:
            most = self._at_once * self._each_ns
            self._left_ns = min(most, self._left_ns + (now - self._at))
        self._at = now
        if self._left_ns < self._each_ns:
            return False
        self._left_ns -= self._each_ns
        return True
