"""Keys: what users pass, and the bytes that the key space is made of.

A key is `bytes`, ordered as bytes. In a *hashed* pool it is the 8-byte big-endian xxh3-64 of what
the user passed, so that any language finds the same key, and load spreads evenly. In an *ordered*
pool it is the user's bytes themselves, so that neighbours stay neighbours (PRS 2.1).
"""

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

import msgspec
from xxhash import xxh3_64_digest

from tenure.base.names import shown
from tenure.errors import KeyTypeError

LONGEST_KEY_BYTES = 8 + 65_535 + 1
"""The longest key of any kind: a row of the store, whose name two bytes can count, with the hash
before it by which it lies on the ring, and the key that follows it.
"""
Key: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=LONGEST_KEY_BYTES)]
UserKey: TypeAlias = str | bytes | int
PoolKind = Literal["hashed", "ordered"]

HASHED_KEY_BYTES = 8
KEY_BYTES = 1024
"""A key that bounds a range is no longer. Ordered pools are keyed by names and paths; longer than
this is a document."""
RangeKey: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=KEY_BYTES)]
"""A key that bounds a range of a pool, as messages have it."""
_KEY_LIMIT = 1 << 64


def hashed_key(value: UserKey) -> Key:
    """The key of `value` in a hashed pool; an `int` is a 64-bit key already (the papers' keys).

    Raises KeyTypeError for any other type, for an `int` outside 64 bits, and for a `str` that has
    no UTF-8.
    """
    if isinstance(value, str):
        return xxh3_64_digest(_encoded(value))
    if isinstance(value, bytes):
        return xxh3_64_digest(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _KEY_LIMIT:
        return value.to_bytes(HASHED_KEY_BYTES, "big")
    msg = (
        f"a key of a hashed pool is a str, bytes, or an int from 0 to 2**64 - 1, "
        f"not {shown(value)} ({type(value).__name__}); turn it into one of these first"
    )
    raise KeyTypeError(msg)


def ordered_key(value: UserKey) -> Key:
    """The key of `value` in an ordered pool.

    Raises KeyTypeError for anything but str and bytes, and for a `str` that has no UTF-8.
    """
    if isinstance(value, str):
        return _encoded(value)
    if isinstance(value, bytes):
        return value
    msg = (
        f"a key of an ordered pool is a str or bytes, not {shown(value)} ({type(value).__name__}); "
        "encode it so that its bytes sort as you want, for example with int.to_bytes"
    )
    raise KeyTypeError(msg)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise no_utf8(text) from None


def no_utf8(text: UserKey) -> KeyTypeError:
    """The error for a `str` that cannot be encoded."""
    return KeyTypeError(
        f"{shown(text)} is not a key: it holds half a character, which UTF-8 does not have; pass "
        "bytes, for example text.encode(errors='surrogatepass'), or os.fsencode(path) for a path"
    )


def key_function(kind: PoolKind) -> Callable[[UserKey], Key]:
    """The function from what users pass to keys, for a pool of `kind`."""
    return hashed_key if kind == "hashed" else ordered_key
