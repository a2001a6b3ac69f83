"""A journal in an SQLite file: it survives its manager and a loss of power.

A second manager of the same host can stand by on the same file.

SQLite blocks, at least for the time of an fsync, so each journal has a thread. It has only one,
because a file takes one write at a time anyway, and because calls are then carried out in the order
made.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar

from tenure.errors import ClosedError
from tenure.journals.contract import Beginning, Tail, WholeLog
from tenure.journals.sqlite.store import SqliteStore
from tenure.protocol.log.journal import AppendResult, Mandate, R, S, Seat
from tenure.wire.journal_codec import JournalCodec

P = ParamSpec("P")
T = TypeVar("T")


class SqliteJournal(Generic[R, S]):
    """A `Journal` in a file."""

    def __init__(self, store: SqliteStore[R, S], thread: ThreadPoolExecutor) -> None:
        self._store = store
        self._thread = thread
        self._closed = False

    @classmethod
    def open(cls, path: Path, codec: JournalCodec[R, S]) -> "SqliteJournal[R, S]":
        """The journal at `path`; a missing one is made. Blocks until it is read through.

        Raises ConfigurationError for a path where none can be, and JournalError (damaged, too new,
        not writable) without having touched anything.
        """
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tenure-journal")
        try:
            return cls(thread.submit(SqliteStore, path, codec).result(), thread)
        except BaseException:
            thread.shutdown(wait=False)
            raise

    async def read_seat(self) -> Seat:
        return await self._call(self._store.read_seat)

    async def campaign(self, seen: Seat, taken: Seat) -> Mandate | None:
        return await self._call(self._store.campaign, seen, taken)

    async def beat(self, mandate: Mandate, beat: int) -> bool:
        return await self._call(self._store.beat, mandate, beat)

    async def resign(self, mandate: Mandate) -> None:
        await self._call(self._store.resign, mandate)

    async def load(self) -> WholeLog[R, S]:
        return await self._call(self._store.load)

    async def load_after(self, journal: int, lsn: int) -> WholeLog[R, S] | Tail[R]:
        return await self._call(self._store.load_after, journal, lsn)

    async def append(
        self, mandate: Mandate, after_lsn: int, records: tuple[R, ...]
    ) -> AppendResult:
        return await self._call(self._store.append, mandate, after_lsn, records)

    async def compact(self, mandate: Mandate, lsn: int, state: S) -> bool:
        return await self._call(self._store.compact, mandate, lsn, state)

    async def restore(self, seen: Seat, lsn: int, beginning: Beginning[S]) -> bool:
        return await self._call(self._store.restore, seen, lsn, beginning)

    def free_bytes(self) -> int:
        """How much room is left on the disk of the journal's files."""
        return self._store.free_bytes()

    def file_bytes(self) -> int:
        """How much room the journal's files take."""
        return self._store.file_bytes()

    async def close(self) -> None:
        """Finish what was asked before, then close the file."""
        if not self._closed:
            self._closed = True
            await asyncio.wrap_future(self._thread.submit(self._store.close))
            self._thread.shutdown(wait=False)

    async def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise ClosedError("this journal is closed: open it again")
        return await asyncio.wrap_future(self._thread.submit(function, *args, **kwargs))
