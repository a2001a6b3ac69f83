"""Requests for the simulated keys, the owners' reports of them, and what managers do with these.

Some keys get far more requests than others, and now and then the hot keys change. Requests are not
simulated one by one, since there would be too many: an owner's counts follow from what it holds.
From there on all is as in the library: the meter, the report on a request, the picture, the rounds,
the policy. Only the sampling of hot keys is left out, which takes longer than all the rest: the
hottest are reported as they are.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from lab.worlds.lease.processes import OwnerProcess
from tenure.base.instants import SECOND_NS, Instant
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import Leased
from tenure.protocol.lease.owner.meter import POSITIONS, Meter, R, RangeTally
from tenure.sim.lease.policy_watch import PolicyWatch
from tenure.sim.lease.processes import LeaseSite

LOAD = "load"
"""The kind of fault by which other keys become the hot ones."""
TOTALS = (0.0, 3.0, 300.0, 300.0, 10_000.0, 10_000.0)
"""Checks a second in the whole pool: none, or so few that most is chance, or many."""
HOT = 1 / 64
"""The part of the whole load from which on a key is reported: four of 256 samples."""


class Traffic(PolicyWatch):
    """The load of all keys at this moment."""

    def __init__(self, site: LeaseSite) -> None:
        super().__init__(site)
        self.is_told = LOAD in site.faults.mix.rates
        """Whether this world's owners tell their load at all."""
        self._keys: list[Key] = []
        self._rates: list[float] = []
        self._below: list[float] = [0.0]
        self._hot: list[tuple[Key, float]] = []
        if self.is_told:
            self.change()

    def change(self) -> None:
        """Make other keys hot, and the load higher or lower; or end all load."""
        random, keys = self.random, self.site.watched_keys
        total, exponent = random.choice(TOTALS), 0.3 + 1.7 * random.random()
        ranked = random.sample(keys, len(keys))
        weights = {key: (rank + 1) ** -exponent for rank, key in enumerate(ranked)}
        scale = total / sum(weights.values())
        self._keys = sorted(weights)
        self._rates = [weights[key] * scale for key in self._keys]
        self._below = list(accumulate(self._rates, initial=0.0))
        told = zip(self._keys, self._rates, strict=True)
        self._hot = [(key, rate) for key, rate in told if rate > total * HOT]
        self.site.tell("world", "is asked for", f"{total:.0f}/s, the hottest {ranked[0].hex()}")

    def rate(self, key_range: KeyRange) -> float:
        """How many checks a second a range gets."""
        first = bisect_left(self._keys, key_range.start)
        end = key_range.end
        last = len(self._keys) if end is None else bisect_left(self._keys, end, first)
        return self._below[last] - self._below[first]

    def hottest(self, ranges: list[KeyRange]) -> Iterator[tuple[Key, float]]:
        """The hot keys in these ranges."""
        return (each for each in self._hot if any(each[0] in key_range for key_range in ranges))

    def sample(self, ranges: list[KeyRange]) -> list[Key]:
        """Some of the keys in these ranges that are not hot, in order; the more often a key is
        asked for, the more often it is there.
        """
        hot = dict(self._hot)
        each = self._below[-1] / POSITIONS
        found = []
        for key, below, rate in zip(self._keys, self._below, self._rates, strict=False):
            if each and key not in hot and any(key in key_range for key_range in ranges):
                found += [key] * (int((below + rate) / each) - int(below / each))
        return found


class Counting:
    """The counts of one owner process, which it reports with its renewals."""

    def __init__(self, owner: OwnerProcess, traffic: Traffic) -> None:
        self._owner = owner
        self._traffic = traffic
        self._meter = Meter(traffic.random, owner.now())
        self._counts: dict[tuple[Key, int], float] = {}

    def add_load(self, request: R, now: Instant, renew_ns: int) -> R:
        """Return the request, with a report of the load if one is due."""
        self._meter.every_ns = renew_ns
        if not self._meter.is_due(now):
            return request
        owner = self._owner
        held = owner.holdings.leases if owner.site.now < owner.believes_until else ()
        ranges = [lease.range for lease in held]
        self._count(held, now - self._meter.reported_at)
        tallies = [
            RangeTally(lease.start, lease.end, lease.number, count)
            for lease, count in zip(held, self._counts.values(), strict=True)
        ]
        traffic, is_ordered = self._traffic, owner.machine.view().config.kind == "ordered"
        return self._meter.add_to(
            request,
            now,
            tallies,
            lambda: list(traffic.hottest(ranges)),
            sample=lambda: traffic.sample(ranges) if is_ordered else (),
        )

    def _count(self, held: tuple[Leased, ...], span_ns: int) -> None:
        """Count the checks since the last report, and drop the counts of what is no longer held."""
        counts, traffic = self._counts, self._traffic
        counted = span_ns / SECOND_NS * traffic.random.uniform(0.9, 1.1)
        self._counts = {
            (lease.start, lease.number): counts.get((lease.start, lease.number), 0.0)
            + counted * traffic.rate(lease.range)
            for lease in held
        }
