"""The processes on the stage, each a real machine with a clock of its own, and ways to
stop them.
"""

from collections import deque
from typing import TYPE_CHECKING, Any

from lab.worlds.lease.hosts import sight
from tenure.base.instants import FAR_FUTURE, Instant, in_seconds, seconds
from tenure.base.keys import Key
from tenure.base.machine import Machine, Output
from tenure.base.noted import Noted
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.answers import Answer
from tenure.protocol.lease.client_events import ManagerSaid, TellManager
from tenure.protocol.lease.inspecting import Inspect
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.leader.leader import Leader
from tenure.protocol.lease.leader.manager import Manager
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.lookup import events as lookup_events
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import HandOff, Leased
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.log.journal import LOG_ACTIONS
from tenure.sim.kernel.clocks import MILLION, SimClock
from tenure.sim.kernel.hosts import HostProcess
from tenure.wire.lease import decode_to_lookup, decode_to_manager, decode_to_owner
from tenure.wire.versions import NEWEST

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

POOL = "pool"


class Actor:
    """One life of one process: a machine, a clock, and every way to stop."""

    def __init__(self, stage: "Stage", slot: str, rate: int, machine: Machine[Any, Any]) -> None:
        self.stage = stage
        self.slot = slot
        self.uid = stage.next_uid()
        self.clock = SimClock(self.uid * seconds(1000), MILLION + rate)
        self.deciding = machine
        self.alive = True
        self.stopped = False
        self.notes: list[str] = []
        self.wake_at = Instant(0)
        self._stop_before: type | None = None
        self._clock_read: Instant | None = None
        self._inbox: deque[Any] = deque()
        self._to_do: deque[Any] = deque()

    @property
    def now(self) -> Instant:
        return self.clock.local(self.stage.now)

    @property
    def wakes_at(self) -> int:
        """Return the real time of its next wake-up; while it is stopped, there is none."""
        asleep = not self.alive or self.stopped
        return FAR_FUTURE if asleep else self.clock.real(self.wake_at)

    def post(self, event: object) -> None:
        """An event, after those that came before it."""
        self._inbox.append(event)
        self.work()

    def wake(self) -> None:
        self._step(self.deciding.advance(self._read_clock()))

    def work(self) -> None:
        """Carry out what was decided, then take what waits."""
        while self.alive and not self.stopped and (self._to_do or self._inbox):
            if not self._to_do:
                event = self._inbox.popleft()
                self._step(self.deciding.handle(self._read_clock(), event))
            elif self._stop_before and isinstance(self._to_do[0], self._stop_before):
                self.stopped, self._stop_before = True, None
            else:
                self.perform(self._to_do.popleft())

    def _read_clock(self) -> Instant:
        read, self._clock_read = self._clock_read, None
        return self.now if read is None else read

    def _step(self, output: Output[Any]) -> None:
        self.stage.count_a_step(self)
        self.deciding.invariants()
        self._to_do.extend(output.actions)
        self.wake_at = output.wake_at
        self.work()

    def receive(self, sender: "Actor", data: bytes) -> None:
        raise NotImplementedError

    def perform(self, action: object) -> None:
        raise NotImplementedError

    # --- stopping ---

    def stop(self) -> None:
        """SIGSTOP: what arrives waits in its sockets."""
        self.stopped = True

    def stop_before(self, action: type) -> None:
        """Stop it when it is about to do that: it has decided, and has not done it."""
        self._stop_before = action

    def stop_with_the_clock_read(self) -> None:
        """Let it stop between reading the clock and using what it read."""
        self._clock_read = self.now
        self.stopped = True

    def go_on(self) -> None:
        """Let it go on where it stopped, and let everything take its course."""
        self.stopped = False
        self.work()
        self.stage.settle()

    def kill(self) -> None:
        """End it, at once and for ever; nobody is told."""
        self.alive = False


