"""The key space in pieces, each with its owner and its weight: what the weighted policy works on.

A piece is a run of keys with one owner. It can be cut anywhere: the picture has the loads of its
hottest keys, one by one, and the rest, which it takes to be spread evenly.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.load import SPACE, Loads, key_of, place, places
from tenure.protocol.balance.policy import Why

Point = tuple[Key, float]
"""A hot key, and its rate."""


class Piece:
    """A run of keys with one owner."""

    __slots__ = (
        "at", "end", "even", "owner", "points", "rests", "start", "until", "weight", "why",
    )  # fmt: skip

    def __init__(
        self, start: Key, end: Key | None, at: int, until: int, owner: int, even: float = 0.0
    ) -> None:
        self.start = start
        self.end = end
        self.at = at
        """The place of its start."""
        self.until = until
        self.owner = owner
        self.even = even
        """The weight of everything but the points."""
        self.points: Sequence[Point] = ()
        self.weight = even
        self.rests = False
        """Whether the piece moved a moment ago, or is pinned: it stays where it is."""
        self.why: Why | None = None

    @property
    def range(self) -> KeyRange:
        """The piece's keys."""
        return KeyRange(self.start, self.end)

    @property
    def is_one_key(self) -> bool:
        """Whether no other key can be in it."""
        return self.end == self.start + b"\0"

    @property
    def space(self) -> float:
        """The piece's part of the key space."""
        return (self.until - self.at) / SPACE

    def add(self, point: Point) -> None:
        """Add a hot key of the piece. Keys are added in their order."""
        self.points = (*self.points, point)
        self.weight += point[1]

    def cut(self, key: Key) -> "Piece | None":
        """Keep the keys below `key`, and return the rest; None if one of the two parts would be
        empty.
        """
        if key <= self.start or (self.end is not None and key >= self.end):
            return None
        begin, until, at = self.at, self.until, place(key)
        even = self.even * (until - at) / (until - begin) if until > begin else 0.0
        rest = Piece(key, self.end, at, until, self.owner, even)
        rest.rests, rest.why = self.rests, self.why
        points, self.points = self.points, ()
        self.end, self.until, self.even = key, at, self.even - even
        self.weight = self.even
        for point in points:
            (self if point[0] < key else rest).add(point)
        return rest

    def key_at(self, wanted: float) -> Key:
        """The highest key, roughly, below which at most `wanted` of the weight lies."""
        at, end = self.at, self.until
        density = self.even / (end - at) if end > at else 0.0
        for key, rate in self.points:
            until = (place(key) - at) * density
            if until + rate > wanted:
                reached = at + int(wanted / density) if until > wanted else place(key)
                return key_of(min(reached, SPACE - 1)) if until > wanted else key
            wanted -= until + rate
            at = place(key)
        reached = at + int(wanted / density) if density else end
        return key_of(min(reached, end, SPACE - 1))


def cut_by(owners: RangeMap[int], loads: Loads | None, idle: float) -> list[Piece]:
    """The whole space in pieces, one for each range of `owners`, weighed by `loads`.

    The key space itself weighs `idle`, spread evenly: where no load is known, nothing else has
    weight.
    """
    starts = owners.starts()
    ends: list[Key | None] = [*starts[1:], None]
    at = places(starts)
    until = [*at[1:], SPACE]
    pieces = list(map(Piece, starts, ends, at, until, owners.values()))
    weights = _Weights(loads, idle)
    below = weights.below(starts, at)
    below.append(weights.total)
    for i, piece in enumerate(pieces):
        piece.weight = piece.even = below[i + 1] - below[i]
    for point in weights.points:
        pieces[bisect_right(starts, point[0]) - 1].add(point)
    return pieces


def carried(owners: RangeMap[int], loads: Loads | None) -> dict[int, float]:
    """The load of each owner that has a range."""
    starts, told = owners.starts(), _Weights(loads, 0.0)
    below = [*told.below(starts, places(starts)), told.total]
    weights = dict.fromkeys(owners.values(), 0.0)
    for i, owner in enumerate(owners.values()):
        weights[owner] += below[i + 1] - below[i]
    for key, rate in told.points:
        weights[owners[key]] += rate
    return weights


class _Weights:
    """The weight below any key: the part that is spread evenly, and the points."""

    def __init__(self, loads: Loads | None, idle: float) -> None:
        self.idle = idle
        self.starts = list(loads.starts) if loads else [b""]
        rates = list(loads.rates) if loads else [0.0]
        self.places = [*places(self.starts), SPACE]
        self.points = _points(loads.hottest, self.starts, self.places, rates) if loads else []
        self.rates = rates  # without the points
        self.sums = [0.0, *accumulate(rates)]
        self.total = self.sums[-1] + idle

    def below(self, keys: Sequence[Key], at_places: Sequence[int]) -> list[float]:
        """The weight below each of these keys, which are sorted."""
        found = []
        i, last = 0, len(self.starts) - 1
        for key, at in zip(keys, at_places, strict=True):
            while i < last and self.starts[i + 1] <= key:
                i += 1
            part, begin = 0.0, self.places[i]
            if at > begin:
                part = self.rates[i] * (at - begin) / (self.places[i + 1] - begin)
            found.append(self.sums[i] + part + self.idle * (at / SPACE))
        return found


def _points(
    hottest: Sequence[Point], starts: list[Key], places: list[int], rates: list[float]
) -> list[Point]:
    """The hot keys, none hotter than its range, and ranges of one key; taken off `rates`."""
    inside: dict[int, list[Point]] = {}
    for key, rate in hottest:
        inside.setdefault(bisect_right(starts, key) - 1, []).append((key, rate))
    points = []
    for i, found in inside.items():
        if places[i] == places[i + 1]:
            continue  # one key: its range says its rate better
        claimed = sum(rate for _, rate in found)
        scale = min(1.0, rates[i] / claimed) if claimed > 0 else 0.0
        points += [(key, rate * scale) for key, rate in found]
        rates[i] = max(0.0, rates[i] - claimed * scale)
    for i, start in enumerate(starts):
        if places[i] == places[i + 1]:
            points.append((start, rates[i]))
            rates[i] = 0.0
    points.sort()
    return points


def first_within(pieces: Sequence[Piece], key: Key) -> int:
    """The index of the piece that contains `key`; the pieces are in order."""
    return bisect_left(pieces, True, key=lambda piece: piece.end is None or piece.end > key)  # noqa: FBT003
