"""Hot keys that come and go: what they are taken for, and what little has to move for them."""

from collections.abc import Mapping
from math import exp

import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import SMOOTHING_NS, Loads
from tenure.protocol.balance.pieces import Piece, cut_by
from tenure.protocol.balance.policy import Plan, Situation, changes, only
from tenure.protocol.balance.round_memory import RoundMemory
from tenure.protocol.balance.trend import Trend, foresee, hot_keys
from tenure.protocol.balance.tuning import DEFAULT
from tenure.protocol.balance.weighted import Weighted
from tests.unit.protocol.balance.tables import candidates, moved, shares, table

ROUND = seconds(3)
KNOWN = 1 - exp(-ROUND / SMOOTHING_NS)
"""The part of a change that is known after one report."""
OLD: Key = b"\x11" * 8
NEW: Key = b"\x99" * 8
EIGHTHS = [b"", *(bytes([i * 32]) + bytes(7) for i in range(1, 8))]


def loads(even: float, hot: Mapping[Key, float], at: int = 0) -> Loads:
    rates = [even / 8] * 8
    for key, rate in hot.items():
        rates[key[0] // 32] += rate
    return Loads(Instant(at), EIGHTHS, rates, sorted(hot.items()))


def pieces(hot: Mapping[Key, float]) -> list[Piece]:
    return cut_by(RangeMap.at_starts(EIGHTHS, list(range(1, 9))), loads(800, hot), 0.0)


def rates(found: list[Piece]) -> dict[Key, float]:
    return {key: rate for piece in found for key, rate in piece.points}


def assert_trend(found: Mapping[Key, Trend], rises: bool, then: float) -> None:
    """The one there is: of NEW, at the owner of its eighth."""
    assert found == {NEW: Trend(5, rises, found[NEW].then)}
    assert found[NEW].then == pytest.approx(then)


# --- what a key is taken for ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"), [(0.0, 1000.0), (1000.0, 0.0), (1000.0, 400.0), (300.0, 3000.0)]
)
def test_a_key_is_taken_for_what_it_is_heading_for(before: float, after: float) -> None:
    cut = pieces({NEW: before + (after - before) * KNOWN})
    found = foresee(cut, {NEW: before}, {}, ROUND, 50.0)
    assert_trend(found, after > before, after)
    assert rates(cut) == {NEW: pytest.approx(after)}
    assert cut[4].weight == pytest.approx(100 + after)


def test_what_may_be_chance_is_no_trend() -> None:
    cut = pieces({NEW: 149.0, OLD: 51.0})
    assert foresee(cut, {NEW: 100.0, OLD: 100.0}, {}, ROUND, 50.0) == {}
    assert rates(cut) == {NEW: 149.0, OLD: 51.0}


@pytest.mark.parametrize(("rose", "then"), [(True, 1000.0), (False, 1000 * KNOWN)])
def test_what_goes_up_and_down_is_no_trend(rose: bool, then: float) -> None:
    cut = pieces({NEW: 1000 * KNOWN})
    last = Trend(5, rose, 0.0)
    assert_trend(foresee(cut, {NEW: 0.0}, {NEW: last}, ROUND, 50.0), True, then)
    assert rates(cut) == {NEW: pytest.approx(then)}


def test_where_nothing_is_told_of_a_key_it_heads_where_it_did() -> None:
    cut = pieces({NEW: 1000 * (1 - KNOWN)})
    last = foresee(cut, {NEW: 1000.0}, {}, ROUND, 50.0)
    for _ in range(3):
        cut = pieces({NEW: 1000 * (1 - KNOWN)})
        last = foresee(cut, {NEW: 1000 * (1 - KNOWN)}, last, ROUND, 50.0)
        assert_trend(last, False, 0.0)
        assert rates(cut) == {NEW: pytest.approx(0.0)}


def test_a_key_cannot_head_below_nothing() -> None:
    """Two reports may come between two rounds."""
    cut = pieces({NEW: 1000 * (1 - KNOWN) ** 2})
    foresee(cut, {NEW: 1000.0}, {}, ROUND, 50.0)
    assert rates(cut) == {NEW: 0.0}


def test_rounds_that_follow_upon_each_other_at_once_see_no_further() -> None:
    cut = pieces({NEW: 1000 * KNOWN})
    foresee(cut, {NEW: 0.0}, {}, 1, 50.0)
    assert rates(cut)[NEW] < 1400


def test_keys_are_hot_from_some_rate_on() -> None:
    assert hot_keys(pieces({NEW: 100.0, OLD: 99.0}), 100.0) == {NEW: 100.0}


# --- what moves for them --------------------------------------------------------------------------


class Pool:
    """Owners whose plans are carried out at once, and loads that are smoothed."""

    def __init__(self, owners: int, even: float, hot: Mapping[Key, float]) -> None:
        self.policy = Weighted()
        self.members = candidates(*range(1, owners + 1))
        self.even = even
        self.hot = dict(hot)
        self.known = dict(hot)
        self.now = 0
        plan = self.policy(Situation(self.members, table(RangeMap(0))))
        self.plan: Plan = plan
        for _ in range(20):  # whatever the budget has to wait for
            self.now += seconds(600)
            self.round()

    def round(self) -> None:
        for key in self.hot.keys() | self.known.keys():
            known = self.known.get(key, 0.0)
            self.known[key] = known + (self.hot.get(key, 0.0) - known) * KNOWN
        situation = Situation(
            self.members,
            table(self.plan.owners),
            Instant(self.now),
            loads(self.even, self.known, self.now),
            memory=self.plan.memory,
        )
        self.before, self.plan = self.plan.owners, self.policy(situation)
        self.now += ROUND

    def has_alone(self, key: Key) -> bool:
        owner = self.plan.owners[key]
        return [each for each, who in self.plan.owners if who == owner] == [only(key)]


