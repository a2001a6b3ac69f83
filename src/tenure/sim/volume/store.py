"""The store behind a simulated volume: values, and a fence against the writes of past servers."""

from tenure.base.keys import Key


class FencedStore:
    """A database that refuses writes of lower numbers than it was told of."""

    def __init__(self) -> None:
        self.values: dict[Key, bytes] = {}
        self.fence = 0

    def read(self, key: Key) -> bytes | None:
        """What it has."""
        return self.values.get(key)

    def raise_fence(self, number: int) -> int:
        """Refuse writes below `number`; returns what it has seen, if that is no lower."""
        if self.fence >= number:
            return self.fence
        self.fence = number
        return 0

    def write(self, fence: int, key: Key, value: bytes) -> bool:
        """Store a value, unless its writer's number is past."""
        if fence < self.fence:
            return False
        self.values[key] = value
        return True
