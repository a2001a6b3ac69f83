"""Dealing split ranges out evenly, moving the least (P12)."""

from collections import Counter

import pytest

from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.deal import Deal
from tenure.protocol.balance.policy import NOBODY
from tests.unit.protocol.balance.tables import candidates, plan_of

SPLITS = [bytes([i]) for i in range(1, 12)]  # 12 ranges
NOTHING = RangeMap(NOBODY)


def dealt(deal: Deal, plan: RangeMap[int]) -> list[int]:
    """The owner of each of the split ranges."""
    return [plan[start] for start in deal.starts]


def test_without_members_nobody_has_anything() -> None:
    assert plan_of(Deal(SPLITS), [], RangeMap(3)) == NOTHING


def test_a_pool_without_split_points_is_one_range() -> None:
    assert plan_of(Deal([]), candidates(4, 5), NOTHING) == RangeMap(4)


@pytest.mark.parametrize("count", range(1, 15))
def test_everybody_has_as_many_give_or_take_one(count: int) -> None:
    plan = plan_of(Deal(SPLITS), candidates(*range(1, count + 1)), NOTHING)
    counts = Counter(dict.fromkeys(range(1, count + 1), 0))
    counts.update(dealt(Deal(SPLITS), plan))
    assert max(counts.values()) - min(counts.values()) <= 1
    assert sum(counts.values()) == 12


def test_a_plan_that_is_even_is_left_alone() -> None:
    deal = Deal(SPLITS)
    plan = plan_of(deal, candidates(1, 2, 3), NOTHING)
    assert plan_of(deal, candidates(3, 2, 1), plan) == plan


def test_who_comes_is_given_its_share_and_nothing_else_moves() -> None:
    deal = Deal(SPLITS)
    before = plan_of(deal, candidates(1, 2, 3), NOTHING)
    after = plan_of(deal, candidates(1, 2, 3, 4), before)
    changed = [
        new for old, new in zip(dealt(deal, before), dealt(deal, after), strict=True) if old != new
    ]
    assert changed == [4, 4, 4]


def test_who_goes_leaves_its_share_and_nothing_else_moves() -> None:
    deal = Deal(SPLITS)
    before = plan_of(deal, candidates(1, 2, 3, 4), NOTHING)
    after = plan_of(deal, candidates(1, 2, 3), before)
    changed = [
        old for old, new in zip(dealt(deal, before), dealt(deal, after), strict=True) if old != new
    ]
    assert changed == [4, 4, 4]


@pytest.mark.parametrize(
    "splits", [[b"m", b"c"], [b"c", b"m", b"m"], [b"", b"c", b"m"]], ids=["order", "twice", "empty"]
)
def test_split_points_in_any_order_twice_or_empty_are_the_same(splits: list[bytes]) -> None:
    deal = Deal(splits)
    assert deal.starts == [b"", b"c", b"m"]
    assert plan_of(deal, candidates(1, 2, 3), NOTHING).starts() == [b"", b"c", b"m"]


def test_a_range_that_is_shared_at_present_goes_whole_to_who_has_its_beginning() -> None:
    present = RangeMap(1)
    present.assign(next(r for r, _ in RangeMap.at_starts([b"", b"\x05"], [1, 2]) if r.start), 2)
    plan = plan_of(Deal([b"\x04", b"\x08"]), candidates(1, 2), present)
    assert plan[b"\x05"] == plan[b"\x04"] == 1
