"""A pool under a skewed load, in simulated time: for the benchmark of balance.

The policy and the smoothing are the real ones. A million keys lie at random in the key space, and
are asked for at rates that follow Zipf's law; which keys are the hottest is drawn. Owners report
what tenure's owners do: the rate of each range they hold, and the hottest of their keys as found
among samples, with the noise of sampling. A plan takes effect some seconds later, when the recall
and the hand-off are over.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from math import exp
from random import Random
from typing import NamedTuple

from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.load import SPACE, Loads, place
from tenure.protocol.balance.picture import LoadPicture, Measurement, RangeRate
from tenure.protocol.balance.policy import NOBODY, Candidate, Policy, Situation, changes
from tenure.protocol.lease.leader.load_watch import BLENDING_NS
from tenure.protocol.lease.table import Right

KEYS = 1_000_000
HOT = 1_000
"""The ranks that are redrawn: one at a time, or all of them in a flip."""
RATE = 1_000.0
"""Checks a second, of an owner on the average."""
SAMPLES = 256
"""The samples that an owner takes between two reports."""
SEEN_AT_LEAST, TOLD_AT_MOST = 4, 32
LEAST = RATE / SAMPLES / 2
"""A key with a lower rate is not met so often, but once in hundreds of reports."""
DELAY_SECONDS = 5
"""The time from a plan to its effect: the poke, the recall, and the hand-off of a range."""


@cache
def ground(seed: int) -> tuple[Sequence[int], Sequence[int]]:
    """The places of the keys, in order, and for each rank the index of its key."""
    dice = Random(seed)
    drawn = [dice.getrandbits(64) for _ in range(KEYS)]
    in_order = sorted(range(KEYS), key=drawn.__getitem__)
    by_rank = array("L", bytes(8 * KEYS))
    for index, rank in enumerate(in_order):
        by_rank[rank] = index
    return array("Q", sorted(drawn)), by_rank


class Zipf:
    """Rates of keys, in the order of their places; the hottest ranks apart, as they move."""

    def __init__(self, seed: int, exponent: float, total: float) -> None:
        self.dice = Random(seed)
        self.places, by_rank = ground(seed)
        weights: list[float] = [rank**-exponent for rank in range(1, KEYS + 1)]
        scale = total / sum(weights)
        self.total = total
        self.by_rank: list[float] = [weight * scale for weight in weights]
        rates = [0.0] * KEYS
        for rank in range(HOT, KEYS):
            rates[by_rank[rank]] = self.by_rank[rank]
        self.rates = rates
        self.below = array("d", accumulate(rates, initial=0.0))
        self.ranked = list(by_rank[:HOT])
        self.hot = dict(zip(self.ranked, self.by_rank, strict=False))
        self._index()

    def _index(self) -> None:
        self.hot_keys = sorted(self.hot)
        self.hot_below = list(accumulate((self.hot[i] for i in self.hot_keys), initial=0.0))

    def redraw(self, ranks: Sequence[int]) -> None:
        """Give these ranks to other keys. Nobody asks any longer for those that had them."""
        for rank in ranks:
            del self.hot[self.ranked[rank]]
        for rank in ranks:
            key = self.dice.randrange(KEYS)
            while key in self.hot:
                key = self.dice.randrange(KEYS)
            self.hot[key] = self.by_rank[rank]
            self.ranked[rank] = key
        self._index()

    def span(self, start: Key, end: Key | None) -> tuple[int, int]:
        """The keys in a range, by index."""
        return self._at(start), KEYS if end is None else self._at(end)

    def _at(self, key: Key) -> int:
        where = place(key)
        return bisect_right(self.places, where) if len(key) > 8 else bisect_left(self.places, where)

    def rate(self, first: int, last: int) -> float:
        """Return the rate of the keys from index `first` up to `last`."""
        hot = (
            self.hot_below[bisect_left(self.hot_keys, last)]
            - self.hot_below[bisect_left(self.hot_keys, first)]
        )
        return max(0.0, self.below[last] - self.below[first]) + hot

    def key(self, index: int) -> Key:
        """The key itself."""
        return self.places[index].to_bytes(8, "big")

    def ask(self, index: int, rate: float) -> None:
        """Ask for one key so often from now on, whatever its rank."""
        self.total += rate - self.hot.get(index, self.rates[index])
        self.hot[index] = rate
        self._index()

    @property
    def hottest_share(self) -> float:
        """The hottest key's part of the load."""
        return self.by_rank[0] / self.total


