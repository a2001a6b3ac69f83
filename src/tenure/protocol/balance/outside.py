"""What a policy from outside may plan: everything that it returns is looked at before it counts.

The operator's orders hold whatever it plans: pins, a freeze, and that a cordoned owner gets nothing
new. A plan that leaves a range to nobody although an owner could have it, or names an owner that is
not there, is refused as a whole.

Its moves have a budget, as our own policies give themselves one: a mistake in a policy, or a load
that comes and goes, must not have all state move again and again. What owners leave that go costs
nothing, nor does an owner's first fill up to its share, once. Everything else is a *move for
balance*. While the budget is used up, ranges stay where they are, in the order of keys. A move that
was begun is not taken back for that. A range of a hashed pool is cut where the budget ends. One of
an ordered pool moves as a whole, because the policy may have its reason for its bounds, as long as
any of the budget is left: the next one waits the longer.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tenure.base.instants import Instant, in_seconds, seconds
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange, in_words
from tenure.protocol.balance.load import SPACE, sound
from tenure.protocol.balance.policy import (
    NOBODY,
    Candidate,
    HeldBack,
    Plan,
    PlannedMove,
    Policy,
    PolicyFailed,
    Situation,
    changes,
    forbidden,
    nothing_to_plan,
    obeying,
    only,
    open_to_more,
)
from tenure.protocol.balance.scale import Hashed, Sampled, Scale

BUDGET = 0.1
"""The part of the key space that may move for balance at once: what our own may in nine minutes."""
REFILL_NS = seconds(600)
"""How long it takes to fill up."""
SOME_LEFT = BUDGET / 100
"""Less counts as used up, so that a policy is not asked again for next to nothing."""
LEAST_PAUSE_NS = seconds(1)
"""The soonest that a policy is asked again for its own sake: each time costs the leader a step."""


class OutsideMemory(NamedTuple):
    """What is known of the last round."""

    last: RangeMap[int]
    """The plan that holds."""
    budget: float
    at: Instant
    fills: Mapping[int, float]
    """The part of the key space that each owner may still be given as its first."""
    inner: object = None
    """The policy's own memory."""


class Outside:
    """A policy from outside, within its bounds."""

    is_outside = True

    def __init__(self, inner: Policy) -> None:
        self.inner = inner

    def __call__(self, situation: Situation) -> Plan:
        """The plan, as far as the budget reaches. Raises PolicyFailed if it breaks a rule."""
        if not situation.candidates:
            return nothing_to_plan()._replace(memory=situation.memory)
        situation = situation._replace(loads=sound(situation.loads))
        before = _before(situation)
        plan = self.inner(situation._replace(memory=before.inner))
        check_owners(situation, plan)
        paid = MoveBudget(situation, before)
        owners = obeying(situation, paid.within_budget(plan))
        held_back = [*forbidden(situation), *paid.held_back(), *plan.held_back]
        memory = OutsideMemory(owners, paid.budget, situation.now, paid.fills, plan.memory)
        again_at = min(plan.again_at, paid.again_at) if paid.kept else plan.again_at
        if again_at > situation.now:  # what is not later is refused as nonsense
            again_at = max(again_at, Instant(situation.now + LEAST_PAUSE_NS))
        return Plan(owners, plan.why, held_back, memory, again_at)

    @staticmethod
    def after_failure(memory: object) -> object:
        """The budget: otherwise a policy that now fails and now plans would have no bound."""
        return memory._replace(inner=None) if isinstance(memory, OutsideMemory) else None


def check_owners(situation: Situation, plan: Plan) -> None:
    """Raise PolicyFailed if the plan names an owner that may not have the range."""
    known = {each.incarnation: each for each in situation.candidates}
    is_open = bool(open_to_more(situation))
    for owner in dict.fromkeys(plan.owners.values()):
        if owner == NOBODY and is_open:
            free = sum(each == NOBODY for each in plan.owners.values())
            raise PolicyFailed(
                f"it gives {in_words(free)} to nobody, and there are owners for them"
            )
        if owner != NOBODY and owner not in known:
            raise PolicyFailed(f"it gives ranges to {owner}, which is not a candidate")
    pinned = RangeMap("")
    for key, name in situation.pins:
        pinned.assign(only(key), name)
    for move in changes(situation.present, plan):
        taker = known.get(move.taker)
        if taker is None or not taker.cordoned:
            continue
        if not pinned.has(move.range, taker.name):
            raise PolicyFailed(f"it gives {move.range} to {taker.name}, which is cordoned")


