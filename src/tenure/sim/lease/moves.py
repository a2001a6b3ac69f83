"""All that can happen next in a small world, and what comes of it."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tenure.protocol.lease.client_events import ManagerSaid, TellManager
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.records import AnyRecord, Changed, Left
from tenure.protocol.log.journal import LOG_ACTIONS
from tenure.sim.journal import LeaseContents, failure_of
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.memo import Memory
from tenure.sim.lease.small import (
    JOURNAL,
    KEY,
    MANAGERS,
    NOT_THERE,
    OWNERS,
    SLOTS,
    Judge,
    Life,
    Limits,
    Packet,
    SeenLease,
    SmallWorld,
)
from tenure.sim.lease.words import in_words

Branches = Iterator[tuple[tuple[str, ...], SmallWorld]]
"""Worlds that a step may lead to, each with what to tell of it."""


class Move(NamedTuple):
    """One step of a story."""

    what: str
    told: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """As text."""
        yield self.what
        yield from (f"    {line}" for line in self.told)


class Moves:
    """The rules of small worlds."""

    def __init__(self, memory: Memory, make: Callable[[int, int], Any], limits: Limits) -> None:
        self.memory = memory
        self.make = make
        self.limits = limits
        self._what = ""
        self._tells: list[str] = []

    def told(self) -> Iterator[str]:
        """The step that was under way when a promise was broken."""
        yield from Move(self._what, tuple(self._tells)).lines()

    # --- what can happen ---

    def from_here(self, world: SmallWorld) -> Iterator[tuple[Move, SmallWorld]]:
        """Every next step."""
        for what, branches in self._choices(world):
            self._what = what
            for told, then in branches:
                yield Move(what, told), then

    def _choices(self, world: SmallWorld) -> Iterator[tuple[str, Branches]]:
        at = f"tick {world.tick}: "
        due = [slot for slot in (*MANAGERS, *OWNERS) if self._is_due(world, slot)]
        heads = self._heads(world)
        if due:
            slot = due[0]
            yield f"{at}{SLOTS[slot]} wakes", self._wake(world, slot)
            if slot in OWNERS:  # its timer may be late, but not later than this
                mine = [packet for packet in heads if packet.to == slot]
                yield from self._arrivals(world, at, mine)
                yield from self._late_arrivals(world, at, (slot,))
        elif heads:
            # One receiver after another, since only what one receives can race; owners first: they
            # do nothing but ask, so that all that can race for a manager does.
            to = max(packet.to for packet in heads)
            yield from self._arrivals(world, at, [each for each in heads if each.to == to])
            yield from self._freezes(world, at, (to,))
        else:
            yield from self._late_arrivals(world, at, (*MANAGERS, *OWNERS, JOURNAL))
            yield from self._freezes(world, at, (*MANAGERS, *OWNERS))
            yield from self._faults(world, at)
            if world.tick < self.limits.ticks:
                yield f"{at}time passes", _only(world._replace(tick=world.tick + 1))

    def _arrivals(
        self, world: SmallWorld, at: str, packets: list[Packet]
    ) -> Iterator[tuple[str, Branches]]:
        for packet in packets:
            then = world._replace(flying=_without(world.flying, packet))
            yield f"{at}{self._arrival(packet)}", self._deliver(then, packet)

    def _late_arrivals(
        self, world: SmallWorld, at: str, slots: tuple[int, ...]
    ) -> Iterator[tuple[str, Branches]]:
        for packet in sorted(set(world.aside)):
            if packet.to in slots and (packet.to == JOURNAL or not world.lives[packet.to].frozen):
                then = world._replace(aside=_without(world.aside, packet))
                yield f"{at}late, {self._arrival(packet)}", self._deliver(then, packet)

    def _is_due(self, world: SmallWorld, slot: int) -> bool:
        life = world.lives[slot]
        there = life.machine != NOT_THERE and not life.frozen
        return there and life.wake_at <= world.now(slot)

    def _heads(self, world: SmallWorld) -> list[Packet]:
        """The first message of each pair, where its receiver takes messages."""
        heads: dict[tuple[int, int], Packet] = {}
        for packet in world.flying:
            if not world.lives[packet.to].frozen:
                heads.setdefault((packet.sender, packet.to), packet)
        return list(heads.values())

    def _freezes(
        self, world: SmallWorld, at: str, slots: tuple[int, ...]
    ) -> Iterator[tuple[str, Branches]]:
        for slot in slots:
            life = world.lives[slot]
            if life.machine != NOT_THERE and not life.frozen and world.may("freeze"):
                frozen = world.spend("freeze").with_life(slot, life._replace(frozen=True))
                yield f"{at}{SLOTS[slot]} is stopped", _only(frozen)

    def _faults(self, world: SmallWorld, at: str) -> Iterator[tuple[str, Branches]]:
        for slot, life in enumerate(world.lives):
            if life.frozen:
                thawed = life._replace(frozen=False)
                yield f"{at}{SLOTS[slot]} goes on", _only(world.with_life(slot, thawed))
        for slot in OWNERS:
            is_there = world.lives[slot].machine != NOT_THERE
            if is_there and world.may("crash"):
                yield f"{at}{SLOTS[slot]} is killed", _only(self._kill(world.spend("crash"), slot))
            elif not is_there and world.may("starts") and self._may_start(world, slot):
                yield f"{at}{SLOTS[slot]} starts", self.start(world.spend("starts"), slot)
        if world.may("revoke"):
            yield f"{at}the leadership is revoked early", self._vacate(world.spend("revoke"))

    def _may_start(self, world: SmallWorld, slot: int) -> bool:
        is_first = world.lives[slot].uid == 0
        return not is_first or world.tick <= self.limits.start_by

    # --- processes ---

    def start(self, world: SmallWorld, slot: int) -> Branches:
        """A process begins."""
        uid = (world.lives[slot].uid or slot) + 2 if slot in OWNERS else 0
        machine = self.memory.number(self.make(slot, uid))
        return self._wake(world.with_life(slot, Life(machine, uid, 0)), slot)

    def _kill(self, world: SmallWorld, slot: int) -> SmallWorld:
        uid = world.lives[slot].uid
        flying = tuple(packet for packet in world.flying if packet.to != slot)
        aside = tuple(packet for packet in world.aside if packet.to != slot)
        world = world._replace(flying=flying, aside=aside)
        return _believing(world.with_life(slot, Life(uid=uid)), slot, SeenLease())

    def _wake(self, world: SmallWorld, slot: int) -> Branches:
        return self._step(world, slot, None)

    def _deliver(self, world: SmallWorld, packet: Packet) -> Branches:
        if packet.to == JOURNAL:
            return self._call_late(world, packet)
        life = world.lives[packet.to]
        if life.machine == NOT_THERE or (packet.to in OWNERS and life.uid != packet.uid):
            return _only(world)
        return self._step(world, packet.to, packet.event)

    def _step(self, world: SmallWorld, slot: int, event: int | None) -> Branches:
        life = world.lives[slot]
        self._tells = []
        step = self.memory.step(life.machine, world.now(slot), event)
        world = world.with_life(slot, life._replace(machine=step.state, wake_at=step.wake_at))
        return self._perform(world, slot, step.actions, ())

    def _perform(
        self, world: SmallWorld, slot: int, actions: tuple[Any, ...], answers: tuple[int, ...]
    ) -> Branches:
        """Carry out actions in order, then hear the journal's answers."""
        if not actions:
            if not answers:
                yield (), world
            elif not world.lives[slot].frozen:
                for told, then in self._step(world, slot, answers[0]):
                    for more, last in self._perform(then, slot, (), answers[1:]):
                        yield (*told, *more), last
            return
        for told, then, answer in self._act(world, slot, actions[0]):
            for more, last in self._perform(then, slot, actions[1:], (*answers, *answer)):
                yield (*told, *more), last

    # --- actions ---

    def _act(
        self, world: SmallWorld, slot: int, action: Any
    ) -> Iterator[tuple[tuple[str, ...], SmallWorld, tuple[int, ...]]]:
        match action:
            case TellManager() | manager_events.TellClient():
                for told, then in self._send(world, slot, action):
                    yield told, then, ()
            case owner_events.Revoke(revocation=revocation):
                event = self._number(action, 0, lambda: owner_events.Revoked(revocation))
                packet = Packet(slot, slot, world.lives[slot].uid, event)
                for told, then in self._fates(world, packet, ("late",)):
                    yield told, then, ()
            case owner_events.Hold(holdings=holdings):
                told = (f"{SLOTS[slot]} believes: {in_words(holdings)}",)
                self._tells.extend(told)
                yield told, self._publish(world, slot, holdings), ()
            case owner_events.Closed() | manager_events.GiveUp():
                yield (f"{SLOTS[slot]} ends",), self._kill(world, slot), ()
            case _ if isinstance(action, LOG_ACTIONS):
                yield from self._call(world, slot, action)
            case _:
                yield (), world, ()

    def _send(self, world: SmallWorld, slot: int, action: Any) -> Branches:
        message = action.message
        if isinstance(action, manager_events.TellClient):
            uid = action.connection
            to = next((each for each in OWNERS if world.lives[each].uid == uid), JOURNAL)
            if to == JOURNAL or world.lives[to].machine == NOT_THERE:
                yield (), world  # to somebody who is gone
                return
            event = self._number(action, 0, lambda: ManagerSaid(SLOTS[slot], message))
        else:
            uid, to = world.lives[slot].uid, SLOTS.index(action.manager)
            event = self._number(action, uid, lambda: manager_events.ClientSaid(uid, message))
        yield from self._fates(world, Packet(slot, to, uid, event), ("lose", "late", "double"))

    def _number(self, action: Any, uid: int, event: Callable[[], Any]) -> int:
        """The number of the event that `action` becomes; actions are kept, so they have an id."""
        number: int = self.memory.once((id(action), uid), lambda: self.memory.number(event()))
        return number

    def _fates(self, world: SmallWorld, packet: Packet, fates: tuple[str, ...]) -> Branches:
        """What becomes of a message: it is decided when it is sent."""
        yield (), world.send(packet)
        if "lose" in fates and world.may("lose"):
            yield (f"lost: {self._content(packet)}",), world.spend("lose")
        if "late" in fates and world.may("late"):
            told = (f"will be late: {self._content(packet)}",)
            yield told, world.spend("late").set_aside(packet)
        if "double" in fates and world.may("double"):
            told = (f"will come twice: {self._content(packet)}",)
            yield told, world.spend("double").send(packet).set_aside(packet)

    # --- the journal ---

    def _call(
        self, world: SmallWorld, slot: int, action: Any
    ) -> Iterator[tuple[tuple[str, ...], SmallWorld, tuple[int, ...]]]:
        call = self._number(action, 0, lambda: action)
        told, then, answer = self._carry_out(world, call)
        yield told, then, () if answer is None else (answer,)
        name = type(action).__name__
        failure = failure_of(action, "")
        if not world.may("journal"):
            return
        packet = Packet(slot, JOURNAL, 0, call)
        yield (f"will be late: {name}",), world.spend("journal").set_aside(packet), ()
        if failure is None:
            return
        heard = (self.memory.number(failure),)
        yield (f"{name} fails",), world.spend("journal"), heard
        if then is not world:
            told = (*told, f"the answer to {name} is lost")
            yield told, then.spend("journal"), heard

    def _call_late(self, world: SmallWorld, packet: Packet) -> Branches:
        """A call takes effect late; its answer finds its caller, unless that is stopped."""
        self._tells = []
        told, then, answer = self._carry_out(world, packet.event)
        if answer is not None:
            then = then.send(Packet(JOURNAL, packet.sender, 0, answer))
        yield told, then

    def _carry_out(
        self, world: SmallWorld, call: int
    ) -> tuple[tuple[str, ...], SmallWorld, int | None]:
        question = ("journal", world.journal, call)
        journal, answer, records = self.memory.once(
            question, lambda: self._effect(world.journal, call)
        )
        for record in records:
            self._tells.append(f"committed: {_record(record)}")
            world = self._commit(world, record)
        told = tuple(f"committed: {_record(record)}" for record in records)
        return told, world._replace(journal=journal), answer

    def _effect(self, journal: int, call: int) -> tuple[int, int | None, tuple[AnyRecord, ...]]:
        contents: LeaseContents = self.memory.thing(journal)
        before = contents.lsn
        event = contents.carry_out(self.memory.thing(call))
        new = contents.lsn - before
        records = contents.records[len(contents.records) - new :]
        answer = None if event is None else self.memory.number(event)
        return self.memory.number(contents), answer, records

    def _vacate(self, world: SmallWorld) -> Branches:
        contents: LeaseContents = self.memory.thing(world.journal)
        contents.vacate()
        yield (), world._replace(journal=self.memory.number(contents))

    # --- the judge ---

    def _publish(self, world: SmallWorld, slot: int, holdings: owner_events.Holdings) -> SmallWorld:
        """An owner's readers see new holdings."""
        number = next((lease.number for lease in holdings.leases if KEY in lease.range), 0)
        was = world.judge.beliefs[slot - OWNERS[0]]
        went_on = world.believes(slot) and was.number == number
        belief = SeenLease(holdings.incarnation, number, holdings.expires_at if number else 0)
        world = _believing(world, slot, belief)
        if not world.believes(slot):
            return world
        for other in OWNERS:
            if other != slot and world.believes(other):
                raise Violation("S1: two owners", f"{SLOTS[slot]} and {SLOTS[other]}")
        judge = world.judge
        if number > judge.committed_number:
            raise Violation("S4: told before it was durable", f"number {number}")
        if not went_on and number <= judge.last_number:
            raise Violation("S3: a number came again", f"{number} after {judge.last_number}")
        return world._replace(judge=judge._replace(last_number=number))

    def _commit(self, world: SmallWorld, record: AnyRecord) -> SmallWorld:
        """A record is durable: nothing may be freed whose owner still believes in it."""
        if not isinstance(record, Changed | Left):
            return world
        for entry in record.entries:
            judge: Judge = world.judge
            if KEY not in entry.range:
                continue
            if entry.number <= judge.committed_number and entry.number != 1:
                raise Violation("S3: a number came again", f"{entry.number} in the journal")
            for slot in OWNERS:
                holder = judge.beliefs[slot - OWNERS[0]].incarnation
                is_another = judge.committed_owner not in (0, entry.owner)
                if is_another and holder == judge.committed_owner and world.believes(slot):
                    raise Violation("freed too early", f"{SLOTS[slot]} still believes in the key")
            judge = judge._replace(committed_owner=entry.owner, committed_number=entry.number)
            world = world._replace(judge=judge)
        return world

    # --- telling ---

    def _arrival(self, packet: Packet) -> str:
        to = SLOTS[packet.to]
        return f"{to} gets {self._content(packet)}"

    def _content(self, packet: Packet) -> str:
        said: str = self.memory.once(packet, lambda: self._said(packet))
        return said

    def _said(self, packet: Packet) -> str:
        event = self.memory.thing(packet.event)
        message = getattr(event, "message", event)
        words = in_words(message) if message is not event else ""
        name = f"{type(message).__name__} of {SLOTS[packet.sender]}"
        return f"{name}: {words}" if words else name


def _record(record: AnyRecord) -> str:
    return f"{type(record).__name__} {in_words(record)}".rstrip()


def _only(world: SmallWorld) -> Branches:
    yield (), world


def _without(packets: tuple[Packet, ...], packet: Packet) -> tuple[Packet, ...]:
    i = packets.index(packet)
    return (*packets[:i], *packets[i + 1 :])


def _believing(world: SmallWorld, slot: int, belief: SeenLease) -> SmallWorld:
    beliefs = list(world.judge.beliefs)
    beliefs[slot - OWNERS[0]] = belief
    return world._replace(judge=world.judge._replace(beliefs=tuple(beliefs)))
