"""A stage for the papers' stories: the real machines, a clock that is turned, letters in hand.

Every message is a letter. `settle` carries all of them, in order; a test that wants one late, lost
or twice takes it out of `letters` and carries it when the story says so. What was ever sent stays
in `sent`. The journal answers at once, unless `journal_answers` is off.

Actors have clocks of their own: `rate` says how fast one runs beside the stage's.
"""

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple, TypeAlias, TypeVar

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, SECOND_NS, Instant, seconds
from tenure.base.keys import Key
from tenure.base.machine import Machine
from tenure.base.noted import Noted
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.policy import NOBODY, Plan, Policy, Situation
from tenure.protocol.balance.ring import Ring
from tenure.protocol.lease.client_events import ManagerSaid, TellManager
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.leader.policies import PolicyMaker, chosen_policy
from tenure.protocol.lease.lookup import events as lookup_events
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import Leased
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import State
from tenure.protocol.lease.table import LeaseTable
from tenure.protocol.lease.timing import PAPER, Timing
from tenure.sim.journal import LeaseContents, waited_out

START = Instant(1_000 * SECOND_NS)
STEPS_AT_MOST = 200_000
"""A story that takes more goes round in circles."""
MOMENT = 10 * MILLISECOND_NS

M = TypeVar("M")
Anything: TypeAlias = Any
"""An event, an action or a message: whose, only the machine knows."""


class Letter(NamedTuple):
    """One message on its way."""

    sender: "Actor"
    receiver: "Actor"
    message: Anything


class Actor:
    """One process: a machine, and a clock of its own speed."""

    machine: Machine[Any, Any]

    def __init__(self, stage: "Stage", name: str, rate: float = 1.0) -> None:
        self.stage = stage
        self.name = name
        self.rate = rate
        self.is_alive = True
        self.notes: list[str] = []
        self._events: deque[Any] = deque()
        self._is_busy = False
        self._wake_at = Instant(0)

    def __repr__(self) -> str:
        return self.name

    def clock(self) -> Instant:
        """Return what its clock shows."""
        return Instant(round(self.stage.now * self.rate))

    def post(self, event: Anything) -> None:
        """Hand it an event, after those that came before it."""
        self._events.append(event)
        self._drain()

    def _drain(self) -> None:
        while self._events and self.is_alive and not self._is_busy:
            self._take(self.machine.handle(self.clock(), self._events.popleft()))

    def wake(self) -> None:
        """Let it do what is due."""
        if self.is_alive and self.clock() >= self._wake_at:
            self._take(self.machine.advance(self.clock()))
            self._drain()

    def _take(self, output: Anything) -> None:
        self.machine.invariants()
        self._wake_at = output.wake_at
        self._is_busy = True
        for action in output.actions:
            self.perform(action)
        self._is_busy = False

    def wakes_at(self) -> int:
        """Return when it is due next, by the stage's clock."""
        return round(self._wake_at / self.rate) if self.is_alive else FAR_FUTURE

    def kill(self) -> None:
        """End it. Its letters are still on their way."""
        self.is_alive = False

    def perform(self, action: Anything) -> None:
        """Carry out one action."""
        raise NotImplementedError

    def on_message(self, sender: "Actor", message: Anything) -> None:
        """A letter has arrived."""
        raise NotImplementedError


class ManagerActor(Actor):
    """A manager."""

    machine: Manager

    def perform(self, action: Anything) -> None:
        stage = self.stage
        match action:
            case manager_events.TellClient(connection=number, message=message):
                stage.send(self, stage.clients[number], message)
            case manager_events.TellClients(connections=numbers, message=message):
                for number in numbers:
                    stage.send(self, stage.clients[number], message)
            case Noted(kind=kind):
                self.notes.append(kind.phrase)
            case manager_events.MakePlan(work=work):
                self.post(manager_events.PlanMade(work, work.carry_out()))
            case manager_events.GiveUp(why=why):
                self.notes.append(why)
                self.kill()
            case manager_events.AnswerQuestion():
                pass
            case _:
                answer = stage.journal.carry_out(action)
                if answer is not None and stage.journal_answers:
                    self.post(answer)
                elif answer is not None:
                    stage.unanswered.append((self, answer))

    def on_message(self, sender: Actor, message: Anything) -> None:
        self.post(manager_events.ClientSaid(self.stage.clients.index(sender), message))

    @property
    def table(self) -> LeaseTable:
        """The lease table of the first pool."""
        assert self.machine.leader is not None
        return self.machine.leader.pools["pool"].table


