"""Ranges that move away from an owner: recalled, or handed over with their state (P10, P13).

A recall asks for a range back; its state is lost, and lookups are told so. A hand-off moves both.
The owner goes on serving while it copies the state to the taker, ends its belief, sends the last
difference, and only then returns the range, naming the incarnation that has all of it. One record
then gives it to that incarnation, under a new number and with the old `since`: nothing was lost.

No state passes through the manager, and a new leader needs to know none of its predecessor's
orders: every request says which ranges its owner has whole copies of, and under which lease each
was served last. The table says whether that is still the latest lease. So the next leader finishes
or takes back whatever was under way when its predecessor died, and a copy of an earlier number is
never used.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from tenure.base.instants import Instant
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange, in_words
from tenure.protocol.balance.policy import NOBODY
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.move_log import MoveLog
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.publisher import Publisher
from tenure.protocol.lease.leader.quiets import Quiets
from tenure.protocol.lease.leader.session import NOT_ORDERED, NOT_RECALLED, Session
from tenure.protocol.lease.messages import Copy, Entry, Expected, HandOff, Held, Leased, Mark
from tenure.protocol.lease.records import Changed
from tenure.protocol.lease.table import NOT_RENUMBERED, LeaseTable, Right

AT_ONCE = 4
"""How many ranges an owner hands over at a time: enough to hide the round trips, and few enough
that each is done within its deadline."""


class KeptLeases(NamedTuple):
    """The leases that an incarnation keeps for now, and how it is to give up the others."""

    leases: list[Leased]
    hand_offs: tuple[HandOff, ...]
    all_stays: bool
    """Whether nothing is moving, waits to move, or is told for the first time."""


class Moving:
    """The moves of one pool under a leader."""

    def __init__(
        self,
        context: LeaderContext,
        table: LeaseTable,
        publisher: Publisher,
        sessions: Mapping[int, Session],
        log: MoveLog,
        quiets: Quiets,
    ) -> None:
        self.context = context
        self.table = table
        self.publisher = publisher
        self.sessions = sessions
        self.log = log
        self.quiets = quiets
        self._told: dict[int, tuple[HandOff, ...]] = {}
        """The orders in each source's last answer, if it had any."""

    # --- what a request does not hold any more ---

    def settle(
        self,
        now: Instant,
        session: Session,
        missing: Sequence[KeyRange],
        copies: Sequence[Copy],
        plan: RangeMap[int],
    ) -> tuple[list[KeyRange], RangeMap[bool]]:
        """The parts of `missing`, which the request does not hold, that are returned without their
        state; and those still being given over. If there is a whole copy of a range, its holder is
        given the range.
        """
        returned: list[KeyRange] = []
        giving: RangeMap[bool] = RangeMap(value=False)
        handing: dict[tuple[int, int], list[KeyRange]] = {}
        copied = RangeMap.of(((copy.range, copy) for copy in copies), None)
        maps: list[RangeMap[Any]] = [session.untold, session.orders, copied, plan]
        maps += [self.table.rights, self.table.handed, self.table.former]
        for part in (part for key_range in missing for part in _cut(key_range, *maps)):
            copy = copied[part.start]
            # It cannot list what no answer has told it, so it has not returned it (P5).
            if session.untold[part.start]:
                continue
            # A copy under any other number is of the past: taking it would bring back old state.
            if copy is None or not self.counts(part, copy):
                returned.append(part)
            elif copy.taker == NOBODY and self._is_ordered(now, session, part, plan):
                giving.assign(part, value=True)
            else:
                taker = self._who_takes(session, copy).incarnation
                handing.setdefault((taker, copy.number), []).append(part)
        for (taker, handed), pieces in handing.items():
            self.hand(now, pieces, handed, self.sessions[taker])
        return returned, giving

    def counts(self, piece: KeyRange, copy: Copy) -> bool:
        """Whether the copy is what the table's own lease of the piece left, or came with it."""
        goes_by = self.table.goes_by(piece.start)
        return copy.number in (*goes_by, self.table.handed[piece.start])

    def _is_ordered(
        self, now: Instant, session: Session, piece: KeyRange, plan: RangeMap[int]
    ) -> bool:
        is_in_time = now < session.orders[piece.start]
        return is_in_time and self.taker(session, plan[piece.start]) is not None

    def _who_takes(self, session: Session, copy: Copy) -> Session:
        """The owner that has the copy according to the request, if it lives; otherwise the owner
        that sent the request.
        """
        taker = self.sessions.get(copy.taker)
        return session if taker is None or taker.leaving else taker

    def hand(self, now: Instant, pieces: Sequence[KeyRange], handed: int, taker: Session) -> None:
        """Give `pieces`, which an owner has, to `taker` with their state, as the lease numbered
        `handed` left it (P13).
        """
        number = self.table.next_number
        entries: list[Entry] = []
        for part, right in (each for piece in pieces for each in self.table.within(piece)):
            entries.append(
                Entry(
                    start=part.start,
                    end=part.end,
                    owner=taker.incarnation,
                    number=number,
                    since=right.since,
                )
            )
            # An owner that gets its range back keeps the order: one deadline is for all attempts.
            taker.recalled.assign(part, NOT_RECALLED)
            taker.untold.assign(part, value=True)
            before = self.sessions[right.owner]
            if before is not taker:
                before.forget_moves(part)
        self.log.add(now, entries, "handed over")
        lsn = self.context.write(
            Changed(pool=self.table.pool, entries=tuple(entries), handed=handed)
        )
        self.publisher.add(now, lsn, tuple(entries))
        taker.unsettle(self.context)
        self.context.note(
            LeaderKind.HANDED_OVER, self.table.pool, f"{in_words(len(entries))} to {taker.name}"
        )

    def that_count(self, copies: Sequence[Copy]) -> tuple[Held, ...]:
        """The copies among these that the table's present lease has left or will leave: an owner
        that has one keeps it until the range is granted.
        """
        return tuple(
            Held(start=piece.start, end=piece.end, number=copy.number)
            for copy in copies
            for whole, _ in self.table.within(copy.range)
            for piece, _ in self.table.former.within(whole)
            if copy.number in self.table.goes_by(piece.start)
        )

    # --- what an answer lists ---

    def kept(
        self,
        now: Instant,
        session: Session,
        plan: RangeMap[int],
        giving: RangeMap[bool],
        *,
        is_told: bool,
    ) -> KeptLeases:
        """The leases that the incarnation keeps, those that it is to hand over, and those that are
        recalled from it.

        A recalled range is left out after its deadline (P10). Until the incarnation lists the
        numbers of the table, it is told the earlier ones too.
        """
        former = RangeMap(NOT_RENUMBERED) if is_told else self.table.former
        leases: list[Leased] = []
        moves: list[PieceToMove] = []
        for item in self.table.held_by(session.incarnation):
            for key_range, right in self.table.within(item.range):
                laid = (giving, session.untold, plan, session.recalled, session.orders, former)
                for piece in _cut(key_range, *laid):
                    planned = self._planned(session, plan[piece.start])
                    fate = self._fate(now, session, piece, planned)
                    if fate == "moves":
                        moves.append(PieceToMove(piece, right.number, planned))
                    if fate != "left out" and not giving[piece.start]:
                        leases += self._leases(now, piece, right, fate, former[piece.start])
        all_stays = not moves and not session.is_moving
        all_stays = all_stays and not any(lease.former for lease in leases)
        session.untold = RangeMap(value=False)
        hand_offs = self._orders(now, session, moves)
        self._tell_takers(session, hand_offs)
        return KeptLeases(leases, hand_offs, all_stays)

    def _tell_takers(self, session: Session, hand_offs: tuple[HandOff, ...]) -> None:
        """Poke the owners that are to be offered state from now on: they take only what they
        expect.
        """
        told = self._told.pop(session.incarnation, ())
        if hand_offs:
            self._told[session.incarnation] = hand_offs
        for taker in sorted({order.taker for order in hand_offs if order not in told}):
            self.sessions[taker].unsettle(self.context)

    def expected(self, session: Session) -> tuple[Expected, ...]:
        """The ranges that owners were ordered to hand over to this incarnation, and still have."""
        return tuple(
            sorted(
                (
                    Expected(
                        start=order.start,
                        end=order.end,
                        number=order.number,
                        source=source,
                        secret=order.secret,
                    )
                    for source, orders in self._told.items()
                    for order in orders
                    if order.taker == session.incarnation and self._has_still(source, order)
                ),
                key=lambda each: each.start,
            )
        )

    def _has_still(self, source: int, order: HandOff) -> bool:
        return all(
            (right.owner, right.number) == (source, order.number)
            for _, right in self.table.within(order.range)
        )

    def on_gone(self, incarnation: int) -> None:
        """Forget the hand-overs of an incarnation that is gone."""
        self._told.pop(incarnation, None)

    def _planned(self, session: Session, planned: int) -> int:
        """The owner that is to have what `session` has. An owner that has gone, or goes, since the
        plan was made is to have nothing: nobody gets its part until the next plan.
        """
        taker = self.sessions.get(planned)
        if taker is session or (taker is not None and not taker.leaving):
            return planned
        return NOBODY

    def _fate(self, now: Instant, session: Session, piece: KeyRange, planned: int) -> "Fate":
        """Decide the fate of a piece that the incarnation has; recall it here, if that is the
        decision.
        """
        if session.untold[piece.start]:
            return "granted"
        if session.recalled[piece.start] == NOT_RECALLED:
            if planned == session.incarnation or (planned == NOBODY and self._may_keep(session)):
                session.orders.assign(piece, NOT_ORDERED)
                return "stays"
            if self._can_hand(now, session, piece, planned):
                return "moves"
            # Once told, never taken back: the owner stops believing, and work there breaks (S3).
            session.recalled.assign(piece, Instant(now + self.context.timing.recall_ns))
        # Past its deadline it is not listed: the owner's hold alone keeps it from others (P10).
        return "recalled" if now < session.recalled[piece.start] else "left out"

    def _may_keep(self, session: Session) -> bool:
        """Whether it goes on with ranges that nobody is to have: for good; or, if it can hand over
        and is leaving, for as long as it waits, and until an owner that has just joined has spoken
        under its number and a plan has seen it.
        """
        if not session.leaving:
            return True
        if session.waits:
            return self.table.members[session.incarnation].hand_off is not None
        joining = (each for each in self.sessions.values() if not (each.planned or each.leaving))
        there = [session.incarnation, *(each.incarnation for each in joining)]
        can = [number for number in there if self.table.members[number].hand_off]
        return session.incarnation in can and len(can) > 1

    def _can_hand(self, now: Instant, session: Session, piece: KeyRange, planned: int) -> bool:
        deadline = session.orders[piece.start]
        is_late = deadline != NOT_ORDERED and now >= deadline
        # One deadline for all attempts: takers that fail must not hold up the move for ever.
        if is_late or session.still_has(piece):
            return False  # the owner no longer serves what it gave up, and cannot hand it over
        return self.taker(session, planned) is not None

    def taker(self, session: Session, planned: int) -> Session | None:
        """The owner that is to have what `session` has, if both can hand over."""
        members = self.table.members
        taker = self.sessions.get(planned)
        # Who leaves would only pass it on.
        if taker is None or taker is session or taker.leaving:
            return None
        both = (members[session.incarnation], members[taker.incarnation])
        return taker if all(member.hand_off for member in both) else None

    def _leases(
        self, now: Instant, piece: KeyRange, right: Right, fate: "Fate", former: int
    ) -> list[Leased]:
        """The leases that the answer tells for a piece: one, or for a grant, one for each quiet."""
        if fate == "granted":
            return [
                Leased(
                    start=part.start,
                    end=part.end,
                    number=right.number,
                    since=right.since,
                    mark="granted",
                    handed=self.table.handed[piece.start],
                    quiet_ns=self.quiets.left_ns(now, part.start),
                )
                for part, _ in self.quiets.until.within(piece)
            ]
        mark: Mark = "recalled" if fate == "recalled" else "renewed"
        lease = Leased(
            start=piece.start,
            end=piece.end,
            number=right.number,
            since=right.since,
            mark=mark,
            former=former,
        )
        return [lease]

    def _orders(
        self, now: Instant, session: Session, moves: list["PieceToMove"]
    ) -> tuple[HandOff, ...]:
        """The orders for the moves that are under way, and for further ones, up to a
        limit at once.
        """
        moves.sort(key=lambda move: session.orders[move.piece.start] == NOT_ORDERED)
        hand_offs: list[HandOff] = []
        for piece, number, planned in moves:
            is_new = session.orders[piece.start] == NOT_ORDERED
            if is_new and (len(hand_offs) >= AT_ONCE or not self._may_begin(now, piece, planned)):
                continue
            if is_new:
                deadline = Instant(now + self.context.timing.hand_off_ns)
                session.orders.assign(piece, deadline)
            address = self.table.members[planned].hand_off
            assert address is not None
            order = HandOff(
                start=piece.start, end=piece.end, number=number, taker=planned, address=address
            )
            # Without it anybody could offer the taker a state of its own making.
            secret = self.context.secret_of(order, session.incarnation)
            hand_offs.append(msgspec.structs.replace(order, secret=secret))
        return tuple(sorted(hand_offs, key=lambda order: order.start))

    def _may_begin(self, now: Instant, piece: KeyRange, taker: int) -> bool:
        """Whether the hand-over may begin. A taker that is not connected may be gone, and one that
        knows no quiets might write too early: until then the giver serves the ranges.
        """
        if not self.sessions[taker].connection:
            return False
        parts = (part for part, _ in self.quiets.until.within(piece))
        return not any(self.quiets.is_held_back(now, part.start, taker) for part in parts)


class PieceToMove(NamedTuple):
    """A piece that is to be handed over, the number under which it is held, and its taker."""

    piece: KeyRange
    number: int
    taker: int


Fate = Literal["granted", "stays", "moves", "recalled", "left out"]


def _cut(key_range: KeyRange, *maps: RangeMap[Any]) -> list[KeyRange]:
    """`key_range` in pieces, within each of which every map has one value."""
    pieces = [key_range]
    for cutting in maps:
        if len(cutting) == 1:
            continue  # most of them have one value everywhere
        pieces = [part for piece in pieces for part, _ in cutting.within(piece)]
    return pieces