class ManagerActor(Actor):
    def __init__(self, stage: "Stage", slot: str, rate: int, machine: Manager) -> None:
        super().__init__(stage, slot, rate, machine)
        self.machine = machine
        self.others: tuple[str, ...] = ()
        self.gave_up: str | None = None
        self.replies: dict[int, Answer] = {}

    def receive(self, sender: Actor, data: bytes) -> None:
        self.post(manager_events.ClientSaid(sender.uid, decode_to_manager(data, NEWEST)))

    def perform(self, action: object) -> None:
        match action:
            case manager_events.TellClient(connection=connection, message=message):
                self.stage.send_to_client(self, connection, message)
            case manager_events.TellClients(connections=connections, message=message):
                for connection in connections:
                    self.stage.send_to_client(self, connection, message)
            case Noted(kind=kind):
                self.notes.append(kind.phrase)
            case manager_events.AnswerQuestion(ticket=ticket, answer=answer):
                self.replies[ticket] = answer
            case manager_events.MakePlan(work=work):
                self.post(manager_events.PlanMade(work, work.carry_out()))
            case manager_events.LookAround():
                self.stage.look_across(self, action)
            case manager_events.GiveUp(why=why):
                self.gave_up = why
                self.kill()
            case _:
                assert isinstance(action, LOG_ACTIONS), action
                self.stage.call_journal(self, action)

    def lose(self, owner: "OwnerActor") -> None:
        """The connection of an owner breaks, and this side sees it."""
        self.post(manager_events.ClientLost(owner.uid))
        self.stage.settle()

    @property
    def leads(self) -> bool:
        return self.alive and self.machine.leader is not None

    @property
    def leader(self) -> Leader:
        assert self.machine.leader is not None, f"{self.slot} does not lead"
        return self.machine.leader

    @property
    def pool(self) -> Pool:
        return self.leader.pools[POOL]

    def plan_anew(self) -> None:
        """Plan again, because the test has changed which owner should have what."""
        self.pool.planner.soon(self.now)
        self.wake()


