"""Numbers for monitoring a process: families of samples, as Prometheus has them.

They are read on request, from what is counted anyway: nothing is counted twice, and a process that
nobody watches pays next to nothing. `prometheus` writes them out.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

FamilyKind = Literal["counter", "gauge", "histogram"]
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Bounds from a commit in memory to a journal that is about to fail."""


class Histogram:
    """Counts how often something took how long."""

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """One count for each bound, and one for values above all bounds."""
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count `value`."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def cumulative(self) -> list[tuple[str, int]]:
        """For each bound, as Prometheus writes it, how many values were at or below it."""
        found, so_far = [], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            so_far += count
            found.append((bound, so_far))
        return found


class Sample(msgspec.Struct, frozen=True):
    """One number or one histogram, with its labels."""

    value: float | Histogram
    labels: Mapping[str, str] = {}


class MetricFamily(msgspec.Struct, frozen=True):
    """All samples of one name."""

    name: str
    """The name, without the `_total` of counters."""
    help: str
    kind: FamilyKind
    samples: tuple[Sample, ...]


def counter(name: str, help_: str, label: str, counts: Mapping[str, int]) -> MetricFamily:
    """A counter for each kind of thing that is counted."""
    samples = tuple(Sample(count, {label: what}) for what, count in sorted(counts.items()))
    return MetricFamily(name, help_, "counter", samples)


def gauge(name: str, help_: str, value: float) -> MetricFamily:
    """One number."""
    return MetricFamily(name, help_, "gauge", (Sample(value),))


def gauges(
    name: str, help_: str, values: Iterable[tuple[Mapping[str, str], float]]
) -> MetricFamily:
    """A number for each of several things."""
    return MetricFamily(name, help_, "gauge", tuple(Sample(v, labels) for labels, v in values))
