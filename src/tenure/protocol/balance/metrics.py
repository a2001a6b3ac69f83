"""Several metrics: owners say a capacity for each, and are balanced by the scarcest.

Requests are a rate. Every other metric is a *level*: what a key takes up at the moment, such as its
memory or its connections. An owner is as full by a metric as what it has of it, divided by its
capacity for it; so capacities are in the metrics' own units, and metrics can be compared.

A sum of all metrics would be even where one owner has all requests and another has all memory. So a
policy is given one metric at a time, as if there were no other: the one by which an owner is
fullest, if that can be mended. It weighs its moves by the others, too: nobody is to become fuller
by one of them than the giver was (`Gauge.fits`). So each move makes the fullest of the two owners
less full, and two metrics cannot send a range to and fro.

The capacities are labels of an owner, so they are in the journal, and managers of earlier versions
balance by requests alone.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import isfinite

from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import HIGHEST_RATE, Loads, Point
from tenure.protocol.balance.pieces import HASHED, LoadBelow, Piece, carried
from tenure.protocol.balance.policy import Candidate, Situation
from tenure.protocol.lease.limits import CAPACITY_LABEL, METRIC_CHARACTERS, REQUESTS

FULL = 1_000.0
"""The amount of a level that fills an owner of average capacity, in the unit in which a policy sees
it: it is then about as large as a number of requests, whatever its own unit is."""
TELLING = 1.05
"""How much fuller by a metric an owner must be than an even share of it before that metric counts
as uneven, or than by the metric of the last round before that one is left."""
MATTERS = 0.5
"""How full the fullest owner by a metric must be, beside the fullest by another, for its metric to
be balanced when that other one is: whoever is less full can bear twice as much as it has."""


def capacities_of(labels: Mapping[str, str]) -> dict[str, float]:
    """An owner's capacities for other metrics than requests. It may have said anything."""
    found = {}
    for label, value in labels.items():
        metric = label.removeprefix(CAPACITY_LABEL)
        if metric in (label, "", REQUESTS) or len(metric) > METRIC_CHARACTERS:
            continue
        try:
            capacity = float(value)
        except ValueError:
            continue
        if isfinite(capacity) and 0 < capacity <= HIGHEST_RATE:
            found[metric] = capacity
    return found


def levels_of_all(labels: Sequence[Mapping[str, str]]) -> frozenset[str]:
    """The metrics beside requests for which all owners with these labels have a capacity."""
    told = [frozenset(capacities_of(each)) for each in labels]
    return frozenset.intersection(*told) if told else frozenset()


class Gauge:
    """One metric: what each owner has of it, and how full that makes it."""

    def __init__(
        self,
        metric: str,
        loads: Loads,
        capacities: Mapping[int, float],
        owners: RangeMap[int],
    ) -> None:
        # Policies clip capacities and know tiny loads as chance: 8e9 bytes must look like 1 owner.
        mean = sum(capacities.values()) / len(capacities)
        self.metric = metric
        self.whole = mean if metric == REQUESTS else FULL
        """The amount that fills an owner of average capacity."""
        self.loads = loads if metric == REQUESTS else _times(loads, FULL / mean)
        self.capacities = {owner: each / mean for owner, each in capacities.items()}
        self.amounts = carried(owners, self.loads)
        self._weights: LoadBelow | None = None
        total = sum(self.amounts.get(owner, 0.0) for owner in capacities)
        self.even = total / self.whole / len(capacities)
        """How full all owners would be if all were equally full."""

    def fullness(self, owner: int, more: float = 0.0) -> float:
        """How full an owner is, or would be with so much more."""
        return (self.amounts.get(owner, 0.0) + more) / self.capacities[owner] / self.whole

    @property
    def fullest(self) -> float:
        """How full the fullest owner is."""
        return max(map(self.fullness, self.capacities))

    @property
    def is_uneven(self) -> bool:
        """Whether the fullest owner can be relieved: less than a key has nobody who has it."""
        hottest = max((rate for _, rate in self.loads.hottest), default=0.0)
        least = max(self.even, hottest / max(self.capacities.values()) / self.whole)
        return self.fullest > TELLING * least

    def fits(self, start: Key, end: Key | None, taker: int, below: float) -> bool:
        """Whether an owner with these keys, too, is less full than `below`, or than is even."""
        # Where all are equally full by this metric, nobody could take anything if that were too
        # much; and a little above even does not make the metric uneven.
        return self.fullness(taker, self.amount(start, end)) < max(below, self.even * TELLING)

    def amount(self, start: Key, end: Key | None) -> float:
        """What there is from `start` up to `end`."""
        told = self._weights = self._weights or LoadBelow(self.loads, 0.0, HASHED)
        keys = [start] if end is None else [start, end]
        below = [*told.below(keys, HASHED.places(keys)), told.total]
        points = sum(_between(each, start, end) for each in (told.points, told.sample))
        return below[1] - below[0] + points

    def move(self, piece: Piece, giver: int, taker: int) -> None:
        """Note that a piece has another owner."""
        amount = self.amount(piece.start, piece.end)
        self.amounts[giver] = self.amounts.get(giver, 0.0) - amount
        self.amounts[taker] = self.amounts.get(taker, 0.0) + amount


