"""The owner's side of the load: what was asked of each range, and which keys were the hottest.

Each range has a counter, which every check raises. Keys cannot have one, since there may be
millions; so one check in many is a sample, and a report names the keys that were sampled again and
again. The gaps between samples are drawn, because clients ask in turns: each hundredth check may
well be the same key's. Their mean follows the rate, so that each report rests on about the same
number of samples, whatever the load.

A report goes once per renewal interval, with a request that is sent anyway. It does not concern the
owner machine: what the owner may hold does not depend on it, and a report that is lost with its
request is not repeated. The next one has the rates of its own interval.

The counting itself is where checks are (`left` is lowered there, and `meet` called when it is used
up), for that has to take next to no time.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec.structs import replace

from tenure.base.instants import SECOND_NS, Instant
from tenure.base.keys import Key
from tenure.protocol.balance.load import HIGHEST_RATE
from tenure.protocol.balance.picture import Measurement, RangeRate
from tenure.protocol.lease.limits import HOT_NAMES, PINNED_KEY_BYTES, RANGES_PER_REPORT
from tenure.protocol.lease.load_report import KeyLoad, LevelLoad, LoadReport, RangeLoad
from tenure.protocol.lease.messages import LeaseRequest, ShortRequest

R = TypeVar("R", bound=LeaseRequest | ShortRequest)
Named: TypeAlias = Callable[[Sequence[Key]], tuple[str, ...]]
"""The names of keys, each of them empty where it is not known."""

EARLY = 0.9
"""The part of a renewal interval between two reports: two renewals may be a little closer
together."""

SAMPLES = 256
"""Between two reports: a key with a twentieth of the load is met 13 times, give or take 4."""
MET_AT_LEAST = 4
"""Times, to be told: what was met less often is mostly chance."""
TOLD_AT_MOST = 32
"""Keys in a report: 1 KB with keys of hashed pools."""
POSITIONS = 64
"""Keys of a sample: each then stands for a sixty-fourth of what its owner carries."""


class Met(NamedTuple):
    """What a sampler has met since the last report."""

    hottest: list[tuple[Key, int]]
    """The keys met most, with how often they were checked, roughly."""
    others: list[Key]
    """All other keys, in order."""


class Sampler:
    """Keys met in one check of many. Any thread may lower `left`; one that is lost does no harm."""

    __slots__ = ("_gap", "_met", "_random", "left")

    def __init__(self, random: Random) -> None:
        self.left: float = 0
        """Checks until the next sample. The check that lowers it below 0 calls `meet`."""
        self._gap = 1
        """Checks for each sample, on average."""
        self._met: list[Key] = []
        self._random = random

    def meet(self, key: Key) -> None:
        """`key` is a sample."""
        if len(self._met) >= 2 * SAMPLES:  # more is asked for than was foreseen
            self._met = [key for key in self._met if self._random.random() < 1 / 2]
            self._gap *= 2
        self._met.append(key)
        self.left = self._random.randrange(2 * self._gap - 1)

    def record(self, key: Key, amount: float) -> None:
        """Count so many checks of `key`."""
        self.left -= amount
        while self.left < 0:
            owed = self.left + 1  # the sample itself is one of them
            self.meet(key)
            self.left += owed

    def take(self) -> Met:
        """What was met, without keys that are too long to bound a range. Begins anew."""
        met, gap = [key for key in self._met if len(key) <= PINNED_KEY_BYTES], self._gap
        self._met = []
        self._gap = max(1, gap * len(met) // SAMPLES)
        self.left = self._random.randrange(2 * self._gap - 1)
        often = Counter(met).most_common(TOLD_AT_MOST)
        hottest = {key: count * gap for key, count in often if count >= MET_AT_LEAST}
        return Met([*hottest.items()], sorted(key for key in met if key not in hottest))


class RangeTally(NamedTuple):
    """The checks so far of a range that is held."""

    start: Key
    end: Key | None
    number: int
    """The number of its lease."""
    load: float


class Meter:
    """From counts that only grow to reports of what was counted between them.

    A count that has become smaller has begun anew, and gives no rate until the next report.
    """

    def __init__(self, random: Random, now: Instant, *, is_ordered: bool = False) -> None:
        self.sampler = Sampler(random)
        self._is_ordered = is_ordered
        """Whether the pool is ordered, so that reports have a sample of keys."""
        self.reported_at = now
        self.every_ns = 0
        """A renewal's time, as managers say it."""
        self._before: dict[tuple[Key, int], float] = {}

    def is_due(self, now: Instant) -> bool:
        """Whether a report is to go with the next request."""
        return now - self.reported_at >= self.every_ns * EARLY

    def add_to(
        self,
        request: R,
        now: Instant,
        tallies: list[RangeTally],
        hottest: Callable[[], list[tuple[Key, float]]] | None = None,
        named: Named | None = None,
        sample: Callable[[], Sequence[Key]] | None = None,
        levels: Callable[[], tuple[LevelLoad, ...]] | None = None,
    ) -> R:
        """The request, with a report where one is due. `hottest` are keys that are known to be hot,
        where that is not left to what the sampler has met, and neither is the `sample`; `named` has
        the names of the hottest, and `levels` what is told of other metrics.
        """
        if not self.is_due(now):
            return request
        report = self.report(now, tallies)
        if not report.ranges:
            return request
        if isinstance(request, ShortRequest) and len(report.ranges) == len(tallies):
            report = _without_rest(report)
        if hottest is not None:
            report = report._replace(hottest=hottest())
        if sample is not None:
            report = report._replace(sample=sample())
        message = as_message(report)
        if named is not None and report.hottest:
            names = named([key for key, _ in report.hottest[:HOT_NAMES]])
            message = replace(message, names=names)
        if levels is not None:
            message = replace(message, levels=levels())
        return replace(request, load=message)

    def report(self, now: Instant, tallies: list[RangeTally]) -> Measurement:
        """What was asked since the last report, from the tallies of all that is held.

        What was not held then is left out: for how long it has been counted is not known here, and
        the manager has the rate that it had at its last owner.
        """
        span = now - self.reported_at
        per_second = SECOND_NS / span if span > 0 else 0.0
        ranges = [
            RangeRate(each.start, each.end, max(0.0, each.load - before) * per_second)
            for each in tallies
            if (before := self._before.get((each.start, each.number))) is not None
        ]
        self.reported_at = now
        self._before = {(each.start, each.number): each.load for each in tallies}
        met = self.sampler.take()
        hottest = [(key, count * per_second) for key, count in met.hottest]
        sample = evenly(met.others, POSITIONS) if self._is_ordered else ()
        return Measurement(span, ranges, hottest, sample)


