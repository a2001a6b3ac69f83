"""The keys of copies of entities: a pool of entities has texts and numbers as keys, one beside the
other.
"""

from tenure.base.keys import HASHED_KEY_BYTES, Key, UserKey, hashed_key, ordered_key
from tenure.cache.object_keys import KeysOf, ObjectKeys

EMPTY = b"\xff"
"""What follows the hash of the empty text, which would look like a number otherwise. No text begins
with it.
"""


class EntityKeys(ObjectKeys):
    """The keys of one pool: a number is the hash alone, and a text follows its hash."""

    def __init__(self, key_type: type[UserKey] = str, of: KeysOf = "hashed") -> None:
        super().__init__(key_type, of)

    def key(self, name: UserKey) -> Key:
        if type(name) is int:
            return hashed_key(name) if self.of == "hashed" else ordered_key(name)
        if name == "" and self.of == "hashed":
            return hashed_key(name) + EMPTY
        return super().key(name)

    def name(self, key: Key) -> UserKey:
        if self.of == "hashed" and len(key) == HASHED_KEY_BYTES:
            return int.from_bytes(key, "big")
        if key == self.key(""):
            return ""
        return super().name(key)
