"""The time by which things end after a while, and none too early.

The time on the wall will not do: somebody may set it, and the clocks of two hosts differ. So each
process counts with a clock that nobody sets, from where the wall began. When a range moves, the
process that gives it says how late it is there, and the other one goes back to that if it is ahead.
So this time may be late, and it never runs ahead of what has passed since a key was kept.
"""

from math import inf
from threading import Lock

from tenure.base.instants import SECOND_NS
from tenure.runtime.clock import Clock, boot_clock


class FairTime:
    """Of one process. From any thread."""

    def __init__(self, clock: Clock = boot_clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._ahead = inf
        """By how much it is ahead of the clock; infinite where it was never asked for, or told."""

    def now(self, wall: float) -> float:
        """The time in seconds, where it is `wall` on the wall. It is never more."""
        return self._at_most(wall)

    def told(self, theirs: float) -> None:
        """What another process said just before is not exceeded."""
        self._at_most(theirs)

    def known(self) -> float:
        """The time to tell another process; 0 where nothing here goes by it."""
        return 0.0 if self._ahead == inf else self._at_most(inf)

    def _at_most(self, time: float) -> float:
        with self._lock:
            clock = self._clock() / SECOND_NS
            self._ahead = min(self._ahead, time - clock)
            return clock + self._ahead
