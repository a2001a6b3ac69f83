"""The weights of the parts of the ring: their bytes and their requests.

Each replica reports its weights, part by part. If several report the same position, the first of
its list that has reported is believed. Within a part the weight is taken to be spread evenly, as if
bytes were digits of a number, which is as good as can be had without reading the rows.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from tenure.base.ranges import KeyRange
from tenure.protocol.topology.messages import RangeWeight
from tenure.protocol.topology.records import NodeId, Token, Topology

_DIGITS = 12
"""The number of bytes that are compared after those that two bounds have in common."""
_SHARES = 1_000
_ENDS = 2
"""The number of parts that may be cut by the two ends of a range."""


class RingPart(NamedTuple):
    range: KeyRange
    bytes: float
    requests: float


class Weights:
    """Parts that do not overlap, in order."""

    def __init__(self, parts: Sequence[RingPart]) -> None:
        self.parts = parts
        self._starts = [part.range.start for part in parts]
        # The sums before each part, so that a range costs no more than its two ends.
        self._bytes = [0.0, *accumulate(part.bytes for part in parts)]
        self._requests = [0.0, *accumulate(part.requests for part in parts)]
        self.bytes, self.requests = self._bytes[-1], self._requests[-1]

    @classmethod
    def of(cls, topology: Topology, said: Mapping[NodeId, Sequence[RangeWeight]]) -> "Weights":
        """The weights of the ring, from what nodes have told of their parts."""
        parts = []
        for replicas in topology.each():
            told = next((said[node] for node in replicas.old if said.get(node)), ())
            for each in told:
                common = KeyRange(each.start, each.end).intersection(replicas.range)
                if common is not None:
                    part = _fraction(KeyRange(each.start, each.end), common)
                    parts.append(RingPart(common, each.bytes * part, each.requests * part))
        return cls(parts)

    def within(self, key_range: KeyRange) -> Iterator[RingPart]:
        """The parts of `key_range`, cut at its ends."""
        first, end = self._places(key_range)
        for part in self.parts[first:end]:
            common = part.range.intersection(key_range)
            if common is not None:
                fraction = _fraction(part.range, common)
                yield RingPart(common, part.bytes * fraction, part.requests * fraction)

    def _places(self, key_range: KeyRange) -> tuple[int, int]:
        first = max(bisect_right(self._starts, key_range.start) - 1, 0)
        end = key_range.end
        return first, len(self.parts) if end is None else bisect_left(self._starts, end)

    def _sums(self, key_range: KeyRange) -> tuple[float, float]:
        first, end = self._places(key_range)
        if end - first <= _ENDS:
            parts = list(self.within(key_range))
            return sum(part.bytes for part in parts), sum(part.requests for part in parts)
        bytes_ = self._bytes[end - 1] - self._bytes[first + 1]
        requests = self._requests[end - 1] - self._requests[first + 1]
        for part in (self.parts[first], self.parts[end - 1]):
            common = part.range.intersection(key_range)
            if common is not None:
                fraction = _fraction(part.range, common)
                bytes_ += part.bytes * fraction
                requests += part.requests * fraction
        return bytes_, requests

    def bytes_in(self, key_range: KeyRange) -> int:
        """The bytes that a new replica of `key_range` copies."""
        return round(self._sums(key_range)[0])

    def load(self, key_range: KeyRange) -> float:
        """The share of `key_range` in all data and in all requests: 0 to 1."""
        return self._share(*self._sums(key_range))

    def _share(self, bytes_: float, requests: float) -> float:
        pairs = ((bytes_, self.bytes), (requests, self.requests))
        shares = [own / whole for own, whole in pairs if whole]
        return sum(shares) / len(shares) if shares else 0.0

    def of_a_thousand(self, key_range: KeyRange) -> int:
        """The cost of copying `key_range`, as placing wants it: at least 1, and 1,000 for the whole
        ring.
        """
        return max(1, round(self.bytes_in(key_range) * _SHARES / self.bytes)) if self.bytes else 1

    def token_at(self, ranges: Sequence[KeyRange], share: float) -> Token | None:
        """A token below which `ranges`, one behind the other, have `share` of their load; None if
        nothing is known of them, or if no token divides their load.
        """
        wanted = share * sum(map(self.load, ranges))
        if not wanted:
            return None
        for part in (part for each in ranges for part in self.within(each)):
            load = self._share(part.bytes, part.requests)
            if load >= wanted:
                inside = between(part.range, wanted / load)
                # A single row cannot be cut: the token is at one of its ends, the nearer if it may.
                ends = (part.range.start, part.range.end)
                near = ends if wanted < load / 2 else ends[::-1]
                return inside or next((end for end in near if _is_within(end, ranges)), None)
            wanted -= load
        return None


def _is_within(token: Token | None, ranges: Sequence[KeyRange]) -> bool:
    return token is not None and any(token in each and token > each.start for each in ranges)


NOTHING_KNOWN = Weights(())


class _Scale(NamedTuple):
    """The positions of a range as numbers: the digits after the common prefix of its bounds."""

    prefix: bytes
    start: int
    end: int

    @classmethod
    def of(cls, key_range: KeyRange) -> "_Scale":
        start, end = key_range.start, key_range.end
        if end is None:
            return cls(b"", _number(start, 0), 1 << 8 * _DIGITS)
        pairs = enumerate(zip(start, end, strict=False))
        common = next((at for at, (a, b) in pairs if a != b), min(len(start), len(end)))
        return cls(start[:common], _number(start, common), _number(end, common))

    def part(self, key_range: KeyRange) -> float:
        """The share of `key_range`, which lies within, in the whole."""
        if self.end == self.start:
            return 1.0
        skipped, end = len(self.prefix), key_range.end
        high = self.end if end is None else _number(end, skipped)
        return (high - _number(key_range.start, skipped)) / (self.end - self.start)


def _number(bound: bytes, skipped: int) -> int:
    return int.from_bytes(bound[skipped : skipped + _DIGITS].ljust(_DIGITS, b"\0"), "big")


def between(key_range: KeyRange, fraction: float) -> Token | None:
    """A token within `key_range`, at about `fraction` of it; None if there is no such token."""
    scale = _Scale.of(key_range)
    at = scale.start + round((scale.end - scale.start) * fraction)
    at = min(max(at, scale.start + 1), scale.end - 1)
    if not scale.start < at < scale.end:
        return None
    token = scale.prefix + at.to_bytes(_DIGITS, "big").rstrip(b"\0")
    return token if token and token != key_range.start and token in key_range else None


def _fraction(whole: KeyRange, part: KeyRange) -> float:
    return 1.0 if whole == part else _Scale.of(whole).part(part)
