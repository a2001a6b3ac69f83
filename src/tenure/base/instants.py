"""Instants and durations, as integers of nanoseconds.

An `Instant` is a reading of *one* process's clock. Instants of two processes are never compared:
the protocol rests on how fast clocks run, never on what they show. Integers, because a float of
seconds loses microseconds after a few months of uptime, and because sums must not depend on order.
"""

from typing import NewType

Instant = NewType("Instant", int)

MICROSECOND_NS = 1_000
MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000_000_000

FAR_FUTURE = Instant(1 << 62)
"""Later than any instant a clock will show: 146 years of nanoseconds."""


def seconds(value: float) -> int:
    """The duration of `value` seconds, in nanoseconds."""
    return round(value * SECOND_NS)


def in_seconds(duration_ns: int) -> float:
    """A duration in nanoseconds as seconds, for people to read."""
    return duration_ns / SECOND_NS
