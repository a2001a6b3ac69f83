"""Where hot keys are heading.

A rate that is smoothed lags behind. Of a key that is hot from one moment to the next, two fifths
are known after a report, and of one that has cooled down three fifths are still believed. Whoever
plans by that moves ranges off the owner of the one, though a moment later the owner of the other
has room for the whole key; and finds the key a place that it soon outgrows.

So where the rate of a key has changed since the last round by more than chance can do, it is taken
for what it is heading for: the rate that, smoothed, has made it change so much. For ranges this is
not done. What is asked of all keys of a range does not change at once, and it is known less well.

A rate that goes up and down is no trend: where it has just changed the other way, it is taken as
told, and the smoothing does what it is for. Where nothing was told of a key since the last round,
it heads where it did.

Where one key cools down and another is hot instead, one owner may report before the other does. So
an owner in whose load such a change is first seen waits for a round: it neither gives nor takes. It
waits for another where a change is first seen in the next: that may be the other half of its own.
"""

from collections.abc import Mapping, Sequence
from math import exp
from typing import NamedTuple

from tenure.base.keys import Key
from tenure.protocol.balance.load import SMOOTHING_NS
from tenure.protocol.balance.pieces import Piece, Point

LEAST_WEIGHT = 0.3
"""Of one report, in what is smoothed: rounds that follow upon each other sooner tell no more."""


def hot_keys(pieces: Sequence[Piece], least: float) -> dict[Key, float]:
    """The keys of at least this rate: what the next round compares with."""
    return {key: rate for piece in pieces for key, rate in piece.points if rate >= least}


class Trend(NamedTuple):
    """A key whose rate has changed since the last round, or is heading where it did."""

    owner: int
    rises: bool
    then: float
    """What the key is taken for."""


def foresee(
    pieces: Sequence[Piece],
    before: Mapping[Key, float],
    trends: Mapping[Key, Trend],
    span_ns: int,
    noise: float,
) -> dict[Key, Trend]:
    """Let keys whose rates have changed by more than `noise` since `before` weigh what they will.

    These are returned; in `trends` are those of the round before.
    """
    weight = max(1.0 - exp(-span_ns / SMOOTHING_NS), LEAST_WEIGHT)
    found = {}
    for piece in pieces:
        if not piece.points:
            continue
        points: list[Point] = []
        for key, rate in piece.points:
            trend = _trend(piece.owner, before.get(key, 0.0), rate, trends.get(key), weight, noise)
            if trend is not None:
                found[key] = trend
            points.append((key, rate if trend is None else trend.then))
        piece.points = points
        piece.weight = piece.even + sum(rate for _, rate in points)
    return found


def _trend(
    owner: int, before: float, rate: float, last: Trend | None, weight: float, noise: float
) -> Trend | None:
    if rate == before and last is not None:  # nothing was told of it
        return last._replace(owner=owner)
    if abs(rate - before) <= noise:
        return None
    rises = rate > before
    if last is not None and last.rises != rises:
        return Trend(owner, rises, rate)
    return Trend(owner, rises, max(0.0, before + (rate - before) / weight))
