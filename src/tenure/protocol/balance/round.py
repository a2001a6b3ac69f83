"""A round of the weighted policy: the data that it works on, and the parts of its phases.

It begins with the plan of the last round, in which ranges that are still on their way have already
arrived. So a range is not planned for one owner after another while its recall is under way.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, exp

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.accounts import Account, Accounts
from tenure.protocol.balance.arrivals import Arrivals
from tenure.protocol.balance.load import SPACE, chance, sound
from tenure.protocol.balance.metrics import by_scarcest, capacities_of, untold
from tenure.protocol.balance.pieces import HASHED, Piece, cut_by, first_within
from tenure.protocol.balance.policy import (
    NOBODY,
    HeldBack,
    Plan,
    Situation,
    Why,
    changes,
    forbidden,
)
from tenure.protocol.balance.round_memory import RecentMove, RoundMemory
from tenure.protocol.balance.scale import Sampled, Scale
from tenure.protocol.balance.trend import Trend, foresee, hot_keys
from tenure.protocol.balance.tuning import Tuning
from tenure.protocol.lease.limits import REQUESTS
from tenure.protocol.lease.table import owners_of

COOLING = {"devote", "level", "join", "roll"}
"""The phases after which a range cools down: those that move for balance."""


COLD_PART = 0.25
"""A range of an ordered pool with a smaller part of an even load is not moved for its load."""


class Round:
    """One round: the pieces, their owners, and the cost of moving a piece."""

    def __init__(
        self, situation: Situation, tuning: Tuning, split_points: Sequence[Key] | None = None
    ) -> None:
        last = self._choose_metric(situation._replace(loads=sound(situation.loads)))
        situation = self.situation
        self.tuning = tuning
        self.accounts = Accounts(situation.candidates)
        self.leavers = {each.incarnation: Account(each) for each in situation.leavers}
        self.held_back = dict.fromkeys(forbidden(situation))
        self.is_housed = False
        self.arrivals = Arrivals()
        self.again_at = FAR_FUTURE
        self.accounts.beside = self.gauges[1:]
        for metric, name in untold(situation.candidates).items():
            self.hold_back(f"balance by {metric}", f"{name} says no capacity for it")
        self._remember(last)
        idle = tuning.idle * len(self.accounts.all)
        owners = self._baseline(last)
        self.scale: Scale = HASHED
        self.is_ordered = split_points is not None
        if split_points is not None:
            marks = (*owners.starts(), *situation.present.starts(), *split_points)
            self.scale = Sampled(marks, situation.loads.sample if situation.loads else ())
        self.pieces = cut_by(owners, situation.loads, idle, self.scale)
        self.weight = sum(piece.weight for piece in self.pieces)
        self.capacity = self.accounts.capacity
        self.share = self.weight / self.capacity
        """The load that a unit of capacity should carry."""
        self.ranges = min(tuning.ranges, max(1, tuning.table * 2 // 3 // len(self.accounts.all)))
        """The number of ranges of each owner, at first: the table has room for half as
        many again.
        """
        self.grain = self.weight / len(self.accounts.all) / self.ranges
        """The rough weight of the pieces that are dealt."""
        even = 1.0 / (len(self.accounts.all) * self.ranges)
        self.fragment = even / 2
        """Half a grain of space: the cost of one more range."""
        self.key_cost = even * tuning.key_cost
        for account in self.accounts.all:
            account.margin = self.grain / 2
        self.noise = self.noise_of(self.capacity / len(self.accounts.all))
        """How far a usual owner may be from its share by chance, as a part of its share."""
        self.trends: Mapping[Key, Trend] = {}
        self.turned: tuple[int, ...] = ()
        """Owners in whose load a trend is seen for the first time."""
        self.turning: list[int] = []
        """Owners that wait because of a new trend; with them the owners of the last round's new
        trends.
        """
        self.hot = self._follow_trend(last)
        self.peak = self.share
        if last is not None and situation.loads is not None:
            faded = exp(-(situation.now - last.at) / tuning.peak_ns)
            self.peak = max(self.peak, min(last.peak * faded, 2 * self.share))
        self.bearable = tuning.high * self.peak / (self.share or 1.0)
        """An owner that carries more than this, as a part of its share, is relieved."""
        self._keep_still()

    def _choose_metric(self, situation: Situation) -> RoundMemory | None:
        """Choose what is balanced; return what is remembered of the last round."""
        capacities = {
            each.incarnation: (each.capacity, capacities_of(each.labels))
            for each in situation.candidates
        }
        self.members = [(each, *capacities[each]) for each in sorted(capacities)]
        last = situation.memory if isinstance(situation.memory, RoundMemory) else None
        planned = owners_of(situation.present) if last is None else last.owners
        before = REQUESTS if last is None else last.metric
        self.situation, self.gauges = by_scarcest(situation, planned, before)
        self.metric = self.gauges[0].metric if self.gauges else REQUESTS
        if last is None or before == self.metric:
            return last
        # What was seen of another metric says nothing about this one; moves and budgets do.
        return last._replace(hot=None, trends={}, turned=(), peak=0.0, low_since={})

    def _remember(self, last: RoundMemory | None) -> None:
        now, tuning = self.situation.now, self.tuning
        self.budget, self.lasting, self.joining = tuning.budget, tuning.lasting, tuning.joining
        self.placed_at = now
        self.low_since: Mapping[int, Instant] = {}
        self.cold_since: Mapping[Key, Instant] = {}
        self.moves: list[RecentMove] = []
        if last is not None:
            self.arrivals = last.arrivals
            if last.members == self.members:
                self.placed_at = last.placed_at
            most, refill_ns = tuning.budget, tuning.refill_ns
            if now - self.placed_at >= tuning.placing_ns:
                most, refill_ns = tuning.load_budget, tuning.load_refill_ns
            self.budget = min(most, last.budget + (now - last.at) / refill_ns * most)
            filled = (now - last.at) / tuning.refill_ns
            self.joining = min(tuning.joining, last.joining + filled * tuning.joining)
            filled = (now - last.at) / tuning.lasting_refill_ns
            self.lasting = min(tuning.lasting, last.lasting + filled * tuning.lasting)
            self.low_since, self.cold_since = last.low_since, last.cold_since
            self.moves = [move for move in last.moves if self._is_fresh(move, last.owners)]

    def _is_fresh(self, move: RecentMove, owners: RangeMap[int]) -> bool:
        """Whether the move still cools down, or is under way."""
        if move.cools and self.situation.now - move.at < self.tuning.cooldown_ns:
            return True
        start = move.range.start
        return self.situation.present[start].owner != owners[start]

    def _baseline(self, last: RoundMemory | None) -> RangeMap[int]:
        """The owner of each range by the last plan, or in the table; NOBODY if that owner is gone.

        A range stays where it is if it is on its way to an owner that is now gone or cordoned, or
        if its pool is now frozen.
        """
        known, present = self.accounts.by_incarnation, self.situation.present
        planned = owners_of(present) if last is None else last.owners
        owners = RangeMap.at_starts(
            planned.starts(), [owner if owner in known else NOBODY for owner in planned.values()]
        )
        closed = {each for each in planned.values() if each not in known or known[each].cordoned}
        if closed or self.situation.frozen:
            for change in changes(present, Plan(planned, RangeMap(None))):
                here = change.giver if change.giver in known else NOBODY
                if change.taker in closed or (self.situation.frozen and here != NOBODY):
                    owners.assign(change.range, here)
        return owners

    def _follow_trend(self, last: RoundMemory | None) -> Mapping[Key, float] | None:
        """Weigh hot keys by the rates that they are heading for, and return the rates that were
        reported.
        """
        if self.situation.loads is None:
            return None
        hot = hot_keys(self.pieces, self.tuning.cold * self.share)
        if last is not None and last.hot is not None:
            noise = (self.tuning.alone + self.noise) * self.share
            span = self.situation.now - last.at
            self.trends = foresee(self.pieces, last.hot, last.trends, span, noise)
            new = {it.owner for key, it in self.trends.items() if key not in last.trends}
            self.turned = tuple(sorted(new - {NOBODY}))
            if self.turned:
                there = self.accounts.by_incarnation.keys()
                self.turning = sorted(there & {*self.turned, *last.turned})
            self.weight = sum(piece.weight for piece in self.pieces)
            self.share = self.weight / self.capacity
        return hot

    def _keep_still(self) -> None:
        for move in self.moves:
            if not move.cools or self.situation.now - move.at >= self.tuning.cooldown_ns:
                continue
            key_range = move.range
            i = first_within(self.pieces, key_range.start)
            while i < len(self.pieces) and (
                key_range.end is None or self.pieces[i].start < key_range.end
            ):
                self.pieces[i].rests = True
                i += 1

    # --- the parts of phases ---

    @property
    def slack(self) -> float:
        """The slack by which takers are compared: a taker is as good as another that carries less
        by no more than this.
        """
        return (self.tuning.high - 1.0) * self.share

    def set_aside(self, accounts: list[Account]) -> None:
        """Let these owners keep what they have; the others share the rest."""
        if accounts:
            # If these owners have everything, rounding may leave less than nothing for the rest.
            self.weight = max(0.0, self.weight - sum(account.weight for account in accounts))
            self.capacity -= sum(account.capacity for account in accounts)
            self.share = self.weight / (self.capacity or 1.0)

    def noise_of(self, capacity: float) -> float:
        """How far an owner of that capacity may be from its share by chance, as a part of its
        share.
        """
        mean = self.share * capacity
        if self.situation.loads is None or mean <= 0 or self.metric != REQUESTS:
            return 0.0  # of no load nothing is chance, nor of what is not counted
        return chance(mean) / mean

    def room(self, account: Account) -> float:
        """The load that the account has room for, up to an even share."""
        return self.share * account.capacity - account.weight

    def of_share(self, account: Account) -> str:
        """The account's load as a part of its even share, for people to read."""
        of_what = f" of {self.metric}" if self.gauges else ""
        return f"{account.use / (self.share or 1.0):.2f} of its share{of_what}"

    def amount_of(self, rate: float) -> str:
        """An amount of what is balanced, for people to read."""
        if self.metric == REQUESTS:
            return f"{rate:.0f}/s"
        return f"{rate / self.gauges[0].whole:.0%} of an owner's {self.metric}"

    def purity(self, piece: Piece) -> float:
        """How much of what a piece takes along is of the metric that is balanced, from 0 to 1."""
        ours = piece.weight / self.gauges[0].whole
        others = sum(
            each.amount(piece.start, piece.end) / each.whole for each in self.accounts.beside
        )
        return ours / (ours + others) if others > 0 else 1.0

    def fits(self, key_range: KeyRange, taker: Account, giver: Account | None = None) -> bool:
        """Whether with these keys the taker is no fuller by any other metric than is even, or than
        the giver is by this one.
        """
        if not self.accounts.beside:
            return True
        below = giver.use / self.gauges[0].whole if giver else 0.0
        return all(
            each.fits(key_range.start, key_range.end, taker.incarnation, below)
            for each in self.accounts.beside
        )

    def may_move(self, piece: Piece, giver: Account) -> bool:
        """Whether cooldown and budget allow the move. A move that they forbid is noted as held
        back.
        """
        if piece.rests:
            self.hold_back(f"relieving {giver.name}", "cooldown")
        elif self.cost(piece) > self.left:
            self.hold_back(
                f"relieving {giver.name}, at {self.of_share(giver)}", "over the churn budget"
            )
        else:
            self.budget -= self.cost(piece)
            self.lasting -= self.cost(piece)
            return True
        return False

    def may_cut(self, giver: Account) -> bool:
        """Whether budget and table allow one more key to move alone."""
        relieving = f"relieving {giver.name}, at {self.of_share(giver)}, with a hot key"
        if self.key_cost > self.left:
            self.hold_back(relieving, "over the churn budget")
        elif self.is_full:
            self.hold_back(relieving, "the table is full")
        else:
            self.budget -= self.key_cost
            self.lasting -= self.key_cost
            return True
        return False

    @property
    def is_full(self) -> bool:
        """Whether the table has no room for more entries."""
        at_most = 2 * self.tuning.entries_at_most * len(self.accounts.all)
        return len(self.situation.present) >= min(at_most, self.tuning.table)

    def cost(self, piece: Piece) -> float:
        """The cost of moving a piece: the part of the key space that moves."""
        return self.key_cost if piece.is_one_key else piece.space

    @property
    def left(self) -> float:
        """The part of both budgets for balance that is left."""
        return min(self.budget, self.lasting)

    def move(self, piece: Piece, taker: Account, phase: str, reason: str) -> None:
        """Move the piece for the sake of balance: it then cools down."""
        self.accounts.move(piece, taker)
        piece.why = Why(phase, reason)
        piece.rests = True

    def hold_back(self, what: str, why: str) -> None:
        """Note a move that was not made, and why."""
        self.held_back[HeldBack(what, why)] = None

    def lumps(self, account: Account) -> list[tuple[float, Key, Piece]]:
        """The account's keys that weigh too much to go just anywhere."""
        alone = self.tuning.alone * self.share * account.capacity
        return [
            (rate, key, piece)
            for piece in account.pieces
            for key, rate in piece.points
            if rate >= alone
        ]

    def detach(self, giver: Account, wanted: float, *, grain: bool = False) -> Piece | None:
        """The piece of about `wanted` or less that is best to move: the one with the most load for
        the least churn.

        A hot key alone moves no space, but makes two more ranges, so it counts as a fragment of
        space. A range that weighs too much is cut.
        """
        alone = self.tuning.alone * self.share * giver.capacity
        most = wanted * 1.1
        best: tuple[float, Piece, Key | None] | None = None
        for piece in giver.pieces:
            if piece.rests:
                continue
            if piece.weight <= most:
                score = piece.weight / (piece.space + self.fragment)
                if self.accounts.beside:
                    score *= self.purity(piece)
                if best is None or score > best[0]:
                    best = score, piece, None
            for key, rate in () if grain or self.is_full else piece.points:
                score = rate / self.fragment / 2
                if alone <= rate <= most and (best is None or score > best[0]):
                    best = score, piece, key
        if best is not None and (best[1].weight > wanted / 4 or best[2] is not None):
            _, piece, hot = best
            return piece if hot is None else self.single_out(piece, hot)
        rest = best[1] if best and self._is_worth(best[1].weight, best[1].space) else None
        return self._cut_off(giver, wanted) or rest

    def _is_worth(self, weight: float, space: float) -> bool:
        """Whether a piece has load for its space. In an ordered pool, a large range that nobody
        asks for any more relieves nobody.
        """
        return not self.is_ordered or weight > space * self.weight * COLD_PART

    def _cut_off(self, giver: Account, wanted: float) -> Piece | None:
        """The beginning of the giver's heaviest piece, weighing about `wanted`."""
        pieces = sorted(giver.pieces, key=lambda piece: -piece.common)
        for piece in pieces[:4]:
            if not piece.rests and piece.weight > wanted:
                key = piece.key_at(wanted)
                if not self._is_worth(wanted, (self.scale.place(key) - piece.at) / SPACE):
                    continue
                rest = piece.cut(key)
                if rest is not None:
                    self._add(rest)
                    return piece
        return None

    def shorten(self, piece: Piece) -> None:
        """Shorten the piece to what the budget allows; the rest becomes another piece."""
        rest = piece.cut(self.scale.key_of(piece.at + int(self.left * SPACE)))
        if rest is not None:
            self._add(rest)

    def single_out(self, piece: Piece, key: Key) -> Piece:
        """The piece of that key alone, cut out of `piece`."""
        for cut in (key, key + b"\0"):
            rest = piece.cut(cut)
            if rest is not None:
                self._add(rest)
                if cut == key:
                    piece = rest
        return piece

    def above(self, piece: Piece, front: Key) -> Piece:
        """The piece of the keys above a front, up to the next position, cut out of `piece`."""
        ahead = piece.cut(front)
        if ahead is None:
            return piece
        self._add(ahead)
        beyond = next((key for key, _ in ahead.sample if key > front), None)
        rest = None if beyond is None else ahead.cut(beyond)
        if rest is not None:
            self._add(rest)
        return ahead

    def _add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        if self.is_housed:
            self.accounts.by_incarnation[piece.owner].pieces.append(piece)

    def piece_at(self, account: Account, key: Key) -> Piece:
        """The piece of the account that contains the key: the piece that contained it may have been
        cut.
        """
        return next(each for each in account.pieces if key in each.range)

    def in_grains(self, piece: Piece) -> list[Piece]:
        """The piece, cut into parts of about a grain each if it is much heavier than a grain."""
        count = ceil(piece.weight / self.grain - 0.5)
        parts = [piece]
        wanted = max(piece.weight / max(count, 1), piece.finest)
        for _ in range(count - 1):
            rest = parts[-1].cut(parts[-1].key_at(wanted))
            if rest is None:
                break
            self.pieces.append(rest)
            parts.append(rest)
        return parts

    def plan(self) -> Plan:
        """The plan after all phases."""
        self.pieces.sort(key=lambda piece: piece.start)
        starts = [piece.start for piece in self.pieces]
        owners = RangeMap.at_starts(starts, [piece.owner for piece in self.pieces])
        made = tuple(self._made())
        if not made and not self.held_back:
            self.hold_back("balance", self.why_nothing())
        again = {move.range for move in made}  # ranges that nobody can have
        moves = (*(move for move in self.moves if move.range not in again), *made)
        why: RangeMap[Why | None] = RangeMap(None)
        for move in moves:
            why.assign(move.range, move.why)
        memory = RoundMemory(
            owners,
            self.situation.now,
            self.members,
            self.placed_at,
            self.budget,
            self.lasting,
            self.joining,
            moves,
            self.arrivals,
            self.hot,
            self.trends,
            self.turned,
            self.peak,
            self.low_since,
            self.cold_since,
            self.metric,
        )
        return Plan(owners, why, tuple(self.held_back), memory, self.again_at)

    def why_nothing(self) -> str:
        """The reason, in words, why nothing moves although no move is held back."""
        if self.situation.loads is None:
            return "no load is known: not every owner has reported yet"
        most = max(self.accounts.all, key=lambda account: account.use)
        most_at = f"{most.name} carries most, {self.of_share(most)}"
        return f"{most_at}; {self.bearable:.2f} is too much"

    def _made(self) -> Iterator[RecentMove]:
        """The moves of this round."""
        for piece in self.pieces:
            if piece.why is not None:
                phase = piece.why.phase
                cools = phase in COOLING or (self.is_ordered and phase == "welcome")
                yield RecentMove(self.situation.now, piece.range, piece.why, cools)