def _between(points: Sequence[Point], start: Key, end: Key | None) -> float:
    last = None if end is None else bisect_left(points, (end,))
    return sum(rate for _, rate in points[bisect_left(points, (start,)) : last])


def _times(loads: Loads, factor: float) -> Loads:
    """The loads in another unit."""
    return loads._replace(
        rates=[rate * factor for rate in loads.rates],
        hottest=[(key, rate * factor) for key, rate in loads.hottest],
        sample=[
            each._replace(rate=each.rate * factor, mass=each.mass * factor) for each in loads.sample
        ],
        fronts=[(key, rate * factor) for key, rate in loads.fronts],
    )


def by_scarcest(
    situation: Situation, owners: RangeMap[int], last: str = REQUESTS
) -> tuple[Situation, list[Gauge]]:
    """The situation by the metric of which there is least, and the gauges of all metrics, that one
    first. There are none if owners have no other capacity than that for requests.
    """
    candidates = situation.candidates
    # With requests alone nothing is converted: a policy sees capacities and loads as they are.
    if not situation.levels or not candidates:
        return situation, []
    told = {each.incarnation: capacities_of(each.labels) for each in candidates}
    levels = {
        metric: loads
        for metric, loads in situation.levels.items()
        if all(metric in capacities for capacities in told.values())
    }
    if not levels:
        return situation, []
    gauges = [
        Gauge(metric, loads, {owner: each[metric] for owner, each in told.items()}, owners)
        for metric, loads in levels.items()
    ]
    if situation.loads is not None:
        capacities = {each.incarnation: each.capacity for each in candidates}
        gauges.insert(0, Gauge(REQUESTS, situation.loads, capacities, owners))
    # What cannot be mended must not keep the others from being balanced for ever.
    most = max(each.fullest for each in gauges)
    urgent = [each for each in gauges if each.is_uneven and each.fullest >= MATTERS * most]
    stays = {metric: TELLING if metric == last else 1.0 for metric in (REQUESTS, *levels)}
    first = max(urgent or gauges, key=lambda each: each.fullest * stays[each.metric])
    gauges = [first, *(each for each in gauges if each is not first)]
    members = [each._replace(capacity=first.capacities[each.incarnation]) for each in candidates]
    return situation._replace(candidates=members, loads=first.loads), gauges


def untold(candidates: Sequence[Candidate]) -> dict[str, str]:
    """The metrics for which some owners say a capacity, each with one that says none."""
    told = [(each.name, capacities_of(each.labels)) for each in candidates]
    metrics = sorted({metric for _, each in told for metric in each})
    missing = {
        metric: next((name for name, each in told if metric not in each), "") for metric in metrics
    }
    return {metric: name for metric, name in missing.items() if name}
