"""The scale of a key space: how much lies below a key, and which key has so much below it.

Policies weigh ranges by their part of the key space. In a hashed pool that is arithmetic, since
keys are spread evenly over 64 bits. In an ordered pool nobody knows how many keys lie between two
others: names, paths and times crowd together wherever they like. There the owners' reports have
positions of keys that were met (`positions`), and the scale is a staircase with a step at each
of them, as high as what was asked for there. Between two steps nothing is known, so nothing is cut.

Before anything was reported, each range of the table is one step, and so is each split point that
the pool was made with: all ranges count the same, whatever they contain.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Protocol

from tenure.base.keys import Key
from tenure.base.ranges import LOWEST
from tenure.protocol.balance.load import SPACE, Position, key_of, place, places

LEAST_PART = 0.01
"""The weight of all steps of which nothing is known, beside the others: a range that nobody asks
for costs little to move, but not nothing."""


class Scale(Protocol):
    """Places of keys, from 0 to `SPACE`."""

    finest: float
    """The part of the space of one step, on average: nothing smaller can be cut off."""

    def place(self, key: Key | None) -> int:
        """The place of a key; for the end None of a range, the end of the space."""
        ...

    def places(self, keys: Sequence[Key]) -> list[int]:
        """The places of all these keys."""
        ...

    def key_of(self, at: int) -> Key:
        """The lowest key at that place or after it, where the space can be cut; LOWEST if there is
        none.
        """
        ...


class Hashed:
    """The scale of hashed pools."""

    finest = 0.0
    place = staticmethod(place)
    places = staticmethod(places)
    key_of = staticmethod(key_of)


class Sampled:
    """The scale of an ordered pool, with a step at each mark and position."""

    def __init__(self, marks: Iterable[Key], positions: Sequence[Position]) -> None:
        mass = dict.fromkeys(marks, 0.0)
        known = sum(each.mass for each in positions)
        least = known * LEAST_PART / len(mass) if known > 0 else 1.0
        self._marks = frozenset(mass)
        steps = dict.fromkeys(mass, least)
        for each in positions:
            steps[each.key] = steps.get(each.key, 0.0) + each.mass
        self._keys = sorted(steps)
        self.finest = 1 / len(steps)
        sums = list(accumulate((steps[key] for key in self._keys), initial=0.0))
        self._below = [int(each / sums[-1] * SPACE) for each in sums[:-1]] + [SPACE]

    def place(self, key: Key | None) -> int:
        return SPACE if key is None else self._below[bisect_left(self._keys, key)]

    def places(self, keys: Sequence[Key]) -> list[int]:
        return [self.place(key) for key in keys]

    def key_of(self, at: int) -> Key:
        i = bisect_left(self._below, at)
        if i >= len(self._keys):
            return LOWEST
        key = self._keys[i]
        return key if i == 0 or key in self._marks else parting(self._keys[i - 1], key)


def parting(low: Key, high: Key) -> Key:
    """The shortest key that is above `low` and not above `high`: tables are sent to everybody, so
    a bound has no more bytes than it needs.
    """
    assert low < high
    for length in range(len(high)):
        if high[:length] > low:
            return high[:length]
    return high
