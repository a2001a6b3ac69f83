"""Converts between what users call an object and its key on the wire.

One key on the wire is one object. For a server without owners, the key of a text is its UTF-8, that
of bytes the bytes themselves, and that of a number begins with a byte with which no text begins, so
that a server of texts refuses it.

In a pool the key must lie where the pool puts it, and the server must get the name back, which a
hash does not reveal. So the key is the hash followed by the name: it sorts as the hash does. It
lies in the same range, unless that ends right behind the hash, as the range of a pinned key does.
So to servers and caches such a range ends behind all names that may follow the hash.
"""

from typing import Literal, Self

from tenure.base.keys import (
    HASHED_KEY_BYTES,
    KEY_BYTES,
    Key,
    PoolKind,
    UserKey,
    hashed_key,
    ordered_key,
)
from tenure.base.names import shown
from tenure.base.ranges import KeyRange
from tenure.errors import ConfigurationError, KeyTypeError

KeysOf = Literal["alone"] | PoolKind
_NUMBER = b"\xff"
_AFTER_NAMES = b"\xff" * 64
"""What comes after any name in a hashed pool: no text begins with such a byte."""
_TYPES = (str, bytes, int)


class ObjectKeys:
    """The keys of one volume, whose objects are called by names of `key_type`."""

    def __init__(self, key_type: type[UserKey], of: KeysOf = "alone") -> None:
        if key_type not in _TYPES:
            raise ConfigurationError(f"key_type is str, bytes or int, not {shown(key_type)}")
        if key_type is int and of == "ordered":
            raise ConfigurationError("the keys of an ordered pool are str or bytes, not int")
        self.key_type = key_type
        self.of = of

    def places(self, key_range: KeyRange) -> KeyRange:
        """The range of the objects whose keys in their pool lie in `key_range`."""
        if self.of != "hashed":
            return key_range
        end = key_range.end
        return KeyRange(_behind_names(key_range.start), None if end is None else _behind_names(end))

    def within(self, of: KeysOf) -> Self:
        """The keys of objects of the same names in a pool of this kind."""
        return type(self)(self.key_type, of)

    def key(self, name: UserKey) -> Key:
        """The key of an object. Raises KeyTypeError if it cannot be the name of an object."""
        if type(name) is not self.key_type:
            other, or_say = type(name), ""
            if other in _TYPES:
                or_say = f", or say key_type={other.__name__} at the Volume and every Cache of it"
            raise KeyTypeError(
                f"the keys of this volume are of the type {self.key_type.__name__}, and "
                f"{name!r:.100} is of {other.__name__}; pass another key{or_say}"
            )
        hashed = hashed_key(name)
        if isinstance(name, int):
            return hashed if self.of == "hashed" else _NUMBER + hashed
        plain = ordered_key(name)
        if len(plain) > KEY_BYTES:
            raise KeyTypeError(
                f"{name!r:.100} is not a key: it takes {len(plain)} bytes; at most {KEY_BYTES} "
                "are allowed"
            )
        if self.of != "hashed":
            return plain
        if plain.startswith(_AFTER_NAMES):
            raise KeyTypeError(
                f"{name!r:.100} is not a key: it begins with {len(_AFTER_NAMES)} bytes of ff"
            )
        return hashed + plain

    def name(self, key: Key) -> UserKey:
        """The object's key as users know it. Raises KeyTypeError for a key of another type."""
        plain = key[HASHED_KEY_BYTES:] if self.of == "hashed" else key
        found: UserKey = plain
        try:
            if self.key_type is int:
                found = int.from_bytes(key[-HASHED_KEY_BYTES:], "big")
            elif self.key_type is str:
                found = plain.decode()
            if self.key(found) == key:
                return found
        except UnicodeDecodeError:
            pass
        raise KeyTypeError(
            f"the key {key.hex()} is not of the type {self.key_type.__name__}: say the same "
            "key_type at the Volume and at every Cache of it"
        )


def _behind_names(bound: Key) -> Key:
    """The bound of the objects of which this bounds the keys: those of one hash stay together."""
    hashed, further = bound[:HASHED_KEY_BYTES], bound[HASHED_KEY_BYTES:]
    return hashed + _AFTER_NAMES + further if further else bound
