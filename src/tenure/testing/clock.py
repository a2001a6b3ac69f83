"""A clock that is turned by hand: tests of minutes take milliseconds, and come out the same.

Time stands still until it is turned. Turning goes from alarm to alarm, in their order, and lets the
effects of each come to rest before the next, so that nothing depends on how fast the machine is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from heapq import heappop, heappush

from tenure.base.instants import SECOND_NS, Instant, seconds
from tenure.runtime.clock import Timer

START = Instant(1_000 * SECOND_NS)
"""It is not 0, so that counting backwards from now stays above 0, as on a machine that has run."""
ROUNDS_TO_REST = 5
"""The turns of an event loop that a task needs: it is made, it runs, and its result is taken."""


class TurnedClock:
    """A `Clock`, and the `Timers` that go by it. For one event loop and its thread; reading is
    free.
    """

    def __init__(self) -> None:
        self._now = START
        self._alarms: list[tuple[Instant, int, _Alarm]] = []
        self._set = 0

    def __call__(self) -> Instant:
        return self._now

    def alarm(self, at: Instant, callback: Callable[[], None]) -> Timer:
        """See `Timers`. An alarm for now, or before, rings without the clock being turned."""
        if at <= self._now:
            return asyncio.get_running_loop().call_soon(callback)
        self._set += 1
        alarm = _Alarm(callback)
        heappush(self._alarms, (at, self._set, alarm))
        return alarm

    def jump(self, duration_seconds: float) -> None:
        """Let time pass without any alarm ringing: as for a process that is stopped."""
        self._now = Instant(self._now + seconds(duration_seconds))

    def step(self, until: Instant) -> bool:
        """Go on to the next alarm, but not past `until`, and ring it; False without an alarm."""
        while self._alarms and self._alarms[0][0] <= until:
            at, _, alarm = heappop(self._alarms)
            if alarm.callback is None:
                continue
            self._now = max(self._now, at)
            alarm.callback()
            return True
        self._now = max(self._now, until)
        return False

    def after(self, duration_seconds: float) -> Instant:
        """The instant so long from now."""
        return Instant(self._now + seconds(duration_seconds))

    async def turn(
        self, duration_seconds: float, rest: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Go on by so much, ringing what is due in order; `rest` waits until all is quiet."""
        until, rest = self.after(duration_seconds), rest or come_to_rest
        await rest()
        while self.step(until):
            await rest()


class _Alarm:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


async def come_to_rest(moved: Callable[[], int] = lambda: 0, rounds: int = ROUNDS_TO_REST) -> None:
    """Let the running loop go on until nothing has `moved` for some rounds."""
    quiet, last = 0, moved()
    while quiet < rounds:
        await asyncio.sleep(0)
        quiet, last = (quiet + 1 if moved() == last else 0), moved()
