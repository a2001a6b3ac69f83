"""A simulated pool of ordered keys, for `balance`: the real policy, picture and sampler, a clock
that is turned, and what is asked for, second by second.

Keys are names in order. In the workload `zipf` there are 50,000, asked for by Zipf's law, whose
ranks lie in clusters: as with customers, neighbours are hot together. In `append` each second has
new keys above all others, and as many reads of what is there; in `only-append` nothing is read.
Each key has as much state as any other.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from random import Random
from typing import NamedTuple, Protocol

from benchmarks._balance import DELAY_SECONDS
from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.picture import LoadPicture, Measurement, RangeRate
from tenure.protocol.balance.policy import NOBODY, Candidate, Policy, Situation, changes
from tenure.protocol.lease.leader.load_watch import BLENDING_NS
from tenure.protocol.lease.owner.meter import POSITIONS, SAMPLES, Sampler, evenly
from tenure.protocol.lease.table import Right

RATE = 200.0
"""Requests a second, for each unit of capacity."""
KEYS = 50_000
BEFORE = 4 * 3600
"""How many seconds of appends there are at the start."""
CLUSTER = 50
INTERVAL = 3


class Names(Protocol):
    """Keys in order, as `bisect` takes them."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> Key: ...


class Workload(Protocol):
    """What is asked for at a moment."""

    @property
    def keys(self) -> Names:
        """All keys, in order."""

    total: float
    floor: float
    """The load that one owner must carry at least: that of a key, or of all that is new."""

    def step(self) -> None:
        """One second."""

    def below(self, key: Key | None) -> float:
        """The rate of all keys below this one."""
        ...

    def key(self, below: float) -> Key:
        """The key that is met, if that much of the rate lies below."""
        ...


class Zipf:
    """50,000 customers' keys, some of them asked for far more often than others."""

    def __init__(self, exponent: float, total: float, seed: int) -> None:
        dice = Random(seed)
        self.keys = [b"customers/%06d/inbox" % (i * 7) for i in range(KEYS)]
        places = list(range(0, KEYS, CLUSTER))
        dice.shuffle(places)
        order = [place + i for i in range(CLUSTER) for place in places]
        weights = [0.0] * KEYS
        for rank, index in enumerate(order, 1):
            weights[index] = rank**-exponent
        scale = total / sum(weights)
        self.total = total
        self.floor = scale
        self._below = array("d", accumulate((each * scale for each in weights), initial=0.0))

    def step(self) -> None:
        pass

    def below(self, key: Key | None) -> float:
        return self._below[-1 if key is None else bisect_left(self.keys, key)]

    def key(self, below: float) -> Key:
        return self.keys[min(bisect_right(self._below, below) - 1, KEYS - 1)]


class Moments:
    """Keys by time: a sequence that is never written out."""

    def __init__(self) -> None:
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int, /) -> Key:
        return b"2026-11-29/%012d" % (i * 1_000)


class Append:
    """New keys above all others, and reads of any of those that are there."""

    def __init__(self, total: float, reads: float) -> None:
        self.keys = Moments()
        self.total = total
        self.reads = total * reads
        self.floor = total - self.reads
        self._old = 0
        self._owed = self.floor * BEFORE
        self.step()

    def step(self) -> None:
        self._old = len(self.keys)
        self._owed += self.floor
        self.keys.count += int(self._owed)
        self._owed %= 1

    def below(self, key: Key | None) -> float:
        i = len(self.keys) if key is None else bisect_left(self.keys, key)
        new = max(0, i - self._old) / max(1, len(self.keys) - self._old)
        return self.reads * min(i, self._old) / max(1, self._old) + self.floor * new

    def key(self, below: float) -> Key:
        old = self.reads if self._old else 0.0
        if below < old:
            return self.keys[int(below / old * self._old)]
        part = (below - old) / (self.floor or 1.0)
        return self.keys[
            min(self._old + int(part * (len(self.keys) - self._old)), len(self.keys) - 1)
        ]


class Second(NamedTuple):
    """What was so in a second."""

    most_to_floor: float
    """(max/mean)/F."""
    moved: float
    """The part of all state that moved in it."""
    tail: int
    """Who had the end of the key space."""


