"""Simulated processes: a machine, a clock, and every way to stop.

A process carries out a machine's actions one after another. Before each it may be frozen or killed:
that is where real processes are stopped between deciding and doing. What arrives while it is frozen
waits in its sockets. A killed process is gone; who comes after it at the same address is another.
"""

from collections import deque
from random import Random
from typing import TYPE_CHECKING, Any

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.machine import Machine
from tenure.base.noted import Noted
from tenure.protocol.lease.client_events import TellManager
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.leader.manager import Manager
from tenure.protocol.lease.lookup import events as lookup_events
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import LeaseRequest
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.log.journal import (
    Append,
    Beat,
    Campaign,
    Compact,
    Load,
    ReadSeat,
    Resign,
)
from tenure.sim.clocks import SimClock
from tenure.sim.hosts import HostProcess
from tenure.sim.store import Store

if TYPE_CHECKING:
    from tenure.sim.traffic import Counting
    from tenure.sim.world import World

JOURNAL_ACTIONS = (ReadSeat, Campaign, Beat, Resign, Load, Append, Compact)


class Process:
    """One life of one process."""

    kind = "process"

    def __init__(
        self, world: "World", slot: str, clock: SimClock, machine: Machine[Any, Any]
    ) -> None:
        self.world = world
        self.slot = slot
        """Its place in the deployment: a restarted process has its predecessor's."""
        self.uid = world.next_uid()
        self.clock = clock
        self.machine = machine
        self.alive = True
        self.thaws_at: int | None = None
        """When it goes on, where it is frozen."""
        self.decided_at = 0
        """When the machine decided on what is being carried out."""
        self._suspended = False
        self._frozen_since = 0
        self._actions: deque[Any] = deque()
        self._events: deque[Any] = deque()
        self._wake_at = Instant(0)
        self._timer_at: int = FAR_FUTURE

    @property
    def is_frozen(self) -> bool:
        """Whether it is stopped."""
        return self.thaws_at is not None

    # --- running ---

    def start(self) -> None:
        """Begin."""
        self._advance()

    def post(self, event: Any) -> None:
        """An event for the machine; it waits while the process is frozen or busy."""
        if not self.alive:
            return
        self._events.append(event)
        self._go_on()

    def _go_on(self) -> None:
        """Carry out what is to be done, then take what waits, until stopped."""
        while self.alive and not self.is_frozen:
            if self._actions:
                self._do_next()
            elif self._events:
                self._take(self.machine.handle(self.now(), self._events.popleft()))
            else:
                return

    def now(self) -> Instant:
        """What its clock shows."""
        return self.clock.local(self.world.now)

    def _take(self, output: Any) -> None:
        self.world.checkers.on_step(self)
        self.decided_at = self.world.now
        self._actions.extend(output.actions)
        self._wake_at = output.wake_at
        self._set_timer()

    def _do_next(self) -> None:
        action = self._actions[0]
        if not self.world.faults.strikes_before(self, action):
            self._actions.popleft()
            self.perform(action)

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        raise AssertionError(action)

    # --- time ---

    def _set_timer(self) -> None:
        at = max(self.clock.real(self._wake_at), self.world.now)
        if at < self._timer_at:
            at += self.world.faults.lateness_of_a_timer()
            self._timer_at = at
            self.world.at(at, self._on_timer, at)

    def _on_timer(self, at: int) -> None:
        if at != self._timer_at or not self.alive:
            return
        self._timer_at = FAR_FUTURE
        if self.is_frozen or self._actions:
            return  # the timer is looked at when the process goes on
        if self.now() >= self._wake_at:
            self._advance()
        else:
            self._set_timer()

    def _advance(self) -> None:
        self._take(self.machine.advance(self.now()))
        self._go_on()

    # --- stopping ---

    def freeze(self, real_ns: int, *, suspended: bool = False) -> None:
        """Stop for a while: SIGSTOP, a swap storm, or the whole machine suspended."""
        if not self.alive or self.is_frozen:
            return
        self.thaws_at = self.world.now + real_ns
        self._suspended = suspended
        self._frozen_since = self.world.now
        self.world.tell(
            self.slot, "suspended" if suspended else "stopped", f"{real_ns / 1e9:.1f} s"
        )
        self.world.at(self.thaws_at, self.thaw, self.thaws_at)

    def thaw(self, due: int | None = None) -> None:
        """Go on where it stopped."""
        if not self.alive or self.thaws_at is None or (due is not None and due != self.thaws_at):
            return
        self.thaws_at = None
        if self._suspended and self.world.canary.clock_stops_in_suspend:
            self.clock.stop_for(self.world.now - self._frozen_since)
            self.world.checkers.on_clock_changed(self)
        self.world.tell(self.slot, "goes on")
        self.world.on_thawed(self)
        self.on_thawed()
        self._go_on()
        if self.alive and not self.is_frozen:
            self._advance()

    def on_thawed(self) -> None:
        """What happens in other threads before the machine's own goes on."""

    def kill(self) -> None:
        """End, at once and for ever."""
        if self.alive:
            self.alive = False
            self.world.tell(self.slot, "killed")
            self.on_killed()

    def on_killed(self) -> None:
        """What others see of it."""
        self.world.network.on_killed(self)


