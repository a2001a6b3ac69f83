"""Trends: the rates that hot keys are heading for.

A smoothed rate lags behind. If a key becomes hot from one moment to the next, the picture has two
fifths of its rate after a report; if one cools down, the picture still has three fifths. A policy
that plans by that moves ranges off the owner of the hot key, though a moment later the owner of the
cold one has room for the whole key; and it finds the hot key a place that the key soon outgrows.

So if the rate of a key has changed since the last round by more than chance explains, the policy
uses the rate that it is heading for: the one that, smoothed, has caused such a change. Ranges are
left out: the load on all keys of a range does not change at once, and it is known less well.

A rate that goes up and down is not a trend: if it has just changed direction, it is taken as
reported, and the smoothing does its work. If no report named a key since the last round, the key
heads where it did before.

If one key cools down and another gets hot instead, one owner may report before the other does. So
an owner whose load shows such a change for the first time waits for a round: it neither gives nor
takes. It waits for another round if the next one shows another change, which may be the other half
of the same story.
"""

from collections.abc import Mapping, Sequence
from math import exp
from typing import NamedTuple

from tenure.base.keys import Key
from tenure.protocol.balance.load import SMOOTHING_NS, Point
from tenure.protocol.balance.pieces import Piece

LEAST_WEIGHT = 0.3
"""The least weight of one report in what is smoothed: rounds that follow sooner tell no more."""


def hot_keys(pieces: Sequence[Piece], least: float) -> dict[Key, float]:
    """The keys of at least this rate: the next round compares its keys with them."""
    return {key: rate for piece in pieces for key, rate in piece.points if rate >= least}


class Trend(NamedTuple):
    """A key whose rate has changed since the last round, or is heading where it did."""

    owner: int
    rises: bool
    then: float
    """The rate that the key is assumed to have."""


def foresee(
    pieces: Sequence[Piece],
    before: Mapping[Key, float],
    trends: Mapping[Key, Trend],
    span_ns: int,
    noise: float,
) -> dict[Key, Trend]:
    """Let keys whose rates have changed by more than `noise` since `before` weigh what they are
    heading for.

    Returns these trends; `trends` has those of the round before.
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
        piece.weight = piece.common + sum(rate for _, rate in points)
    return found


def _trend(
    owner: int, before: float, rate: float, last: Trend | None, weight: float, noise: float
) -> Trend | None:
    if rate == before and last is not None:  # No load was reported for it.
        return last._replace(owner=owner)
    if abs(rate - before) <= noise:
        return None
    rises = rate > before
    if last is not None and last.rises != rises:
        return Trend(owner, rises, rate)
    return Trend(owner, rises, max(0.0, before + (rate - before) / weight))
