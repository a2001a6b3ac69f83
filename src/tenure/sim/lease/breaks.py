"""How each canary breaks its rule: the replacement of a method while it runs.

Each breaks no more than its rule. `canaries` says what each of them leaves out.
"""

from collections.abc import Callable
from typing import Any

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.machine import Output
from tenure.base.rangemap import RangeMap
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.leader.change_log import ChangeLog
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.leader import Leader
from tenure.protocol.lease.leader.manager import Manager
from tenure.protocol.lease.leader.moving import Moving
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.leader.publisher import Publisher
from tenure.protocol.lease.leader.renumbering import Renumbering
from tenure.protocol.lease.leader.session import NOT_RECALLED, Session
from tenure.protocol.lease.leader.witnesses import Witnesses
from tenure.protocol.lease.lookup.machine import UNKNOWN, LookupMachine
from tenure.protocol.lease.messages import Held, Hello, Process
from tenure.protocol.lease.owner.belief import Belief
from tenure.protocol.lease.owner.events import OwnerConfig
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import AnyRecord
from tenure.protocol.lease.table import FIRST_NUMBER, NOBODY, LeaseTable, Right
from tenure.protocol.lease.timing import Timing
from tenure.protocol.log.journal import (
    Append,
    Beaten,
    Campaigned,
    Committed,
    Mandate,
)
from tenure.protocol.log.leadership import Leadership, SeatAction
from tenure.sim.journal import LeaseContents


def term_from_receipt(self: OwnerMachine, now: int, sent_at: int, term_ns: int) -> Instant:
    del self, sent_at
    return Instant(now + term_ns)


def always(*_: object) -> bool:
    return True


def never(*_: object) -> bool:
    return False


def the_last_but_one(self: OwnerMachine, message: Any) -> bool:
    """Whether an answer counts: also one to the request before the newest, and otherwise as it
    should be.
    """
    request = self.request
    return (
        request is not None
        and 0 <= request.sequence - message.sequence <= 1
        and message.owner_nonce == self.owner_nonce
        and bool(message.manager_nonce == self.manager_nonce)
    )


def said_at_once(self: LeaderContext, action: Any) -> None:
    if self.leadership.is_proven:
        self._actions.append(action)


def kept_nonce(self: Manager) -> int:
    nonce: int = self.__dict__.setdefault("kept_nonce", self.random.randrange(1, 1 << 63))
    return nonce


def name_taken_over(self: Pool, now: Instant, connection: int, message: Any, holder: Any) -> None:
    """Give a name away if its holder was not heard for a term, although its hold is longer."""
    if now < holder.hold_until - (self.context.timing.hold_ns - self.context.timing.term_ns):
        _original_refuse_name(self, now, connection, message, holder)
        return
    ranges = [held.range for held in self.table.held_by(holder.incarnation)]
    self._remove(now, holder, ranges, LeaderKind.EVICTED)
    self.on_join(now, connection, message)


def nothing_returned(*_: object) -> list[Any]:
    return []


def event_first(self: OwnerMachine, now: Instant, event: Any) -> Output[Any]:
    advance = self._advance
    self.__dict__["_advance"] = lambda _: None
    try:
        output = _original_handle(self, now, event)
    finally:
        del self.__dict__["_advance"]
    advance(now)
    later = self._output(now)
    return Output(output.actions + later.actions, later.wake_at)


_original_handle = OwnerMachine.handle
_original_refuse_name = Pool.__dict__["_refuse_name"]
_original_take = Belief.take
_original_seat_advance = Leadership.advance
_original_beaten = Leadership.on_beaten
_original_leader = Leader.__init__
_original_answered: Callable[..., None] = LookupMachine.__dict__["_answered"]
_original_lookup_take: Callable[..., None] = LookupMachine.__dict__["_take"]
_original_hello = OwnerConfig.hello
_original_introduction: Callable[..., None] = OwnerMachine.__dict__["_on_introduction"]
_original_pool_advance = Pool.advance
_original_grant: Callable[..., Any] = Pool.__dict__["_grant"]
_original_created = LeaseTable.__init__
_original_from_state = LeaseTable.__dict__["from_state"].__func__


