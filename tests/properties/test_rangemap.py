"""The range map against a dictionary with an entry for every key."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE, KeyRange, gaps
from tests.properties.spaces import KEYS, cuts, keys_in, ranges

values = st.integers(0, 3)
assignments = st.lists(st.tuples(ranges(), values), max_size=15)


def twin_of(items: list[tuple[KeyRange, int]]) -> dict[bytes, int]:
    twin = dict.fromkeys(KEYS, 0)
    for key_range, value in items:
        for key in keys_in(key_range):
            twin[key] = value
    return twin


def changes(twin: dict[bytes, int]) -> list[tuple[bytes, int]]:
    """Return where the value changes, and to which value."""
    found: list[tuple[bytes, int]] = []
    for key, value in twin.items():
        if not found or found[-1][1] != value:
            found.append((key, value))
    return found


@given(assignments)
def test_every_key_has_the_value_laid_over_it_last(items: list[tuple[KeyRange, int]]) -> None:
    made, twin = RangeMap.of(items, 0), twin_of(items)
    assert {key: made[key] for key in KEYS} == twin


@given(assignments)
def test_the_map_changes_only_where_values_do(items: list[tuple[KeyRange, int]]) -> None:
    """Ranges merge where, and only where, values agree."""
    made = RangeMap.of(items, 0)
    assert list(zip(made.starts(), made.values(), strict=True)) == changes(twin_of(items))
    assert len(made) == len(made.starts())


@given(assignments, ranges())
def test_pieces_cover_what_was_asked_for_in_order(
    items: list[tuple[KeyRange, int]], asked: KeyRange
) -> None:
    made, twin = RangeMap.of(items, 0), twin_of(items)
    pieces = list(made.within(asked))
    assert pieces[0][0].start == asked.start
    assert pieces[-1][0].end == asked.end
    for (before, _), (after, _) in pairwise(pieces):
        assert before.end == after.start
    assert {key: value for piece, value in pieces for key in keys_in(piece)} == {
        key: twin[key] for key in keys_in(asked)
    }


@given(assignments)
def test_all_ways_to_walk_a_map_agree(items: list[tuple[KeyRange, int]]) -> None:
    made = RangeMap.of(items, 0)
    assert list(made) == list(made.within(WHOLE))
    assert RangeMap.at_starts(made.starts(), made.values()) == made
    assert RangeMap.of(list(made), 99) == made
    assert all(made.range_at(r.start) == r and made[r.start] == value for r, value in made)


@given(assignments, ranges(), values)
def test_a_map_has_a_value_where_every_key_does(
    items: list[tuple[KeyRange, int]], asked: KeyRange, value: int
) -> None:
    made, twin = RangeMap.of(items, 0), twin_of(items)
    pieces = list(made.within(asked))
    expected = all(twin[key] == value for key in keys_in(asked))
    assert all(found == value for _, found in pieces) == expected


@given(st.lists(cuts, unique=True).map(sorted), ranges())
def test_gaps_are_the_keys_in_no_range(bounds: list[bytes], wanted: KeyRange) -> None:
    """Of the ranges between cuts, every second one is present."""
    there = [KeyRange(a, b) for a, b in zip(bounds[::2], bounds[1::2], strict=False)]
    missing = [key for gap in gaps(wanted, there) for key in keys_in(gap)]
    assert missing == [k for k in keys_in(wanted) if not any(k in each for each in there)]


@given(ranges(), ranges())
def test_ranges_meet_where_they_share_keys(one: KeyRange, other: KeyRange) -> None:
    common = one.intersection(other)
    shared = [key for key in keys_in(one) if key in other]
    assert (keys_in(common) if common else []) == shared
    assert one.covers(other) == (shared == keys_in(other))
