"""One pool under a leader: joining, asking, recalling, granting, expiring.

The plan says which owner should have each range; the table says which owner has it. Everything here
follows from the difference: a range whose owner should not have it is recalled, and a free range is
granted to the owner that should have it, when that owner asks. Nothing is ever granted unasked
(P1), so the only ranges that wait for a dead owner are those it held.

A range is freed in four ways, and no other: its owner's request does not list it (P5), the one hold
of its owner's incarnation has run out (P4), its owner left, or is proven dead (P14).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from tenure.base.instants import Instant
from tenure.base.names import shown
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange, in_words
from tenure.protocol.balance.planning import Planned, Planning, PlanningFailed
from tenure.protocol.balance.policy import NOBODY, Policy
from tenure.protocol.lease.answers import Connection
from tenure.protocol.lease.leader.claims import NEVER, claims_too_much
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.move_log import MoveLog
from tenure.protocol.lease.leader.moving import Moving
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.planner import Planner
from tenure.protocol.lease.leader.publisher import Publisher
from tenure.protocol.lease.leader.quiets import Quiets
from tenure.protocol.lease.leader.renumbering import Renumbering
from tenure.protocol.lease.leader.responses import Responses
from tenure.protocol.lease.leader.room import TOO_FINE, cuts_too_much, wrong_with_join
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.leader.sessions import Sessions
from tenure.protocol.lease.leader.tier_watch import take_report
from tenure.protocol.lease.messages import (
    Copy,
    Entry,
    Expected,
    HandOff,
    Held,
    Join,
    Leased,
    LeaseRequest,
    Refusal,
    ShortRequest,
)
from tenure.protocol.lease.records import Changed, Left
from tenure.protocol.lease.table import LeaseTable

MayHold: TypeAlias = tuple[tuple[Leased, ...], tuple[HandOff, ...], tuple[Expected, ...]]
MAX_RETRY_NS = 1_000_000_000
"""The longest time that a refused owner is told to wait: the name may become free earlier, when its
owner leaves.
"""


class _Listed(NamedTuple):
    """What a request says that its owner has."""

    held: tuple[Held, ...] = ()
    copies: tuple[Copy, ...] = ()
    letting_go: tuple[Held, ...] = ()
    leaving: bool = False
    waits: bool = False

    @property
    def is_last(self) -> bool:
        """Whether the owner leaves, and has nothing any more."""
        return self.leaving and not self.held and not self.copies


def _listed(message: Join | LeaseRequest | ShortRequest, given: tuple[Held, ...]) -> _Listed:
    if isinstance(message, LeaseRequest):
        said = (message.held, message.copies, message.letting_go)
        return _Listed(*said, message.leaving, message.waits)
    return _Listed(given if isinstance(message, ShortRequest) else ())


class Pool:
    """The leader's side of one pool."""

    def __init__(self, context: LeaderContext, table: LeaseTable, policy: Policy) -> None:
        self.context = context
        self.table = table
        self.publisher = Publisher(context, table)
        self.proofs = self.publisher.proofs
        self.sessions = Sessions(context, table)
        self.move_log = MoveLog(table)
        self.quiets = Quiets(context, table)
        self.moving = Moving(
            context, table, self.publisher, self.sessions, self.move_log, self.quiets
        )
        self.responses = Responses(
            context, table, self.sessions.addresses, self.moving, self.proofs
        )
        self.planner = Planner(
            context, table, policy, self.sessions, self.move_log, self.publisher.log
        )
        self.renumbering = Renumbering(context, table, self.publisher, self.sessions)
        if self.sessions:
            self.planner.by(Instant(0))

    # --- requests ---

    def on_join(self, now: Instant, connection: Connection, message: Join) -> None:
        """Number the incarnation, or find the number it has (P8, P9), and answer its request."""
        incarnation, nonce = self.table.numbered.get(message.name, (NOBODY, 0))
        session = self.sessions.get(incarnation)
        if nonce == message.owner_nonce and incarnation != NOBODY:
            if session is None or self.sessions.is_evicted(session):
                self.context.refuse(
                    connection, message, "past", "this incarnation is gone or evicted"
                )
                return
        elif session is not None:
            self._refuse_name(now, connection, message, session)
            return
        elif (wrong := wrong_with_join(self.table, message)) is not None:
            self.context.refuse(connection, message, *wrong, MAX_RETRY_NS)
            return
        else:
            session = self.sessions.number(now, message)
            self.move_log.on_joined(now, session.incarnation)
        self.proofs.heard(session, proves=message.proves)
        given = self.table.held_by(session.incarnation)
        self._answer(now, connection, session, message, given)

    def on_short_request(self, now: Instant, connection: Connection, message: ShortRequest) -> bool:
        """Take a short request as one that lists what the table gives, if its fingerprint says so.
        Otherwise do nothing and return False: the owner is asked for the full list, and that is
        answered or refused.
        """
        session = self.sessions.of(message)
        if session is None:
            return False
        # Another list is not guessed at: the owner is asked for all of it (P5).
        given = self.table.held_by(message.incarnation)
        if not self.lists(session, message, given):
            return False
        if self.sessions.is_evicted(session) or message.leadership > self.context.seal.leadership:
            return False
        self._answer(now, connection, session, message, given)
        return True

    def lists(self, session: Session, message: ShortRequest, given: tuple[Held, ...]) -> bool:
        """Whether a request that lists `given` would have this fingerprint."""
        if session.fingerprinted is not given:
            session.take_fingerprint(given, self.context.seal.nonce)
        return message.fingerprint == session.fingerprint

    def on_request(self, now: Instant, connection: Connection, message: LeaseRequest) -> None:
        """Take back ranges that are not listed, then answer with all that the owner may hold."""
        is_member = message.incarnation in self.table.members
        given = self.table.held_by(message.incarnation) if is_member else ()
        # A claim without a receipt says nothing of the journal, and counts against its owner.
        if claims_too_much(self.table, self.context.seal, message, given):
            self.context.refuse(connection, message, "past", NEVER, MAX_RETRY_NS)
            return
        session = self.sessions.get(message.incarnation)
        if session is None or self.sessions.is_evicted(session):
            why = "evicted, or a later incarnation or nobody has the name"
            self.context.refuse(connection, message, "past", why)
            return
        self.proofs.heard(session, proves=message.proves)
        differs = message.copies or message.held != given
        if differs and cuts_too_much(self.table, self.planner.plan, session.renewal, message):
            self.context.refuse(connection, message, "past", TOO_FINE)
            return
        self._answer(now, connection, session, message, given)

    def _answer(
        self,
        now: Instant,
        connection: Connection,
        session: Session,
        message: Join | LeaseRequest | ShortRequest,
        given: tuple[Held, ...],
    ) -> None:
        """Answer a request. `given` lists what the table gives the incarnation; a range of it that
        the request does not list is returned. A short request lists exactly `given`.

        The cases follow each other in the order of the rules: a request that came late, the last
        one of an owner that leaves, what is returned, and what may be held from here on.
        """
        if not session.is_in_order(message.sequence):  # it lists the past (P2)
            self.context.note(LeaderKind.LATE_REQUEST, self.table.pool, session.name)
            return
        listed = _listed(message, given)
        held = listed.held
        begins_to_leave = listed.leaving and not session.leaving
        self._hold(now, connection, session, message.sequence, leaving=listed.leaving)
        session.waits = listed.waits
        if begins_to_leave:
            session.cause = self.context.begin()
        # What the owner does not list it does not believe in and never will, by P2, whatever was
        # answered before.
        missing = [] if held == given else self.table.not_listed(session.incarnation, held)
        if not isinstance(message, Join):
            self._hear(now, session, message, listed, given)
        if listed.is_last:
            self._remove(now, session, missing, LeaderKind.LEFT)
            self.responses.respond(session, ())
            return
        if begins_to_leave:
            self.planner.replan(now)  # its own answer says at once which owners its ranges are for
        elif not (session.proven or isinstance(message, Join)):
            session.proven = True
            self.planner.soon(now)
        giving: RangeMap[bool] | None = None
        if missing:
            returned, giving = self.moving.settle(
                now, session, missing, listed.copies, self.planner.plan
            )
            if returned:
                self._free(now, returned)
            given = self.table.held_by(session.incarnation)
        self._tell(now, session, message, listed, given, giving)

    def _hold(
        self,
        now: Instant,
        connection: Connection,
        session: Session,
        sequence: int,
        *,
        leaving: bool,
    ) -> None:
        """Hold what the owner has for longer than it may believe in the answer (P3, P4)."""
        hold_until = Instant(now + self.context.timing.hold_ns)
        session.take(sequence, connection, hold_until, leaving=leaving)
        session.heard_at = now
        self.context.cause = session.cause

    def _hear(
        self,
        now: Instant,
        session: Session,
        message: LeaseRequest | ShortRequest,
        listed: _Listed,
        given: tuple[Held, ...],
    ) -> None:
        """Take what a request tells beside its list, on which no lease depends."""
        if isinstance(message, LeaseRequest):
            session.knows_former = message.knows_former
        if session.let_go(now, listed.letting_go, self.context.timing.recall_ns):
            self.planner.soon(now)
            if session.stuck:
                self.context.note(LeaderKind.STUCK, self.table.pool, session.name)
        if message.report is not session.report:
            take_report(self.context, self.table.pool, session, message.report)
        if message.load is not None and self.planner.load_watch.take(now, message.load, given):
            self.planner.set_alarm()

    def _tell(
        self,
        now: Instant,
        session: Session,
        message: Join | LeaseRequest | ShortRequest,
        listed: _Listed,
        given: tuple[Held, ...],
        giving: RangeMap[bool] | None,
    ) -> None:
        """Tell the owner all that it may hold (P4), or that nothing has changed."""
        assert now < session.hold_until, session.name  # what it believes ends within its hold (P3)
        may_hold: MayHold = (session.renewal, (), ())
        if not (session.settled and session.renewed is given):
            is_told = listed.held == given
            may_hold = self._may_hold(now, session, given, giving, is_told=is_told)
        if session.settled and session.renewed is given and not isinstance(message, Join):
            is_short = isinstance(message, ShortRequest)
            self.responses.renew(session, given, listed.copies, is_short=is_short)
        else:
            self.responses.respond(session, *may_hold, listed.copies)
        if session.settled and session.proven:
            session.cause = ""

    # --- refusals ---

    def _refuse_name(
        self, now: Instant, connection: Connection, message: Join, holder: Session
    ) -> None:
        wait_ns = max(holder.hold_until - now, 0)
        address = self.table.members[holder.incarnation].address
        detail = (
            f"the name {shown(message.name)} belongs to an owner at {shown(address)} that may "
            f"still be alive; it is free in {wait_ns / 1e9:.1f} s, or at once when that one "
            "closes. Choose another name, or none: one is drawn for each process by default"
        )
        self.context.refuse(connection, message, "name_held", detail, wait_ns)

    # --- what is returned ---

    def _free(self, now: Instant, pieces: Sequence[KeyRange]) -> None:
        entries = self._freed(pieces)
        self.move_log.add(now, entries, "returned")
        self._forget_moves(pieces)
        self.publisher.add(
            now, self.context.write(Changed(pool=self.table.pool, entries=entries)), entries
        )
        self._offer(pieces)

    def _freed(self, pieces: Iterable[KeyRange]) -> tuple[Entry, ...]:
        """Entries that free `pieces`: nobody's, under a new number, their state gone (P16)."""
        number = self.table.next_number
        return tuple(
            Entry(start=piece.start, end=piece.end, owner=NOBODY, number=number, since=number)
            for piece in pieces
        )

    def _forget_moves(self, pieces: Iterable[KeyRange]) -> None:
        for piece in pieces:
            for _, right in self.table.within(piece):
                session = self.sessions.get(right.owner)
                if session is not None:
                    session.forget_moves(piece)

    def _offer(self, pieces: Iterable[KeyRange]) -> None:
        """Poke the owners that should have ranges that have become free."""
        takers = {taker for piece in pieces for _, taker in self.planner.plan.within(piece)}
        for taker in sorted(takers):
            self.sessions.unsettle(taker)

    # --- what may be held ---

    def _may_hold(
        self,
        now: Instant,
        session: Session,
        given: tuple[Held, ...],
        giving: RangeMap[bool] | None,
        *,
        is_told: bool,
    ) -> MayHold:
        if giving is None:
            giving = RangeMap(value=False)
        # Beside a rival nothing is granted, so nothing is moved either (P25).
        has_rival = bool(self.context.history.rivalries)
        plan = RangeMap(session.incarnation) if has_rival else self.planner.plan
        kept = self.moving.kept(now, session, plan, giving, is_told=is_told)
        recalled = sum(lease.mark == "recalled" for lease in kept.leases)
        if recalled:
            self.context.note(
                LeaderKind.RECALLED, self.table.pool, f"{in_words(recalled)} from {session.name}"
            )
        may_grant = self.context.may_grant and not session.leaving
        granted = self._grant(now, session) if may_grant else []
        leases = tuple(sorted([*kept.leases, *granted], key=lambda lease: lease.start))
        expected = self.moving.expected(session)
        session.settled = kept.all_stays and not expected and self.context.may_grant
        session.renewal, session.renewed = leases, None if granted else given
        return leases, kept.hand_offs, expected

    def _grant(self, now: Instant, session: Session) -> list[Leased]:
        """Grant the incarnation the free ranges that it should have, under a new number (P5).

        `since` stays: the range has been empty since it was freed, so granting it loses nothing
        more.
        """
        # One number for all, higher than any before: it tells who had a range first (P5, P11).
        number = self.table.next_number
        leases = [
            Leased(
                start=piece.start,
                end=piece.end,
                number=number,
                since=right.since,
                mark="granted",
                quiet_ns=self.quiets.left_ns(now, piece.start),
            )
            for wanted in self.planner.wanted_by(session.incarnation)
            for free, right in self.table.within(wanted)
            # The plan says who should have it; only the table says that nobody has it (P12).
            if right.owner == NOBODY
            for piece, _ in self.quiets.until.within(free)
            # Its application has not let go: it would go on with state that others changed.
            if not session.still_has(piece)
            if not self.quiets.is_held_back(now, piece.start, session.incarnation)
        ]
        if leases:
            entries = tuple(
                Entry(
                    start=lease.start,
                    end=lease.end,
                    owner=session.incarnation,
                    number=number,
                    since=lease.since,
                )
                for lease in leases
            )
            self.move_log.add(now, entries, "granted")
            self.publisher.add(
                now, self.context.write(Changed(pool=self.table.pool, entries=entries)), entries
            )
            self.context.note(
                LeaderKind.GRANTED, self.table.pool, f"{in_words(len(leases))} to {session.name}"
            )
        return leases

    def on_disconnected(self, connection: Connection) -> None:
        """Stop pushing and poking there."""
        self.publisher.on_disconnected(connection)
        self.sessions.on_disconnected(connection)

    # --- planning and time ---

    def offer_all(self) -> None:
        """Poke all owners to ask, now that granting has become possible."""
        self.sessions.unsettle_all()

    def advance(self, now: Instant) -> None:
        """Do what is due."""
        for session in self.sessions.expired(now):
            self.on_death(now, session, LeaderKind.EXPIRED)
        if self.quiets.is_over(now):
            self.offer_all()
        self.planner.advance(now)
        self.renumbering.advance(now)
        self.publisher.advance(now)

    @property
    def wake_at(self) -> Instant:
        """When the next thing is due."""
        next_expiry = self.sessions.next_expiry
        return min(next_expiry, self.planner.wake_at, self.publisher.push_at, self.quiets.wake_at)

    def on_death(self, now: Instant, session: Session, why: LeaderKind) -> None:
        """Free at once everything that this incarnation held, since it no longer believes anything.

        If it lives after all, it is told before any other owner is given anything.
        """
        if why is not LeaderKind.EXPIRED:
            self._tell_past(session, why.phrase)
        if why is not LeaderKind.EVICTED:
            self.context.cause = session.ending
        lost = [item.range for item in self.table.held_by(session.incarnation)]
        # After a hold every read lease is over too: it ends within the term (V11, V13).
        if why is not LeaderKind.EXPIRED:
            self.quiets.on_death(now, session.incarnation, lost)
        self._remove(now, session, lost, why)

    def _remove(
        self, now: Instant, session: Session, free: Sequence[KeyRange], why: LeaderKind
    ) -> None:
        entries = self._freed(free)
        self.context.story()
        self.sessions.remove(now, session)
        self.proofs.gone(session)
        self.moving.on_gone(session.incarnation)
        self.move_log.add(now, entries, why.phrase)
        self.move_log.on_gone(session.incarnation)
        lsn = self.context.write(
            Left(pool=self.table.pool, incarnation=session.incarnation, entries=entries)
        )
        self.publisher.add(now, lsn, entries)
        self.context.note(why, self.table.pool, f"{session.name} ({session.incarnation})")
        self.planner.by(now)

    def steer(self, now: Instant, work: Planning, made: Planned | PlanningFailed) -> None:
        """Let this steering hold from here on: it is journaled, and carried out by the plan made
        for it.

        If the pool has changed while that plan was made, the next plan follows at once: a plan made
        meanwhile for the change did not know of the steering, nor this one of the change.
        """
        if work.as_of != self.context.history.lsn:
            self.planner.by(now)
        self.context.write(Changed(pool=self.table.pool, entries=(), steering=work.steering))
        for incarnation in work.steering.evicted:
            self.sessions[incarnation].leaving = True
            self._tell_past(self.sessions[incarnation], LeaderKind.EVICTED.phrase)
        self.planner.steer(now, work, made)

    def _tell_past(self, session: Session, why: str) -> None:
        """Tell an owner that it belongs to the past. The owner takes this as the answer to any
        question, or unasked: nothing undoes it.
        """
        seal = self.context.seal
        refusal = Refusal(
            owner_nonce=session.owner_nonce,
            sequence=session.sequence,
            manager_nonce=seal.nonce,
            journal=seal.journal,
            leadership=seal.leadership,
            reason="past",
            detail=f"{why}; it joins anew",
        )
        self.context.send(session.connection, refusal)

    def invariants(self) -> None:
        """The parts say what must hold of them."""
        self.planner.invariants()
        self.sessions.invariants()
