"""A simulated pool whose owners may run out of requests or of memory, for `balance`.

Both follow Zipf's law, and lie at different keys. The pool is 60 % full of the one, and 30 % to
60 % of the other.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks._balance import RATE, World, Zipf
from tenure.base.instants import Instant, seconds
from tenure.protocol.balance.load import Loads
from tenure.protocol.balance.picture import LoadPicture, Measurement, RangeRate
from tenure.protocol.balance.policy import Policy, Situation
from tenure.protocol.lease.limits import CAPACITY_LABEL
from tenure.protocol.lease.owner.meter import TOLD_AT_MOST

FULL = 0.6
"""How full the pool is of what is scarcest."""
GIB = float(1 << 30)
"""The memory that an owner has."""


class Fullness(NamedTuple):
    """How full the fullest owner is by each metric, beside what it must be; and what has moved."""

    requests: float
    memory: float
    moved: float


class MemoryWorld(World):
    """A pool of `owners`, whose memory is as scarce as requests, or as much as `memory` says."""

    def __init__(
        self, policy: Policy, owners: int, exponent: float, seed: int, memory: float
    ) -> None:
        super().__init__(policy, owners, exponent, seed)
        self.full = {"requests": FULL / max(1.0, memory), "memory": FULL * min(1.0, memory)}
        self.memories = Zipf(seed + 1, exponent, owners * GIB * self.full["memory"])
        self.filled = LoadPicture()
        self.candidates = [
            each._replace(
                capacity=RATE / self.full["requests"],
                labels={f"{CAPACITY_LABEL}memory": repr(GIB)},
            )
            for each in self.candidates
        ]
        self.capacity = sum(each.capacity for each in self.candidates)

    def report(self, owner: int) -> Measurement:
        """Report the owner's memory, too."""
        memories, found = self.memories, list[tuple[bytes, float]]()
        ranges = []
        for start, end, (first, last) in self.spans(owner):
            ranges.append(RangeRate(start, end, memories.rate(first, last)))
            hot = memories.hot_keys
            for i in hot[bisect_left(hot, first) : bisect_left(hot, last)]:
                found.append((memories.key(i), memories.hot[i]))
        hottest = sorted(found, key=lambda each: -each[1])[:TOLD_AT_MOST]
        self.filled.take(Measurement(seconds(self.interval), ranges, hottest))
        return super().report(owner)

    def spans(self, owner: int) -> list[tuple[bytes, bytes | None, tuple[int, int]]]:
        """The owner's ranges, each with the memory's keys in it."""
        return [
            (each.start, each.end, self.memories.span(each.start, each.end))
            for each in self.held[owner]
        ]

    def situation(self, now: Instant, loads: Loads | None) -> Situation:
        """The situation with the memory, where loads are known."""
        told = super().situation(now, loads)
        return told if loads is None else told._replace(levels={"memory": self.filled.loads(now)})

    def fullest(self) -> Fullness:
        """How full the fullest owner is by each metric, as a part of what is even, or of what a key
        is alone.
        """
        even = self.full["memory"] * GIB
        most = max(
            sum(self.memories.rate(*span) for _, _, span in self.spans(each.incarnation))
            for each in self.candidates
        )
        floor = max(1.0, self.memories.by_rank[0] / even)
        return Fullness(self.most_to_mean(), most / even / floor, self.moved)


def worlds(policy: Policy, owners: int) -> Iterator[tuple[str, MemoryWorld]]:
    """A pool with as much of both, one with less memory, and one with less of what serves."""
    for memory, name in ((1.0, "as scarce"), (2.0, "scarcer"), (0.5, "half as scarce")):
        yield f"zipf 1.0, memory {name}", MemoryWorld(policy, owners, 1.0, 1, memory)