class Held(NamedTuple):
    """A range in an owner's hands, with the keys that are in it."""

    start: Key
    end: Key | None
    first: int
    last: int


class World:
    """A pool of owners, its load, its manager's picture and plan."""

    def __init__(
        self,
        policy: Policy,
        owners: int,
        exponent: float,
        seed: int,
        interval: int = 3,
        *,
        capacities: Sequence[float] = (),
        hands_over: bool = True,
    ) -> None:
        self.policy = policy
        self.interval = interval
        """Seconds between two reports of an owner, and between two rounds of planning."""
        self.hands_over = hands_over
        """Whether what moves keeps its state. What does not is an entry of its own in the table."""
        self.dice = Random(seed)
        self.load = Zipf(seed, exponent, (sum(capacities) or owners) * RATE)
        strong = capacities or [1.0] * owners
        self.candidates = [
            Candidate(i, f"owner-{i}", capacity, hands_over=hands_over)
            for i, capacity in enumerate(strong, 1)
        ]
        self.capacity = sum(strong)
        self.picture = LoadPicture()
        self.memory: object = None
        self.second = 0
        self.moved = 0.0
        """The part of the key space that has moved so far."""
        self.moves = 0
        self._coming: list[tuple[int, list[tuple[KeyRange, int]]]] = []
        self._planned: dict[tuple[Key, Key | None], int] = {}
        first = policy(Situation(self.candidates, RangeMap(Right(NOBODY, 1, 1))))
        self.memory = first.memory
        self.table = RangeMap.at_starts(
            first.owners.starts(), [Right(owner, 1, 1) for owner in first.owners.values()]
        )
        """Ranges that are as old become one, as the leader sees to."""
        self.number = 2
        self.held: dict[int, list[Held]] = {}
        self.rates: dict[int, float] = {}
        self._told: dict[int, list[RangeRate]] = {}
        """The reports of each owner about its ranges."""
        self._notable: dict[int, list[tuple[int, float]]] = {}
        """The keys of each owner that may be met often enough to be told."""
        self._tail = [i for i, rate in enumerate(self.load.rates) if rate > LEAST]
        self._take_stock({each.incarnation for each in self.candidates})

    # --- what is so ---

    def _take_stock(self, owners: set[int]) -> None:
        """Note what these owners have, after a change."""
        for owner in owners:
            self.held[owner] = []
        starts: list[Key | None] = [*self.table.starts(), None]
        for i, right in enumerate(self.table.values()):
            if right.owner in owners:
                start, end = starts[i], starts[i + 1]
                assert start is not None
                self.held[right.owner].append(Held(start, end, *self.load.span(start, end)))
        self._weigh(owners)

    def _weigh(self, owners: set[int]) -> None:
        """Note the load of these owners, after rates or ranges have changed."""
        load, tail = self.load, self._tail
        for owner in owners:
            notable: list[tuple[int, float]] = []
            told = []
            for start, end, first, last in self.held[owner]:
                told.append(RangeRate(start, end, load.rate(first, last)))
                among_tail = tail[bisect_left(tail, first) : bisect_left(tail, last)]
                notable += [(i, load.rates[i]) for i in among_tail if i not in load.hot]
                hot = load.hot_keys
                among_hot = hot[bisect_left(hot, first) : bisect_left(hot, last)]
                notable += [(i, load.hot[i]) for i in among_hot if load.hot[i] > LEAST]
            self.rates[owner] = sum(each.rate for each in told)
            self._told[owner] = told
            self._notable[owner] = notable

    def redraw(self, ranks: Sequence[int]) -> None:
        """Give these ranks of the load to other keys."""
        before = [self.load.ranked[rank] for rank in ranks]
        self.load.redraw(ranks)
        touched = [*before, *(self.load.ranked[rank] for rank in ranks)]
        self._weigh({self.table[self.load.key(i)].owner for i in touched})

    def most_to_mean(self) -> float:
        """The most that an owner carries for its capacity, beside the mean, as a part of what must
        be.
        """
        return max(self.uses()) / (self.load.total / self.capacity) / self.floor

    def uses(self) -> list[float]:
        """The load of each owner for its capacity."""
        return [self.rates[each.incarnation] / each.capacity for each in self.candidates]

    def ask(self, index: int, rate: float) -> None:
        """Ask for one key so often from now on."""
        self.load.ask(index, rate)
        self._weigh({self.table[self.load.key(index)].owner})

    @property
    def floor(self) -> float:
        """Return the value below which no policy comes: one owner has the hottest key."""
        most = max(each.capacity for each in self.candidates)
        return max(1.0, self.capacity / most * self.load.hottest_share)

    def devoted(self) -> set[int]:
        """Return the owners that hold one key and nothing else."""
        return {
            owner
            for owner, held in self.held.items()
            if len(held) == 1 and held[0].end == held[0].start + b"\0"
        }

    # --- time ---

    def step(self) -> None:
        """One second."""
        self.second += 1
        for candidate in self.candidates:
            if (candidate.incarnation + self.second) % self.interval == 0:
                self.picture.take(self.report(candidate.incarnation))
        if self.second % self.interval == 0:
            self._round()
        if self._coming and self._coming[0][0] <= self.second:
            touched = set()
            for key_range, taker in self._coming.pop(0)[1]:
                touched.add(taker)
                for piece, right in list(self.table.within(key_range)):
                    touched.add(right.owner)
                    since = right.since if self.hands_over else self.number
                    self.table.assign(piece, Right(taker, since, since))
                    self._planned.pop((key_range.start, key_range.end), None)
                self.moved += (place(key_range.end) - place(key_range.start)) / SPACE
                self.moves += 1
            self.number += 1
            self._take_stock(touched)

    def report(self, owner: int) -> Measurement:
        """The owner's report of the last interval."""
        return Measurement(seconds(self.interval), self._told[owner], self._sampled(owner))

    def _sampled(self, owner: int) -> list[tuple[Key, float]]:
        """The keys met often enough among the samples of one interval."""
        rate = self.rates[owner]
        unit = rate / SAMPLES
        found = []
        for i, its_rate in self._notable[owner]:
            expected = its_rate / unit
            if expected > 0.5 and (count := poisson(self.dice, expected)) >= SEEN_AT_LEAST:
                found.append((self.load.key(i), count * unit))
        found.sort(key=lambda each: -each[1])
        return found[:TOLD_AT_MOST]

    def situation(self, now: Instant, loads: Loads | None) -> Situation:
        """What the policy sees."""
        return Situation(self.candidates, self.table, now, loads, memory=self.memory)

    def _round(self) -> None:
        now = Instant(seconds(self.second))
        is_known = now >= seconds(self.interval) + BLENDING_NS
        loads = self.picture.loads(now) if is_known else None
        plan = self.policy(self.situation(now, loads))
        self.memory = plan.memory
        coming = []
        for change in changes(self.table, plan):
            name = change.range.start, change.range.end
            if self._planned.get(name) != change.taker:
                self._planned[name] = change.taker
                coming.append((change.range, change.taker))
        if coming:
            self._coming.append((self.second + DELAY_SECONDS, coming))


def poisson(dice: Random, expected: float) -> int:
    """How often something happens that is expected so often."""
    if expected > 30:
        return max(0, round(dice.gauss(expected, expected**0.5)))
    limit, product, count = exp(-expected), dice.random(), 0
    while product > limit:
        product *= dice.random()
        count += 1
    return count
