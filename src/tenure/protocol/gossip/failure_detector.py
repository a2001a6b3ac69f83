"""The failure detector: a level of suspicion that grows while nothing is heard of a node (R30).

A timeout that fits a quiet network convicts the living in a busy one. So the detector learns how
far apart the news of a node arrive. If the distances are exponential with the mean m, nothing is
heard for t with the probability e^(-t/m), and φ is its negative decimal logarithm: t / (m ln 10).
A detector that convicts at φ = 1 is wrong about once in ten times, at 2 once in a hundred. The
paper's threshold is 5, "with an average detection of 10 to 15 s" at a hundred nodes.

The exponential model needs no variance, which few samples estimate badly. The paper found it nearer
to how gossip arrives than the normal distribution of the original.
"""

import math
from collections import deque
from typing import Final

from tenure.base.instants import FAR_FUTURE, Instant

WINDOW: Final = 1_000
THRESHOLD: Final = 5.0
_LN_10 = math.log(10)


class ArrivalWindow:
    """The times at which one node was heard: the last distances, and the last instant."""

    def __init__(self, began: Instant, expected_ns: int | None = None, size: int = WINDOW) -> None:
        self.last = began
        self._size = size
        self._distances: deque[int] = deque() if expected_ns is None else deque([expected_ns])
        """The distances between arrivals. The expected distance counts as one of them until the
        window is full.
        """
        self._sum_ns = expected_ns or 0

    def arrive(self, now: Instant) -> None:
        """Take note that the node was heard."""
        self._distances.append(now - self.last)
        self._sum_ns += now - self.last
        if len(self._distances) > self._size:
            self._sum_ns -= self._distances.popleft()
        self.last = now

    @property
    def mean_ns(self) -> float:
        """The mean distance; there must have been two arrivals, or an expected distance."""
        return self._sum_ns / len(self._distances)

    def phi(self, now: Instant) -> float:
        """How suspect the node is."""
        return (now - self.last) / (self.mean_ns * _LN_10)

    def reaches(self, phi: float) -> Instant:
        """When the node will be that suspect, if it is not heard."""
        return Instant(self.last + math.ceil(phi * self.mean_ns * _LN_10))


class FailureDetector:
    """Convicts nodes that were silent for too long, and acquits those that are heard again."""

    def __init__(self, expected_ns: int, threshold: float = THRESHOLD, size: int = WINDOW) -> None:
        self._expected_ns = expected_ns
        self._threshold = threshold
        self._size = size
        self._windows: dict[int, ArrivalWindow] = {}
        self._convicted: set[int] = set()
        self._due: dict[int, Instant] = {}
        """When each node that is not convicted will be, if it is not heard. Every step of a node
        asks for that, and it changes only when that node is heard.
        """

    def begin(self, node: int, now: Instant) -> None:
        """Watch a node, as if it had just been heard; do nothing if it is watched already."""
        if node not in self._windows:
            self._windows[node] = ArrivalWindow(now, self._expected_ns, self._size)
            self._look_at(node)

    def _look_at(self, node: int) -> None:
        self._due[node] = self._windows[node].reaches(self._threshold)

    def arrive(self, node: int, now: Instant, *, is_rhythm: bool = True) -> bool:
        """Take note that a node was heard. Returns whether it was convicted until now.

        How long a node was dead, or not yet there, says nothing about how often it is heard.
        """
        window = self._windows[node]
        was_convicted = node in self._convicted
        if is_rhythm and not was_convicted:
            window.arrive(now)
        else:
            window.last = now
        self._convicted.discard(node)
        self._look_at(node)
        return was_convicted

    def forget(self, node: int) -> None:
        """Watch a node no longer."""
        self._windows.pop(node, None)
        self._convicted.discard(node)
        self._due.pop(node, None)

    def on_own_pause(self, pause_ns: int) -> None:
        """Take note that this process stood still for so long: no other node is to blame for that
        silence.
        """
        for window in self._windows.values():
            window.last = Instant(window.last + pause_ns)
        for node in self._due:
            self._look_at(node)

    def convict(self, now: Instant) -> list[int]:
        """The nodes that are newly convicted."""
        next_at = self.next_at()
        if next_at is None or next_at > now:
            return []
        found = [node for node in self._windows if self._due.get(node, FAR_FUTURE) <= now]
        self._convicted.update(found)
        for node in found:
            del self._due[node]
        return found

    def next_at(self) -> Instant | None:
        """When the next node will be convicted, if none is heard."""
        return min(self._due.values(), default=None)

    def is_convicted(self, node: int) -> bool:
        """Whether the node is suspected to be dead."""
        return node in self._convicted

    def phi(self, node: int, now: Instant) -> float:
        """How suspect a watched node is."""
        return self._windows[node].phi(now)

    def watched(self) -> list[int]:
        """All watched nodes, in the order in which they were met."""
        return list(self._windows)

    def invariants(self) -> None:
        """Each watched node is either convicted or due."""
        assert self._convicted | self._due.keys() == self._windows.keys()
        assert not self._convicted & self._due.keys()
        for node, due in self._due.items():
            assert due == self._windows[node].reaches(self._threshold)
