"""The policies against naive ones: the ring walked key by key, the deal counted and matched."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.deal import Deal
from tenure.protocol.balance.policy import NOBODY, Candidate
from tenure.protocol.balance.ring import Ring, points
from tests.properties.spaces import cuts, ranges
from tests.unit.protocol.balance.tables import plan_of

members = st.lists(st.integers(1, 9), unique=True, max_size=9)
present_owners = st.lists(st.tuples(ranges(), st.integers(0, 9)), max_size=12)


def candidates(incarnations: list[int]) -> list[Candidate]:
    return [Candidate(i, f"owner-{i}") for i in incarnations]


# --- the ring -------------------------------------------------------------------------------------


def owner_by_walking(key: bytes, incarnations: list[int], virtual_nodes: int) -> int:
    """Return the owner of the last point at or before the key; of the last of all, if there is no
    such point.
    """
    standing = sorted(
        (point, i) for i in incarnations for point in points(f"owner-{i}", virtual_nodes)
    )
    before = [i for point, i in standing if point <= key]
    return before[-1] if before else standing[-1][1]


@given(members.filter(bool), st.integers(1, 8), st.lists(st.binary(max_size=9), max_size=20))
def test_a_key_belongs_to_the_last_point_before_it(
    incarnations: list[int], virtual_nodes: int, keys: list[bytes]
) -> None:
    plan = plan_of(Ring(virtual_nodes), candidates(incarnations), RangeMap(NOBODY))
    for key in keys:
        assert plan[key] == owner_by_walking(key, incarnations, virtual_nodes)


@given(members, st.integers(1, 9), st.integers(1, 8))
def test_whoever_comes_or_goes_moves_its_own_keys_only(
    others: list[int], one: int, virtual_nodes: int
) -> None:
    ring = Ring(virtual_nodes)
    without = plan_of(ring, candidates([i for i in others if i != one]), RangeMap(NOBODY))
    with_it = plan_of(ring, candidates([*(i for i in others if i != one), one]), without)
    for key_range, owner in with_it:
        if owner != one:
            assert [old for _, old in without.within(key_range)] == [owner]


# --- the deal -------------------------------------------------------------------------------------


def kept_at_best(having: list[int], members: list[int]) -> int:
    """How many ranges can stay: everybody keeps up to an even share, and as many as there are odd
    ones keep one more.
    """
    share, odd = divmod(len(having), len(members))
    counts = Counter(owner for owner in having if owner in members)
    over = sum(count > share for count in counts.values())
    return sum(min(count, share) for count in counts.values()) + min(over, odd)


@given(st.lists(cuts), members.filter(bool), present_owners)
def test_a_deal_is_even_and_moves_the_least_that_evenness_allows(
    splits: list[bytes], incarnations: list[int], present: list[tuple[KeyRange, int]]
) -> None:
    deal, now = Deal(splits), RangeMap.of(present, NOBODY)
    plan = plan_of(deal, candidates(incarnations), now)
    having = [now[start] for start in deal.starts]
    planned = [plan[start] for start in deal.starts]
    counts = Counter(dict.fromkeys(incarnations, 0))
    counts.update(planned)
    assert set(counts) == set(incarnations)
    assert max(counts.values()) - min(counts.values()) <= 1
    kept = sum(a == b for a, b in zip(having, planned, strict=True))
    assert kept == kept_at_best(having, incarnations)


@given(st.lists(cuts), members, present_owners)
def test_a_deal_that_was_dealt_is_dealt_again(
    splits: list[bytes], incarnations: list[int], present: list[tuple[KeyRange, int]]
) -> None:
    """A new leader plans as the old one did, whatever the order in which it meets the owners."""
    deal = Deal(splits)
    plan = plan_of(deal, candidates(incarnations), RangeMap.of(present, NOBODY))
    assert plan_of(deal, candidates(incarnations[::-1]), plan) == plan
    assert set(plan.starts()) <= {b"", *splits}