def free_at_the_deadline(self: Pool, now: Instant) -> None:
    for session in list(self.sessions.values()):
        for piece, deadline in list(session.recalled):
            if deadline != NOT_RECALLED and now >= deadline:
                self._free(now, [piece])
    _original_pool_advance(self, now)


def free_what_is_planned(self: Pool, now: Instant, session: Session) -> Any:
    for wanted in self.planner.wanted_by(session.incarnation):
        others = [
            piece
            for piece, right in self.table.within(wanted)
            if right.owner not in (NOBODY, session.incarnation)
        ]
        if others:
            self._free(now, others)
    return _original_grant(self, now, session)


def forget_the_counter(cls: type[LeaseTable], state: Any) -> LeaseTable:
    table: LeaseTable = _original_from_state(cls, state)
    owned = (entry.number for entry in state.entries if entry.owner != NOBODY)
    table.next_number = max(owned, default=FIRST_NUMBER) + 1
    return table


def created_without_former(self: LeaseTable, created: Any, first: Any = None) -> None:
    del first
    _original_created(self, created)


def waits_half(now: Instant, inherited_ns: int) -> Instant:
    return Instant(now + inherited_ns // 2)


def waits_its_own_hold(self: Leader, now: Instant, context: Any, *args: Any, **named: Any) -> None:
    history, timing = context.history, context.timing
    promised = history.promise_ns
    own_ns = timing.hold_ns + timing.on_any_clock(timing.leadership_ns)
    history.promise_ns = min(promised, own_ns)
    _original_leader(self, now, context, *args, **named)
    history.promise_ns = max(history.promise_ns, promised)


def waits_a_term(self: Leader, now: Instant, context: Any, *args: Any, **named: Any) -> None:
    _original_leader(self, now, context, *args, **named)
    if self.first_start.grants_at != FAR_FUTURE:
        self.first_start.grants_at = Instant(now + context.timing.term_ns)


def ranges_alone(self: Pool, session: Session, held: tuple[Held, ...]) -> list[Any]:
    given = self.table.held_by(session.incarnation)
    listed = RangeMap.of(((item.range, item.number) for item in held), 0)
    return [piece for item in given for piece, number in listed.within(item.range) if number == 0]


def equal_numbers_too(self: Belief, listed: Any) -> Any:
    highest = self._highest_number
    self._highest_number = highest - 1
    actions = _original_take(self, listed)
    self._highest_number = max(self._highest_number, highest)
    return actions


def contact_from_receipt(self: LookupMachine, now: Instant, manager: str, message: Any) -> None:
    _original_answered(self, now, manager, message)
    self.contact_until = Instant(now + self.contact_ns)


def published_where_it_changed(
    self: LookupMachine, message: Any, *, snapshot: bool, is_all_new: bool
) -> None:
    _original_lookup_take(self, message, snapshot=snapshot, is_all_new=is_all_new and snapshot)


def follows_anybody(self: OwnerMachine, now: Instant, manager: str, message: Any) -> None:
    if message.journal == self.belief.journal and message.leadership < self.leadership:
        self.leadership, self.manager_nonce = message.leadership, message.manager_nonce
    _original_introduction(self, now, manager, message)


def without_its_receipt(self: OwnerConfig, token: int, journal: int, receipt: bytes) -> Hello:
    del receipt
    return _original_hello(self, token, journal, b"")


def forgets_that_it_forgot(self: ChangeLog, instant: Instant) -> None:
    while self._changes and self._changes[0].at < instant:
        self._size -= len(self._changes.popleft().entries)


original_publisher = Publisher.__init__


def log_from_the_beginning(self: Publisher, context: LeaderContext, table: LeaseTable) -> None:
    """The log claims to begin at the journal's beginning, although it lacks the changes from before
    this leadership.
    """
    original_publisher(self, context, table)
    self.log.begins_after = 0


def by_the_last_flag(self: LookupMachine, key_range: Any, entry: Any) -> list[Any]:
    was_clean = entry.number != entry.since
    return [
        piece
        for piece, known in self.table.within(key_range)
        if known.number not in (UNKNOWN, entry.number) and not was_clean
    ]


def all_that_is_known(self: LookupMachine, *_: object) -> list[Any]:
    return [piece for piece, known in self.table if known.number != UNKNOWN]


def any_append_lands(self: LeaseContents, action: Append[AnyRecord]) -> Committed:
    """Append at the end, whoever sent the records. Only a repetition is still noticed."""
    if not self.has(action):
        self.write(action)
    return Committed(action.after_lsn + len(action.records))


def by_number_alone(self: LeaseContents, mandate: Mandate) -> bool:
    return self.seat.leadership == mandate.leadership and self.seat.manager != ""


class LeadershipByWallClock(Leadership):
    """A leadership that is counted from when the last confirmed beat was sent, as it should be, but
    on the wall clock.
    """

    def __init__(self, manager: str, timing: Timing, wall: Callable[[], Instant]) -> None:
        super().__init__(manager, timing)
        self._wall = wall
        self._asked_at_wall = self._proven_until_wall = Instant(0)

    def is_proven_at(self, now: Instant) -> bool:
        del now
        return self.phase == "leading" and self._wall() < self._proven_until_wall

    def _ask(self, now: Instant, action: SeatAction) -> SeatAction:
        self._asked_at_wall = self._wall()
        return super()._ask(now, action)

    def on_campaigned(self, event: Campaigned) -> bool:
        return self._proven_anew(super().on_campaigned, event)

    def on_beaten(self, event: Beaten) -> bool:
        return self._proven_anew(super().on_beaten, event)

    def _proven_anew(self, take: Callable[[Any], bool], event: Campaigned | Beaten) -> bool:
        before = self.proven_until
        taken = take(event)
        if self.proven_until > before:
            self._proven_until_wall = Instant(self._asked_at_wall + self.timing.leadership_ns)
        return taken


def noting_the_time(self: Leadership, now: Instant) -> Any:
    self.__dict__["_advanced_at"] = now
    return _original_seat_advance(self, now)


def proven_from_the_answer(self: Leadership, event: Beaten) -> bool:
    before = self.proven_until
    kept = _original_beaten(self, event)
    if self.proven_until > before:
        self.proven_until = Instant(self.__dict__["_advanced_at"] + self.timing.leadership_ns)
    return kept


def closed_is_dead(self: Witnesses, now: Instant, connection: int) -> None:
    for pool in self.pools.values():
        for session in list(pool.sessions.values()):
            if session.connection == connection:
                pool.on_death(now, session, LeaderKind.ATTESTED)


def by_pid_alone(self: Witnesses, now: Instant, connection: int, message: Any) -> None:
    del connection
    for pool in self.pools.values():
        for session in list(pool.sessions.values()):
            process = pool.table.members[session.incarnation].process
            if process and _where(process) == _where(message.process):
                pool.on_death(now, session, LeaderKind.ATTESTED)


def _where(process: Process) -> tuple[str, int, int, int]:
    return (*process.place, process.pid)


def unread_is_gone(self: Sight, suspect: Process) -> bool:
    if self.is_there is False or self.start_time != suspect.start_time:
        return True
    return self.first_thread_ended and self.has_other_threads is False


def first_thread_is_all(self: Sight, suspect: Process) -> bool:
    gone = _original_shows_gone(self, suspect)
    return gone or (self.start_time is not None and self.first_thread_ended)


original_place: Callable[[Process], tuple[str, int, int]] = Process.__dict__["place"].fget
_original_shows_gone = Sight.shows_gone


def end_it_for_nobody(self: Belief, key_range: Any) -> Any:
    del key_range
    return self._hold()


def all_of_them(self: Moving, copies: Any) -> tuple[Held, ...]:
    del self
    return tuple(Held(start=copy.start, end=copy.end, number=copy.number) for copy in copies)


_original_runs: Callable[..., Any] = Renumbering.runs


def whatever_its_since(rights: RangeMap[Right], number: int) -> Any:
    """Treat the neighbouring ranges of an owner as if all were as young as the youngest."""
    youngest = max(right.since for right in rights.values())
    rights_of = [right._replace(since=youngest) for right in rights.values()]
    return _original_runs(zip([each for each, _ in rights], rights_of, strict=True), number)
