"""The same store for programs without coroutines: each call waits.

The store runs in a loop in a thread of its own, and every call is handed to that loop: there is one
implementation, and any number of threads may call.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from threading import Thread
from typing import Any, TypeVar

from tenure.columns.backends.contract import Consistency
from tenure.columns.results import Row
from tenure.columns.store import FIRST, ColumnStore
from tenure.columns.tables import Table
from tenure.columns.writes import RowWrite
from tenure.protocol.replication.versions import Version

T = TypeVar("T")


class BlockingStore:
    """A `ColumnStore` whose calls wait for their outcome; from any thread."""

    def __init__(self, store: ColumnStore) -> None:
        self.store = store
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name="tenure-columns", daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def open(self) -> None:
        """Be ready; see `open_store`."""
        self._thread.start()
        try:
            self.wait(self.store.open())
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        """Let go of everything."""
        try:
            self.wait(self.store.close())
        finally:
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome of what the store does in its loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def insert(
        self,
        table: Table,
        key: object,
        mutation: Mapping[str, Any],
        *,
        timestamp: int | None = None,
        consistency: Consistency | None = None,
    ) -> Version:
        """See `ColumnStore.insert`."""
        self.store.check_process()
        write = self.store.insert(
            table, key, mutation, timestamp=timestamp, consistency=consistency
        )
        return self.wait(_awaited(write))

    def delete(
        self,
        table: Table,
        key: object,
        *path: object,
        timestamp: int | None = None,
        consistency: Consistency | None = None,
    ) -> Version:
        """See `ColumnStore.delete`."""
        self.store.check_process()
        write = self.store.delete(table, key, *path, timestamp=timestamp, consistency=consistency)
        return self.wait(_awaited(write))

    def get(self, table: Table, key: object, *path: object, **how: Any) -> Any:  # noqa: ANN401
        """See `ColumnStore.get`."""
        self.store.check_process()
        return self.wait(self.store.get(table, key, *path, **how))

    def scan(
        self,
        table: Table,
        *,
        start: object = None,
        end: object = None,
        reverse: bool = False,
        within: int = FIRST,
        consistency: Consistency = "quorum",
    ) -> Iterator[Row]:
        """See `ColumnStore.scan`."""
        self.store.check_process()
        rows = self.store.scan(
            table, start=start, end=end, reverse=reverse, within=within, consistency=consistency
        )
        while True:
            try:
                yield self.wait(_next(rows))
            except StopAsyncIteration:
                return

    def warm(self, table: Table, key: object, *families: str) -> None:
        """See `ColumnStore.warm`."""
        self.store.check_process()
        self.wait(self.store.warm(table, key, *families))


async def _awaited(write: RowWrite) -> Version:
    return await write


async def _next(rows: Any) -> Row:  # noqa: ANN401 - an asynchronous iterator
    row: Row = await anext(rows)
    return row
