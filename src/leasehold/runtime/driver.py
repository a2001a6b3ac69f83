"""The one driver that runs any machine: active, but simple.

It reads the clock when it has the event in hand (rule P6), passes both to the machine, carries out
the actions in order, and sets one timer for the machine's next wake-up. Everything happens in the
event loop's thread; an event that is posted while another is handled waits its turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from leasehold.base.instants import FAR_FUTURE, SECOND_NS, Instant
from leasehold.base.machine import Machine, Output
from leasehold.runtime.clock import Clock

E = TypeVar("E")
A = TypeVar("A")

LONGEST_SLEEP_NS = 5 * SECOND_NS
"""Event loops sleep on a clock that stops in suspend: look at our own at least this often."""


class Driver(Generic[E, A]):
    """Runs a machine in the running event loop, from `start` to `stop`."""

    def __init__(
        self, machine: Machine[E, A], clock: Clock, perform: Callable[[A], None]
    ) -> None:
        self.machine = machine
        self.clock = clock
        self.perform = perform
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._events: deque[E] = deque()
        self._handling = False

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._step(lambda: self.machine.advance(self.clock()))

    def stop(self) -> None:
        """Handle nothing more."""
        self._loop = None
        self._events.clear()
        if self._timer is not None:
            self._timer.cancel()

    def post(self, event: E) -> None:
        """Hand the machine an event, after those that came before it. In the loop's thread only."""
        self._events.append(event)
        if self._handling or self._loop is None:
            return
        while self._events:
            next_event = self._events.popleft()
            self._step(lambda event=next_event: self.machine.handle(self.clock(), event))

    def _step(self, step: Callable[[], Output[A]]) -> None:
        self._handling = True
        try:
            output = step()
            for action in output.actions:
                self.perform(action)
        finally:
            self._handling = False
        self._sleep_until(output.wake_at)

    def _sleep_until(self, wake_at: Instant) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._loop is None or wake_at >= FAR_FUTURE:
            return
        sleep_ns = min(max(wake_at - self.clock(), 0), LONGEST_SLEEP_NS)
        self._timer = self._loop.call_later(sleep_ns / SECOND_NS, self._on_timer)

    def _on_timer(self) -> None:
        self._step(lambda: self.machine.advance(self.clock()))
        if self._events:
            self.post(self._events.popleft())
