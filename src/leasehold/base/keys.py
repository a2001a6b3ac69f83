"""Keys: what users pass, and the bytes that the key space is made of.

A key is `bytes`, ordered as bytes. In a *hashed* pool it is the 8-byte big-endian xxh3-64 of what
the user passed, so that any language finds the same key and load spreads by itself. In an
*ordered* pool it is the user's bytes themselves, so that neighbours stay neighbours (PRS 2.1).
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

from xxhash import xxh3_64_digest

from leasehold.errors import KeyTypeError

Key: TypeAlias = bytes
UserKey: TypeAlias = str | bytes | int
PoolKind = Literal["hashed", "ordered"]

HASHED_KEY_BYTES = 8
_KEY_LIMIT = 1 << 64


def hashed_key(value: UserKey) -> Key:
    """The key of `value` in a hashed pool; an `int` is a 64-bit key already (the papers' keys).

    Raises KeyTypeError for any other type, and for an `int` outside 64 bits.
    """
    if isinstance(value, str):
        return xxh3_64_digest(value.encode())
    if isinstance(value, bytes):
        return xxh3_64_digest(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _KEY_LIMIT:
        return value.to_bytes(HASHED_KEY_BYTES, "big")
    msg = (
        f"a key of a hashed pool is a str, bytes, or an int from 0 to 2**64 - 1, "
        f"not {value!r} ({type(value).__name__}); turn it into one of these first"
    )
    raise KeyTypeError(msg)


def ordered_key(value: UserKey) -> Key:
    """The key of `value` in an ordered pool. Raises KeyTypeError for anything but str and bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    msg = (
        f"a key of an ordered pool is a str or bytes, not {value!r} ({type(value).__name__}); "
        "encode it so that its bytes sort as you want, for example with int.to_bytes"
    )
    raise KeyTypeError(msg)


def key_function(kind: PoolKind) -> Callable[[UserKey], Key]:
    """The function from what users pass to keys, for a pool of `kind`."""
    return hashed_key if kind == "hashed" else ordered_key
