"""Readers that are stopped between any two steps of a hit, while the world goes on (V1).

A reader's thread may be stopped anywhere. In a simulated world nothing runs in parallel; so each
step of a reader asks whether the reader is to be stopped here, and if so, lets time go on before it
returns.
"""

from collections.abc import Callable

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.volume.client.entries import CachedObject, Entries, ReadersLease
from tenure.protocol.volume.messages import AsOf, Value

Between = Callable[[], None]


class WatchedLease(ReadersLease):
    """A volume lease whose readers may be stopped once they have read its end."""

    __slots__ = ("between", "ends")

    def __init__(self, between: Between) -> None:
        self.between = between
        self.ends = Instant(0)
        super().__init__()

    @property
    def until(self) -> Instant:
        """When the lease ends. A reader may be stopped after it has read this."""
        ends = self.ends
        self.between()
        return ends

    @until.setter
    def until(self, value: Instant) -> None:
        self.ends = value


class WatchedObject(CachedObject):
    """An entry whose readers may be stopped once they have seen whether it is live."""

    __slots__ = ("between", "lives")

    def __init__(
        self,
        between: Between,
        lease: ReadersLease,
        until: Instant,
        as_of: AsOf,
        value: Value | None,
    ) -> None:
        self.between = between
        self.lives = True
        super().__init__(lease, until, as_of, value)

    @property
    def is_live(self) -> bool:
        """Whether the entry is live. A reader may be stopped after it has read this."""
        lives = self.lives
        self.between()
        return lives

    @is_live.setter
    def is_live(self, value: bool) -> None:
        self.lives = value


class Watched:
    """Makes entries whose readers can be stopped."""

    def __init__(self, between: Between) -> None:
        self.between = between

    def lease(self) -> ReadersLease:
        """Make a volume lease."""
        return WatchedLease(self.between)

    def entry(
        self, lease: ReadersLease, until: Instant, as_of: AsOf, value: Value | None
    ) -> CachedObject:
        """Make an entry."""
        return WatchedObject(self.between, lease, until, as_of, value)


class WatchedObjects(dict[Key, CachedObject]):
    """Entries by key, whose readers can be stopped once they have taken one."""

    def __init__(self, between: Between) -> None:
        super().__init__()
        self.between = between

    def get(self, key: Key, default: CachedObject | None = None) -> CachedObject | None:  # type: ignore[override]
        """Return the entry. A reader may be stopped after it has taken it."""
        found = super().get(key, default)
        self.between()
        return found


class WatchedEntries(Entries):
    """All entries of a cache, whose readers may be stopped at every step."""

    def __init__(self, between: Between) -> None:
        self._between = between
        self._is_reading = False
        super().__init__(Watched(self._stop))
        self.objects = WatchedObjects(self._stop)

    def _stop(self) -> None:
        if self._is_reading:
            self._is_reading = False  # what happens meanwhile is no reader's step
            self._between()
            self._is_reading = True

    def hit(self, key: Key, clock: Callable[[], Instant]) -> CachedObject | None:
        """Look for an entry as a reader does."""
        self._is_reading = True
        try:
            return super().hit(key, clock)
        finally:
            self._is_reading = False

    @staticmethod
    def ends(lease: ReadersLease) -> Instant:
        """When a volume lease ends, for callers that are not readers."""
        assert isinstance(lease, WatchedLease)
        return lease.ends

    def would_hit(self, key: Key, now: Instant) -> bool:
        """Whether a reader that is not stopped would hit."""
        found = self.objects.get(key)
        if not isinstance(found, WatchedObject) or not isinstance(found.lease, WatchedLease):
            return False
        return found.lives and now < found.lease.ends and now < found.until
