"""The range map's corners; its naive twin shows that it is right everywhere else."""

import pytest

from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE, KeyRange


def test_a_new_map_is_one_range() -> None:
    assert list(RangeMap("a")) == [(WHOLE, "a")]


def test_neighbours_merge_where_their_values_agree() -> None:
    made = RangeMap("a")
    made.assign(KeyRange(b"c", b"m"), "b")
    assert made.starts() == [b"", b"c", b"m"]
    made.assign(KeyRange(b"c", b"m"), "a")
    assert made.starts() == [b""]


def test_a_map_at_starts_merges_too() -> None:
    made = RangeMap.at_starts([b"", b"c", b"m"], ["a", "a", "b"])
    assert (made.starts(), made.values()) == ([b"", b"m"], ["a", "b"])


@pytest.mark.parametrize("starts", [[b"c"], []])
def test_a_map_begins_at_the_lowest_key(starts: list[bytes]) -> None:
    with pytest.raises((AssertionError, IndexError)):
        RangeMap.at_starts(starts, ["a"] * len(starts))


def test_pieces_are_cut_at_the_ends_of_what_is_asked_for() -> None:
    made = RangeMap.of([(KeyRange(b"c", b"m"), "b")], "a")
    assert list(made.within(KeyRange(b"b", b"d"))) == [
        (KeyRange(b"b", b"c"), "a"),
        (KeyRange(b"c", b"d"), "b"),
    ]
    assert list(made.within(KeyRange(b"c", b"m"))) == [(KeyRange(b"c", b"m"), "b")]


def test_the_range_around_a_key() -> None:
    made = RangeMap.of([(KeyRange(b"c", b"m"), "b")], "a")
    keys = (b"", b"c", b"lz", b"m")
    assert [str(made.range_at(key)) for key in keys] == [
        "[-, 63)",
        "[63, 6d)",
        "[63, 6d)",
        "[6d, -)",
    ]


def test_a_copy_is_another_map() -> None:
    made = RangeMap("a")
    copy = made.copy()
    copy.assign(KeyRange(b"c"), "b")
    assert (made, len(copy)) == (RangeMap("a"), 2)


def test_a_map_is_equal_to_nothing_else_and_has_no_hash() -> None:
    assert RangeMap("a") != "a"
    with pytest.raises(TypeError):
        hash(RangeMap("a"))


def test_a_map_shows_its_ranges() -> None:
    assert repr(RangeMap.of([(KeyRange(b"c"), 2)], 1)) == "RangeMap({[-, 63): 1, [63, -): 2})"
