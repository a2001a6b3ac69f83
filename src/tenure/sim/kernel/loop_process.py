"""A simulated process that runs an event loop instead of a machine.

To the world, the loop is a machine: its callbacks are the actions, its next timer is the wake-up.
So everything that may happen to a process also happens to code that waits. Before each callback,
which is wherever the code awaits, the process may be stopped or killed; its timers ring late; its
clock runs at a rate of its own; and messages that arrive while it is stopped wait.

A process that was killed runs nothing further, not even a `finally`.
"""

from typing import Any, ClassVar, NamedTuple

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.machine import Output
from tenure.errors import NotSimulated
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.loop import SimLoop, sim_loop
from tenure.sim.kernel.process import SimProcess, Site


class RunCallback(NamedTuple):
    """The action: one callback of the loop."""


RUN_CALLBACK = RunCallback()


class LoopMachine:
    """An event loop as a machine. It takes no events: callers call into the loop instead."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop

    def handle(self, now: Instant, event: object) -> Output[RunCallback]:
        """Never called: callers give the machine no events."""
        raise AssertionError(f"a loop is handed {event}")

    def advance(self, now: Instant) -> Output[RunCallback]:
        """Make the timers ready that are due. The loop says when the next timer is due."""
        return Output([], self.loop.ready_timers(now))

    def invariants(self) -> None:
        """Assert nothing."""


class LoopProcess(SimProcess):
    """One life of one process whose code is coroutines.

    Start its code with `process.loop.create_task(...)`, before `start` or at any time; deliver
    messages from outside with `process.loop.call_soon(...)`. `loop.context` has the context
    variables for its code.
    """

    stops_before: ClassVar[tuple[type, ...]] = (RunCallback,)

    def __init__(self, site: Site, slot: str, clock: SimClock) -> None:
        self.loop = sim_loop(self)
        self._is_inside = self._is_woken = False
        super().__init__(site, slot, clock, LoopMachine(self.loop))
        self._wake_at = FAR_FUTURE

    def perform(self, action: Any) -> None:
        """Run one callback."""
        self._is_inside = True
        try:
            self.loop.run_next()
        except SystemExit as error:
            self.site.tell(self.slot, "exits", error)
            self.site.bring_down(self)
        finally:
            self._is_inside = False
        self.on_ran()

    def on_ran(self) -> None:
        """A callback has run, and its effects can be checked."""

    # --- the loop's host ---

    def on_ready(self) -> None:
        """See `LoopHost`. A callback from outside begins in a step of its own."""
        if not self.alive:
            return
        self._actions.append(RUN_CALLBACK)
        if not (self._is_inside or self._is_woken):
            self._is_woken = True
            self.site.at(self.site.now, self._wake, None)

    def _wake(self, _: None) -> None:
        self._is_woken = False
        self._go_on()
        if self._timer_at == FAR_FUTURE:
            self._set_timer()  # the timer may have rung meanwhile, and found ready callbacks

    def on_timer(self, at: Instant) -> None:
        if at < self._wake_at:
            self._wake_at = at
            self._set_timer()

    def on_escape(self, error: NotSimulated) -> None:
        """See `LoopHost`. The host is told even if the code swallows the error."""
        self.site.tell(self.slot, "reaches for the world outside", error)
