"""The store behind simulated volumes: values, and fences against the writes of past servers."""

from typing import TypeAlias

from tenure.base.keys import Key

Fence: TypeAlias = tuple[int, int]
"""The rank of a history, in the order in which histories began, and a number of that history."""
LOWEST: Fence = (0, 0)


class FencedStore:
    """A database that refuses writes below the highest number that it was told: one for a server,
    or one for each key.
    """

    def __init__(self) -> None:
        self.values: dict[Key, bytes] = {}
        self.fence = LOWEST
        self._of_keys: dict[Key, Fence] = {}

    def read(self, key: Key) -> bytes | None:
        """The value of the key."""
        return self.values.get(key)

    def raise_fence(self, number: int) -> int:
        """Refuse writes below `number`; returns what it has seen, if that is no lower."""
        if self.fence[1] >= number:
            return self.fence[1]
        self.fence = (0, number)
        return 0

    def raise_for(self, key: Key, fence: Fence) -> None:
        """Refuse writes of the key below the fence."""
        self._of_keys[key] = max(fence, self._of_keys.get(key, LOWEST))

    def takes(self, fence: Fence, key: Key) -> bool:
        """Whether it takes a write under that number."""
        return fence >= max(self.fence, self._of_keys.get(key, LOWEST))

    def write(self, fence: Fence, key: Key, value: bytes) -> bool:
        """Store a value, unless its writer's number is past."""
        if not self.takes(fence, key):
            return False
        self.raise_for(key, fence)
        self.values[key] = value
        return True
