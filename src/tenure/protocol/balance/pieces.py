"""The key space in pieces, each with its owner and its weight: what the weighted policy works on.

A piece is a run of keys with one owner. In a hashed pool it can be cut anywhere: the picture has
the loads of its hottest keys, one by one, and the rest, which it takes to be spread evenly. In an
ordered pool the rest lies at the positions that owners have reported, and a piece can be cut at
these.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import merge
from itertools import accumulate

from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.load import SPACE, Loads, Point
from tenure.protocol.balance.policy import Why
from tenure.protocol.balance.scale import Hashed, Scale, parting

HASHED = Hashed()


class Piece:
    """A run of keys with one owner."""

    __slots__ = (
        "at", "end", "even", "owner", "points", "rests", "sample", "sampled", "scale", "start",
        "until", "weight", "why",
    )  # fmt: skip

    def __init__(
        self,
        start: Key,
        end: Key | None,
        at: int,
        until: int,
        owner: int,
        even: float = 0.0,
        scale: Scale = HASHED,
    ) -> None:
        self.start = start
        self.end = end
        self.at = at
        """The place of its start."""
        self.until = until
        self.owner = owner
        self.even = even
        """The weight of everything but the points and the sample, spread evenly over its space."""
        self.scale = scale
        self.points: Sequence[Point] = ()
        """Its hot keys."""
        self.sample: Sequence[Point] = ()
        """The positions at which the rest of its load lies, in an ordered pool."""
        self.sampled = 0.0
        """The weight of the sample."""
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

    def spread(self, sample: Sequence[Point]) -> None:
        """Let the rest of its load lie at these positions."""
        self.sample, self.sampled = sample, sum(rate for _, rate in sample)
        self.weight += self.sampled

    @property
    def common(self) -> float:
        """The weight of everything but the points: what a cut can part as it likes."""
        return self.even + self.sampled

    def cut(self, key: Key) -> "Piece | None":
        """Keep the keys below `key`, and return the rest; None if one of the two parts would be
        empty.
        """
        if key <= self.start or (self.end is not None and key >= self.end):
            return None
        begin, until, at = self.at, self.until, self.scale.place(key)
        even = self.even * (until - at) / (until - begin) if until > begin else 0.0
        rest = Piece(key, self.end, at, until, self.owner, even, self.scale)
        rest.rests, rest.why = self.rests, self.why
        points, self.points = self.points, ()
        self.end, self.until, self.even = key, at, self.even - even
        self.weight = self.even
        for point in points:
            (self if point[0] < key else rest).add(point)
        if self.sample:
            sample, middle = self.sample, bisect_left(self.sample, (key,))
            self.spread(sample[:middle])
            rest.spread(sample[middle:])
        return rest

    def key_at(self, wanted: float) -> Key:
        """The highest key, roughly, below which at most `wanted` of the weight lies. Between
        positions nothing is known, so among these it is the nearest.
        """
        if self.sample:
            return self._nearest(wanted)
        at, end = self.at, self.until
        density = self.even / (end - at) if end > at else 0.0
        scale = self.scale
        for key, rate in self.points:
            until = (scale.place(key) - at) * density
            if until + rate > wanted:
                if until > wanted:
                    return scale.key_of(min(at + int(wanted / density), SPACE - 1))
                return key
            wanted -= until + rate
            at = scale.place(key)
        reached = at + int(wanted / density) if density else end
        return scale.key_of(min(reached, end, SPACE - 1))

    def _nearest(self, wanted: float) -> Key:
        """The key of that position, or hot key, below which the weight is nearest to `wanted`; the
        start if it is nearest to nothing.
        """
        low, below = self.start, 0.0
        for key, rate in merge(self.points, self.sample):
            if below + rate / 2 > wanted:
                # Also nearer to nothing than to a quarter: such a cut is worth no move.
                is_enough = below > wanted / 4 and low < key
                return parting(low, key) if is_enough else self.start
            below += rate
            low = key
        return self.start

    @property
    def finest(self) -> float:
        """The least that can be cut off, about: the weight of a position."""
        return self.sampled / len(self.sample) if self.sample else 0.0


def cut_by(
    owners: RangeMap[int], loads: Loads | None, idle: float, scale: Scale = HASHED
) -> list[Piece]:
    """The whole space in pieces, one for each range of `owners`, weighed by `loads`.

    The key space itself weighs `idle`, spread evenly: where no load is known, nothing else has
    weight.
    """
    starts = owners.starts()
    ends: list[Key | None] = [*starts[1:], None]
    at = scale.places(starts)
    until = [*at[1:], SPACE]
    pieces = list(map(Piece, starts, ends, at, until, owners.values()))
    weights = LoadBelow(loads, idle, scale)
    below = weights.below(starts, at)
    below.append(weights.total)
    for i, piece in enumerate(pieces):
        piece.weight = piece.even = below[i + 1] - below[i]
        piece.scale = scale
        if weights.sample:
            first = bisect_left(weights.sample, (piece.start,))
            until_end = None if piece.end is None else bisect_left(weights.sample, (piece.end,))
            piece.spread(weights.sample[first:until_end])
    for point in weights.points:
        pieces[bisect_right(starts, point[0]) - 1].add(point)
    return pieces


def carried(owners: RangeMap[int], loads: Loads | None) -> dict[int, float]:
    """The load of each owner that has a range."""
    starts, told = owners.starts(), LoadBelow(loads, 0.0, HASHED)
    below = [*told.below(starts, HASHED.places(starts)), told.total]
    weights = dict.fromkeys(owners.values(), 0.0)
    for i, owner in enumerate(owners.values()):
        weights[owner] += below[i + 1] - below[i]
    for key, rate in (*told.points, *told.sample):
        weights[owners[key]] += rate
    return weights


class LoadBelow:
    """The weight below any key: the part that is spread evenly, the points and the sample."""

    def __init__(self, loads: Loads | None, idle: float, scale: Scale) -> None:
        self.idle = idle
        self.starts = list(loads.starts) if loads else [b""]
        rates = list(loads.rates) if loads else [0.0]
        self.places = [*scale.places(self.starts), SPACE]
        self.points = _points(loads.hottest, self.starts, rates) if loads else []
        self.sample = _sample(loads, self.starts, rates) if loads else []
        self.rates = rates  # without the points and the sample
        self.sums = [0.0, *accumulate(rates)]
        self.total = self.sums[-1] + idle

    def below(self, keys: Sequence[Key], at_places: Sequence[int]) -> list[float]:
        """The weight below each of these keys, which are sorted."""
        found = []
        i, last = bisect_right(self.starts, keys[0]) - 1, len(self.starts) - 1
        for key, at in zip(keys, at_places, strict=True):
            while i < last and self.starts[i + 1] <= key:
                i += 1
            part, begin = 0.0, self.places[i]
            if key > self.starts[i]:
                # Between two steps of an ordered pool nothing is known: all of it lies below.
                length = self.places[i + 1] - begin
                part = self.rates[i] * ((at - begin) / length if length else 1.0)
            found.append(self.sums[i] + part + self.idle * (at / SPACE))
        return found


def _points(hottest: Sequence[Point], starts: list[Key], rates: list[float]) -> list[Point]:
    """The hot keys, none hotter than its range, and ranges of one key; taken off `rates`."""
    inside: dict[int, list[Point]] = {}
    for key, rate in hottest:
        inside.setdefault(bisect_right(starts, key) - 1, []).append((key, rate))
    points = []
    for i, found in inside.items():
        if _is_one_key(starts, i):
            continue  # its range says its rate better
        claimed = sum(rate for _, rate in found)
        scale = min(1.0, rates[i] / claimed) if claimed > 0 else 0.0
        points += [(key, rate * scale) for key, rate in found]
        rates[i] = max(0.0, rates[i] - claimed * scale)
    for i, start in enumerate(starts):
        if _is_one_key(starts, i):
            points.append((start, rates[i]))
            rates[i] = 0.0
    points.sort()
    return points


def _is_one_key(starts: list[Key], i: int) -> bool:
    return i + 1 < len(starts) and starts[i + 1] == starts[i] + b"\0"


def _sample(loads: Loads, starts: list[Key], rates: list[float]) -> list[Point]:
    """The positions and fronts with their rates, which are taken off `rates`. The positions say
    where a range's load lies, and `rates` how much that is.
    """
    inside: dict[int, list[Point]] = {}
    told = merge(((each.key, each.rate) for each in loads.sample), loads.fronts)
    for key, rate in told:
        inside.setdefault(bisect_right(starts, key) - 1, []).append((key, rate))
    sample = []
    for i, found in sorted(inside.items()):
        claimed = sum(rate for _, rate in found)
        if claimed > 0:
            scale, rates[i] = rates[i] / claimed, 0.0
            sample += [(key, rate * scale) for key, rate in found]
    return sample


def first_within(pieces: Sequence[Piece], key: Key) -> int:
    """The index of the piece that contains `key`; the pieces are in order."""
    return bisect_left(pieces, True, key=lambda piece: piece.end is None or piece.end > key)  # noqa: FBT003
