"""Machines broken on purpose: the checkers must catch every one.

A checker that has never caught anything may be checking nothing. Each canary is the system with one
rule left out and nothing else changed; its unbroken twin must stay clean on the very same seeds.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from tenure.base.instants import Instant
from tenure.base.machine import Output
from tenure.errors import ConfigurationError
from tenure.journals.memory import JournalContents
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.leader.leader import Leader
from tenure.protocol.lease.leader.manager import Manager
from tenure.protocol.lease.leader.moving import Moving
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.leader.session import NOT_RECALLED, Session
from tenure.protocol.lease.leader.witnesses import Witnesses
from tenure.protocol.lease.lookup.machine import UNKNOWN, LookupMachine
from tenure.protocol.lease.messages import Held, Process
from tenure.protocol.lease.owner.belief import Belief
from tenure.protocol.lease.owner.copies import Copies
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import AnyRecord
from tenure.protocol.lease.table import FIRST_NUMBER, NOBODY, LeaseTable
from tenure.protocol.lease.timing import Timing
from tenure.protocol.log.journal import (
    Append,
    Beaten,
    Campaigned,
    Committed,
)
from tenure.protocol.log.leadership import Leadership, SeatAction
from tenure.protocol.log.ledger import Ledger
from tenure.sim.lease.operator import Operator

Patch = tuple[type, str, Callable[..., Any] | property]
SKEW_AT_THE_BOUND = 40_000
"""Parts in a million either way: rates of 0.96 and 1.04 are 8.33 % apart, as the paper allows."""
SKEW_OVER_THE_BOUND = 49_881
"""10.5 % apart."""


@dataclass(frozen=True)
class Canary:
    """One rule left out."""

    name: str
    leaves_out: str = ""
    patches: tuple[Patch, ...] = ()
    no_hold_margin: bool = False
    clock_stops_in_suspend: bool = False
    leads_by_wall_clock: bool = False
    skew: int = SKEW_AT_THE_BOUND

    def timing(self, timing: Timing) -> Timing:
        """The managers' timing."""
        if not self.no_hold_margin:
            return timing
        return msgspec.structs.replace(timing, hold_ns=timing.term_ns + 1)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """While this lasts, the machines of this process are broken."""
        kept = [(owner, name, owner.__dict__[name]) for owner, name, _ in self.patches]
        for owner, name, replacement in self.patches:
            setattr(owner, name, replacement)
        try:
            yield
        finally:
            for owner, name, original in kept:
                setattr(owner, name, original)


def _term_from_receipt(self: OwnerMachine, now: int, sent_at: int, term_ns: int) -> Instant:
    del self, sent_at
    return Instant(now + term_ns)


def _always(*_: object) -> bool:
    return True


def _never(*_: object) -> bool:
    return False


def _any_answer(self: OwnerMachine, message: Any) -> bool:
    return self.request is not None and bool(message.owner_nonce == self.owner_nonce)


def _kept_nonce(self: Manager) -> int:
    nonce: int = self.__dict__.setdefault("_kept_nonce", self.random.randrange(1, 1 << 63))
    return nonce


def _name_taken_over(self: Pool, now: Instant, connection: int, message: Any, holder: Any) -> None:
    ranges = [held.range for held in self.table.held_by(holder.incarnation)]
    self._remove(now, holder, ranges, LeaderKind.EVICTED)
    self.on_join(now, connection, message)


def _nothing_returned(*_: object) -> list[Any]:
    return []


def _event_first(self: OwnerMachine, now: Instant, event: Any) -> Output[Any]:
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
_original_pool_advance = Pool.advance
_original_grant: Callable[..., Any] = Pool.__dict__["_grant"]
_original_from_state = LeaseTable.__dict__["from_state"].__func__


def _free_at_the_deadline(self: Pool, now: Instant) -> None:
    for session in list(self.sessions.values()):
        for piece, deadline in list(session.recalled):
            if deadline != NOT_RECALLED and now >= deadline:
                self._free(now, [piece])
    _original_pool_advance(self, now)


def _free_what_is_planned(self: Pool, now: Instant, session: Session) -> Any:
    for wanted in self.planner.wanted_by(session.incarnation):
        others = [
            piece
            for piece, right in self.table.within(wanted)
            if right.owner not in (NOBODY, session.incarnation)
        ]
        if others:
            self._free(now, others)
    return _original_grant(self, now, session)


def _forget_the_counter(cls: type[LeaseTable], state: Any) -> LeaseTable:
    table: LeaseTable = _original_from_state(cls, state)
    table.next_number = FIRST_NUMBER + 1
    return table


