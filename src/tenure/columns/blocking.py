"""The store for programs without coroutines: each call blocks.

The store runs in an event loop in a thread of its own, and every call goes to that loop. So there
is one implementation, and any number of threads may call it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from tenure.base.names import shown
from tenure.columns.owned_rows import ROWS, HeldLease, OwnedRow, OwnedRows
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table
from tenure.errors import ConfigurationError
from tenure.runtime.loops import LoopThread

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class Blocking(Generic[S]):
    """Wraps an object with coroutines for use in threads."""

    def __init__(self, store: ColumnStore, thread: LoopThread, form: S) -> None:
        self.store = store
        self.thread = thread
        self.form = form
        """The object with coroutines. It is called only in its loop."""

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.thread.run(work)


def waiting(
    method: Callable[Concatenate[S, P], Awaitable[T]],
) -> Callable[Concatenate[Blocking[S], P], T]:
    """A blocking method, which waits for the result of `method` with the same arguments."""

    @wraps(method)
    def call(blocking: Blocking[S], /, *arguments: P.args, **named: P.kwargs) -> T:
        async def called() -> T:
            return await method(blocking.form, *arguments, **named)

        blocking.store.check()
        return blocking.wait(called())

    return call


def iterating(
    method: Callable[Concatenate[S, P], AsyncIterator[T]],
) -> Callable[Concatenate[Blocking[S], P], Iterator[T]]:
    """The same of a method whose results are iterated over."""

    @wraps(method)
    def call(blocking: Blocking[S], /, *arguments: P.args, **named: P.kwargs) -> Iterator[T]:
        blocking.store.check()
        results = method(blocking.form, *arguments, **named)
        while True:
            try:
                yield blocking.wait(_next(results))
            except StopAsyncIteration:
                return

    return call


async def _next(results: AsyncIterator[T]) -> T:
    return await anext(results)


class BlockingStore(Blocking[ColumnStore]):
    """A `ColumnStore` whose calls wait for their outcome; from any thread."""

    def __init__(self, store: ColumnStore) -> None:
        super().__init__(store, LoopThread("tenure columns"), store)

    def open(self) -> None:
        self.thread.start()
        try:
            self.wait(self.store.open())
        except BaseException:
            self.thread.end()
            raise

    def close(self) -> None:
        if not self.store.is_ours:
            return
        try:
            self.wait(self.store.close())
        finally:
            self.thread.end()

    insert = waiting(ColumnStore.insert)
    delete = waiting(ColumnStore.delete)
    get = waiting(ColumnStore.get)
    warm = waiting(ColumnStore.warm)
    warmed = waiting(ColumnStore.warmed)

    scan = iterating(ColumnStore.scan)


class BlockingOwnedRow(Blocking[OwnedRow]):
    """An `OwnedRow` whose calls wait for their outcome; from any thread."""

    insert = waiting(OwnedRow.insert)
    delete = waiting(OwnedRow.delete)

    def get(self, *path: object) -> Any:  # noqa: ANN401 - what the path names
        """See `OwnedRow.get`. It runs in the loop, so that no write comes in between."""
        self.store.check()
        return self.wait(_got(self.form, path))


async def _got(row: OwnedRow, path: tuple[object, ...]) -> Any:  # noqa: ANN401 - as above
    return row.get(*path)


class BlockingOwnedRows(Blocking[OwnedRows]):
    """`OwnedRows` of a store that was entered with `with`: `load` waits, and so do the rows."""

    def __init__(self, store: BlockingStore, table: Table, *, limit: int = ROWS) -> None:
        if not isinstance(store, BlockingStore):
            raise ConfigurationError(
                f"BlockingOwnedRows take a store that was entered with `with`, not {shown(store)}"
            )
        super().__init__(store.store, store.thread, OwnedRows(store.store, table, limit=limit))

    def load(self, lease: HeldLease, key: str | bytes | int) -> BlockingOwnedRow:
        """The row of `key` as its owner has it, once it is adopted. Waits for that."""
        self.store.check()
        row = self.wait(self.form.load(lease, key))
        return BlockingOwnedRow(self.store, self.thread, row)
