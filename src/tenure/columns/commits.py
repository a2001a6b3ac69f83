"""Group commit: all that wait for the disk share one sync.

A sync takes milliseconds, and a disk makes a few hundred of them a second. Syncing each write would
bound writes to that. So a write is applied first, and its answer waits for the next sync that
begins after it; while that one runs, the next writes gather. Syncing runs in a thread, where it
does not hold the interpreter.
"""

import asyncio
from collections.abc import Callable


class GroupCommit:
    """Syncs for all that wait, one after another. For one event loop."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._next: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self.count = 0
        """How many syncs were made."""

    async def durable(self) -> None:
        """Wait until what was applied before this call lasts. Raises what syncing raises."""
        await asyncio.shield(self.begin())

    def begin(self) -> "asyncio.Future[None]":
        """Have a sync begin soon; done when it is over."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
            self._next.add_done_callback(_look_at)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="tenure-columns-sync")
        return self._next

    async def _run(self) -> None:
        try:
            while self._next is not None:
                waiting, self._next = self._next, None
                try:
                    await asyncio.to_thread(self._sync)
                except Exception as error:  # noqa: BLE001 - whoever waits is told
                    waiting.set_exception(error)
                else:
                    waiting.set_result(None)
                self.count += 1
        finally:
            self._task = None

    async def finish(self) -> None:
        """Wait until nobody waits any more."""
        while self._task is not None:
            await asyncio.wait([self._task])


def _look_at(future: "asyncio.Future[None]") -> None:
    """Whoever waited may have been cancelled: then nobody else looks at the exception."""
    if not future.cancelled():
        future.exception()