def evenly(keys: Sequence[Key], at_most: int) -> Sequence[Key]:
    """So many of the keys, which are in order, one after each equal number of them."""
    count = min(len(keys), at_most)
    return [keys[(2 * i + 1) * len(keys) // (2 * count)] for i in range(count)]


def _without_rest(report: Measurement) -> Measurement:
    """The report without its ranges if none had a request: then no range need be listed."""
    return report if any(each.rate for each in report.ranges) else report._replace(ranges=())


def as_message(report: Measurement) -> LoadReport:
    """The report as it is sent, within its limits."""
    ranges = tuple(
        RangeLoad(start=start, end=end, rate=min(rate, HIGHEST_RATE))
        for start, end, rate in most_loaded(list(report.ranges))
    )
    hottest = tuple(KeyLoad(key=key, rate=min(rate, HIGHEST_RATE)) for key, rate in report.hottest)
    sample = tuple(report.sample)
    return LoadReport(span_ns=report.span_ns, ranges=ranges, hottest=hottest, sample=sample)


def most_loaded(ranges: list[RangeRate]) -> list[RangeRate]:
    """The most loaded ranges, as many as a report may have, in order."""
    if len(ranges) <= RANGES_PER_REPORT:
        return ranges
    most = sorted(ranges, key=lambda each: -each.rate)[:RANGES_PER_REPORT]
    return sorted(most, key=lambda each: each.start)
