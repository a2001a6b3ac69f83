"""Measures what a manager uses while something happens to its clients: CPU and network, moment by
moment.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import NamedTuple

from benchmarks._packed import CARRIED


class Sample(NamedTuple):
    """The usage in one stretch of time."""

    minute: float
    """Its end, from when watching began."""
    cpu: float
    """Part of a core."""
    sent: float
    """Bytes a second, both ways."""


class Watched:
    """One manager, watched."""

    def __init__(self, cpu_seconds: Callable[[], float], port: int) -> None:
        self._cpu_seconds = cpu_seconds
        self._port = port
        self._began = self._at = monotonic()
        self._cpu, self._sent = cpu_seconds(), CARRIED[port]
        self._first = self._at, self._cpu, self._sent
        self.samples: list[Sample] = []

    def look(self) -> None:
        """One sample more."""
        now, cpu, sent = monotonic(), self._cpu_seconds(), CARRIED[self._port]
        took = now - self._at
        self.samples.append(
            Sample((now - self._began) / 60, (cpu - self._cpu) / took, (sent - self._sent) / took)
        )
        self._at, self._cpu, self._sent = now, cpu, sent

    @property
    def mean(self) -> Sample:
        """Return the mean of all the time."""
        began, cpu, sent = self._first
        took = self._at - began
        return Sample(took / 60, (self._cpu - cpu) / took, (self._sent - sent) / took)

    @property
    def most_cpu(self) -> float:
        return max(sample.cpu for sample in self.samples)

    @property
    def most_sent(self) -> float:
        return max(sample.sent for sample in self.samples)


@asynccontextmanager
async def watching(managers: Sequence[Watched], seconds: float) -> AsyncIterator[None]:
    """Look at them so often, to the end of this."""

    async def look() -> None:
        while True:
            await asyncio.sleep(seconds)
            for each in managers:
                each.look()

    task = asyncio.create_task(look())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        for each in managers:
            if not each.samples:
                each.look()
