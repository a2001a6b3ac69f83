"""Loads and the weighted policy against naive ones: cell by cell, and the largest key first."""

from bisect import bisect_right
from itertools import pairwise
from math import exp

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import SMOOTHING_NS, Loads
from tenure.protocol.balance.picture import LoadPicture, Measurement, RangeRate
from tenure.protocol.balance.pieces import carried, cut_by
from tenure.protocol.balance.policy import Candidate, Situation, changes
from tenure.protocol.balance.tuning import DEFAULT
from tenure.protocol.balance.weighted import Weighted
from tests.unit.protocol.balance.tables import EMPTY, moved, table

CELLS = 16
STARTS = [b"", *(bytes([i * 256 // CELLS]) + bytes(7) for i in range(1, CELLS))]
rates = st.floats(0, 1000, allow_subnormal=False)
cells = st.integers(0, CELLS - 1)


@st.composite
def spans(draw: st.DrawFn) -> tuple[int, int]:
    first = draw(cells)
    return first, draw(st.integers(first + 1, CELLS))


def end_of(cell: int) -> Key | None:
    return STARTS[cell] if cell < CELLS else None


# --- the picture ----------------------------------------------------------------------------------


@given(st.lists(st.tuples(spans(), rates, st.floats(0.1, 30)), max_size=12))
def test_the_picture_is_that_of_cells_that_share_evenly(
    reports: list[tuple[tuple[int, int], float, float]],
) -> None:
    picture, naive = LoadPicture(), [0.0] * CELLS
    for (first, last), rate, length in reports:
        told = RangeRate(STARTS[first], end_of(last), rate)
        picture.take(Measurement(seconds(length), [told]))
        picture.invariants()
        known = sum(naive[first:last])
        known += (rate - known) * (1 - exp(-seconds(length) / SMOOTHING_NS))
        naive[first:last] = [known / (last - first)] * (last - first)
    loads = picture.loads(Instant(0))
    owners = RangeMap.at_starts(STARTS, list(range(CELLS)))
    assert [piece.weight for piece in cut_by(owners, loads, 0.0)] == pytest.approx(naive, abs=1e-6)


# --- pieces ---------------------------------------------------------------------------------------


@given(
    st.lists(rates, min_size=CELLS, max_size=CELLS),
    st.dictionaries(st.binary(min_size=8, max_size=8), rates, max_size=6),
    st.lists(st.binary(min_size=1, max_size=8), max_size=6),
    rates,
)
def test_cutting_loses_no_weight(
    each: list[float], hot: dict[Key, float], cuts: list[Key], idle: float
) -> None:
    """Every hot key is also in the piece around it, and never hotter than its range."""
    loads = Loads(Instant(0), STARTS, each, sorted(hot.items()))
    [piece] = cut_by(RangeMap(1), loads, idle)
    pieces = [piece]
    for cut in sorted(set(cuts)):
        rest = pieces[-1].cut(cut)
        if rest is not None:
            pieces.append(rest)
    assert sum(one.weight for one in pieces) == pytest.approx(sum(each) + idle, rel=1e-9, abs=1e-6)
    for one in pieces:
        assert one.weight == pytest.approx(one.even + sum(rate for _, rate in one.points))
        for key, rate in one.points:
            assert key in one.range
            assert rate <= each[bisect_right(STARTS, key) - 1] * (1 + 1e-9)


@given(
    st.lists(rates, min_size=CELLS, max_size=CELLS),
    st.lists(st.integers(0, 3), min_size=CELLS, max_size=CELLS),
    st.dictionaries(st.binary(min_size=8, max_size=8), rates, max_size=6),
)
def test_what_owners_carry_is_what_their_pieces_weigh(
    each: list[float], having: list[int], hot: dict[Key, float]
) -> None:
    loads = Loads(Instant(0), STARTS, each, sorted(hot.items()))
    owners = RangeMap.at_starts(STARTS, having)
    naive = dict.fromkeys(having, 0.0)
    for piece in cut_by(owners, loads, 0.0):
        naive[piece.owner] += piece.weight
    assert carried(owners, loads) == pytest.approx(naive, abs=1e-6)


# --- the weighted policy --------------------------------------------------------------------------


def largest_first(hot: list[float], even: float, owners: int) -> float:
    """The most that anybody carries where keys are dealt from the largest on, and then the rest."""
    carried = [0.0] * owners
    for rate in sorted(hot, reverse=True):
        carried[carried.index(min(carried))] += rate
    return max(*carried, (sum(hot) + even) / owners)


hot_keys = st.dictionaries(
    st.binary(min_size=8, max_size=8), st.floats(10, 3000), min_size=0, max_size=12
)


def play(owners: int, hot: dict[Key, float], even: float, rounds: int) -> list[RangeMap[int]]:
    """The plans of some rounds, each carried out, with loads that do not change."""
    policy = Weighted()
    members = [Candidate(i, f"owner-{i}") for i in range(1, owners + 1)]
    plan = policy(Situation(members, EMPTY))
    plans = [plan.owners]
    for i in range(rounds):
        present = table(plan.owners)
        total = even + sum(hot.values())
        loads = Loads(Instant(0), [b""], [total], sorted(hot.items()))
        now = Instant(seconds(1000 * (i + 1)))
        plan = policy(Situation(members, present, now, loads, memory=plan.memory))
        plans.append(plan.owners)
    return plans


def weights(owners: RangeMap[int], hot: dict[Key, float], even: float) -> dict[int, float]:
    loads = Loads(Instant(0), [b""], [even + sum(hot.values())], sorted(hot.items()))
    found: dict[int, float] = {}
    for piece in cut_by(owners, loads, 0.0):
        found[piece.owner] = found.get(piece.owner, 0.0) + piece.weight
    return found


@settings(max_examples=40, deadline=None)  # each plans many rounds
@given(st.integers(2, 8), hot_keys, st.floats(1000, 10_000))
def test_in_time_it_is_as_even_as_dealing_the_largest_first(
    owners: int, hot: dict[Key, float], even: float
) -> None:
    plans = play(owners, hot, even, rounds=20)
    found = weights(plans[-1], hot, even)
    best = largest_first(list(hot.values()), even, owners)
    assert max(found.values()) <= 4 / 3 * best


@settings(max_examples=40, deadline=None)  # each plans many rounds
@given(st.integers(2, 8), hot_keys, st.floats(1000, 10_000))
def test_a_round_keeps_within_its_budget(owners: int, hot: dict[Key, float], even: float) -> None:
    plans = play(owners, hot, even, rounds=3)
    for before, after in pairwise(plans):
        assert moved(before, after) <= DEFAULT.budget + DEFAULT.joining + 1e-9


@given(
    st.lists(st.integers(1, 9), unique=True, min_size=1, max_size=9),
    st.lists(st.integers(1, 9), unique=True, min_size=1, max_size=9),
)
@example(before=[1, 3, 6], after=[1, 2, 4, 5])
def test_without_load_only_who_comes_or_goes_is_moved_and_shares_are_even(
    before: list[int], after: list[int]
) -> None:
    policy = Weighted()
    first = policy(Situation([Candidate(i, f"owner-{i}") for i in before], EMPTY))
    members = [Candidate(i, f"owner-{i}") for i in after]
    plan = policy(Situation(members, table(first.owners), memory=first.memory))
    found = weights(plan.owners, {}, 1.0)
    assert set(found) == set(after)
    assert max(found.values()) * len(after) <= DEFAULT.high + 0.03
    for change in changes(table(first.owners), plan):
        assert change.giver not in after or change.taker not in before


def test_naive_dealing_is_as_it_says() -> None:
    assert largest_first([5, 3, 3], 1, 2) == 6
    assert largest_first([1], 9, 2) == 5
