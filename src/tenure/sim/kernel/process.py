"""Simulated processes: a machine, a clock, and every way to stop.

A process carries out a machine's actions one after another. Before each it may be frozen or killed:
there, real processes are stopped between deciding and doing. Messages that arrive while it is
frozen wait in its sockets. A killed process is gone; its successor at the same address is another
process.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.machine import Machine
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.faults import FaultDice
from tenure.sim.kernel.scene import Scene

MOST_SPINS = 10_000
"""How often a machine may be woken at one instant of real time."""


class Site(Scene):
    """A world, as its processes see it: which process is where, and who watches them."""

    faults: FaultDice
    slots: "dict[str, SimProcess]"
    """The present life at every place of the deployment."""

    @abstractmethod
    def groups(self) -> "Sequence[Sequence[SimProcess]]":
        """All processes, grouped by their kind."""

    @abstractmethod
    def peers(self, process: "SimProcess") -> "Sequence[SimProcess]":
        """The processes that may have a connection to `process`."""

    @abstractmethod
    def on_step(self, process: "SimProcess") -> None:
        """The machine of a process has taken an event."""

    @abstractmethod
    def on_killed(self, process: "SimProcess") -> None:
        """A process was killed."""

    @abstractmethod
    def not_well(self) -> str | None:
        """The reason why not all is well yet. None if all is."""

    @abstractmethod
    def restart_later(self, slot: str, after_ns: int) -> None:
        """Start a process in the slot after a while, if none is alive there then."""

    def processes(self) -> "list[SimProcess]":
        """The present life of every slot."""
        return list(self.slots.values())

    def bring_down(self, process: "SimProcess") -> None:
        """Kill the process. Another one starts in its place after a while."""
        process.kill()
        self.restart_later(process.slot, self.faults.span(0.01, 2.0))


class SimProcess:
    """One life of one process."""

    stops_before: ClassVar[tuple[type, ...]] = ()
    """The actions before which the process may be stopped or killed."""

    def __init__(self, site: Site, slot: str, clock: SimClock, machine: Machine[Any, Any]) -> None:
        self.site = site
        self.slot = slot
        """The process's place in the deployment. A restarted process has its predecessor's."""
        self.uid = site.next_uid()
        self.clock = clock
        self.machine = machine
        self.alive = True
        self.thaws_at: int | None = None
        """When the process goes on. None if it is not frozen."""
        self.thawed_at = 0
        """When the process last went on after a stop."""
        self.decided_at = 0
        """When the machine decided on the actions that are being carried out."""
        self._spins = 0
        self._suspended = False
        self._frozen_since = 0
        self._actions: deque[Any] = deque()
        self._events: deque[Any] = deque()
        self._wake_at = Instant(0)
        self._timer_at: int = FAR_FUTURE
        self._is_timed = False
        """Whether a timer is set that is not late, if the machine wants to be woken."""

    @property
    def is_frozen(self) -> bool:
        """Whether the process is stopped."""
        return self.thaws_at is not None

    # --- running ---

    def start(self) -> None:
        """Begin to run."""
        self._advance()

    def post(self, event: Any) -> None:
        """Give the machine an event. It waits while the process is frozen or busy."""
        if not self.alive:
            return
        self._events.append(event)
        self._go_on()

    def next(self, event: Any) -> None:
        """Give the machine an event from `perform`, which is taken when its actions are done."""
        self._events.append(event)

    def _go_on(self) -> None:
        """Carry out the actions that are left, then take the events that wait, until stopped."""
        actions, events, site = self._actions, self._events, self.site
        faults, points = site.faults, self.stops_before
        while self.alive and self.thaws_at is None:
            if actions:
                may_stop = faults.is_on and type(actions[0]) in points
                if not (may_stop and self._is_struck()):
                    self.perform(actions.popleft())
            elif events:
                self._take(self.machine.handle(self.clock.local(site.now), events.popleft()))
            else:
                return

    def now(self) -> Instant:
        """The reading of the process's clock."""
        return self.clock.local(self.site.now)

    def _take(self, output: Any) -> None:
        self.site.on_step(self)
        self.decided_at = self.site.now
        self._actions.extend(output.actions)
        wake_at = output.wake_at
        if wake_at != self._wake_at or not self._is_timed:
            self._wake_at = wake_at
            self._set_timer()

    def _is_struck(self) -> bool:
        """Whether the process is stopped or killed before the next action."""
        faults = self.site.faults
        what = faults.at_a_point()
        if what == "stopped":
            self.freeze(faults.span(0.001, 2.0))
        elif what == "killed":
            self.site.bring_down(self)
        return what != ""

    @abstractmethod
    def perform(self, action: Any) -> None:
        """Carry out one action."""

    # --- the network ---

    @abstractmethod
    def on_message(self, sender: "SimProcess", message: Any) -> None:
        """A message has arrived from a process, which may be gone by now."""

    @abstractmethod
    def on_disconnected(self, peer: tuple[str, int]) -> None:
        """The process sees that a connection is broken, to the peer of that slot and uid. The uid
        is 0 if no process was reached.
        """

    # --- time ---

    def _set_timer(self) -> None:
        self._is_timed = True
        if self._wake_at >= FAR_FUTURE:
            return
        at = max(self.clock.real(self._wake_at), self.site.now)
        if at < self._timer_at:
            late_ns = self.site.faults.lateness_of_a_timer()
            self._is_timed = not late_ns
            self._timer_at = at = at + late_ns
            self.site.at(at, self._on_timer, at)

    def _on_timer(self, at: int) -> None:
        if at != self._timer_at or not self.alive:
            return
        self._timer_at, self._is_timed = FAR_FUTURE, False
        if self.is_frozen or self._actions:
            return  # the timer is looked at when the process goes on
        if self.now() >= self._wake_at:
            self._advance()
        else:
            self._set_timer()

    def _advance(self) -> None:
        self._spins = self._spins + 1 if self.decided_at == self.site.now else 0
        # Real time would stand still, and the run would never end.
        assert self._spins < MOST_SPINS, f"{self.slot} wants to be woken at once, for ever"
        self._take(self.machine.advance(self.now()))
        self._go_on()

    # --- stopping ---

    def freeze(self, real_ns: int, *, suspended: bool = False) -> None:
        """Stop for a while: SIGSTOP, a swap storm, or the whole machine suspended."""
        if not self.alive or self.is_frozen:
            return
        self.thaws_at = self.site.now + real_ns
        self._suspended = suspended
        self._frozen_since = self.site.now
        how = "suspended" if suspended else "stopped"
        self.site.tell(self.slot, how, f"{real_ns / 1e9:.1f} s")
        self.site.at(self.thaws_at, self.thaw, self.thaws_at)

    def thaw(self, due: int | None = None) -> None:
        """Go on where the process stopped."""
        if not self.alive or self.thaws_at is None or (due is not None and due != self.thaws_at):
            return
        self.thaws_at = None
        self.thawed_at = self.site.now
        if self._suspended and self.clock.stops_in_suspend:
            self.clock.stop_for(self.site.now - self._frozen_since)
            self.on_clock_changed()
        self.site.tell(self.slot, "goes on")
        self.on_thawed()
        self._go_on()
        if self.alive and not self.is_frozen:
            self._advance()

    def on_thawed(self) -> None:
        """The process goes on: do what other threads do before the machine's own goes on."""

    def on_clock_changed(self) -> None:
        """The process's clock, a broken one, has jumped."""

    def interrupt(self, event: Any) -> None:
        """Put an event before all those that wait for the machine."""
        self._events.appendleft(event)

    def kill(self) -> None:
        """End the process, at once and for ever."""
        if self.alive:
            self.alive = False
            self.site.tell(self.slot, "killed")
            self.site.on_killed(self)
