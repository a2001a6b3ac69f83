"""Tables for policies, and what is asked of their plans."""

from collections.abc import Sequence

from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import SPACE, place
from tenure.protocol.balance.policy import NOBODY, Candidate, Policy, Situation
from tenure.protocol.lease.table import Right

EMPTY = RangeMap(Right(NOBODY, 1, 1))


def candidates(*incarnations: int) -> list[Candidate]:
    return [Candidate(i, f"owner-{i}") for i in incarnations]


def table(owners: RangeMap[int], number: int = 2) -> RangeMap[Right]:
    """The table in which everybody has what the plan says."""
    rights = [Right(owner, number, 1) for owner in owners.values()]
    return RangeMap.at_starts(owners.starts(), rights)


def plan_of(
    policy: Policy, candidates: Sequence[Candidate], present: RangeMap[int]
) -> RangeMap[int]:
    return policy(Situation(candidates, table(present))).owners


def shares(owners: RangeMap[int]) -> dict[int, float]:
    """The part of the key space that each has."""
    found: dict[int, float] = {}
    for key_range, owner in owners:
        length = (place(key_range.end) - place(key_range.start)) / SPACE
        found[owner] = found.get(owner, 0.0) + length
    return found


def moved(before: RangeMap[int], after: RangeMap[int]) -> float:
    """The part of the key space that changes hands."""
    return sum(
        (place(piece.end) - place(piece.start)) / SPACE
        for key_range, owner in before
        for piece, new in after.within(key_range)
        if new != owner
    )
