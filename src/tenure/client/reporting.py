"""Telling managers the load: once every renewal's time, on a request that goes anyway.

It is no business of the owner machine: what it may hold does not depend on it, and a report that is
lost with its request is not repeated. The next one tells the rates of its own time.
"""

from random import Random

import msgspec

from tenure.base.instants import Instant
from tenure.client.holdings import Board
from tenure.protocol.balance.load import HIGHEST_RATE
from tenure.protocol.balance.meter import Meter
from tenure.protocol.balance.picture import Measurement, RangeRate
from tenure.protocol.lease.messages import KeyLoad, LeaseRequest, LoadReport, RangeLoad
from tenure.wire.limits import RANGES_PER_REPORT

EARLY = 0.9
"""Of a renewal's time: the requests of two renewals may be a little less than that apart."""


class Reporting:
    """One owner's reports, from what its board has counted."""

    def __init__(self, board: Board, random: Random, now: Instant) -> None:
        self._board = board
        self._meter = Meter(random, now)
        self._reported_at = now
        self.every_ns = 0
        """A renewal's time, as managers say it."""
        board.sample(self._meter.sampler)

    def add_load(self, request: LeaseRequest, now: Instant) -> LeaseRequest:
        """The request, with a report where one is due."""
        if now - self._reported_at < self.every_ns * EARLY:
            return request
        self._reported_at = now
        report = self._meter.report(now, self._board.tallies())
        if not report.ranges:
            return request
        return msgspec.structs.replace(request, load=as_message(report))


def as_message(report: Measurement) -> LoadReport:
    """The report as it is sent, within its limits."""
    ranges = tuple(
        RangeLoad(start, end, min(rate, HIGHEST_RATE))
        for start, end, rate in most_loaded(list(report.ranges))
    )
    hottest = tuple(KeyLoad(key, min(rate, HIGHEST_RATE)) for key, rate in report.hottest)
    return LoadReport(report.span_ns, ranges, hottest)


def most_loaded(ranges: list[RangeRate]) -> list[RangeRate]:
    """In order, as many as a report may have."""
    if len(ranges) <= RANGES_PER_REPORT:
        return ranges
    most = sorted(ranges, key=lambda each: -each.rate)[:RANGES_PER_REPORT]
    return sorted(most, key=lambda each: each.start)
