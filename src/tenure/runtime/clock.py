"""The clocks that owners, lookups and managers count on, and alarms set by them.

A process that believes something for a time needs a clock that does not stop when its machine
sleeps: a laptop that wakes after an hour must not think that its lease has just begun. On Linux
that is CLOCK_BOOTTIME; Python's own `time.monotonic` stops in suspend there. On macOS
CLOCK_MONOTONIC counts sleep; it is used on systems without CLOCK_BOOTTIME.

An event loop sleeps by a clock that does stop in suspend. So an alarm looks at our clock at least
every few seconds, and sleeps again if it is too early.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol, cast

from tenure.base.instants import SECOND_NS, Instant

LONGEST_SLEEP_NS = 5 * SECOND_NS
"""The longest sleep between two looks at the clock: an alarm is at most this late after the machine
was suspended.
"""

_CLOCK_ID: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """A reading of this process's clock."""

    def __call__(self) -> Instant:
        """The present time in nanoseconds; never less than before."""
        ...


boot_clock = cast("Clock", partial(time.clock_gettime_ns, _CLOCK_ID))
"""Now, on a clock that goes on while the machine sleeps. Not a `def`: owners read it at each check,
and a function of Python's would cost as much again as the reading itself."""


def wall_us() -> int:
    """The wall clock, in microseconds since 1970."""
    return time.time_ns() // 1_000


class Timer(Protocol):
    """Something that will be called at an instant, unless it is cancelled before."""

    def cancel(self) -> None:
        """Do not call. After the call this does nothing."""
        ...


class Timers(Protocol):
    """A place to set alarms."""

    def __call__(self, at: Instant, callback: Callable[[], None]) -> Timer:
        """Call `callback` in the running event loop at `at`, or as soon after as can be."""
        ...


class LoopTimers:
    """Alarms that the running event loop rings, and that look at `clock`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def __call__(self, at: Instant, callback: Callable[[], None]) -> Timer:
        return _LoopAlarm(self.clock, at, callback)


class _LoopAlarm:
    def __init__(self, clock: Clock, at: Instant, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._at = at
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._handle = self._sleep(clock())

    def _sleep(self, now: Instant) -> asyncio.TimerHandle:
        sleep_ns = min(max(self._at - now, 0), LONGEST_SLEEP_NS)
        return self._loop.call_later(sleep_ns / SECOND_NS, self._ring)

    def _ring(self) -> None:
        now = self._clock()
        if now < self._at:
            self._handle = self._sleep(now)
        else:
            self._callback()

    def cancel(self) -> None:
        self._handle.cancel()
