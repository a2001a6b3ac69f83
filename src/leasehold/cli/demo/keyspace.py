"""How much of a hashed pool's key space a range is."""

from leasehold import KeyRange
from leasehold.base.keys import HASHED_KEY_BYTES, Key

KEY_SPACE = 1 << (8 * HASHED_KEY_BYTES)


def size(key_range: KeyRange) -> int:
    """How many keys of a hashed pool are in a range."""
    return _position(key_range.end) - _position(key_range.start)


def share(key_range: KeyRange) -> float:
    """How much of the key space that is, from 0 to 1."""
    return size(key_range) / KEY_SPACE


def _position(key: Key | None) -> int:
    return KEY_SPACE if key is None else int.from_bytes(key.ljust(HASHED_KEY_BYTES, b"\0"), "big")
