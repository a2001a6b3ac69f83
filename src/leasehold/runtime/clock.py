"""The clocks that owners, lookups and managers count on.

Whoever believes something for a time must count on a clock that does not stop when its machine
sleeps: a laptop that wakes after an hour must not think that its lease has just begun. On Linux that
is CLOCK_BOOTTIME; Python's own `time.monotonic` stops in suspend there. On macOS CLOCK_MONOTONIC
counts sleep, and is what is used where there is no CLOCK_BOOTTIME.
"""

import time
from typing import Protocol

from leasehold.base.instants import Instant

_CLOCK_ID: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """A reading of this process's clock."""

    def __call__(self) -> Instant:
        """Now, in nanoseconds; never less than before."""
        ...


def boot_clock() -> Instant:
    """Now, on a clock that goes on while the machine sleeps."""
    return Instant(time.clock_gettime_ns(_CLOCK_ID))
