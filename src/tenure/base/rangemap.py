"""A map from every key to a value, kept as the points where the value changes.

Two parallel lists, searched by bisection: at the sizes met here (64 ranges an owner, some thousands
a pool) a list's memmove beats any tree, and a reader can take the two lists as they are. Neighbours
with equal values are one range: ranges merge where, and only where, their values agree.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Generic, TypeVar

from tenure.base.keys import Key
from tenure.base.ranges import LOWEST, WHOLE, KeyRange

V = TypeVar("V")


class RangeMap(Generic[V]):
    """Values for the whole key space; `assign` lays a value over a range."""

    __slots__ = ("_starts", "_values")

    def __init__(self, value: V) -> None:
        self._starts: list[Key] = [LOWEST]
        self._values: list[V] = [value]

    @classmethod
    def of(cls, items: Iterable[tuple[KeyRange, V]], default: V) -> "RangeMap[V]":
        """A map with `items` laid over `default`, in order; linear where they are sorted."""
        new = cls(default)
        reached: Key | None = LOWEST
        for key_range, value in items:
            if reached is not None and reached <= key_range.start:
                new._append(key_range, value, default)
                reached = key_range.end
            else:
                new.assign(key_range, value)
                reached = None if reached is None else key_range.end and max(reached, key_range.end)
        return new

    def _append(self, key_range: KeyRange, value: V, default: V) -> None:
        """Lay `value` over a range from whose start on there is nothing but `default`."""
        starts, values = self._starts, self._values
        if value == default:
            return
        if starts[-1] == key_range.start:
            starts.pop()
            values.pop()
        if not values or values[-1] != value:
            starts.append(key_range.start)
            values.append(value)
        if key_range.end is not None:
            starts.append(key_range.end)
            values.append(default)

    @classmethod
    def at_starts(cls, starts: list[Key], values: list[V]) -> "RangeMap[V]":
        """A map whose values change at `starts`, which are sorted, distinct and begin with b""."""
        assert starts[0] == LOWEST, starts[0]
        assert len(starts) == len(values)
        new = cls(values[0])
        kept = [0, *(i for i, (a, b) in enumerate(pairwise(values), 1) if a != b)]
        new._starts = [starts[i] for i in kept]
        new._values = [values[i] for i in kept]
        return new

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, key: Key) -> V:
        return self._values[bisect_right(self._starts, key) - 1]

    def __iter__(self) -> Iterator[tuple[KeyRange, V]]:
        starts, values = self._starts, self._values
        last = len(starts) - 1
        for i, value in enumerate(values):
            yield KeyRange(starts[i], starts[i + 1] if i < last else None), value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RangeMap):
            return NotImplemented
        return self._starts == other._starts and self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "RangeMap({" + ", ".join(f"{r}: {v!r}" for r, v in self) + "})"

    def starts(self) -> list[Key]:
        """The points at which the value changes, b"" first; a copy."""
        return list(self._starts)

    def values(self) -> list[V]:
        """The value from each of `starts` on; a copy."""
        return list(self._values)

    def copy(self) -> "RangeMap[V]":
        """An independent map with the same values."""
        new: RangeMap[V] = RangeMap.__new__(RangeMap)
        new._starts = self._starts.copy()
        new._values = self._values.copy()
        return new

    def range_at(self, key: Key) -> KeyRange:
        """The range around `key` in which the value does not change."""
        i = bisect_right(self._starts, key)
        return KeyRange(self._starts[i - 1], self._starts[i] if i < len(self._starts) else None)

    def within(self, key_range: KeyRange = WHOLE) -> Iterator[tuple[KeyRange, V]]:
        """The pieces of `key_range` with their values, in order, cut at its ends."""
        starts, values = self._starts, self._values
        start, end = key_range.start, key_range.end
        i = bisect_right(starts, start) - 1
        while True:
            piece_end = starts[i + 1] if i + 1 < len(starts) else None
            if piece_end is None or (end is not None and end <= piece_end):
                yield key_range if start is key_range.start else KeyRange(start, end), values[i]
                return
            yield KeyRange(start, piece_end), values[i]
            start = piece_end
            i += 1

    def assign(self, key_range: KeyRange, value: V) -> None:
        """Lay `value` over `key_range`; what lay there before is cut at its ends or gone."""
        starts, values = self._starts, self._values
        first = bisect_left(starts, key_range.start)
        last = len(starts)
        merges = first > 0 and values[first - 1] == value
        new_starts, new_values = ([], []) if merges else ([key_range.start], [value])
        if key_range.end is not None:
            last = bisect_left(starts, key_range.end, first)
            changes_at_end = last < len(starts) and starts[last] == key_range.end
            if changes_at_end:
                last += values[last] == value  # merges with what follows
            elif values[last - 1] != value:
                new_starts.append(key_range.end)  # the rest of the cut range keeps its value
                new_values.append(values[last - 1])
        starts[first:last] = new_starts
        values[first:last] = new_values

    def has(self, key_range: KeyRange, value: V) -> bool:
        """Whether all of `key_range` has `value`."""
        starts = self._starts
        i = bisect_right(starts, key_range.start)
        if self._values[i - 1] != value:
            return False
        return i == len(starts) or (key_range.end is not None and key_range.end <= starts[i])