def test_a_new_hot_key_takes_the_owner_of_one_that_has_cooled_down() -> None:
    pool = Pool(10, 9000, {OLD: 3000.0})
    assert pool.has_alone(OLD)
    owner, settled = pool.plan.owners[OLD], pool.plan.owners
    pool.hot = {NEW: 3000.0}
    for _ in range(4):
        pool.round()
    assert pool.plan.owners[NEW] == owner
    assert moved(settled, pool.plan.owners) == 0


@pytest.mark.parametrize("first", ["falls", "rises"])
def test_it_does_though_one_of_the_two_is_seen_a_round_before_the_other(first: str) -> None:
    pool = Pool(10, 9000, {OLD: 3000.0})
    owner, settled = pool.plan.owners[OLD], pool.plan.owners
    pool.hot = {} if first == "falls" else {OLD: 3000.0, NEW: 3000.0}
    pool.round()
    pool.hot = {NEW: 3000.0}
    for _ in range(4):
        pool.round()
    assert pool.plan.owners[NEW] == owner
    assert moved(settled, pool.plan.owners) == 0


def test_owners_whose_load_begins_to_change_wait_for_a_round() -> None:
    pool = Pool(10, 9000, {OLD: 3000.0})
    pool.hot = {NEW: 3000.0}
    pool.round()
    assert pool.plan.owners == pool.before
    pool.round()
    assert pool.plan.owners != pool.before


def test_a_warm_key_goes_where_one_has_cooled_down_though_it_is_a_little_hotter() -> None:
    """It leaves its owner even; and the taker gives a little away, not all of what is too much."""
    pool = Pool(10, 9500, {OLD: 500.0})
    settled = pool.plan.owners
    pool.hot = {NEW: 600.0}
    for _ in range(8):
        pool.round()
    assert pool.plan.owners[NEW] == settled[OLD]
    assert pool.plan.owners[NEW] != settled[NEW]
    assert moved(settled, pool.plan.owners) < 0.03


def test_a_key_that_fills_more_than_what_is_left_for_the_others_has_an_owner_too() -> None:
    """Less than half of a share of everything is more than a share of the rest."""
    pool = Pool(6, 1200, {OLD: 8000.0, NEW: 600.0})
    assert pool.has_alone(OLD)
    assert pool.has_alone(NEW)


def test_a_hotter_key_does_not_come_to_one_that_has_just_been_given_its_owner() -> None:
    """That one rests, so the two would be together until it has cooled down."""
    pool = Pool(10, 9000, {OLD: 3000.0})
    pool.hot = {NEW: 3000.0}
    for _ in range(4):
        pool.round()
    assert pool.has_alone(NEW)
    hotter = b"\x55" * 8
    pool.hot[hotter] = 9000.0
    for _ in range(4):
        pool.round()
        assert pool.plan.owners[hotter] != pool.plan.owners[NEW]


def spent(plan: Plan) -> RoundMemory:
    assert isinstance(plan.memory, RoundMemory)
    return plan.memory._replace(budget=0.001)


def test_a_second_hot_key_leaves_though_the_budget_has_nothing_left_but_for_keys() -> None:
    second = b"\x31" * 8
    policy, members = Weighted(), candidates(1, 2, 3, 4)
    present = RangeMap.at_starts(EIGHTHS, [1, 1, 2, 2, 3, 3, 4, 4])
    plan = policy(Situation(members, table(present), Instant(0), loads(8000, {OLD: 1.0})))
    hot = {OLD: 9000.0, second: 3000.0}
    for i in (1, 2):
        given = Situation(members, table(plan.owners), Instant(i), loads(8000, hot))
        plan = policy(given._replace(memory=spent(plan)))
    assert plan.owners[second] != plan.owners[OLD]
    assert only(second) in [each.range for each in changes(table(present), plan)]
    assert moved(present, plan.owners) < 0.001


def test_who_has_only_a_key_that_is_cold_again_keeps_it_until_it_has_more() -> None:
    """An owner with nothing would count as a new one, which is given a share whatever
    the budget.
    """
    policy, members = Weighted(), candidates(1, 2, 3, 4)
    present = RangeMap.at_starts(EIGHTHS, [3, 1, 1, 1, 2, 2, 2, 3])
    present.assign(only(NEW), 4)
    plan = policy(Situation(members, table(present)))
    given = Situation(members, table(present), Instant(0), loads(8000, {}), memory=spent(plan))
    assert policy(given).owners[NEW] == 4


EVERYWHERE = {bytes([i * 32 + 16]) * 8: 3000.0 for i in range(8)}
"""A hot key in every eighth: every owner that has anything turns."""


def test_who_turns_is_given_what_has_no_owner_all_the_same() -> None:
    pool = Pool(2, 8000, {})
    pool.members, pool.hot = candidates(1), EVERYWHERE
    pool.round()
    assert set(pool.plan.owners.values()) == {1}


def test_who_comes_while_all_others_turn_is_given_its_share_a_round_later() -> None:
    pool = Pool(2, 8000, {})
    pool.members = candidates(1, 2, 3)
    pool.round()
    pool.now += DEFAULT.settling_ns
    pool.hot = EVERYWHERE
    pool.round()
    assert 3 not in shares(pool.plan.owners)
    pool.round()
    assert shares(pool.plan.owners)[3] > 0.15, "and some of the hot keys"
