"""The positions of keys in ordered pools: where in the key space the load lies, and where it grows.

Each owner of an ordered pool reports some of the keys that it met, drawn evenly from all checks
(`meter`). So each of them stands for the same part of its range's load. Positions are blended over
time as rates are. Beside its *rate* a position has a *mass*: what was asked for there within the
last hour or so, which is a guess of how much state lies there. The manager's memory is bounded: if
there are many positions, neighbours become one.

A *front* is the place where new keys appear one above the other, as names with a time do. Its load
belongs to no position, since the next key is always a new one. It is as if one hot key moved on. So
the picture knows its rate apart, and a key above all keys that were met so far: what is cut there
takes the coming load along, and no state.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest
from itertools import pairwise
from math import exp

from tenure.base.instants import SECOND_NS, seconds
from tenure.base.keys import Key
from tenure.protocol.balance.load import Point, Position

MOST_POSITIONS = 128
"""The most positions in the ranges of one report: two reports' samples. A cut is then right within
a hundredth of what its owner carries."""
KEPT_POSITIONS = 64
"""How many are kept, if there are more: not each report has to join some."""
MEMORY_NS = seconds(3600)
"""How long a position remembers its load: what was not asked for in hours is taken to be little
state."""
NEW_AT_LEAST, NEW_PART = 4, 0.25
"""How many keys of a sample must lie above all that were known, and which part of the sample, for a
front: in a range whose keys stay the same, next to none do."""
FADED = 0.01
"""The part of its range's load below which a front is forgotten."""


class Positions:
    """The positions and fronts of one pool, sorted by key."""

    def __init__(self) -> None:
        self._keys: list[Key] = []
        self._known: dict[Key, Position] = {}
        self._fronts: dict[Key, float] = {}

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._keys) + len(self._fronts)

    def all(self) -> list[Position]:
        """The positions, sorted by key."""
        return [self._known[key] for key in self._keys]

    def fronts(self) -> list[Point]:
        """The fronts with their rates, sorted by key: those that were seen more than once."""
        return sorted(each for each in self._fronts.items() if each[1] > 0)

    def within(self, start: Key, end: Key | None) -> list[Key]:
        """The keys of the positions in a range."""
        return self._keys[self._span(start, end)]

    def rate(self, start: Key, end: Key | None) -> float:
        """The rate of all positions and fronts in a range."""
        rate = sum(self._known[key].rate for key in self.within(start, end))
        return rate + sum(self._fronts[key] for key in self._fronts_in(start, end))

    def blend(
        self, start: Key, end: Key | None, met: Sequence[Key], rate: float, span_ns: int, new: float
    ) -> None:
        """Blend in what was met in a range, in order: together it stands for `rate`. The part `new`
        of what is known from now on is from this report.
        """
        unit = rate / len(met) if met else 0.0
        grown = self._grown(start, end, met)
        is_front = self._move_front(start, end, grown, unit, rate, new)
        fade, told = exp(-span_ns / MEMORY_NS), Counter(met)
        for key in sorted(told.keys() - self._known.keys()):
            self._known[key] = Position(key, 0.0, 0.0)
        found = sorted({*self.within(start, end), *told})
        for key in found:
            asked, known = told[key] * unit, self._known[key]
            # What is met at a front is not asked for again there: the front has that load.
            still = 0.0 if is_front and grown and key >= grown[0] else asked
            mass = known.mass * fade + asked * span_ns / SECOND_NS
            self._known[key] = Position(key, known.rate + (still - known.rate) * new, mass)
        self._keys[self._span(start, end)] = found

    def _grown(self, start: Key, end: Key | None, met: Sequence[Key]) -> Sequence[Key]:
        """What was met above all that was known in the range; nothing, if that is too few."""
        last = [key + b"\0" for key in self.within(start, end)[-1:]]
        above = max([*last, *self._fronts_in(start, end)], default=None)
        if above is None:
            return ()
        grown = met[bisect_left(met, above) :]
        is_front = len(grown) >= max(NEW_AT_LEAST, NEW_PART * len(met))
        return grown if is_front and (end is None or grown[-1] + b"\0" < end) else ()

    def _move_front(
        self,
        start: Key,
        end: Key | None,
        grown: Sequence[Key],
        unit: float,
        rate: float,
        new: float,
    ) -> bool:
        """Let the range's front be above what has `grown`; without that, it fades where it is.
        Returns whether the range has a front.

        What is seen for the first time has no rate yet: of a range whose owner is another now, few
        positions may be known, and much lies above these.
        """
        there = self._fronts_in(start, end)
        if not there and not grown:
            return False
        known = sum(self._fronts.pop(key) for key in there)
        told = unit * len(grown)
        if there:
            known = known + (told - known) * new if known > 0 else told
        if grown or known > FADED * rate:
            self._fronts[grown[-1] + b"\0" if grown else there[-1]] = known
        return bool(there)

    def _fronts_in(self, start: Key, end: Key | None) -> list[Key]:
        return sorted(key for key in self._fronts if key >= start and (end is None or key < end))

    def _span(self, start: Key, end: Key | None) -> slice:
        first = bisect_left(self._keys, start)
        return slice(first, len(self._keys) if end is None else bisect_left(self._keys, end, first))

    def thin(self, ranges: Sequence[tuple[Key, Key | None]]) -> None:
        """Join neighbouring positions of these ranges, those that matter least, if there are
        many. The last of each range stays, as the one above which a front is seen.
        """
        inside = [self.within(start, end) for start, end in ranges]
        count = sum(map(len, inside))
        if count <= MOST_POSITIONS:
            return
        known = [self._known[key] for keys in inside for key in keys]
        rates = sum(each.rate for each in known) or 1.0
        masses = sum(each.mass for each in known) or 1.0
        weights = {each.key: each.rate / rates + each.mass / masses for each in known}
        pairs = [pair for keys in inside for pair in list(pairwise(keys[:-1]))[::2]]
        lightest = nsmallest(
            count - KEPT_POSITIONS, pairs, key=lambda pair: weights[pair[0]] + weights[pair[1]]
        )
        for low, high in lightest:
            a, b = self._known[low], self._known.pop(high)
            self._known[low] = Position(low, a.rate + b.rate, a.mass + b.mass)
        self._keys = [key for key in self._keys if key in self._known]

    def invariants(self) -> None:
        """Everything is sorted, and nothing is negative."""
        assert all(a < b for a, b in pairwise(self._keys))
        assert self._keys == sorted(self._known)
        assert all(each.rate >= 0 and each.mass >= 0 for each in self._known.values())
        assert all(rate >= 0 for rate in self._fronts.values())
