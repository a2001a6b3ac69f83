"""Keys have places in the key space, and a range is a part of it."""

import pytest

from tenure.base.keys import Key
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.balance.load import key_of, place, share_of
from tenure.protocol.balance.policy import only

KEY = b"\x40" + bytes(7)


@pytest.mark.parametrize(
    ("key_range", "share"),
    [
        (WHOLE, 1.0),
        (KeyRange(b"", KEY), 0.25),
        (KeyRange(KEY, b"\xc0" + bytes(7)), 0.5),
        (KeyRange(KEY, None), 0.75),
        (only(KEY), 0.0),
        (KeyRange(b"", KEY + b"\0"), 0.25),
        (KeyRange(KEY + b"\0", None), 0.75),
    ],
)
def test_a_range_is_a_part_of_the_space_and_one_key_is_none(
    key_range: KeyRange, share: float
) -> None:
    assert share_of(key_range) == share


@pytest.mark.parametrize("key", [bytes(8), KEY, b"\xff" * 8])
def test_a_key_of_eight_bytes_stands_where_its_place_says(key: Key) -> None:
    assert key_of(place(key)) == key
    assert place(key + b"\0") == place(key), "no key of eight bytes is between the two"
