"""The checks agree with the plainest way to say the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.keys import KEY_BYTES
from tenure.protocol.lease.messages import Held
from tenure.wire.checks import check_each, check_in_order, check_keys

KEYS = st.sampled_from([b"", b"a", b"a\x00", b"b", b"c", b"k" * (KEY_BYTES + 1)])
RANGES = st.builds(Held, start=KEYS, end=KEYS | st.none(), number=st.just(1))


def by_start(ranges: list[Held]) -> list[Held]:
    return sorted(ranges, key=lambda each: each.start)


def passes(check: object, ranges: list[Held]) -> bool:
    assert callable(check)
    try:
        check(ranges)
    except ValueError:
        return False
    return True


def good(each: Held) -> bool:
    keys = [each.start] if each.end is None else [each.start, each.end]
    return max(map(len, keys)) <= KEY_BYTES and keys == sorted(set(keys))


def follows(one: Held, two: Held) -> bool:
    return one.end is not None and one.end <= two.start


@given(st.lists(RANGES, max_size=4))
def test_each(ranges: list[Held]) -> None:
    assert passes(check_each, ranges) == all(map(good, ranges))


@given(st.lists(RANGES, max_size=4) | st.lists(RANGES, max_size=4).map(by_start))
def test_in_order(ranges: list[Held]) -> None:
    in_order = all(map(follows, ranges, ranges[1:]))
    assert passes(check_in_order, ranges) == (all(map(good, ranges)) and in_order)


def test_a_key_that_is_too_long_is_named_by_its_length() -> None:
    check_keys([b"", b"k" * KEY_BYTES])
    with pytest.raises(ValueError, match="a key of 1025 bytes"):
        check_keys([b"", b"k" * (KEY_BYTES + 1)])