def _no_wait(now: Instant, inherited_ns: int) -> Instant:
    del inherited_ns
    return now


def _by_the_last_flag(self: LookupMachine, key_range: Any, entry: Any) -> list[Any]:
    was_clean = entry.number != entry.since
    return [
        piece
        for piece, known in self.table.within(key_range)
        if known.number not in (UNKNOWN, entry.number) and not was_clean
    ]


def _all_that_is_known(self: LookupMachine, *_: object) -> list[Any]:
    return [piece for piece, known in self.table if known.number != UNKNOWN]


def _any_append_lands(self: JournalContents, action: Append[AnyRecord]) -> Committed:
    """At the end, whoever sent it; only that it is repeated is still noticed."""
    if not self.has(action):
        self.write(action)
    return Committed(action.after_lsn + len(action.records))


class LeadershipByWallClock(Leadership):
    """Counts from when the last confirmed beat was sent, as it should, but on the wall clock."""

    def __init__(self, manager: str, timing: Timing, wall: Callable[[], Instant]) -> None:
        super().__init__(manager, timing)
        self._wall = wall
        self._asked_at_wall = self._proven_until_wall = Instant(0)

    def is_proven(self, now: Instant) -> bool:
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


def _closed_is_dead(self: Witnesses, now: Instant, connection: int) -> None:
    for pool in self.pools.values():
        for session in list(pool.sessions.values()):
            if session.connection == connection:
                pool.on_death(now, session, LeaderKind.ATTESTED)


def _by_pid_alone(self: Witnesses, now: Instant, connection: int, message: Any) -> None:
    del connection
    for pool in self.pools.values():
        for session in list(pool.sessions.values()):
            process = pool.table.members[session.incarnation].process
            if process and _where(process) == _where(message.process):
                pool.on_death(now, session, LeaderKind.ATTESTED)


def _where(process: Process) -> tuple[str, int, int, int]:
    return (*process.place, process.pid)


def _unread_is_gone(self: Sight, suspect: Process) -> bool:
    if self.is_there is False or self.start_time != suspect.start_time:
        return True
    return self.first_thread_ended and self.has_other_threads is False


def _first_thread_is_all(self: Sight, suspect: Process) -> bool:
    gone = _original_shows_gone(self, suspect)
    return gone or (self.start_time is not None and self.first_thread_ended)


_original_place: Callable[[Process], tuple[str, int, int]] = Process.__dict__["place"].fget
_original_shows_gone = Sight.shows_gone


def _end_it_for_nobody(self: Belief, key_range: Any) -> Any:
    del key_range
    return self._hold()


def _all_of_them(self: Moving, copies: Any) -> tuple[Held, ...]:
    del self
    return tuple(Held(copy.start, copy.end, copy.number) for copy in copies)


