"""A world small enough to be searched whole: few processes, coarse time, everything a value.

Machines and their events are numbers of a `Memory`. Time goes in ticks, the same for all, while
clocks run at different rates. Faults are limited in number, not in place: one lost message may be
any message, one freeze may be anywhere and of any length. Within a tick, messages between different
processes arrive in every order. Without a fault that says so, nothing takes longer than the tick it
began in.

The fate of a message is chosen when it is sent: other orders would only be other ways to tell the
same story. For the same reason only one receiver takes messages at a time: messages to different
processes cannot race with each other.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from lab.search.exhaustive import Choices
from lab.search.memo import Memory
from tenure.base.instants import Instant

NOT_THERE = -1
ANYBODY = 0
"""Stands for whichever process is at the address when the packet arrives."""
Move = tuple[Callable[..., None], *tuple[Any, ...]]
"""One thing that may happen next: the function that carries it out, and its arguments."""


class Life(NamedTuple):
    """A process, or an empty place."""

    machine: int = NOT_THERE
    uid: int = 0
    wake_at: int = 0
    frozen: bool = False


class Packet(NamedTuple):
    """A message on its way, or another event that waits for a process."""

    sender: int
    to: int
    uid: int
    """The process that the packet is for, or ANYBODY."""
    event: int


class SmallState(NamedTuple):
    tick: int
    lives: tuple[Life, ...]
    flying: tuple[Packet, ...]
    """The messages on their way, in order for each pair of places."""
    aside: tuple[Packet, ...]
    """The late messages, which may arrive at any time."""
    left: tuple[int, ...]
    """How many faults may still happen, for each kind that the world limits."""
    more: Hashable
    """The additional state of the tier: a journal, or what the checkers remember."""


class SmallWorld:
    """The possible next events, and their results. A tier says what its processes do."""

    slots: ClassVar[tuple[str, ...]]
    """The places of processes."""
    clients: ClassVar[tuple[int, ...]]
    """The places of processes that ask. Their timers may be late: what arrives in the same tick may
    come before the timer.
    """
    dies_before: ClassVar[tuple[type, ...]] = ()
    """The actions before which a process may be killed. Other processes are killed only at rest."""

    def __init__(self, limits: Mapping[str, int], ticks: int) -> None:
        self.memory = Memory()
        self.kinds = tuple(limits)
        self.limits = tuple(limits.values())
        self.ticks = ticks
        self.choices = Choices()
        self.tick = 0
        self.lives: list[Life] = []
        self.flying: list[Packet] = []
        self.aside: list[Packet] = []
        self.left: list[int] = []
        self._heard: list[int] = []

    # --- what a tier says ---

    @abstractmethod
    def begin(self) -> None:
        """Start the processes that are there from the beginning. Nothing goes wrong until this
        ends.
        """

    @abstractmethod
    def now(self, slot: int) -> Instant:
        """The reading of the clock of the process in a place."""

    @abstractmethod
    def make(self, slot: int, uid: int) -> Any:
        """The machine of a new process in a place."""

    @abstractmethod
    def act(self, slot: int, action: Any) -> None:
        """Carry out an action of the process in a place."""

    @abstractmethod
    def in_words(self, packet: Packet) -> str:
        """The contents of the packet, as a story tells them."""

    def keep(self) -> Hashable:
        """The part of a state that the tier keeps, beside what all small worlds have."""
        return None

    def bring_back(self, kept: Any) -> None:
        """Take up a state for which `keep` returned `kept`."""

    def check(self) -> None:
        """A step is over. Raise Violation if a promise is broken."""

    def crash_of(self, slot: int) -> str:
        """The kind of fault by which the process in a place is killed."""
        return "crash"

    def may_start(self, slot: int) -> bool:
        """Whether a process may start now in an empty place, if processes may start at all."""
        return True

    def more_faults(self) -> Iterator[Move]:
        """The other moves by which something may go wrong while everybody is at rest."""
        return iter(())

    def on_killed(self, slot: int) -> None:
        """The process in a place was killed."""

    # --- as the search sees it ---

    def first(self) -> SmallState:
        """The state in which every story begins."""
        self.choices = Choices()
        self.tick = 0
        self.lives = [Life()] * len(self.slots)
        self.flying, self.aside = [], []
        self.left = [0] * len(self.limits)
        self.begin()
        self.left = list(self.limits)
        return self._state()

    def step(self, state: SmallState, choices: Choices) -> SmallState | None:
        """The next state, as chosen. None if nothing can follow."""
        self.choices = choices
        self.tick, lives, flying, aside, left, more = state
        self.lives, self.flying, self.aside = list(lives), list(flying), list(aside)
        self.left = list(left)
        self.bring_back(more)
        if not self.go_on():
            return None
        self.check()
        return self._state()

    def go_on(self) -> bool:
        """Make one move. Return whether there was any."""
        moves = list(self._moves())
        if not moves:
            return False
        carry_out, *arguments = moves[self.choose(len(moves))]
        carry_out(*arguments)
        return True

    def _state(self) -> SmallState:
        self.flying.sort(key=_pair)  # stable: each pair keeps its order
        self.aside.sort()
        return SmallState(
            self.tick,
            tuple(self.lives),
            tuple(self.flying),
            tuple(self.aside),
            tuple(self.left),
            self.keep(),
        )

    # --- choosing and telling ---

    def choose(self, count: int) -> int:
        """Choose a number from 0 up to, but not including, `count`: the search tries each in
        turn.
        """
        return self.choices.choose(count) if count > 1 else 0

    def fate(self, kinds: tuple[str, ...]) -> str:
        """Choose a fate: one of these kinds of fault, or "", which is no fault."""
        there = ("", *(kind for kind in kinds if self.may(kind)))
        kind = there[self.choose(len(there))]
        if kind:
            self.spend(kind)
        return kind

    def may(self, kind: str) -> bool:
        """Whether a kind of fault may still happen."""
        return kind in self.kinds and self.left[self.kinds.index(kind)] > 0

    def spend(self, kind: str) -> None:
        """Note that a fault of this kind happens, so that one fewer may follow."""
        self.left[self.kinds.index(kind)] -= 1

    def tell(self, text: Callable[[], str]) -> None:
        """Note a line for the story."""
        self.choices.tell(text)

    def headline(self, text: Callable[[], str]) -> None:
        self.tell(lambda: f"tick {self.tick}: {text()}")

    # --- what can happen ---

    def _moves(self) -> Iterator[Move]:
        due = [slot for slot in range(len(self.slots)) if self._is_due(slot)]
        heads = self._heads()
        if due:
            slot = due[0]
            yield self._wake, slot
            if slot in self.clients:  # its timer may be late, but not later than this
                yield from ((self._arrive, each) for each in heads if each.to == slot)
                yield from self._stragglers((slot,))
        elif heads:
            to = max(packet.to for packet in heads)
            yield from ((self._arrive, each) for each in heads if each.to == to)
            yield from self._freezes((to,))
        else:
            everybody = tuple(range(len(self.slots)))
            yield from self._stragglers(everybody)
            yield from self._freezes(everybody)
            yield from self._crashes_and_starts()
            yield from self.more_faults()
            if self.tick < self.ticks:
                yield (self._pass,)

    def is_there(self, slot: int) -> bool:
        """Whether a process is in a place."""
        return self.lives[slot].machine != NOT_THERE

    def _is_due(self, slot: int) -> bool:
        life = self.lives[slot]
        there = life.machine != NOT_THERE and not life.frozen
        return there and life.wake_at <= self.now(slot)

    def _heads(self) -> list[Packet]:
        """The first message of each pair of places, if its receiver takes messages."""
        heads: dict[tuple[int, int], Packet] = {}
        for packet in self.flying:
            if not self.lives[packet.to].frozen:
                heads.setdefault(_pair(packet), packet)
        return list(heads.values())

    def _stragglers(self, slots: tuple[int, ...]) -> Iterator[Move]:
        for packet in sorted(set(self.aside)):
            if packet.to in slots and not self.lives[packet.to].frozen:
                yield self._arrive_late, packet

    def _freezes(self, slots: tuple[int, ...]) -> Iterator[Move]:
        if self.may("freeze"):
            for slot in slots:
                if self.is_there(slot) and not self.lives[slot].frozen:
                    yield self._freeze, slot

    def _crashes_and_starts(self) -> Iterator[Move]:
        for slot, life in enumerate(self.lives):
            if life.frozen:
                yield self._thaw, slot
            if self.is_there(slot):
                if self.may(self.crash_of(slot)):
                    yield self._crash, slot
            elif self.may("starts") and self.may_start(slot):
                yield self._start, slot

    # --- moves ---

    def _pass(self) -> None:
        self.headline(lambda: "time passes")
        self.tick += 1

    def _wake(self, slot: int) -> None:
        self.headline(lambda: f"{self.slots[slot]} wakes")
        self.take(slot, None)

    def _arrive(self, packet: Packet) -> None:
        self.headline(lambda: f"{self.slots[packet.to]} gets {self.in_words(packet)}")
        self.flying.remove(packet)
        self.deliver(packet)

    def _arrive_late(self, packet: Packet) -> None:
        self.headline(lambda: f"late, {self.slots[packet.to]} gets {self.in_words(packet)}")
        self.aside.remove(packet)
        self.deliver(packet)

    def _freeze(self, slot: int) -> None:
        self.headline(lambda: f"{self.slots[slot]} is stopped")
        self.spend("freeze")
        self.lives[slot] = self.lives[slot]._replace(frozen=True)

    def _thaw(self, slot: int) -> None:
        self.headline(lambda: f"{self.slots[slot]} goes on")
        self.lives[slot] = self.lives[slot]._replace(frozen=False)

    def _crash(self, slot: int) -> None:
        self.headline(lambda: f"{self.slots[slot]} is killed")
        self.spend(self.crash_of(slot))
        self.kill(slot)

    def _start(self, slot: int) -> None:
        self.headline(lambda: f"{self.slots[slot]} starts")
        self.spend("starts")
        self.start(slot)

    # --- processes ---

    def start(self, slot: int) -> None:
        """Start a process in a place."""
        uid = self.lives[slot].uid + len(self.slots) if self.lives[slot].uid else slot + 1
        self.lives[slot] = Life(self.memory.number(self.make(slot, uid)), uid)
        self.take(slot, None)

    def kill(self, slot: int) -> None:
        """End the process in a place. Messages to this very process reach nobody."""
        uid = self.lives[slot].uid
        self.lives[slot] = Life(uid=uid)
        self.flying = [each for each in self.flying if (each.to, each.uid) != (slot, uid)]
        self.aside = [each for each in self.aside if (each.to, each.uid) != (slot, uid)]
        self.on_killed(slot)

    def deliver(self, packet: Packet) -> None:
        """Hand a packet that has arrived to the process that it is for."""
        life = self.lives[packet.to]
        if life.machine != NOT_THERE and packet.uid in (ANYBODY, life.uid):
            self.take(packet.to, packet.event)

    def take(self, slot: int, event: int | None) -> None:
        """Hand an event, or only the time, to the machine in a place, and carry out its actions."""
        step = self.memory.step(self.lives[slot].machine, self.now(slot), event)
        self.lives[slot] = self.lives[slot]._replace(machine=step.state, wake_at=step.wake_at)
        outer, self._heard = self._heard, []
        for action in step.actions:
            if self._dies_before(slot, action):
                break
            self.act(slot, action)
        answers, self._heard = self._heard, outer
        for answer in answers:
            if self.is_there(slot):
                self.take(slot, answer)

    def _dies_before(self, slot: int, action: Any) -> bool:
        if isinstance(action, self.dies_before) and self.fate((self.crash_of(slot),)):
            self.tell(lambda: f"{self.slots[slot]} is killed before {type(action).__name__}")
            self.kill(slot)
        return not self.is_there(slot)

    # --- what processes do ---

    def answer(self, event: int) -> None:
        """Note an event that the process hears as soon as its actions are carried out."""
        self._heard.append(event)

    def send(self, packet: Packet, *fates: str) -> None:
        """Send a packet. It may have one of these fates: "lose", "late" and "double"."""
        fate = self.fate(fates)
        if fate:
            told = {"lose": "lost", "late": "will be late", "double": "will come twice"}[fate]
            self.tell(lambda: f"{told}: {self.in_words(packet)}")
        if fate in ("", "double"):
            self.flying.append(packet)
        if fate in ("late", "double"):
            self.aside.append(packet)

    def event_of(self, action: Any, about: object, event: Callable[[], Any]) -> int:
        """The number of the event that `action` becomes; actions are kept, so they have an id."""
        number: int = self.memory.once((id(action), about), lambda: self.memory.number(event()))
        return number


def _pair(packet: Packet) -> tuple[int, int]:
    return packet.sender, packet.to