class OwnerActor(Actor):
    """An owner, as its readers see it."""

    machine: OwnerMachine

    def __init__(self, stage: "Stage", name: str, rate: float = 1.0) -> None:
        super().__init__(stage, name, rate)
        self.holdings = owner_events.Holdings(0, 0, (), Instant(0))
        self.granted: list[Leased] = []
        self.revoked: list[Leased] = []
        self.lets_go = True
        """Whether `on_revoke` returns at once."""
        self.letting_go: list[owner_events.Revoke] = []

    def perform(self, action: Anything) -> None:
        match action:
            case TellManager(manager=url, message=message):
                self.stage.send(self, self.stage.managers[url], message)
            case owner_events.Hold(holdings=holdings):
                self.holdings = holdings
            case owner_events.Grant(leases=leases):
                self.granted.extend(leases)
            case owner_events.Revoke(leases=leases):
                self.revoked.extend(leases)
                self.letting_go.append(action)
                if self.lets_go:
                    self.let_go()
            case owner_events.Closed():
                self.kill()
            case Noted(kind=kind):
                self.notes.append(kind.phrase)

    def let_go(self) -> None:
        """`on_revoke` returns, wherever it still runs."""
        letting_go, self.letting_go = self.letting_go, []
        for revoke in letting_go:
            self.post(owner_events.Revoked(revoke.revocation))

    def close(self) -> None:
        """Leave the pool."""
        self.post(owner_events.CloseRequested())

    def on_message(self, sender: Actor, message: Anything) -> None:
        self.post(ManagerSaid(sender.name, message))

    def number(self, key: Key) -> int | None:
        """The number under which it believes that it holds `key` now."""
        if self.is_alive and self.clock() < self.holdings.expires_at:
            for lease in self.holdings.leases:
                if key in lease.range:
                    return lease.number
        return None


class LookupActor(Actor):
    """A lookup, and what it told its application."""

    machine: LookupMachine

    def __init__(self, stage: "Stage", name: str) -> None:
        super().__init__(stage, name)
        self.losses: list[KeyRange] = []

    def perform(self, action: Anything) -> None:
        match action:
            case TellManager(manager=url, message=message):
                self.stage.send(self, self.stage.managers[url], message)
            case lookup_events.SignalLoss(ranges=ranges):
                self.losses.extend(ranges)
            case Noted(kind=kind):
                self.notes.append(kind.phrase)
            case lookup_events.Route():
                pass

    def on_message(self, sender: Actor, message: Anything) -> None:
        self.post(ManagerSaid(sender.name, message))

    def find(self, key: Key) -> str | None:
        """The address at which `key` is served, as far as it knows."""
        found = self.machine.find(key)
        return None if found is None else found.address

    def owners(self) -> RangeMap[int]:
        """Return the owner of each range, as far as it knows."""
        table = self.machine.table
        return RangeMap.at_starts(table.starts(), [known.owner for known in table.values()])

    def lost(self, key: Key) -> bool:
        """Whether a loss of `key` was signalled."""
        return any(key in lost for lost in self.losses)


def ring(*_: object) -> Policy:
    """The papers' policy, for what follows from its many ranges."""
    return Ring()