NONE = Canary("none")
CANARIES = (
    Canary("no-hold-margin", "the margin of the hold over the term", no_hold_margin=True),
    Canary(
        "term-from-receipt",
        "P3: the term counts from when the request was sent",
        ((OwnerMachine, "term_ends", _term_from_receipt),),
    ),
    Canary(
        "requests-in-any-order",
        "P2: requests are taken in rising order",
        ((Session, "is_in_order", _always),),
    ),
    Canary(
        "answer-to-an-older-request",
        "P2: only the answer to the newest request is taken",
        ((OwnerMachine, "is_answer_to_newest", _any_answer),),
    ),
    Canary(
        "no-nonce-check",
        "P2, P9: a manager acts only on its own present nonce",
        ((Leader, "knows_this_nonce", _always),),
    ),
    Canary(
        "nonce-kept-across-leaderships",
        "P2: the nonce is drawn anew at each takeover",
        ((Manager, "draw_nonce", _kept_nonce),),
    ),
    Canary(
        "incarnations-not-ordered",
        "P8, P9: an incarnation is not unseated by another's join",
        ((Pool, "_refuse_name", _name_taken_over),),
    ),
    Canary(
        "lapsed-lease-revived",
        "P5: renewed is only what is held",
        ((Belief, "may_renew", _always),),
    ),
    Canary(
        "lapsed-lease-not-disclaimed",
        "P5: what a request does not list is returned",
        ((Pool, "not_listed", _nothing_returned),),
    ),
    Canary(
        "answer-before-expiry",
        "P6: what is due is done before the event is looked at",
        ((OwnerMachine, "handle", _event_first),),
    ),
    Canary(
        "answer-before-commit",
        "P18: nothing leaves before the records it depends on are durable",
        ((Ledger, "hold_back", _never),),
    ),
    Canary(
        "recall-outlives-nothing",
        "P10, P4: a recalled range is not freed while its owner still renews",
        ((Pool, "advance", _free_at_the_deadline),),
    ),
    Canary(
        "plan-is-a-grant",
        "P12: a plan grants nothing: it is not for the policy to say what is free",
        ((Pool, "_grant", _free_what_is_planned),),
    ),
    Canary(
        "counter-not-in-snapshot",
        "P21: the snapshot carries the next lease number",
        ((LeaseTable, "from_state", classmethod(_forget_the_counter)),),  # type: ignore[arg-type]
    ),
    Canary(
        "takeover-does-not-wait",
        "P19: a new leader waits out what its predecessors may have promised",
        ((Leader, "wait_until", staticmethod(_no_wait)),),
    ),
    Canary(
        "leads-by-wall-clock",
        "P19: a leadership is proven by a clock that nobody sets",
        leads_by_wall_clock=True,
    ),
    Canary(
        "append-not-guarded",
        "P18: the journal takes nothing from a leader that is deposed",
        ((JournalContents, "_append", _any_append_lands),),
    ),
    Canary(
        "loss-by-last-flag",
        "P16: loss is told by `since`, not by whether the last change was clean",
        ((LookupMachine, "lost_by", _by_the_last_flag),),
    ),
    Canary(
        "loss-signalled-in-vain",
        "P16: only what was known under a number below `since` is lost",
        ((LookupMachine, "lost_by", _all_that_is_known),),
    ),
    Canary(
        "handed-over-while-served",
        "P13: the source ends its belief before it sends the last difference",
        ((Belief, "hand_over", _end_it_for_nobody),),
    ),
    Canary(
        "granted-without-the-import",
        "P13: a grant that names an import is taken only where that is",
        ((Copies, "cover", _always),),
    ),
    Canary(
        "import-of-an-earlier-number",
        "P13: an import is used only under the grant that names it",
        ((Moving, "counts", _always), (Moving, "that_count", _all_of_them)),
    ),
    Canary(
        "import-without-its-grant",
        "P13: what was imported and is not granted is discarded first",
        ((Copies, "is_clear_for", _always),),
    ),
    Canary(
        "granted-before-let-go",
        "nothing is taken before the application has let go of what it had there",
        ((Belief, "has_let_go", _always),),
    ),
    Canary(
        "evicts-the-living",
        "P14: only a process that is gone is confirmed dead",
        ((Operator, "is_dead", _always),),
    ),
    Canary(
        "clock-stops-in-suspend",
        "the owner's clock goes on while its machine sleeps",
        clock_stops_in_suspend=True,
    ),
    Canary(
        "closed-socket-is-death",
        "P14: a closed socket proves nothing",
        ((Witnesses, "on_disconnected", _closed_is_dead),),
    ),
    Canary(
        "attested-across-hosts",
        "P14: a witness has the suspect's boot id",
        ((Process, "place", property(lambda self: ("", *_original_place(self)[1:]))),),
    ),
    Canary(
        "attested-across-pid-namespaces",
        "P14: a witness has the suspect's pid namespace",
        ((Process, "place", property(lambda self: (*_original_place(self)[::2], 0))),),
    ),
    Canary(
        "attested-across-time-namespaces",
        "P14: a witness has the suspect's time namespace",
        ((Process, "place", property(lambda self: (*_original_place(self)[:2], 0))),),
    ),
    Canary(
        "attested-by-pid-alone",
        "P14: an attestation names the incarnation and its very process; pids are used again",
        ((Witnesses, "on_attested", _by_pid_alone),),
    ),
    Canary(
        "unread-taken-for-gone",
        "P14: what cannot be read is not gone",
        ((Sight, "shows_gone", _unread_is_gone),),
    ),
    Canary(
        "first-thread-taken-for-all",
        "P14: a process whose first thread has ended may have others",
        ((Sight, "shows_gone", _first_thread_is_all),),
    ),
    Canary("skew-over-the-bound", "clock rates within 8.33 %", skew=SKEW_OVER_THE_BOUND),
)


def canary(name: str) -> Canary:
    """The canary called `name`. Raises ConfigurationError, naming those there are."""
    for candidate in (NONE, *CANARIES):
        if candidate.name == name:
            return candidate
    there = ", ".join(candidate.name for candidate in (NONE, *CANARIES))
    msg = f"no canary is called {name!r}; there are {there}"
    raise ConfigurationError(msg)
