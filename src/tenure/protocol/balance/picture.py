"""The manager's picture of the load, made from the owners' reports: rates that are smoothed over
time.

Every report has the counts of a span of time. It is blended into the known rate, and the longer the
span, the more it counts: after the same time at the same rate the picture is the same, however many
reports arrived. So an owner that renews more often does not gain weight by that.

The picture is one of keys, not of owners. A range that has moved keeps the rate that it had at its
last owner, and the next report goes on from there. If a range is cut, each piece has its part of
the rate; if ranges are joined, the new one has the sum.

Whoever may own anything reports whatever it likes. So of the ranges of one report only so many keys
are kept, the hottest: otherwise each report would take longer than the one before.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import nsmallest
from itertools import pairwise
from math import exp
from typing import NamedTuple

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.ranges import LOWEST, KeyRange
from tenure.protocol.balance.load import SMOOTHING_NS, Loads, Point, place
from tenure.protocol.balance.positions import Positions

FORGET = 1e-3
"""A hot key is forgotten below this part of the rate that its owner reported: it is no longer hot.
"""

FORGET_BELOW = 1e-3
"""A key is also forgotten below this rate, whatever was reported: without requests, no key is hot.
"""

MOST_KEYS = 1 << 10
"""The most hot keys in the ranges of one report: an honest owner names 32, and each is forgotten
after some thirty seconds.
"""


class RangeRate(NamedTuple):
    """The requests for one range."""

    start: Key
    end: Key | None
    rate: float


class Measurement(NamedTuple):
    """The counts of one owner in the last `span_ns`."""

    span_ns: int
    ranges: Sequence[RangeRate]
    """All ranges that it held, in order."""
    hottest: Sequence[Point] = ()
    """The hottest keys of these ranges; a key that is not named was not hot."""
    sample: Sequence[Key] = ()
    """Of an ordered pool: some keys that were met, the hottest left out, in order."""


class LoadPicture:
    """The rates of all ranges of a pool, and of its hottest keys."""

    def __init__(self) -> None:
        self._starts: list[Key] = [LOWEST]
        self._rates: list[float] = [0.0]
        self._keys: list[Key] = []
        """The hot keys, sorted."""
        self._hot: dict[Key, float] = {}
        self._positions = Positions()
        self.is_at_rest = True
        """Whether no owner has ever reported a request."""

    def take(self, report: Measurement) -> None:
        """Blend a report in."""
        if report.span_ns <= 0:
            return
        weight = 1.0 - exp(-report.span_ns / SMOOTHING_NS)
        self.is_at_rest = self.is_at_rest and not any(each.rate for each in report.ranges)
        told = dict(report.hottest)
        self._learn(told)
        least = max(FORGET * sum(each.rate for each in report.ranges), FORGET_BELOW)
        kept: list[Key] = []
        for start, end, rate in report.ranges:
            i = self._isolate(start, end)
            self._rates[i] += (rate - self._rates[i]) * weight
            kept += self._blend(start, end, told, weight, least)
            self._place(report, start, end, rate, weight)
        self._positions.thin([(each.start, each.end) for each in report.ranges])
        if len(kept) > MOST_KEYS:
            self._forget_coldest(kept)

    @property
    def size(self) -> int:
        """How many ranges, keys and positions it has."""
        return len(self._starts) + len(self._keys) + self._positions.size

    def _place(
        self, report: Measurement, start: Key, end: Key | None, rate: float, weight: float
    ) -> None:
        """Blend in what was met in a range, which stands for all its load but the hottest keys."""
        if not report.sample and not self._positions.size:
            return
        first = bisect_left(report.sample, start)
        last = len(report.sample) if end is None else bisect_left(report.sample, end, first)
        rest = max(0.0, rate - sum(r for key, r in report.hottest if key in KeyRange(start, end)))
        met = report.sample[first:last]
        self._positions.blend(start, end, met, rest, report.span_ns, weight)

    def _forget_coldest(self, keys: Sequence[Key]) -> None:
        for key in nsmallest(len(keys) - MOST_KEYS, keys, key=self._hot.__getitem__):
            del self._hot[key]
        self._keys = [key for key in self._keys if key in self._hot]

    def _learn(self, told: dict[Key, float]) -> None:
        for key in told:
            if key not in self._hot:
                self._keys.insert(bisect_left(self._keys, key), key)
                self._hot[key] = 0.0

    def _blend(
        self, start: Key, end: Key | None, told: dict[Key, float], weight: float, least: float
    ) -> Sequence[Key]:
        """Blend in the hot keys of a range; those that are no longer hot are forgotten. Returns
        those that are kept.
        """
        first = bisect_left(self._keys, start)
        if first == len(self._keys) or (end is not None and self._keys[first] >= end):
            return ()
        last = len(self._keys) if end is None else bisect_left(self._keys, end, first)
        kept = []
        for key in self._keys[first:last]:
            known = self._hot[key]
            self._hot[key] = known + (told.get(key, 0.0) - known) * weight
            if key in told or self._hot[key] >= least:
                kept.append(key)
            else:
                del self._hot[key]
        self._keys[first:last] = kept
        return kept

    def _isolate(self, start: Key, end: Key | None) -> int:
        """The index of exactly this range, which is cut out, or joined from parts, if it is not
        there.
        """
        starts, rates = self._starts, self._rates
        first = bisect_right(starts, start) - 1
        last = first + 1
        if starts[first] == start and (starts[last] if last < len(starts) else None) == end:
            return first
        for key in (start, end):
            if key is not None:
                self._cut(key)
        first = bisect_left(starts, start)
        last = len(starts) if end is None else bisect_left(starts, end)
        rates[first:last] = [sum(rates[first:last])]
        starts[first:last] = [start]
        return first

    def _cut(self, key: Key) -> None:
        i = bisect_right(self._starts, key) - 1
        start = self._starts[i]
        if start == key:
            return
        end = self._starts[i + 1] if i + 1 < len(self._starts) else None
        first, middle = bisect_left(self._keys, start), bisect_left(self._keys, key)
        last = len(self._keys) if end is None else bisect_left(self._keys, end)
        below = sum(self._hot[each] for each in self._keys[first:middle])
        above = sum(self._hot[each] for each in self._keys[middle:last])
        below += self._positions.rate(start, key)
        above += self._positions.rate(key, end)
        rate = self._rates[i]
        scale = min(1.0, rate / (below + above)) if below + above > 0 else 0.0
        even = rate - (below + above) * scale
        length = place(end) - place(start)
        part = (place(key) - place(start)) / length if length else 0.0
        self._rates[i] = below * scale + even * part
        self._starts.insert(i + 1, key)
        self._rates.insert(i + 1, above * scale + even * (1.0 - part))

    def loads(self, at: Instant) -> Loads:
        """The picture in the form that a policy takes."""
        known = self._positions
        starts, rates = self._starts.copy(), self._rates.copy()
        return Loads(at, starts, rates, self.hottest(), known.all(), known.fronts())

    def hottest(self) -> list[Point]:
        """The hot keys with their rates, sorted by key."""
        return [(key, self._hot[key]) for key in self._keys]

    def invariants(self) -> None:
        """Everything is sorted, and no rate is negative."""
        assert self._starts[0] == LOWEST
        assert all(a < b for a, b in pairwise(self._starts))
        assert all(a < b for a, b in pairwise(self._keys))
        assert self._keys == sorted(self._hot)
        assert min(self._rates) >= 0
        self._positions.invariants()