class OrderedWorld:
    """A pool that begins as one range."""

    def __init__(
        self, policy: Policy, workload: Workload, capacities: Sequence[float], seed: int = 1
    ) -> None:
        self.policy, self.load = policy, workload
        self.dice = Random(seed)
        self.candidates = [
            Candidate(i, f"owner-{i}", capacity) for i, capacity in enumerate(capacities, 1)
        ]
        self.picture = LoadPicture()
        self.memory: object = None
        self.second = 0
        self.table = RangeMap(Right(NOBODY, 1, 1))
        self._samplers = {each.incarnation: Sampler(self.dice) for each in self.candidates}
        self._planned: dict[KeyRange, int] = {}
        self._coming: list[tuple[int, list[tuple[KeyRange, int]]]] = []
        self._round(None)
        self._carry_out(self._coming.pop()[1])

    def run(self, length: int) -> Iterator[Second]:
        """So many seconds."""
        for _ in range(length):
            self.second += 1
            self.load.step()
            for candidate in self.candidates:
                if (candidate.incarnation + self.second) % INTERVAL == 0:
                    self.picture.take(self.report(candidate.incarnation))
                    self.picture.invariants()
            if self.second % INTERVAL == 0:
                is_known = seconds(self.second) >= seconds(INTERVAL) + BLENDING_NS
                self._round(self.picture if is_known else None)
            moved = 0.0
            while self._coming and self._coming[0][0] <= self.second:
                moved += self._carry_out(self._coming.pop(0)[1])
            yield Second(self.most_to_floor(), moved, self.table[b"\xff" * 8].owner)

    def most_to_floor(self) -> float:
        """The most that an owner carries for its capacity, beside what it must."""
        loads = dict.fromkeys((each.incarnation for each in self.candidates), 0.0)
        for key_range, right in self.table:
            loads[right.owner] += self._rate(key_range)
        uses = [loads[each.incarnation] / each.capacity for each in self.candidates]
        capacities = [each.capacity for each in self.candidates]
        mean = self.load.total / sum(capacities)
        return max(uses) / mean / max(1.0, self.load.floor / max(capacities) / mean)

    def state(self) -> dict[int, int]:
        """How many keys each owner has."""
        found = dict.fromkeys((each.incarnation for each in self.candidates), 0)
        for key_range, right in self.table:
            found[right.owner] += self._count(key_range)
        return found

    def _rate(self, key_range: KeyRange) -> float:
        return self.load.below(key_range.end) - self.load.below(key_range.start)

    def _count(self, key_range: KeyRange) -> int:
        keys, end = self.load.keys, key_range.end
        last = len(keys) if end is None else bisect_left(keys, end)
        return last - bisect_left(keys, key_range.start)

    def report(self, owner: int) -> Measurement:
        """The owner's report of the last interval, of what its sampler met."""
        held = [key_range for key_range, right in self.table if right.owner == owner]
        rates = [max(0.0, self._rate(each)) for each in held]
        sampler, told = self._samplers[owner], list(zip(held, rates, strict=True))
        unit = max(sum(rates) * INTERVAL / SAMPLES, 1.0)
        for key_range, rate in told:
            begins, count = self.load.below(key_range.start), rate * INTERVAL / unit
            count = int(count + self.dice.random())
            for _ in range(count):
                sampler.meet(self.load.key(begins + self.dice.random() * rate))
        met = sampler.take()
        hottest = [(key, count * unit / INTERVAL) for key, count in met.hottest]
        ranges = [RangeRate(each.start, each.end, rate) for each, rate in told]
        return Measurement(seconds(INTERVAL), ranges, hottest, evenly(met.others, POSITIONS))

    def _round(self, picture: LoadPicture | None) -> None:
        now = Instant(seconds(self.second))
        loads = picture.loads(now) if picture else None
        plan = self.policy(Situation(self.candidates, self.table, now, loads, memory=self.memory))
        self.memory = plan.memory
        coming = []
        for change in changes(self.table, plan):
            if self._planned.get(change.range) != change.taker:
                self._planned[change.range] = change.taker
                coming.append((change.range, change.taker))
        if coming:
            self._coming.append((self.second + DELAY_SECONDS, coming))

    def _carry_out(self, moves: Sequence[tuple[KeyRange, int]]) -> float:
        """The part of all state that moves."""
        moved = 0
        for key_range, taker in moves:
            self.table.assign(key_range, Right(taker, self.second + 2, self.second + 2))
            self._planned.pop(key_range, None)
            moved += self._count(key_range)
        return moved / max(1, len(self.load.keys))


def worlds(policy: Policy) -> Iterator[tuple[str, OrderedWorld]]:
    """A pool of each workload, with even owners and with uneven ones."""
    for owners, capacities in (("even", [1.0] * 8), ("1/2/8", [1, 1, 1, 2, 2, 2, 8, 8])):
        total = sum(capacities) * RATE
        yield f"zipf 0.8, {owners}", OrderedWorld(policy, Zipf(0.8, total, 1), capacities)
        yield f"zipf 1.2, {owners}", OrderedWorld(policy, Zipf(1.2, total, 1), capacities)
        yield f"append, {owners}", OrderedWorld(policy, Append(total, 0.5), capacities)
        yield f"few appends, {owners}", OrderedWorld(policy, Append(total, 0.9), capacities)
        yield f"only-append, {owners}", OrderedWorld(policy, Append(total, 0.0), capacities)