class MoveBudget:
    """The moves of one plan, counted."""

    def __init__(self, situation: Situation, before: OutsideMemory) -> None:
        self._situation = situation
        self._last = before.last
        self._there = {each.incarnation for each in situation.candidates}
        self._scale = _scale(situation)
        passed = max(0, situation.now - before.at)
        self.budget = min(BUDGET, before.budget + BUDGET * passed / REFILL_NS)
        lacks = _shares(situation)
        for key_range, owner in before.last:
            if owner in lacks:
                lacks[owner] -= self._part(key_range)
        self.fills = {
            each: min(before.fills.get(each, lack), max(0.0, lack)) for each, lack in lacks.items()
        }
        self.kept: list[float] = []
        """The parts of the key space of the moves that were not made."""

    def within_budget(self, plan: Plan) -> RangeMap[int]:
        """The owners of the plan; those of the present where the budget does not reach."""
        owners = plan.owners.copy()
        for move in changes(self._situation.present, plan):
            for piece in self._pieces(move):
                kept = self._unpaid(piece)
                if kept is not None:
                    self.kept.append(self._part(kept))
                    owners.assign(kept, piece.giver)
        return owners

    def _pieces(self, move: PlannedMove) -> Iterator[PlannedMove]:
        """The parts of a move that nobody has planned before, from an owner that stays.

        If nobody is to have a range, all are cordoned: its owner keeps it (`obeying`).
        """
        if move.giver in self._there and move.taker != NOBODY:
            for piece, planned in self._last.within(move.range):
                if planned != move.taker:
                    yield move._replace(range=piece)

    def _unpaid(self, move: PlannedMove) -> KeyRange | None:
        """The part of a move that cannot be paid: first by what the taker may be filled with."""
        start, end = move.range.start, move.range.end
        part, fill = self._part(move.range), self.fills[move.taker]
        allowed = fill + max(self.budget, 0.0)
        is_whole = self._situation.kind == "ordered" and self.budget >= SOME_LEFT
        if part > allowed and not is_whole:
            if self._situation.kind == "ordered" or allowed < SOME_LEFT:
                return move.range
            cut = self._scale.key_of(self._scale.place(start) + int(allowed * SPACE))
            rest = KeyRange(cut, end)
            part = allowed
        else:
            rest = None
        self.fills[move.taker] = max(0.0, fill - part)
        self.budget -= max(0.0, part - fill)
        return rest

    def _part(self, key_range: KeyRange) -> float:
        return (self._scale.place(key_range.end) - self._scale.place(key_range.start)) / SPACE

    @property
    def again_at(self) -> Instant:
        """When the next move can be paid."""
        wait = (SOME_LEFT - self.budget) / BUDGET * REFILL_NS
        return Instant(self._situation.now + max(int(wait), LEAST_PAUSE_NS))

    def held_back(self) -> Iterator[HeldBack]:
        """What was not moved, in words."""
        if self.kept:
            wait = in_seconds(Instant(self.again_at - self._situation.now))
            what = f"{in_words(len(self.kept))} ({sum(self.kept):.1%})"
            yield HeldBack(what, f"over the budget for moves; more in {wait:.0f} s")


def _before(situation: Situation) -> OutsideMemory:
    """The memory of the last round; of the first one, by what owners have. An owner that has
    something was there before this leader, and has been filled.
    """
    if isinstance(situation.memory, OutsideMemory):
        return situation.memory
    starts = situation.present.starts()
    having = [right.owner for right in situation.present.values()]
    fills = dict.fromkeys(set(having) - {NOBODY}, 0.0)
    return OutsideMemory(RangeMap.at_starts(starts, having), BUDGET, situation.now, fills)


def _shares(situation: Situation) -> dict[int, float]:
    """The part of the key space that each owner should have for its capacity, about."""

    def capacity(candidate: Candidate) -> float:
        return min(max(candidate.capacity, 1e-6), 1e6)

    whole = sum(map(capacity, situation.candidates))
    return {each.incarnation: capacity(each) / whole for each in situation.candidates}


def _scale(situation: Situation) -> Scale:
    if situation.kind == "hashed":
        return Hashed()
    marks = {*situation.present.starts(), *situation.split_points}
    return Sampled(marks, situation.loads.sample if situation.loads else ())
