"""Weighing: what a node carries of each part of the ring, from samples (Cassandra 5.1).

Managers even out the load, so nodes tell them where their bytes are, and where requests go. Both
are samples. Rows are listed by a hash, for comparing, so the first rows of that list are a random
sample. Of the requests, every n-th is kept.

Nodes report a list of parts that weigh about the same, so that a heavy stretch of the ring appears
in fine parts. A row that weighs as much as a part is a part of its own: it cannot be cut.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tenure.base.instants import Instant, in_seconds
from tenure.base.ranges import KeyRange
from tenure.protocol.topology.limits import TOKEN_BYTES
from tenure.protocol.topology.messages import RangeWeight
from tenure.protocol.topology.records import Position

PARTS = 64
"""The parts of one node: as many as a manager takes."""
KEPT_REQUESTS = 1_024
OWN_PART_BYTES = 256
"""A longer position has no part of its own: bounds are told again and again."""


class RequestSample:
    """A sample of where requests went: the position of every n-th."""

    def __init__(self) -> None:
        self._began = Instant(0)
        self._count = 0
        self._every = 1
        self._kept: list[Position] = []

    def add(self, at: Position) -> None:
        """Count a request for a row at this position."""
        self._count += 1
        if self._count % self._every == 0:
            self._kept.append(at)
            if len(self._kept) >= KEPT_REQUESTS:
                self._every *= 2
                self._kept = self._kept[1::2]

    def take(self, now: Instant) -> dict[Position, float]:
        """Requests a second by position, since this was asked last."""
        rates: dict[Position, float] = {}
        if now > self._began:
            each = self._every / in_seconds(now - self._began)
            for at in self._kept:
                rates[at] = rates.get(at, 0.0) + each
        self._began, self._count, self._every, self._kept = now, 0, 1, []
        return rates


def parts_of(
    ranges: Sequence[KeyRange], sizes: Mapping[Position, float], rates: Mapping[Position, float]
) -> tuple[RangeWeight, ...]:
    """The weights of these ranges, which are in order: bytes and requests a second by position."""
    positions = sorted({*sizes, *rates})
    all_bytes, all_rates = sum(sizes.values()), sum(rates.values())

    def share(at: Position) -> float:
        bytes_ = sizes.get(at, 0.0) / all_bytes if all_bytes else 0.0
        return bytes_ + (rates.get(at, 0.0) / all_rates if all_rates else 0.0)

    most = 2 * len(ranges) / PARTS  # shares come to two, and each range may end a part early
    found: list[RangeWeight] = []
    for each in ranges:
        first = bisect_left(positions, each.start)
        end = len(positions) if each.end is None else bisect_left(positions, each.end)
        inside = positions[first:end]
        cuts = list(_cuts(each, inside, [share(at) for at in inside], most))
        for start, stop in pairwise([each.start, *cuts, each.end]):
            part = KeyRange(start or b"", stop)
            of = [at for at in inside if at in part]
            bytes_, rate = sum(sizes.get(at, 0) for at in of), sum(rates.get(at, 0) for at in of)
            if bytes_ or rate:
                weight = round(bytes_)
                found.append(
                    RangeWeight(start=part.start, end=part.end, bytes=weight, requests=rate)
                )
    return tuple(found)


def _cuts(
    whole: KeyRange, positions: Sequence[Position], shares: Sequence[float], most: float
) -> Iterator[Position]:
    """The positions at which a range is cut so that no part but a single row is heavier than
    `most`.
    """
    weight, last = 0.0, whole.start
    for place, (at, share) in enumerate(zip(positions, shares, strict=True)):
        if weight and weight + share > most:
            cut = at if share >= most else _between(positions[place - 1], at)
            cut = cut[:TOKEN_BYTES]  # otherwise no manager could read it
            if cut > last:
                yield cut
                weight, last = 0.0, cut
        weight += share
        after = at + b"\0"
        is_own = share >= most and len(after) <= OWN_PART_BYTES and after in whole
        if is_own and after > last:
            yield after
            weight, last = 0.0, after


def _between(lower: Position, upper: Position) -> Position:
    """The shortest position above `lower` and not above `upper`."""
    pairs = enumerate(zip(lower, upper, strict=False))
    common = next((place for place, (a, b) in pairs if a != b), len(lower))
    return upper[: common + 1]
