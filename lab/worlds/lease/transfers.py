"""Channels between simulated owners: the machines that give and take, and the way between them.

A message takes a moment, and arrives after those before it. A channel may break, and an end whose
process is stopped hears nothing until it goes on. An application exports, imports and drops state
at once, in its dictionary; the machine is told so a moment later.

In some ranges an operation has begun that must finish before they move: it settles in its time, or
never does. It is judged when serving ends (`SimBody.is_cut_short`).
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any, Generic, TypeVar

import msgspec

from lab.worlds.lease.processes import OwnerProcess
from lab.worlds.lease.store import Values
from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, Instant
from tenure.base.keys import Key
from tenure.base.machine import Machine
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import HandOff
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner import giving, taking
from tenure.protocol.lease.owner.transfer import (
    HangUp,
    Last,
    Listen,
    Offer,
    PeerLost,
    PeerMessage,
    PeerSaid,
    Say,
)
from tenure.wire.hand_off import decode_to_source, decode_to_taker, encode

M = TypeVar("M", bound=Machine[Any, Any])

BREAK_SEEN_NS = 50 * MILLISECOND_NS
KEYS_PER_CHUNK = 2
BODIES, HANGING_BODIES = 0.2, 0.1
"""The part of all hand-offs in which an operation has begun, and the part of these operations that
never end.
"""
LONGEST_BODY_NS = 500 * MILLISECOND_NS
_channels = count(1)


class End(ABC, Generic[M]):
    """One end of a channel: a machine, in a process."""

    def __init__(self, process: OwnerProcess, machine: M) -> None:
        self.process = process
        self.world = process.site
        self.machine = machine
        self.peer: End[Any] | None = None
        self._events: deque[Any] = deque()
        self._arrived: deque[bytes] = deque()
        self._listens = False
        self._is_over = False
        self._quiet_until = 0
        """Nothing that is sent to this end arrives before this instant, so messages keep their
        order.
        """
        self._timer_at: int = FAR_FUTURE
        self._wakes = False

    def start(self) -> None:
        """Begin the hand-off at this end."""
        self._take(self.machine.advance(self.process.now()))

    def post(self, event: Any) -> None:
        """Give the machine an event. It waits while the process is frozen."""
        self._events.append(event)
        self._go_on()

    def _go_on(self, _: object = None) -> None:
        self._wakes = False
        while self._events and self._is_there:
            if self.process.is_frozen:
                self._go_on_later()
                return
            self._take(self.machine.handle(self.process.now(), self._events.popleft()))

    @property
    def _is_there(self) -> bool:
        return self.process.alive and not self._is_over

    def _go_on_later(self) -> None:
        if not self._wakes:
            self._wakes = True
            self.world.at((self.process.thaws_at or 0) + 1, self._go_on, None)

    def _take(self, output: Any) -> None:
        self.machine.invariants()
        for action in output.actions:
            self._perform(action)
        at = max(self.process.clock.real(output.wake_at), self.world.now)
        if output.wake_at < FAR_FUTURE and at != self._timer_at:
            self._timer_at = at
            self.world.at(at, self._on_timer, at)

    def _on_timer(self, at: int) -> None:
        if at != self._timer_at or not self._is_there:
            return
        if self.process.is_frozen:
            self.world.at((self.process.thaws_at or 0) + 1, self._on_timer, at)
            return
        self._timer_at = FAR_FUTURE
        self._take(self.machine.advance(self.process.now()))

    # --- the channel ---

    def _perform(self, action: Any) -> None:
        match action:
            case Say(message=message):
                self._say(message)
            case Listen():
                self._listens = True
                self._hear()
            case HangUp():
                self._is_over = True
                self.break_off()
                self.end()
            case _:
                self.act(action)

    @abstractmethod
    def act(self, action: Any) -> None:
        """Carry out what the machine wants of the application, or of its owner."""

    @abstractmethod
    def end(self) -> None:
        """Forget this end: nothing follows."""

    @abstractmethod
    def decode(self, data: bytes) -> PeerMessage:
        """Decode a message to this end."""

    def _say(self, message: Any) -> None:
        faults, takes_ns = self.world.faults, self.a_moment()
        if isinstance(message, Offer | Last):
            if faults.breaks_a_hand_off():
                self.world.at(self.world.now + BREAK_SEEN_NS, self._lose, "the channel broke")
                self.break_off()
                return
            takes_ns += faults.time_of_a_hand_off()
        if self.peer is not None:
            self.peer.send_here(self.peer._receive, encode(message), takes_ns)  # noqa: SLF001

    def send_here(self, arrive: Any, what: object, takes_ns: int) -> None:
        """Let a call arrive here, after all that was sent before it."""
        self._quiet_until = max(self.world.now + takes_ns, self._quiet_until + 1)
        self.world.at(self._quiet_until, arrive, what)

    def break_off(self) -> None:
        """Let the other end see that the channel has ended."""
        if self.peer is not None:
            self.peer.send_here(self.peer._lose, "the other side closed it", self.a_moment())  # noqa: SLF001

    def a_moment(self) -> int:
        """How long a short piece of work takes."""
        return 1 + self.world.random.randrange(20 * MILLISECOND_NS)

    def _receive(self, data: bytes) -> None:
        if self._is_there:
            self._arrived.append(data)
            self._hear()
        elif self.peer is not None and not self.process.alive:
            self.break_off()

    def _hear(self) -> None:
        if self._listens and self._arrived:
            self._listens = False
            self.post(PeerSaid(self.decode(self._arrived.popleft())))  # type: ignore[arg-type]

    def _lose(self, why: str) -> None:
        self.post(PeerLost(why))

    def soon(self, event: object) -> None:
        """Tell the machine, a moment later, that the application has done what it was asked."""
        self.world.at(self.world.now + self.a_moment(), self.post, event)


class SimBody:
    """An operation that has begun in a range that is to move, and writes there until it ends."""

    def __init__(self, process: OwnerProcess, order: HandOff) -> None:
        # A source of its own: what it draws does not change what the seed means elsewhere.
        random = Random(order.number ^ process.site.now)  # not for secrets
        self._process = process
        self._deadline: Instant | None = None
        """When the wait for it ends. None if nobody has asked it to end."""
        lasts = 0
        if random.random() < BODIES:
            hangs = process.site.faults.is_on and random.random() < HANGING_BODIES
            lasts = FAR_FUTURE // 2 if hangs else random.randrange(LONGEST_BODY_NS)
        self.ends_at = process.site.now + lasts

    def settle(self, deadline: Instant) -> int:
        """Ask the operation to end. Return the instant at which it will have ended."""
        self._deadline = deadline
        return max(self.ends_at, self._process.site.now + 1)

    def is_cut_short(self) -> bool:
        """Whether the operation goes on although it was to be waited for."""
        process = self._process
        in_time = self._deadline is None or process.now() < self._deadline
        return process.site.now < self.ends_at and in_time


class Ends:
    """The ends of channels in one process."""

    def __init__(self) -> None:
        self.giving: dict[HandOff, GivingEnd] = {}
        self.taking: dict[int, TakingEnd] = {}


class GivingEnd(End[giving.Giving]):
    """The source's end."""

    def __init__(
        self, process: OwnerProcess, order: HandOff, ends_of: Callable[[OwnerProcess], Ends]
    ) -> None:
        seen = process.machine.view()
        offer = Offer(
            pool=seen.config.pool,
            journal=seen.journal,
            start=order.start,
            end=order.end,
            number=order.number,
            source=seen.incarnation,
            taker=order.taker,
            secret=order.secret,
        )
        gives_reads = seen.config.reads_ns > 0
        super().__init__(process, giving.Giving(order, offer, gives_reads=gives_reads))
        self.order = order
        self._ends_of = ends_of
        self.body = SimBody(process, order)
        self._sent: Values = {}
        self._to_send: list[Key] = []

    def act(self, action: giving.GivingAction) -> None:
        match action:
            case giving.Reach(address=address):
                self.world.at(self.world.now + self.a_moment(), self._reach, address)
            case giving.Export():
                values = self.process.store.values
                self._to_send = [
                    key
                    for key, version in values.items()
                    if key in self.order.range and self._sent.get(key) != version
                ]
                self.soon(giving.ExportBegun())
            case giving.MakeChunk():
                self.soon(giving.ChunkMade(self._chunk()))
            case giving.Settle(deadline=deadline):
                self.world.at(self.body.settle(deadline), self.post, giving.Settled())
            case giving.Withdraw():
                self.process.withdraw(self.order)
            case giving.EndServing():
                self.process.post(owner_events.CopiedAhead(self.order))
            case giving.HaveGiven():
                self.world.count_note("range handed over")
                self.process.post(owner_events.HandedOver(self.order))
            case giving.FailGiving():
                self.process.post(owner_events.HandOffFailed(self.order))
                self.process.keep_serving(self.order)

    def _chunk(self) -> bytes | None:
        keys, self._to_send = self._to_send[:KEYS_PER_CHUNK], self._to_send[KEYS_PER_CHUNK:]
        values = self.process.store.values
        chunk = {key: values[key] for key in keys if key in values}
        self._sent |= chunk
        return msgspec.msgpack.encode(chunk) if keys else None

    def _reach(self, address: str) -> None:
        taker = self.world.owner_at(address)
        if taker is None or not taker.alive:
            self.post(PeerLost("nobody listens there"))
        elif self._is_there:
            peer = TakingEnd(taker, next(_channels), self._ends_of(taker))
            self.peer, peer.peer = peer, self
            peer.start()
            self.post(giving.PeerReached())

    def end(self) -> None:
        giving_now = self._ends_of(self.process).giving
        if giving_now.get(self.order) is self:
            del giving_now[self.order]

    def decode(self, data: bytes) -> PeerMessage:
        return decode_to_source(data)


