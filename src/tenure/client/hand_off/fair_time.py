"""The time by which timed values end, and none ends too early.

Wall time is unsuitable: somebody may set it, and the clocks of two hosts differ. So each process
starts at wall time, and counts on with a clock that nobody sets. When a range moves, the giving
process tells its time, and the taking process goes back to that time if its own is ahead. So this
time may be late, but it never runs ahead of the time that has passed since a key was kept.
"""

from math import inf
from threading import Lock

from tenure.base.instants import SECOND_NS
from tenure.runtime.clock import Clock, boot_clock


class FairTime:
    """The fair time of one process. From any thread."""

    def __init__(self, clock: Clock = boot_clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._ahead = inf
        """How far it is ahead of the clock; infinite until it is asked for, or told."""

    def now(self, wall: float) -> float:
        """Return the time in seconds; `wall` is the wall time. The result is never later than
        `wall`.
        """
        return self._at_most(wall)

    def told(self, theirs: float) -> None:
        """Another process has just told its time: do not run ahead of it."""
        self._at_most(theirs)

    def known(self) -> float:
        """Return the time to tell another process; 0 if nothing here uses this time."""
        return 0.0 if self._ahead == inf else self._at_most(inf)

    def _at_most(self, time: float) -> float:
        with self._lock:
            clock = self._clock() / SECOND_NS
            self._ahead = min(self._ahead, time - clock)
            return clock + self._ahead
