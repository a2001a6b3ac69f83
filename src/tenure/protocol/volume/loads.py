"""Loads on their way: one for all who ask for an object at the same time, unless it was overtaken.

A load that a write's body overtook may have read either value. Those who asked before get the
value, but may not keep it; those who ask later need a load of their own (V10).
"""

from typing import NamedTuple

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange


class Asked(NamedTuple):
    """A fetch that waits for a load."""

    client: int
    reader: int
    sequence: int
    received_at: Instant


class Loading:
    """One load."""

    __slots__ = ("asked", "has_moved", "key", "number", "overtaken")

    def __init__(self, number: int, key: Key, *, overtaken: bool) -> None:
        self.number = number
        self.key = key
        self.asked: list[Asked] = []
        self.overtaken = overtaken
        """A body ran while it did: nobody joins it, and nobody keeps what it read."""
        self.has_moved = False
        """Its range went away while it ran, and may have come back: nobody is told what it read."""


class LoadsUnderWay:
    """All loads of one server."""

    def __init__(self) -> None:
        self._by_number: dict[int, Loading] = {}
        self._to_join: dict[Key, int] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._by_number)

    def to_join(self, key: Key) -> Loading | None:
        """The load of a key whose answer does for whoever asks now."""
        number = self._to_join.get(key)
        return None if number is None else self._by_number[number]

    def begin(self, key: Key, *, overtaken: bool) -> Loading:
        """Another load; `overtaken` if a body runs already."""
        self._last += 1
        loading = self._by_number[self._last] = Loading(self._last, key, overtaken=overtaken)
        if not overtaken:
            self._to_join[key] = loading.number
        return loading

    def overtake(self, key: Key) -> None:
        """The body of a write of `key` begins."""
        number = self._to_join.pop(key, None)
        if number is not None:
            self._by_number[number].overtaken = True

    def move(self, key_range: KeyRange) -> None:
        """The range goes away, or is granted anew: others may have written there meanwhile."""
        for loading in self._by_number.values():
            if loading.key in key_range:
                loading.has_moved = True
                self._to_join.pop(loading.key, None)

    def end(self, number: int) -> Loading | None:
        """A load has ended; None for one that nobody waits for any longer."""
        loading = self._by_number.pop(number, None)
        if loading is not None and self._to_join.get(loading.key) == number:
            del self._to_join[loading.key]
        return loading

    def clear(self) -> None:
        """Nobody waits for any."""
        self._by_number.clear()
        self._to_join.clear()
