"""When to do something with each key, by wall time, in one order for all keys.

The wall clock may be set; the clock of a process's timers may not. So the agenda never sleeps for
long, and looks at the wall clock again when it wakes: nothing rings early because a clock was set.
"""

import asyncio
from collections.abc import Awaitable, Callable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Generic, TypeVar

from tenure.base.instants import MICROSECOND_NS, Instant, seconds
from tenure.runtime.clock import Clock, Timer, Timers

K = TypeVar("K", bound=str | bytes | int)
LONGEST_SLEEP = 30.0
SPARE = 1024
"""How many outdated entries there may be beside one for each key, before they are forgotten."""
LATER = 1.0
"""Seconds after which what could not be done is tried again."""


class Agenda(Generic[K]):
    """Rings for keys, in the running loop."""

    def __init__(
        self,
        clock: Clock,
        wall: Callable[[], float],
        timers: Timers,
        ring: Callable[[K], Awaitable[None]],
        at_once: float = inf,
    ) -> None:
        """`at_once` is for how many keys it rings at a time: the others wait until one is done."""
        self._clock = clock
        self._wall = wall
        self._timers = timers
        self._ring = ring
        self._at_once = at_once
        self._loop = asyncio.get_running_loop()
        self._order = count()
        self._heap: list[tuple[float, int, K]] = []
        self._armed: dict[K, float] = {}
        self._timer: Timer | None = None
        self._ringing: dict[K, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._armed)

    def arm(self, key: K, at: float | None) -> None:
        """Ring for the key at that time, and not before; None for not at all."""
        if at is None:
            self._armed.pop(key, None)
        elif self._armed.get(key) != at:
            self._armed[key] = at
            heappush(self._heap, (at, next(self._order), key))
            if len(self._heap) > 2 * len(self._armed) + SPARE:
                self._heap = [(at, next(self._order), key) for key, at in self._armed.items()]
                heapify(self._heap)
            if self._heap[0][2] == key:
                self._sleep()

    def _sleep(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._heap and self._armed.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        if self._heap and len(self._ringing) < self._at_once:
            wait = min(max(self._heap[0][0] - self._wall(), 0.0), LONGEST_SLEEP)
            at = Instant(self._clock() + seconds(wait) + MICROSECOND_NS)  # the wall is a float
            self._timer = self._timers(at, self._wake_soon)

    def _wake_soon(self) -> None:
        self._loop.call_soon_threadsafe(self._wake)  # a turned clock is of another thread

    def _wake(self) -> None:
        now = self._wall()
        while self._heap and self._heap[0][0] <= now and len(self._ringing) < self._at_once:
            at, _, key = heappop(self._heap)
            if self._armed.get(key) == at:
                del self._armed[key]
                self._begin(key)
        self._sleep()

    def _begin(self, key: K) -> None:
        if key in self._ringing:
            self.arm(key, self._wall() + LATER)
            return
        task = self._ringing[key] = self._loop.create_task(self._run(key))
        task.add_done_callback(lambda _: self._end(key))

    def _end(self, key: K) -> None:
        was_full = len(self._ringing) == self._at_once
        self._ringing.pop(key, None)
        if was_full:
            self._wake()

    async def _run(self, key: K) -> None:
        await self._ring(key)

    def later(self, key: K) -> None:
        """Ring again soon: it could not be done now."""
        self.arm(key, self._wall() + LATER)

    async def close(self) -> None:
        """Stop ringing."""
        self._armed.clear()
        self._sleep()
        for each in list(self._ringing.values()):
            each.cancel()
