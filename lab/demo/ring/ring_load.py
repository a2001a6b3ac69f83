"""The load of the demo: writers and readers of a store, who know what they must find.

Each key has one worker, which writes it and reads it back at QUORUM. So it knows what was
acknowledged last: a read that returns less is stale, and a request that raises has failed. After a
write of which nobody knows what became, either value is right until the next read.

Most requests are for a few keys that stand side by side: one range is hot.
"""

import asyncio
from collections import Counter, deque
from random import Random
from time import perf_counter

from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.errors import TenureError, WriteUnknown

ROOMS = Table("rooms", kind="ordered", said=Family(columns=str))
WORKERS = 8
KEYS_OF_A_WORKER = 25
HOT = 0.8
"""The share of requests for the hot fifth of the keys."""
VALUE_BYTES = 1_000
RECENT = 2_000
"""Requests whose times are kept."""


class RingLoad:
    def __init__(self, store: ColumnStore) -> None:
        self._store = store
        self._dice = Random(1)
        self._acknowledged: dict[str, set[bytes]] = {}
        """The values that a read of each key may find."""
        self.counts: Counter[str] = Counter()
        self.seconds: deque[float] = deque(maxlen=RECENT)
        self.slowest = 0.0
        self.last_failure = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False

    def start(self) -> None:
        """Begin."""
        self._tasks = [asyncio.create_task(self._work(number)) for number in range(WORKERS)]

    async def stop(self) -> None:
        """Ask nothing more, when what is under way is over."""
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def until(self, requests: int) -> None:
        """Wait until there were so many requests."""
        while self.counts["requests"] < requests:  # noqa: ASYNC110 - it is counted, not told
            await asyncio.sleep(0.1)

    async def _work(self, worker: int) -> None:
        number = 0
        while not self._is_over:
            number += 1
            key = self._key(worker)
            began = perf_counter()
            try:
                if number % 2:
                    await self._write(key, f"{worker}-{number} ".encode().ljust(VALUE_BYTES, b"."))
                else:
                    await self._read(key)
            except TenureError as error:
                self.counts["failed"] += 1
                self.last_failure = str(error)
            taken = perf_counter() - began
            self.seconds.append(taken)
            self.slowest = max(self.slowest, taken)
            self.counts["requests"] += 1

    def _key(self, worker: int) -> str:
        """The hot ones are the first of all."""
        mine = self._dice.randrange(KEYS_OF_A_WORKER)
        if self._dice.random() < HOT:
            mine //= 5
        return f"room-{mine:03}-{worker}"

    async def _write(self, key: str, value: bytes) -> None:
        may_be = self._acknowledged.setdefault(key, set())
        try:
            await self._store.insert(ROOMS, key, {"said": {"last": value}})
        except WriteUnknown:
            may_be.add(value)
            raise
        self._acknowledged[key] = {value}

    async def _read(self, key: str) -> None:
        may_be = self._acknowledged.get(key)
        found = await self._store.get(ROOMS, key, "said", "last")
        if may_be and (found is None or found.value not in may_be):
            self.counts["stale"] += 1
        elif found is not None:
            self._acknowledged[key] = {found.value}

    async def check(self) -> None:
        """Read all keys once more: what was acknowledged is there."""
        for key in sorted(self._acknowledged):
            before = self.counts["stale"]
            await self._read(key)
            self.counts["lost"] += self.counts["stale"] - before

    def p99(self) -> float:
        """Return the 99th percentile of the latest requests, in seconds."""
        ordered = sorted(self.seconds)
        return ordered[len(ordered) * 99 // 100] if ordered else 0.0
