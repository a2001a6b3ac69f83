"""How much of an ordered pool lies below a key: steps at what is known, and nothing between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.keys import Key
from tenure.base.ranges import LOWEST
from tenure.protocol.balance.load import SPACE, Position
from tenure.protocol.balance.scale import LEAST_PART, Sampled, parting

KEYS = st.binary(max_size=4)


def part(scale: Sampled, low: Key, high: Key | None) -> float:
    return (scale.place(high) - scale.place(low)) / SPACE


def test_without_positions_all_ranges_count_the_same() -> None:
    scale = Sampled([LOWEST, b"c", b"d", b"users/"], [])
    assert [part(scale, *each) for each in [(b"", b"c"), (b"c", b"d"), (b"users/", None)]] == [
        pytest.approx(0.25)
    ] * 3


def test_positions_weigh_what_was_asked_for_there() -> None:
    scale = Sampled([LOWEST, b"m"], [Position(b"a", 1.0, 30.0), Position(b"x", 1.0, 10.0)])
    assert part(scale, b"", b"m") == pytest.approx(0.75, abs=LEAST_PART)
    assert part(scale, b"m", None) == pytest.approx(0.25, abs=LEAST_PART)
    assert part(scale, b"b", b"m") == 0, "nothing is known there"


def test_a_range_of_which_nothing_is_known_weighs_a_little() -> None:
    scale = Sampled([LOWEST, b"m"], [Position(b"x", 1.0, 10.0)])
    assert 0 < part(scale, b"", b"m") <= LEAST_PART


def test_a_space_is_cut_where_something_is_known() -> None:
    scale = Sampled([LOWEST, b"m"], [Position(b"a", 1.0, 30.0), Position(b"xyz", 1.0, 10.0)])
    assert scale.key_of(SPACE // 10) == b"m"
    assert scale.key_of(scale.place(b"m") + 1) == b"x", "as short as it can be"
    assert scale.key_of(SPACE - 1) == LOWEST, "nothing is known after it"


@given(st.sets(KEYS, min_size=1), st.lists(st.tuples(KEYS, st.floats(0, 1e9))), KEYS, KEYS)
def test_places_rise_with_keys(
    marks: set[Key], told: list[tuple[Key, float]], one: Key, other: Key
) -> None:
    positions = [Position(key, mass, mass) for key, mass in told]
    scale = Sampled([LOWEST, *marks], positions)
    low, high = sorted((one, other))
    assert 0 == scale.place(LOWEST) <= scale.place(low) <= scale.place(high) <= scale.place(None)
    assert scale.places([low, high]) == [scale.place(low), scale.place(high)]
    found = scale.key_of(scale.place(low))
    assert found == LOWEST or scale.place(found) >= scale.place(low)


@given(KEYS, KEYS)
def test_a_parting_key_is_the_shortest_between_two(one: Key, other: Key) -> None:
    low, high = sorted((one, other))
    if low < high:
        found = parting(low, high)
        assert low < found <= high
        assert found[:-1] <= low, "one byte less would not do"
