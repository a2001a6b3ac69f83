"""Telling managers the load: once every renewal's time, on a request that goes anyway.

It is no business of the owner machine: what it may hold does not depend on it, and a report that is
lost with its request is not repeated. The next one tells the rates of its own time.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec.structs import replace

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.balance.load import HIGHEST_RATE, RANGES_PER_REPORT
from tenure.protocol.balance.meter import Meter, RangeTally
from tenure.protocol.balance.picture import Measurement, RangeRate
from tenure.protocol.lease.messages import KeyLoad, LeaseRequest, LoadReport, RangeLoad

EARLY = 0.9
"""The part of a renewal interval between two reports: two renewals may be a little closer
together."""

Tallies: TypeAlias = Iterable[RangeTally]


class LoadReports:
    """One owner's reports, of what it has counted."""

    def __init__(self, meter: Meter, now: Instant) -> None:
        self._meter = meter
        self.reported_at = now
        self.every_ns = 0
        """A renewal's time, as managers say it."""

    def is_due(self, now: Instant) -> bool:
        """Whether the next request tells the load."""
        return now - self.reported_at >= self.every_ns * EARLY

    def add_to(
        self,
        request: LeaseRequest,
        now: Instant,
        tallies: Callable[[], Tallies],
        hottest: Callable[[], list[tuple[Key, float]]] | None = None,
    ) -> LeaseRequest:
        """The request, with a report where one is due. `hottest` are keys that are known to be hot,
        where that is not left to what the meter's sampler has met.
        """
        if not self.is_due(now):
            return request
        report = self._meter.report(now, tallies())
        self.reported_at = now
        if not report.ranges:
            return request
        if hottest is not None:
            report = report._replace(hottest=hottest())
        return replace(request, load=as_message(report))


def as_message(report: Measurement) -> LoadReport:
    """The report as it is sent, within its limits."""
    ranges = tuple(
        RangeLoad(start=start, end=end, rate=min(rate, HIGHEST_RATE))
        for start, end, rate in most_loaded(list(report.ranges))
    )
    hottest = tuple(KeyLoad(key=key, rate=min(rate, HIGHEST_RATE)) for key, rate in report.hottest)
    return LoadReport(span_ns=report.span_ns, ranges=ranges, hottest=hottest)


def most_loaded(ranges: list[RangeRate]) -> list[RangeRate]:
    """In order, as many as a report may have."""
    if len(ranges) <= RANGES_PER_REPORT:
        return ranges
    most = sorted(ranges, key=lambda each: -each.rate)[:RANGES_PER_REPORT]
    return sorted(most, key=lambda each: each.start)
