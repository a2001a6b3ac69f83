"""A transport made unreliable: messages late, lost, doubled and out of order, from one seed.

It wraps any other, and does to its messages in both directions what networks, proxies and stopped
processes do. The end of a connection keeps its meaning. The same seed draws the same faults for the
same calls, and time is that of the timers: with a clock that is turned by hand, a test sees the
same run each time.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Generic, TypeAlias

import msgspec

from tenure.base.instants import Instant, seconds
from tenure.errors import ConfigurationError
from tenure.runtime.clock import Clock, LoopTimers, Timer, Timers
from tenure.transport.contract import Lost, M, Transport

_Pass: TypeAlias = Callable[[], None]


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages are treated badly, and how. Shares are of all messages, from 0 to 1."""

    drop: float = 0.0
    duplicate: float = 0.0
    """The share that arrives twice, the second time with a delay of its own."""
    reorder: float = 0.0
    """The share that takes up to `straggle_seconds` longer, while others overtake it."""
    delay_seconds: float = 0.0
    """Every message takes up to so long, and keeps its place."""
    straggle_seconds: float = 1.0

    def __post_init__(self) -> None:
        for name in ("drop", "duplicate", "reorder"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise ConfigurationError(f"{name} is a share from 0 to 1, not {share}")
        for name in ("delay_seconds", "straggle_seconds"):
            if getattr(self, name) < 0:
                raise ConfigurationError(f"{name} is 0 or more, not {getattr(self, name)}")


class FaultyTransport(Generic[M]):
    """A `Transport` over another, whose messages it treats badly."""

    def __init__(
        self,
        inner: Transport[M],
        faults: Faults,
        random: Random,
        clock: Clock,
        timers: Timers | None = None,
    ) -> None:
        self.inner = inner
        self.faults = faults
        self.random = random
        self.clock = clock
        self.timers = timers or LoopTimers(clock)
        self._lanes: dict[tuple[str, str], deque[_Pass]] = {}
        self._alarms: dict[int, Timer] = {}
        self._next_alarm = 0
        self._closed = False

    def start(self, deliver: Callable[[str, M], None], lost: Lost) -> None:

        def deliver_badly(manager: str, message: M) -> None:
            self._treat(("from", manager), lambda: deliver(manager, message))

        self.inner.start(deliver_badly, lost)

    def send(self, manager: str, message: msgspec.Struct) -> None:
        self._treat(("to", manager), lambda: self.inner.send(manager, message))

    def _treat(self, lane: tuple[str, str], pass_on: _Pass) -> None:
        """Draw the same number of times for every message, so that one more or one fewer
        fault in a message does not change the faults of later messages.
        """
        faults = self.faults
        drop, duplicate, reorder = (self.random.random() for _ in range(3))
        first, second, straggle = (self.random.random() for _ in range(3))
        if drop < faults.drop:
            return
        if duplicate < faults.duplicate:
            self._alone(second * (faults.delay_seconds + faults.straggle_seconds), pass_on)
        if reorder < faults.reorder:
            self._alone(straggle * faults.straggle_seconds, pass_on)
        else:
            self._in_line(lane, first * faults.delay_seconds, pass_on)

    def _alone(self, delay_seconds: float, pass_on: _Pass) -> None:
        """Pass a message on after a while, even if others overtake it."""
        alarm, self._next_alarm = self._next_alarm, self._next_alarm + 1

        def ring() -> None:
            self._alarms.pop(alarm, None)
            if not self._closed:
                pass_on()

        at = Instant(self.clock() + seconds(delay_seconds))
        self._alarms[alarm] = self.timers(at, ring)

    def _in_line(self, lane: tuple[str, str], delay_seconds: float, pass_on: _Pass) -> None:
        """Pass a message on after a while, but not before the earlier ones in its lane."""
        waiting = self._lanes.setdefault(lane, deque())
        if not waiting and delay_seconds == 0:
            pass_on()
            return
        waiting.append(pass_on)
        self._alone(delay_seconds, lambda: _pass_first(waiting))

    async def close(self) -> None:
        self._closed = True
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        await self.inner.close()


def _pass_first(waiting: deque[_Pass]) -> None:
    waiting.popleft()()
