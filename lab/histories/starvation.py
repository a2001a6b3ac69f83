"""Starvation: how long the processes of a run were ready to go on, and had no processor.

A handle that gets no answer because its node does not run looks the same as one whose node is
waited for in vain. Linux tells them apart: it counts for each task how long it was ready and did
not run, and does not count a stopped one. So the recorder looks at the counts of all processes
again and again, from outside, and the judge of outages takes off what was waited.
"""

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

LOOK_SECONDS: Final = 0.1


class Starvation:
    """The waits of processes, whose numbers `running` tells, as `proc` has them."""

    def __init__(self, running: Callable[[], Iterable[int]], proc: Path = Path("/proc")) -> None:
        self._running = running
        self._proc = proc
        self._times: list[int] = []
        self._waited: list[dict[int, int]] = []
        """How long each process had waited in its life, at each of these times."""

    @property
    def can_be_seen(self) -> bool:
        """Whether this system counts it."""
        return (self._proc / "self/schedstat").exists()

    async def watch(self) -> None:
        """Look until cancelled."""
        while True:
            self.look(time.monotonic_ns())
            await asyncio.sleep(LOOK_SECONDS)

    def look(self, now: int) -> None:
        """Look once."""
        found: dict[int, int] = {}
        for pid in self._running():
            with suppress(OSError):  # it has just ended
                found[pid] = int((self._proc / f"{pid}/schedstat").read_text().split()[1])
        self._times.append(now)
        self._waited.append(found)

    def between(self, began: int, ended: int) -> int:
        """How long a request may have waited in this time because processes did. It is at one
        process at a time, so between two looks that is no longer than the one that waited most.
        """
        if not self._times:
            return 0
        first = max(bisect_right(self._times, began) - 1, 0)
        last = min(bisect_left(self._times, ended), len(self._times) - 1)
        return sum(
            max((waited - before[pid] for pid, waited in after.items() if pid in before), default=0)
            for before, after in pairwise(self._waited[first : last + 1])
        )
