"""Keys: the same in any language, and ordered as bytes."""

from collections.abc import Callable
from typing import Any

import pytest

from tenure.base.keys import hashed_key, key_function, ordered_key
from tenure.errors import KeyTypeError


def test_a_text_and_its_bytes_are_one_key() -> None:
    assert hashed_key("östlich") == hashed_key("östlich".encode())
    assert ordered_key("östlich") == "östlich".encode()


def test_a_hashed_key_is_the_big_endian_xxh3_64() -> None:
    """The published value for no input; other languages' clients find the same."""
    assert hashed_key("") == bytes.fromhex("2d06800538d394c2")


@pytest.mark.parametrize("value", [0, 1, (1 << 64) - 1])
def test_an_int_is_a_64_bit_key_already(value: int) -> None:
    """The papers' keys."""
    assert hashed_key(value) == value.to_bytes(8, "big")


def test_ints_keep_their_order() -> None:
    values = [0, 1, 255, 256, 1 << 32, (1 << 64) - 1]
    assert sorted(values) == sorted(values, key=hashed_key)


@pytest.mark.parametrize("value", [-1, 1 << 64, True, None, 1.0, bytearray(b"k"), ("k",)])
def test_anything_else_is_refused_with_what_it_may_be(value: Any) -> None:  # noqa: ANN401
    with pytest.raises(KeyTypeError, match="turn it into one of these"):
        hashed_key(value)


@pytest.mark.parametrize("value", [0, True, None, bytearray(b"k")])
def test_an_ordered_pool_takes_texts_and_bytes_only(value: Any) -> None:  # noqa: ANN401
    with pytest.raises(KeyTypeError, match="encode it so that its bytes sort"):
        ordered_key(value)


@pytest.mark.parametrize("key", [hashed_key, ordered_key])
def test_a_text_that_has_no_utf8_is_refused_with_what_to_pass(key: Callable[[str], bytes]) -> None:
    with pytest.raises(KeyTypeError, match=r"'.ud800' is not a key: .* pass bytes"):
        key("\ud800")


def test_each_kind_of_pool_has_its_function() -> None:
    assert (key_function("hashed"), key_function("ordered")) == (hashed_key, ordered_key)