class Stage:
    """Managers with one journal, owners, lookups, and the letters between them."""

    def __init__(
        self,
        *,
        managers: int = 1,
        timing: Timing = PAPER,
        make_policy: PolicyMaker = chosen_policy,
        first_start: bool = True,
    ) -> None:
        self.now = START
        self.timing = timing
        self.random = Random(1)
        self.make_policy = make_policy
        fresh = LeaseContents(self.random, State())
        self.journal = waited_out(self.random) if first_start else fresh
        self.journal_answers = True
        self.unanswered: list[tuple[ManagerActor, Any]] = []
        self.letters: deque[Letter] = deque()
        self.sent: list[Letter] = []
        self.cut_off: list[Actor] = []
        """The processes whose letters are lost, both ways."""
        self.managers: dict[str, ManagerActor] = {}
        self.clients: list[Actor] = []
        for i in range(managers):
            self.manager(f"m{i + 1}")

    # --- who is there ---

    def manager(self, name: str) -> ManagerActor:
        """A manager, that competes to lead."""
        actor = ManagerActor(self, name)
        config = ManagerConfig(url=name, timing=self.timing)
        actor.machine = Manager(config, self.random, self.make_policy)
        self.managers[name] = actor
        return actor

    def owner(self, name: str, *, rate: float = 1.0, pool: str = "pool") -> OwnerActor:
        """An owner, that begins to join."""
        actor = OwnerActor(self, name, rate)
        config = owner_events.OwnerConfig(
            managers=tuple(self.managers), pool=pool, name=name, address=f"http://{name}"
        )
        actor.machine = OwnerMachine(config, self.random)
        self.clients.append(actor)
        return actor

    def lookup(self, name: str = "lookup", *, pool: str = "pool") -> LookupActor:
        """A lookup, that begins to follow the table."""
        actor = LookupActor(self, name)
        config = lookup_events.LookupConfig(managers=tuple(self.managers), pool=pool)
        actor.machine = LookupMachine(config, self.random)
        self.clients.append(actor)
        return actor

    @property
    def leader(self) -> ManagerActor:
        """The manager that leads."""
        return next(m for m in self.managers.values() if m.is_alive and m.machine.leader)

    @property
    def table(self) -> LeaseTable:
        """The leader's lease table."""
        return self.leader.table

    def holders(self, key: Key) -> list[Actor]:
        """Return all owners that believe that they hold `key` now."""
        owners = [client for client in self.clients if isinstance(client, OwnerActor)]
        return [owner for owner in owners if owner.number(key) is not None]

    def answer(self) -> None:
        """The journal answers, from now on, and what it was asked before."""
        self.journal_answers = True
        unanswered, self.unanswered = self.unanswered, []
        for manager, answer in unanswered:
            manager.post(answer)

    # --- letters ---

    def send(self, sender: Actor, receiver: Actor, message: Anything) -> None:
        """Put a letter on its way."""
        letter = Letter(sender, receiver, message)
        self.sent.append(letter)
        if not {sender, receiver} & set(self.cut_off):
            self.letters.append(letter)

    def carry(self, letter: Letter) -> None:
        """Deliver one letter, now."""
        if letter.receiver.is_alive:
            letter.receiver.on_message(letter.sender, letter.message)

    def take_out(self, kind: type[M], about: Callable[[Letter], bool] = lambda _: True) -> Letter:
        """Take out the one letter of that kind that is on its way; it no longer is then."""
        (letter,) = [
            each for each in self.letters if isinstance(each.message, kind) and about(each)
        ]
        self.letters.remove(letter)
        return letter

    def settle(self) -> None:
        """Carry letters until none is on its way."""
        for _ in range(STEPS_AT_MOST):
            if not self.letters:
                return
            self.carry(self.letters.popleft())
        raise AssertionError("letters without end")

    def messages(
        self, kind: type[M], *, by: Actor | None = None, to: Actor | None = None
    ) -> list[M]:
        """Every message of that kind that was sent, in order."""
        return [
            letter.message
            for letter in self.sent
            if isinstance(letter.message, kind)
            and by in (None, letter.sender)
            and to in (None, letter.receiver)
        ]

    # --- time ---

    def wake(self) -> None:
        """Let everyone do what is due, and carry nothing."""
        for actor in [*self.managers.values(), *self.clients]:
            actor.wake()

    def run(self, duration_seconds: float = 3.0) -> None:
        """Let time pass; everyone does what is due when it is due, and letters arrive at once."""
        until = Instant(self.now + seconds(duration_seconds))
        for _ in range(STEPS_AT_MOST):
            self.wake()
            self.settle()
            due = min(each.wakes_at() for each in [*self.managers.values(), *self.clients])
            if due > until:
                self.now = until
                return
            self.now = Instant(max(due, self.now + 1))
        raise AssertionError("time does not pass")

    def let_pass(self, duration_seconds: float) -> None:
        """Let time pass without anybody doing anything: all of them are stopped."""
        self.now = Instant(self.now + seconds(duration_seconds))


Assignment = tuple[tuple[Key, str | None], ...]


def assigned(script: Callable[[Sequence[str]], Assignment]) -> PolicyMaker:
    """Make the policy of a test: its script turns the names of members into starts and owners."""

    def policy(situation: Situation) -> Plan:
        incarnations = {each.name: each.incarnation for each in situation.candidates}
        pieces = script(sorted(incarnations))
        starts = [start for start, _ in pieces]
        owners = [incarnations.get(name or "", NOBODY) for _, name in pieces]
        return Plan(RangeMap.at_starts(starts, owners), RangeMap(None))

    return lambda *_: policy