class OwnerActor(Actor):
    def __init__(
        self,
        stage: "Stage",
        slot: str,
        rate: int,
        machine: OwnerMachine,
        on_host: HostProcess | None,
    ) -> None:
        super().__init__(stage, slot, rate, machine)
        self.on_host = on_host
        self.machine = machine
        self.holdings = Holdings(0, 0, (), Instant(0))
        self.granted: list[Leased] = []
        self.revoked: list[Leased] = []
        self.revoking: list[int] = []
        """Revocations whose callback is still running."""
        self.slow_callbacks = False
        self.closed = False
        self.values: dict[Key, int] = {}
        """Its state: a version for each key, served or not."""
        self.giving: set[HandOff] = set()
        self._lapse_seen = False

    def receive(self, sender: Actor, data: bytes) -> None:
        message = decode_to_owner(data, NEWEST)
        assert not isinstance(message, Inspect), "nobody looks into simulated owners"
        self.post(ManagerSaid(sender.slot, message))

    def perform(self, action: object) -> None:
        match action:
            case TellManager(manager=manager, message=message):
                self.stage.send_to_manager(self, manager, message)
            case owner_events.Hold(holdings=holdings):
                self._put_up(holdings)
            case owner_events.Grant(leases=leases):
                self.granted.extend(leases)
            case owner_events.Revoke(revocation=revocation, leases=leases):
                self.revoked.extend(leases)
                self._forget(revocation, [lease.range for lease in leases])
            case owner_events.Look(manager=manager, question=question):
                assert self.on_host is not None
                seen = sight(self.stage.hosts, self.on_host, question.process.pid)
                self._inbox.append(owner_events.Looked(manager, question, seen))
            case owner_events.Forget(revocation=revocation, range=key_range):
                self._forget(revocation, [key_range])
            case owner_events.HandOver(order=order):
                self.giving.add(order)
                self.stage.send_step(self, action)
            case owner_events.SendLast():
                self.stage.send_step(self, action)
            case owner_events.Admit() | owner_events.TurnAway() | owner_events.Keep():
                self.stage.transfers.decide(self, action)
            case owner_events.StopHandOver(order=order):
                self.stage.transfers.stop(self, order)
            case Noted(kind=kind):
                self.notes.append(kind.phrase)
            case owner_events.Closed():
                assert not self._to_do, "who is gone does nothing more"
                self.closed = True
                self.kill()

    def _forget(self, revocation: int, ranges: list[KeyRange]) -> None:
        for key in [key for key in self.values if any(key in each for each in ranges)]:
            del self.values[key]
        self.revoking.append(revocation)
        if not self.slow_callbacks:
            self.finish_callbacks()

    # --- the other end of a hand-off ---

    def takes_at(self, order: HandOff) -> bool:
        """Return whether it is the incarnation that the order names, and where that takes state."""
        is_meant = self.machine.belief.incarnation == order.taker
        return is_meant and self.machine.config.hand_off == order.address

    def lose(self, order: HandOff) -> None:
        """The application loses what was imported, all of it."""
        for key in [key for key in self.values if key in order.range]:
            del self.values[key]
        self.post(owner_events.ImportLost(order.range, order.number))

    def drain(self, *, waits: bool = False) -> None:
        """It hands over what it can, and goes."""
        self.post(owner_events.DrainRequested(waits))
        self.stage.settle()

    def finish_callbacks(self) -> None:
        """`on_revoke` returns."""
        done, self.revoking = self.revoking, []
        for revocation in done:
            self._inbox.append(owner_events.Revoked(revocation))

    def close(self) -> None:
        self.post(owner_events.CloseRequested())
        self.stage.settle()

    def kill(self) -> None:
        super().kill()
        if self.on_host is not None:
            self.on_host.has_ended = True

    def die(self) -> None:
        """Die as by `kill`; its parent has noticed."""
        self.kill()
        assert self.on_host is not None
        self.stage.hosts.reap(self.on_host)

    def _put_up(self, holdings: Holdings) -> None:
        """Readers see it, unless one has seen the last one end (S3)."""
        if self._lapse_seen and holdings.leases:
            return
        self._lapse_seen = False
        before, self.holdings = self.believed, holdings
        self.stage.check_beliefs(self, before)

    def reader_looks(self, key: Key) -> int | None:
        """A thread of the application checks a key: the number under which it is held."""
        if self.holdings.leases and not self.believed and not self._lapse_seen:
            self._lapse_seen = True
            self._inbox.appendleft(owner_events.Lapsed())
        return None if self._lapse_seen else self.number_of(key)

    @property
    def believed(self) -> tuple[Leased, ...]:
        """Return what it believes at this instant, whatever its machine is doing."""
        return self.holdings.leases if self.alive and self.seconds_left > 0 else ()

    @property
    def seconds_left(self) -> float:
        """How much longer it believes, in real time."""
        return in_seconds(self.clock.real(self.holdings.expires_at) - self.stage.now)

    def number_of(self, key: Key) -> int | None:
        """The number under which it believes to hold the key now; None if it does not."""
        return next((lease.number for lease in self.believed if key in lease.range), None)


class LookupActor(Actor):
    def __init__(self, stage: "Stage", slot: str, rate: int, machine: LookupMachine) -> None:
        super().__init__(stage, slot, rate, machine)
        self.machine = machine
        self.losses: list[tuple[KeyRange, str]] = []
        self.routed: list[KeyRange] = []

    def receive(self, sender: Actor, data: bytes) -> None:
        self.post(ManagerSaid(sender.slot, decode_to_lookup(data, NEWEST)))

    def perform(self, action: object) -> None:
        match action:
            case TellManager(manager=manager, message=message):
                self.stage.send_to_manager(self, manager, message)
            case lookup_events.SignalLoss(ranges=ranges, why=why):
                self.losses.extend((key_range, why) for key_range in ranges)
            case lookup_events.Route(changed=changed):
                self.routed.extend(changed)
            case Noted(kind=kind):
                self.notes.append(kind.phrase)

    def ask(self) -> None:
        """Let it ask now."""
        self.machine._sync_at = self.now
        self.wake()
        self.stage.settle()

    def find(self, key: Key) -> str | None:
        """The name of the owner that it would send a request for the key to."""
        found = self.machine.find(key)
        return found.name if found else None

    def lost(self, key: Key) -> list[str]:
        """The reason for each signal that the key's state was lost."""
        return [why for key_range, why in self.losses if key in key_range]
