"""Specifications of pools are accepted or refused."""

import pytest

from tenure.base.keys import KEY_BYTES
from tenure.errors import ConfigurationError
from tenure.manager.pool_spec import HexKey, key_of, pool_spec
from tenure.protocol.lease.leader.events import CreatePool


def test_split_points_are_sorted() -> None:
    assert pool_spec("a", "ordered", [b"n", b"g"]) == CreatePool("a", "ordered", (b"g", b"n"))
    assert pool_spec("a", "hashed") == CreatePool("a", "hashed")


@pytest.mark.parametrize(
    ("name", "kind", "points", "complaint"),
    [
        ("", "hashed", [], "'' cannot be a pool's name"),
        ("a" * 201, "hashed", [], "cannot be a pool's name"),
        ("a\nb", "hashed", [], "cannot be a pool's name"),
        ("\ud800x", "hashed", [], "cannot be a pool's name: '.ud800' in it is not printable"),
        (7, "hashed", [], "7 cannot be a pool's name"),
        ("a", "sorted", [], "its kind is 'sorted'"),
        ("a", None, [], "its kind is None"),
        ("a", "hashed", [b"g"], "split points are for ordered pools"),
        ("a", "ordered", [b"g", b"n", b"g"], "the split point b'g' is there twice"),
        ("a", "ordered", [b""], "a split point of 0 bytes"),
        ("a", "ordered", [b"%d" % i for i in range(65537)], "65537 .* 65536 are allowed"),
        ("a", "ordered", [b"%01024d" % i for i in range(2049)], "2098176 bytes .* 2097152 are al"),
        ("a", "ordered", [b"x" * (KEY_BYTES + 1)], "a split point of 1025 bytes"),
    ],
)
def test_what_no_pool_can_be_is_refused(
    name: object, kind: object, points: list[bytes], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        pool_spec(name, kind, points)


def test_keys_are_written_as_text_or_in_hexadecimal() -> None:
    assert key_of("ä") == "ä".encode()
    assert key_of(HexKey("ff00")) == b"\xff\x00"
    with pytest.raises(ConfigurationError, match="'f' is not hexadecimal"):
        key_of(HexKey("f"))
    with pytest.raises(ConfigurationError, match="write such a key in hexadecimal"):
        key_of("\ud800")
