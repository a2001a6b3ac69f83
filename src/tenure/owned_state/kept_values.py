"""The values of an OwnedState in a store, and those of them that this process has in memory.

The store has every value, under the number of the lease that changed it last. A value in memory is
one that was loaded, or kept, under the very lease that is held now, so that nobody else can have
changed it since; any other is loaded again. So memory only saves reads, and may forget anything.

The store lives in an event loop of its own, in a thread of its own: tasks of any loop and threads
take turns, and the one implementation serves them all.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from time import time
from typing import Any, NamedTuple, TypeVar

from tenure.base.keys import PoolKind, UserKey
from tenure.client.lease import Lease
from tenure.errors import ClosedError, StoreFailed
from tenure.fencing.fenced_rows import EmptyRow
from tenure.protocol.entity.envelope import Envelope, SetAlarm
from tenure.runtime.loops import LoopThread
from tenure.stores.opening import EntityStore, store_for

T = TypeVar("T")
VALUE_BYTES = 1 << 20
"""The most bytes of a value in a store: it is one row, written as a whole each time."""
LIMIT = 100_000
LIMIT_BYTES = 256 << 20
"""How many values are in memory by default, and how many bytes of them."""
END = "end"
"""The alarm that says when a value ends."""
FORGOTTEN_AT_ONCE = 200
CLOSED = "the owner of this OwnedState has left, and closed its store"


class KeptValue(NamedTuple):
    """What the store has of one key."""

    number: int
    journal: int
    """The lease under which this was loaded, or kept."""
    envelope: Envelope

    @property
    def ends_at(self) -> float | None:
        """When the value ends, by the wall clock."""
        return self.envelope.next_alarm()


def envelope_of(lease: Lease, data: bytes | None, ends_at: float | None) -> Envelope:
    """A value as the store keeps it, or, with None, its removal."""
    if data is None:
        return Envelope(lease.number, lease.journal)
    alarms = {} if ends_at is None else {END: SetAlarm(ends_at, ends_at)}
    return Envelope(lease.number, lease.journal, data, alarms=alarms)


class KeptValues:
    """The values. Futures that its methods return are done in the thread of the store."""

    def __init__(self, url: str, limit: int | None, limit_bytes: int | None) -> None:
        store_for(url, "")  # raises if it is not the URL of a store
        self._url = url
        self._limit = LIMIT if limit is None else limit
        self._limit_bytes = LIMIT_BYTES if limit_bytes is None else limit_bytes
        self.wall: Callable[[], float] = time
        self.on_kept: Callable[[UserKey, float | None], None] = _nobody
        """Called in the loop of the store with the end of each value that was loaded or kept."""
        self._lock = Lock()
        self._values: OrderedDict[UserKey, KeptValue] = OrderedDict()
        """Those in memory that are in no turn, the one that was used last at the end."""
        self._bytes = 0
        self._empty: list[tuple[UserKey, KeptValue]] = []
        """What has been dropped of keys that have no value: the store can forget their rows."""
        self._thread: LoopThread | None = None
        self._last: dict[UserKey, asyncio.Task[Any]] = {}
        """What is done, or was done last, with each key."""
        self._store: EntityStore | None = None

    # --- opening ---

    async def open(self, pool: str, name: str, kind: PoolKind) -> None:
        """Open the store. Raises as `EntityStore.open` does."""
        self.drop_all()
        self._thread = LoopThread(f"store of {pool}")
        self._thread.start()
        opening = store_for(self._url, name)(pool, kind)
        self._store = await asyncio.wrap_future(self._thread.submit(_awaited(opening)))

    @property
    def store(self) -> EntityStore:
        """The store, while it is open. Raises ClosedError."""
        if self._store is None:
            raise ClosedError(CLOSED)
        return self._store

    async def close(self) -> None:
        """Close the store, and end its thread; whatever still waits for it is told."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            await asyncio.wrap_future(thread.submit(self._close()))
        finally:
            await asyncio.to_thread(thread.end)

    async def _close(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        store, self._store = self._store, None
        if store is not None:
            await store.close()

    def on_fork(self) -> None:
        """In a forked child, nobody has the lock, and nothing runs the loop."""
        self._lock = Lock()
        self._thread = None

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Do this in the loop of the store. Raises ClosedError."""
        with self._lock:
            if self._thread is None:
                work.close()
                raise ClosedError(CLOSED)
            return self._thread.submit(work)

    # --- in the store ---

    def load(self, key: UserKey, lease: Lease) -> "Future[KeptValue]":
        """What the store has; from here on no older lease can change it. Raises as
        `EntityStore.load` does.
        """

        async def load() -> KeptValue:
            return self._noted(key, lease, await self.store.load(key, lease))

        return self.submit(self._in_order(key, load))

    def save(
        self, key: UserKey, lease: Lease, before: KeptValue, new: Envelope
    ) -> "Future[KeptValue]":
        """Keep `new` in place of what was there before, durable when the future is done. Raises as
        `EntityStore.save` does.
        """

        async def save() -> KeptValue:
            kept = await self.store.save(key, lease, before.envelope, new)
            return self._noted(key, lease, kept)

        return self.submit(self._in_order(key, save))

    def look(self, key: UserKey) -> "Future[None]":
        """Look whether the store answers, where it failed the last time. Raises StoreAway."""

        async def look() -> None:
            if self.store.is_away:
                await self.store.look(key)

        return self.submit(self._in_order(key, look))

    @property
    def is_away(self) -> bool:
        """Whether the store failed the last time."""
        return self._store is not None and self._store.is_away

    def _noted(self, key: UserKey, lease: Lease, envelope: Envelope) -> KeptValue:
        kept = KeptValue(lease.number, lease.journal, envelope)
        self.on_kept(key, kept.ends_at)
        return kept

    async def _in_order(self, key: UserKey, work: Callable[[], Awaitable[T]]) -> T:
        """Do it when what came before with the key is over: whoever was cancelled in a turn has
        gone, and what it asked of the store may still be ending.
        """
        task = asyncio.current_task()
        assert task is not None
        before, self._last[key] = self._last.get(key), task
        try:
            if before is not None:
                await asyncio.wait({before})
            return await work()
        except asyncio.CancelledError:
            if self._thread is not None:  # whoever asked has gone
                raise
            raise StoreFailed(f"{CLOSED}: it may have kept the last change or not") from None
        finally:
            if self._last.get(key) is task:
                del self._last[key]

    # --- in memory ---

    def __len__(self) -> int:
        return sum(1 for each in [*self._values.values()] if each.envelope.state)

    @property
    def size_bytes(self) -> int:
        """How many bytes the values in memory take."""
        return self._bytes

    def take(self, key: UserKey, lease: Lease) -> KeptValue | None:
        """What is in memory of the key, if it was loaded or kept under this lease. The turn that
        takes it puts it back.
        """
        with self._lock:
            found = self._values.pop(key, None)
            if found is not None:
                self._bytes -= _size(found)
        if found is None or (found.number, found.journal) != (lease.number, lease.journal):
            return None
        return found

    def put(self, key: UserKey, kept: KeptValue) -> None:
        """Have this in memory, and drop what was not used for longest if it is too much."""
        with self._lock:
            self._values[key] = kept
            self._bytes += _size(kept)
            while len(self._values) > self._limit or self._bytes > self._limit_bytes:
                self._drop(next(iter(self._values)))

    def drop_all(self) -> None:
        """Have nothing in memory."""
        with self._lock:
            self._values.clear()
            self._empty.clear()
            self._bytes = 0

    def _drop(self, key: UserKey) -> None:
        dropped = self._values.pop(key)
        self._bytes -= _size(dropped)
        if not dropped.envelope.state:
            self._empty.append((key, dropped))

    async def tidy(self) -> None:
        """Drop what is known of keys that have no value, and let the store forget their rows."""
        with self._lock:
            for key in [key for key, each in self._values.items() if not each.envelope.state]:
                self._drop(key)
            empty, self._empty = self._empty, []
        rows = [EmptyRow(key, each.number, each.envelope.step) for key, each in empty]
        for i in range(0, len(rows), FORGOTTEN_AT_ONCE):
            with suppress(StoreFailed):  # they stay until the keys are used again
                await self.store.forget(rows[i : i + FORGOTTEN_AT_ONCE])


def _size(kept: KeptValue) -> int:
    return len(kept.envelope.state)


def _nobody(_key: UserKey, _at: float | None) -> None:
    """Nobody wants to know."""


async def _awaited(work: Awaitable[T]) -> T:
    return await work
