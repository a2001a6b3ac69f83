"""Whether what clients read and wrote of a key can have happened one after another (C1).

Every write stores a value of its own, so each read says which write it read from. A write and its
reads are a cluster. The operation of a cluster that ended first, and the one that began last, say
where the cluster must lie. If the first end comes before the last beginning, the time between them
is a *forward* zone, in which its value was the object's; otherwise it is a *backward* zone, in
which it must have been so at some instant. A history is linearizable if and only if no two forward
zones overlap, and no backward zone lies within a forward one (Gibbons and Korach, for registers;
the search of Wing and Gong is not needed).
"""

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import NamedTuple

NEVER = 1 << 62


class Cluster:
    """A write, and the reads of its value."""

    __slots__ = ("began", "first_end", "last_begin", "value")

    def __init__(self, value: bytes, began: int) -> None:
        self.value = value
        self.began = began
        self.first_end = NEVER
        self.last_begin = began

    def add(self, began: int, ended: int) -> None:
        """The write has ended, or a read has."""
        self.first_end = min(self.first_end, ended)
        self.last_begin = max(self.last_begin, began)


class Wrong(NamedTuple):
    """The reason why a history is not linearizable."""

    what: str


class KeyHistory:
    """All operations on one key."""

    def __init__(self, initial: bytes) -> None:
        self.clusters: dict[bytes, Cluster] = {}
        self._ends: list[int] = []
        self._latest_begin: list[int] = []
        self.wrote(initial, -1)
        self.ended(initial, -1, -1)

    def wrote(self, value: bytes, began: int) -> None:
        """A write of this value has begun."""
        self.clusters[value] = Cluster(value, began)

    def ended(self, value: bytes, began: int, ended: int) -> None:
        """The write was done. A write that never gets here may or may not have been done."""
        cluster = self.clusters[value]
        cluster.add(began, ended)
        at = bisect_right(self._ends, ended)
        before = self._latest_begin[at - 1] if at else -1
        self._ends.insert(at, ended)
        self._latest_begin.insert(at, max(before, began))
        for later in range(at + 1, len(self._ends)):
            if self._latest_begin[later] >= began:
                break
            self._latest_begin[later] = began

    def read(self, value: bytes | None, began: int, ended: int) -> Wrong | None:
        """A read has returned this value: what is wrong with that at first sight."""
        cluster = self.clusters.get(value or b"")
        if cluster is None:
            return Wrong(f"{value!r} was never written")
        if cluster.began > ended:
            return Wrong(f"{value!r} was read before it was written")
        written_at = self.written_at(cluster)
        cluster.add(began, ended)
        at = bisect_left(self._ends, began)
        if at and written_at < self._latest_begin[at - 1]:
            return Wrong(f"{value!r} was read after a later write was done")
        return None

    def written_at(self, cluster: Cluster) -> int:
        """When the value was certainly written: its write was done, or a reader had read it."""
        return cluster.first_end

    def check(self) -> Wrong | None:
        """Return why the operations have no order, or None if they have one."""
        known = [each for each in self.clusters.values() if each.first_end < NEVER]
        forward = sorted(
            (each.first_end, each.last_begin, each.value)
            for each in known
            if each.first_end < each.last_begin
        )
        for one, other in pairwise(forward):
            if other[0] < one[1]:
                return Wrong(
                    f"{one[2]!r} and {other[2]!r} were both read while the other was there"
                )
        starts = [start for start, _, _ in forward]
        for each in known:
            if each.first_end >= each.last_begin:
                at = bisect_right(starts, each.last_begin) - 1
                if at >= 0 and each.first_end < forward[at][1] and starts[at] < each.last_begin:
                    return Wrong(f"{each.value!r} was there only while {forward[at][2]!r} was")
        return None

    def is_stale_since(self, value: bytes | None, at: int) -> bool:
        """Whether the value had been replaced by then: a later write was done."""
        cluster = self.clusters.get(value or b"")
        if cluster is None:
            return True
        later = bisect_left(self._ends, at)
        return later > 0 and cluster.first_end < self._latest_begin[later - 1]

    def is_before(self, value: bytes | None, began: int) -> bool:
        """Whether this value was certainly written before that instant."""
        cluster = self.clusters.get(value or b"")
        return cluster is not None and cluster.first_end < began