class TakingEnd(End[taking.Taking]):
    """The taker's end."""

    offer: Offer

    def __init__(self, process: OwnerProcess, channel: int, ends: Ends) -> None:
        gives_reads = process.machine.view().config.reads_ns > 0
        super().__init__(process, taking.Taking(gives_reads=gives_reads))
        self.channel = channel
        self._among = ends.taking
        ends.taking[channel] = self
        self._is_admitted = False

    def is_of(self, key_range: KeyRange, number: int) -> bool:
        """Whether this end takes the state of that range and number."""
        if not self._is_admitted:
            return False
        return self.offer.number == number and self.offer.range.overlaps(key_range)

    def act(self, action: taking.TakingAction) -> None:
        store = self.process.store
        match action:
            case taking.AskToAdmit(offer=offer):
                self.offer = offer
                self.process.post(owner_events.OfferMade(self.channel, offer))
            case taking.Clear():
                self._is_admitted = True
                self.world.states.take_out(self.process, [self.offer.range])
                self.soon(taking.Cleared())
            case taking.TakeIn(chunk=chunk):
                store.values |= msgspec.msgpack.decode(chunk.data, type=dict[bytes, int])
                self.soon(taking.TookIn())
            case taking.TakeWrites(data=data):
                self.process.take_writes(self.offer, data)
            case taking.AskToKeep():
                self.process.post(owner_events.Imported(self.channel))
            case taking.EndTaking():
                self.process.post(owner_events.ArrivalEnded(self.channel))

    def end(self) -> None:
        self._among.pop(self.channel, None)

    def decode(self, data: bytes) -> PeerMessage:
        return decode_to_taker(data)
