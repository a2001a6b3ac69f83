"""Interests in single keys, in the order of the keys: guards, watches, and waits for moves.

There may be thousands of each. A change of a few ranges then costs a bisection for each of those
ranges, and a look at what lies in them, not at everything.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from threading import Lock
from typing import Generic, TypeVar

from tenure.base.keys import Key
from tenure.base.ranges import KeyRange

T = TypeVar("T")


class Interests(Generic[T]):
    """Things of one kind, each at its key. From any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._keys: list[Key] = []
        self._at: dict[Key, dict[T, None]] = {}

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._at.values()))

    def add(self, key: Key, thing: T) -> None:
        """Let `thing` concern `key` from here on."""
        with self._lock:
            there = self._at.get(key)
            if there is None:
                there = self._at[key] = {}
                insort(self._keys, key)
            there[thing] = None

    def remove(self, key: Key, thing: T) -> None:
        """Let `thing` no longer concern `key`; a second time does nothing."""
        with self._lock:
            there = self._at.get(key, {})
            there.pop(thing, None)
            if not there and self._at.pop(key, None) is not None:
                del self._keys[bisect_left(self._keys, key)]

    def within(self, ranges: Iterable[KeyRange]) -> list[T]:
        """All whose keys lie in any of `ranges`, which may overlap: each once, in no order."""
        if not self._keys:
            return []
        found: dict[T, None] = {}
        with self._lock:
            for each in ranges:
                first = bisect_left(self._keys, each.start)
                last = len(self._keys)
                if each.end is not None:
                    last = bisect_left(self._keys, each.end)
                for key in self._keys[first:last]:
                    found |= self._at[key]
        return list(found)
