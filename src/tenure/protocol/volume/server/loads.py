"""Loads under way: one for all readers that ask for an object at the same time, unless it was
overtaken.

A load that a write's body overtook may have read either value. Readers that asked before get the
value, but may not keep it; readers that ask later need a load of their own (V10).
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
        """Whether a write's body ran during the load: then nobody joins it, and nobody keeps its
        value.
        """
        self.has_moved = False
        """Whether its range went away during the load, and may have come back: then nobody is told
        its value.
        """


class LoadsUnderWay:
    """All loads of one server."""

    def __init__(self) -> None:
        self._by_number: dict[int, Loading] = {}
        self._to_join: dict[Key, int] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._by_number)

    def to_join(self, key: Key) -> Loading | None:
        """The load of a key that also serves readers that ask now."""
        number = self._to_join.get(key)
        return None if number is None else self._by_number[number]

    def begin(self, key: Key, *, overtaken: bool) -> Loading:
        """Begin a load; `overtaken` if a body runs already."""
        self._last += 1
        loading = self._by_number[self._last] = Loading(self._last, key, overtaken=overtaken)
        if not overtaken:
            self._to_join[key] = loading.number
        return loading

    def overtake(self, key: Key) -> None:
        """Note that the body of a write of `key` begins."""
        number = self._to_join.pop(key, None)
        if number is not None:
            self._by_number[number].overtaken = True

    def move(self, key_range: KeyRange) -> None:
        """Note that the range goes away, or is granted anew: others may have written there
        meanwhile.
        """
        for loading in self._by_number.values():
            if loading.key in key_range:
                loading.has_moved = True
                self._to_join.pop(loading.key, None)

    def end(self, number: int) -> Loading | None:
        """End a load, and return it; None if nobody waits for it any longer."""
        loading = self._by_number.pop(number, None)
        if loading is not None and self._to_join.get(loading.key) == number:
            del self._to_join[loading.key]
        return loading

    def clear(self) -> None:
        """Forget all loads: nobody waits for them."""
        self._by_number.clear()
        self._to_join.clear()