class ManagerProcess(Process):
    """A manager; its journal is the world's, or its own where that is `memory`."""

    kind = "manager"
    machine: Manager

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        world = self.world
        match action:
            case manager_events.TellClient(connection=connection, message=message):
                world.network.to_client(self, connection, message)
            case manager_events.TellClients(connections=connections, message=message):
                for connection in connections:
                    world.network.to_client(self, connection, message)
            case Noted(kind=kind, detail=detail):
                world.tell(self.slot, kind.phrase, detail)
                world.count_note(kind.phrase)
            case manager_events.AnswerQuestion():
                pass
            case manager_events.GiveUp(why=why):
                world.tell(self.slot, "gives up", why)
                self.kill()
            case _:
                assert isinstance(action, JOURNAL_ACTIONS), action
                world.call_journal(self, action)


class OwnerProcess(Process):
    """An owner, and what its readers see."""

    kind = "owner"
    machine: OwnerMachine

    def __init__(
        self,
        world: "World",
        slot: str,
        clock: SimClock,
        machine: OwnerMachine,
        on_host: HostProcess,
    ) -> None:
        super().__init__(world, slot, clock, machine)
        self.on_host = on_host
        self.holdings = owner_events.Holdings(0, 0, (), Instant(0))
        self.believes_until = 0
        """In real time."""
        self.store = Store()
        self.counting: Counting | None = None
        """Where owners tell their load."""
        self._lapse_seen = False

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        match action:
            case TellManager(manager=manager, message=message):
                if self.counting is not None and isinstance(message, LeaseRequest):
                    renew_ns = self.machine.renew_ns
                    message = self.counting.add_load(message, self.now(), renew_ns)
                self.world.network.to_manager(self, manager, message)
            case owner_events.Hold(holdings=holdings):
                self._publish(holdings)
            case owner_events.Revoke(revocation=revocation, leases=leases):
                self.world.workload.on_revoke(self, revocation, [each.range for each in leases])
            case Noted(kind=kind, detail=detail):
                self.world.tell(self.slot, kind.phrase, detail)
                self.world.count_note(kind.phrase)
            case owner_events.Closed():
                self.world.tell(self.slot, "closed")
                self.kill()
            case owner_events.Look():
                self.world.look(self, action)
            case owner_events.Grant():
                pass
            case owner_events.HandOver(order=order):
                self.world.tell(self.slot, "hands over", order)
                self.world.states.hand_over(self, order)
            case owner_events.SendLast(order=order):
                self.world.states.send_last(self, order)
            case owner_events.StopHandOver(order=order):
                self.world.tell(self.slot, "hands over no more", order)
                self.world.states.stop(self, order)
            case owner_events.Forget(revocation=revocation, range=key_range):
                self.world.states.stop_arriving(self, key_range)
                self.world.workload.on_revoke(self, revocation, [key_range])

    def _publish(self, holdings: owner_events.Holdings) -> None:
        """Readers see new holdings, unless one has seen the old ones expire meanwhile: what was
        interrupted must not go on (S3).
        """
        if self._lapse_seen and holdings.leases:
            self._events.appendleft(owner_events.Lapsed())
            return
        if not holdings.leases:
            self._lapse_seen = False
        self.world.checkers.on_hold(self, holdings)

    def on_thawed(self) -> None:
        """A reader's thread may look before the machine's thread publishes what it had decided."""
        late = self.world.now >= self.believes_until
        if late and self.holdings.leases and self.world.random.random() < 0.5:
            self._lapse_seen = True
            self._events.appendleft(owner_events.Lapsed())

    def on_killed(self) -> None:
        """Its belief ends with it."""
        self.world.checkers.on_owner_gone(self)
        self.world.on_owner_ended(self)
        super().on_killed()


class LookupProcess(Process):
    """A lookup, and the client that uses it."""

    kind = "lookup"
    machine: LookupMachine

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        match action:
            case TellManager(manager=manager, message=message):
                self.world.network.to_manager(self, manager, message)
            case lookup_events.SignalLoss(ranges=ranges, why=why):
                self.world.tell(self.slot, "signals loss", why)
                self.world.checkers.on_loss(self, ranges, why)
                self.world.workload.on_loss(self, ranges)
            case lookup_events.Route():
                pass
            case Noted(kind=kind, detail=detail):
                self.world.tell(self.slot, kind.phrase, detail)
                self.world.count_note(kind.phrase)


def random_for(random: Random) -> Random:
    """A process's own source, so that what one draws does not change what another does."""
    return Random(random.getrandbits(64))
