"""Whether a read was stale, judged from the record alone.

Each product has one writer, which counts its versions. When a write of a version was answered, no
read that begins later may return a lower one: that is all that is asked of caches (C1), and it
holds whoever was killed, stopped or moved meanwhile. A write without an answer may have happened or
not; either is right.
"""

from bisect import bisect_left
from typing import NamedTuple

from lab.demo.caches.read_record import READ, WHOLE_UNTIL, WRITTEN, ReadEntry
from tenure.base.instants import Instant

FIRST_VERSION = 1


class StaleRead(NamedTuple):
    """A read that returned less than what was written."""

    frontend: str
    read: ReadEntry
    written: int
    """The version that was written, and answered, before the read began."""

    def __str__(self) -> str:
        return (
            f"{self.frontend} read version {self.read.version} of product {self.read.product}, "
            f"and version {self.written} was written before"
        )


class ReadJudge:
    """Judges reads, as records come in."""

    def __init__(self, frontends: int) -> None:
        self.reads = 0
        """The number of reads that were judged."""
        self.found: list[StaleRead] = []
        self._frontends = frontends
        self._whole_until: dict[str, Instant] = {}
        self._waiting: list[tuple[str, ReadEntry]] = []
        self._done: dict[int, tuple[list[Instant], list[int]]] = {}
        """The writes of each product: when each was answered, and its version."""

    def add(self, frontend: str, entry: ReadEntry) -> None:
        """Take an entry into account."""
        if entry.what == READ:
            self._waiting.append((frontend, entry))
        elif entry.what == WRITTEN:
            instants, versions = self._done.setdefault(entry.product, ([], []))
            assert not versions or versions[-1] < entry.version, "one writer, which counts"
            instants.append(entry.ended)
            versions.append(entry.version)
        elif entry.what == WHOLE_UNTIL:
            self._whole_until[frontend] = entry.ended

    def judge(self, *, is_over: bool = False) -> None:
        """Judge what can be judged: all there is, where nothing more will be added."""
        if not is_over and len(self._whole_until) < self._frontends:
            return
        known = None if is_over else min(self._whole_until.values())
        left = []
        for frontend, read in self._waiting:
            if known is not None and read.began > known:
                left.append((frontend, read))
                continue
            self.reads += 1
            written = self._written_before(read.product, read.began)
            if read.version < written:
                self.found.append(StaleRead(frontend, read, written))
        self._waiting = left

    def _written_before(self, product: int, began: Instant) -> int:
        instants, versions = self._done.get(product, ([], []))
        answered = bisect_left(instants, began)
        return versions[answered - 1] if answered else FIRST_VERSION
