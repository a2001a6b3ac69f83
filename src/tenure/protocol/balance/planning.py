"""Asking a policy outside the leader's steps: a copy of the situation, and the result.

A policy takes half a second for 1,000 owners. A leader that is busy for so long renews no leases
and misses its beat. So the policy gets a copy of everything that it reads, and `Planning.carry_out`
may run once, in any thread, at any later time.

A policy that raises loses its round, and nothing else. The exception is a value here.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from xxhash import xxh3_64_digest

from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.policy import (
    NOBODY,
    HeldBack,
    Plan,
    PlannedMove,
    Policy,
    PolicyFailed,
    Situation,
    changes,
    in_time,
    is_outside,
)
from tenure.protocol.lease.limits import (
    BOUND_BYTES_PER_PLAN,
    BOUND_BYTES_PER_TABLE,
    RANGES_PER_PLAN,
    RANGES_PER_TABLE,
)
from tenure.protocol.lease.records import Steering
from tenure.protocol.lease.table import Right, owners_of


class Planned(NamedTuple):
    """A policy's plan, and its consequences."""

    plan: Plan
    by_owner: Mapping[int, Sequence[KeyRange]]
    """The ranges that each incarnation should have."""
    moves: Sequence[PlannedMove]
    """The differences from the table of the situation; with two situations, the differences between
    the outcomes of their plans.
    """
    movers: frozenset[int]
    """The owners that are to ask because of these moves: who has the range, or who is to be granted
    it where it is free."""
    losers: frozenset[int]
    """The owners of ranges that nobody is to have: they are to ask if they leave."""


class PlanningFailed(NamedTuple):
    """The policy raised, or was given up."""

    why: str
    hangs: bool = False
    """Whether planning was given up, because this policy or that of another pool does not return.
    """


class Planning:
    """A policy, and the situation that it is to plan for. Compared by identity."""

    def __init__(
        self,
        pool: str,
        policy: Policy,
        situation: Situation,
        steering: Steering,
        as_of: int,
        otherwise: tuple[Policy, Situation] | None = None,
        called: str = "",
    ) -> None:
        self.pool = pool
        self.policy = policy
        self.situation = situation._replace(present=situation.present.copy())
        self.steering = steering
        """The operator's commands in this situation."""
        self.as_of = as_of
        """The LSN of the present."""
        self.otherwise = otherwise
        """The policy and situation without a command, of the same table, if the question is what
        the command changes.
        """
        self.called = called
        """The name of the policy."""
        asked = (policy, *(otherwise or ())[:1])
        self.line = pool if any(map(is_outside, asked)) else ""
        """The line in which the call waits: each pool has one for policies from outside."""

    def carry_out(self) -> Planned | PlanningFailed:
        """Ask the policy."""
        try:
            plan = self.policy(self.situation)
            refuse_nonsense(self.situation, plan)
            plan = thinned(self.situation.present, plan)
            moves = list(self._moves(plan))
        except PolicyFailed as error:
            return PlanningFailed(str(error))
        except Exception as error:  # noqa: BLE001 - it is somebody's policy: anything may come
            return PlanningFailed(f"{type(error).__name__}: {error}")
        by_owner: dict[int, list[KeyRange]] = {}
        for key_range, incarnation in plan.owners:
            by_owner.setdefault(incarnation, []).append(key_range)
        movers = frozenset(each.giver or each.taker for each in moves if each.taker != NOBODY)
        losers = frozenset(each.giver for each in moves if each.taker == NOBODY)
        return Planned(plan, by_owner, moves, movers, losers)

    def _moves(self, plan: Plan) -> Iterator[PlannedMove]:
        present = self.situation.present
        if self.otherwise is None:
            yield from changes(present, plan)
            return
        without = self._without(*self.otherwise)
        for move in changes(present, in_time(self.policy, self.situation, plan)):
            for piece, taker in without.within(move.range):
                if taker != move.taker:
                    yield move._replace(range=piece)

    def _without(self, policy: Policy, situation: Situation) -> RangeMap[int]:
        try:
            return in_time(policy, situation._replace(present=self.situation.present)).owners
        except Exception:  # noqa: BLE001 - the command may be the way out of a policy that fails
            return owners_of(self.situation.present)


def refuse_nonsense(situation: Situation, plan: Plan) -> None:
    """Raise ValueError for a plan that would take ranges from owners and give them to nobody, or
    would make the leader plan again without end.
    """
    known = {NOBODY, *(each.incarnation for each in situation.candidates)}
    stranger = next((each for each in plan.owners.values() if each not in known), NOBODY)
    if stranger != NOBODY:
        raise ValueError(f"it gives ranges to {stranger}, which is not a candidate")
    if plan.again_at <= situation.now:
        raise ValueError(f"it wants to be asked again at {plan.again_at}, which is not later")


def thinned(present: RangeMap[Right], plan: Plan) -> Plan:
    """The plan, or only as many of its cuts as the table has room for. The cuts are chosen as if by
    lot, because every n-th of them might belong to one owner.
    """
    starts, wanted = present.starts(), plan.owners.starts()
    room = RANGES_PER_PLAN - len(starts)
    bytes_left = BOUND_BYTES_PER_PLAN - sum(map(len, starts))
    if len(wanted) <= room and sum(map(len, wanted)) <= bytes_left:
        return plan
    known = dict.fromkeys(starts)
    new = sorted((start for start in wanted if start not in known), key=xxh3_64_digest)
    taken = list(accumulate(map(len, new)))
    chosen = new[: min(max(room, 0), bisect_right(taken, bytes_left))]
    if len(chosen) == len(new):
        return plan
    kept = sorted([*starts, *chosen])
    owners = RangeMap.at_starts(kept, [plan.owners[start] for start in kept])
    most = f"{RANGES_PER_TABLE} ranges"
    if len(chosen) < room:
        most = f"{BOUND_BYTES_PER_TABLE} bytes of bounds of ranges"
    why_not = f"the table has no room for more than {most}"
    held_back = [*plan.held_back, HeldBack(f"{len(new) - len(chosen)} cuts of ranges", why_not)]
    return plan._replace(owners=owners, held_back=held_back)
