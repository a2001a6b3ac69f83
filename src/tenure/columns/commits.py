"""Group commit: all writers that wait for the disk share one sync.

A sync takes milliseconds, and a disk makes a few hundred of them a second. Syncing each write would
bound writes to that. So a write is applied first, and its answer waits for the next sync that
begins after it; while that one runs, the next writes gather.

When should a sync begin? If it begins at the first write, a hundred that are ready behind it miss
the sync. If it begins when all hundred are applied, the disk is idle meanwhile, and then the
processor. So a sync begins when the loop has done what was ready, and at the latest when a writer
has waited for `GATHER_SECONDS`.

A sync runs in a thread, where it does not hold the interpreter's lock. It is not one of the loop's
default threads, because a program may hang in those.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tenure.observe.metrics import Histogram

GATHER_SECONDS = 0.002
"""How long a writer gathers others to share its sync: about as long as a sync takes, so it waits at
most half as long again.
"""


class GroupCommit:
    """Makes syncs for all writers that wait, one after another. For one event loop."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "tenure columns sync")
        self._waiting: list[asyncio.Future[None]] = []
        self._since = 0.0
        """When the first of the waiting writers came."""
        self._is_syncing = False
        self.count = 0
        self.took = Histogram()
        """The seconds of each sync."""

    def durable(self) -> "asyncio.Future[None]":
        """Await it: everything that was applied before this call is then durable. Raises what the
        sync raises.
        """
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiter)
        if not self._is_syncing:
            if len(self._waiting) == 1:
                self._since = time.monotonic()
                self._loop.call_soon(self._begin)
            elif time.monotonic() - self._since > GATHER_SECONDS:
                self._begin()
        return waiter

    def _begin(self) -> None:
        if self._is_syncing or not self._waiting:
            return
        self._is_syncing = True
        self.count += 1
        waiting, self._waiting = self._waiting, []
        self._thread.submit(self._sync_for, waiting)

    def _sync_for(self, waiting: "list[asyncio.Future[None]]") -> None:
        error: Exception | None = None
        began = time.monotonic()
        try:
            self._sync()
        except Exception as failure:  # noqa: BLE001 - whoever waits is told
            error = failure
        took = time.monotonic() - began
        self._loop.call_soon_threadsafe(self._on_synced, waiting, error, took)

    def _on_synced(
        self, waiting: "list[asyncio.Future[None]]", error: Exception | None, took: float
    ) -> None:
        self._is_syncing = False
        self.took.observe(took)
        self._begin()
        for waiter in waiting:
            if waiter.done():
                continue  # the writer was cancelled
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

    async def finish(self) -> None:
        """Wait until no writer waits any longer, and end the thread."""
        while self._is_syncing or self._waiting:
            waiter = self.durable()
            await asyncio.wait([waiter])
            waiter.exception()  # the writers get the error
        self._thread.shutdown()
