"""Ranges of keys: half open, the last one without an end."""

import pytest

from tenure.base.ranges import WHOLE, KeyRange, gaps, lower_end
from tenure.errors import KeyTypeError

LOW, MIDDLE, HIGH = KeyRange(b"", b"g"), KeyRange(b"g", b"p"), KeyRange(b"p", None)


@pytest.mark.parametrize(
    ("key", "within"), [(b"", False), (b"f\xff", False), (b"g", True), (b"oz", True), (b"p", False)]
)
def test_a_range_has_its_start_and_not_its_end(key: bytes, within: bool) -> None:
    assert (key in MIDDLE) == within


def test_a_range_without_an_end_has_every_key_above() -> None:
    assert b"\xff" * 2000 in HIGH
    assert b"" in WHOLE


@pytest.mark.parametrize("end", [b"", b"g", b"f"])
def test_a_range_that_ends_before_it_starts_is_refused(end: bytes) -> None:
    with pytest.raises(ValueError, match="ends after its start"):
        KeyRange(b"g", end)


@pytest.mark.parametrize(
    ("start", "end"), [(5, None), ("a", "b"), (b"a", "b"), (b"", 7), (None, b"a")]
)
def test_a_range_of_what_are_no_keys_is_refused(start: object, end: object) -> None:
    with pytest.raises(KeyTypeError, match="a range is from bytes to bytes, or to None, not from"):
        KeyRange(start, end)  # type: ignore[arg-type]


def test_a_refusal_shows_the_beginning_of_a_long_bound() -> None:
    with pytest.raises(ValueError, match="ends after its start") as raised:
        KeyRange(b"b" * 100_000, b"a" * 100_000)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (LOW, MIDDLE, None),
        (LOW, WHOLE, LOW),
        (WHOLE, HIGH, HIGH),
        (KeyRange(b"c", b"k"), MIDDLE, KeyRange(b"g", b"k")),
        (HIGH, KeyRange(b"z", None), KeyRange(b"z", None)),
        (MIDDLE, MIDDLE, MIDDLE),
    ],
)
def test_what_two_ranges_have_in_common(
    one: KeyRange, other: KeyRange, common: KeyRange | None
) -> None:
    assert one.intersection(other) == other.intersection(one) == common


@pytest.mark.parametrize(
    ("one", "other", "covers"),
    [
        (WHOLE, HIGH, True),
        (HIGH, WHOLE, False),
        (MIDDLE, KeyRange(b"h", b"p"), True),
        (MIDDLE, KeyRange(b"h", b"q"), False),
        (MIDDLE, KeyRange(b"h", None), False),
        (HIGH, KeyRange(b"q", None), True),
    ],
)
def test_what_a_range_covers(one: KeyRange, other: KeyRange, covers: bool) -> None:
    assert one.covers(other) == covers


def test_none_is_above_every_end() -> None:
    assert [
        lower_end(a, b) for a, b in ((None, None), (None, b"c"), (b"c", None), (b"c", b"b"))
    ] == [
        None,
        b"c",
        b"c",
        b"b",
    ]


@pytest.mark.parametrize("other", [WHOLE, LOW, MIDDLE, HIGH, KeyRange(b"a", b"h")])
def test_ranges_overlap_where_a_key_is_in_both(other: KeyRange) -> None:
    for each in (WHOLE, LOW, MIDDLE, HIGH):
        assert each.overlaps(other) == other.overlaps(each)
        assert each.overlaps(other) == (each.intersection(other) is not None)


def test_gaps_are_what_the_others_leave() -> None:
    assert list(gaps(WHOLE, [])) == [WHOLE]
    assert list(gaps(WHOLE, [MIDDLE])) == [LOW, HIGH]
    assert list(gaps(WHOLE, [LOW, MIDDLE, HIGH])) == []
    assert list(gaps(MIDDLE, [LOW, HIGH])) == [MIDDLE]
    assert list(gaps(MIDDLE, [KeyRange(b"a", b"h"), KeyRange(b"j", None)])) == [
        KeyRange(b"h", b"j")
    ]


def test_a_range_is_shown_short() -> None:
    assert [str(key_range) for key_range in (WHOLE, MIDDLE)] == ["[-, -)", "[67, 70)"]
