"""The one driver that runs any machine: active, but simple.

It reads the clock when it has the event in hand (rule P6), passes both to the machine, carries out
the actions in order, and sets one alarm for the machine's next wake-up. Everything happens in the
event loop's thread; an event that is posted while another is handled waits its turn.

A machine that raises, or an action that cannot be carried out, is a bug. The driver then stops,
since nothing that the machine says after that can be trusted, and tells its caller. If a machine
can throw away what it may have half-changed, the driver tells the machine instead, at once:
`instead` makes the event for that.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.machine import Machine, Output
from tenure.runtime.clock import Clock, LoopTimers, Timer, Timers

E = TypeVar("E")
A = TypeVar("A")


class Driver(Generic[E, A]):
    """Runs a machine in the running event loop, from `start` to `stop`.

    `fail` is called, once, with the exception of a machine or `perform`; without `fail`, it is
    raised.
    """

    def __init__(
        self,
        machine: Machine[E, A],
        clock: Clock,
        perform: Callable[[A], None],
        *,
        timers: Timers | None = None,
        fail: Callable[[Exception], None] | None = None,
        instead: Callable[[E, Exception], E | None] = lambda _event, _error: None,
    ) -> None:
        self.machine = machine
        self.clock = clock
        self.perform = perform
        self.timers = timers or LoopTimers(clock)
        self.fail = fail
        self.instead = instead
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alarm: Timer | None = None
        self._rings_at = FAR_FUTURE
        self._events: deque[E] = deque()
        self._handling = False

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._advance()

    def stop(self) -> None:
        """Handle nothing more."""
        self._loop = None
        self._events.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def post(self, event: E) -> None:
        """Hand the machine an event, after those that came before it. In the loop's thread only."""
        self._events.append(event)
        if not self._handling:
            self._drain()

    def _advance(self) -> None:
        self._alarm = None
        self._step(None)
        self._drain()

    def _drain(self) -> None:
        while self._events and self._loop is not None:
            event = self._events.popleft()
            self._step(event)

    def _step(self, event: E | None) -> None:
        """One step of the machine, with an event or with the time alone."""
        self._handling = True
        try:
            output = self._output(event)
            for action in output.actions:
                self.perform(action)
        except Exception as error:
            self.stop()
            if self.fail is None:
                raise
            self.fail(error)
            return
        finally:
            self._handling = False
        self._sleep_until(output.wake_at)

    def _output(self, event: E | None) -> Output[A]:
        machine, now = self.machine, self.clock()
        if event is None:
            return machine.advance(now)
        try:
            return machine.handle(now, event)
        except Exception as error:
            instead = self.instead(event, error)
            if instead is None:
                raise
            return machine.handle(self.clock(), instead)

    def _sleep_until(self, wake_at: Instant) -> None:
        if self._alarm is not None:
            # An alarm that rings too early only asks again, and most would be moved many times.
            if wake_at >= self._rings_at and self._loop is not None:
                return
            self._alarm.cancel()
            self._alarm = None
        if self._loop is not None and wake_at < FAR_FUTURE:
            self._alarm, self._rings_at = self.timers(wake_at, self._advance), wake_at
