"""The transactions of an SQLite journal, one method each, blocking.

Every write is one `BEGIN IMMEDIATE`, which takes the write lock before it reads: what it then finds
about the seat and the end of the log holds until it commits.

There are two connections. The *main* one syncs each commit (`synchronous=FULL`). Beats go over one
that does not (`NORMAL`): a beat that a power loss undoes was seen only by processes of the same
host, which that power loss ended too. An unsynced beat does not endanger later commits: both
connections commit to one write-ahead log in order, and a sync covers the whole file.

Both copy the log back into the file (a checkpoint) once it has a thousand pages, and the next
commit then writes over it: if owners are idle there are only beats, which would otherwise lengthen
the log for ever. This costs a beat two syncs every few minutes. A write for which the disk has no
room makes a checkpoint too, so that the next one can use the room that the log already has.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Generic

from tenure.errors import JournalError, JournalUnwritable
from tenure.journals.contract import (
    FATAL,
    Beginning,
    Tail,
    WholeLog,
    check_campaign,
    went_back,
    wrong_end,
)
from tenure.journals.sqlite.errors import replaced, translated
from tenure.journals.sqlite.file import FileWatch, connect, prepare
from tenure.journals.sqlite.rows import (
    SeatRow,
    history,
    last_lsn,
    records_after,
    seat_row,
    snapshot_lsn,
    tail,
)
from tenure.protocol.log.journal import (
    AppendResult,
    Committed,
    Deposed,
    Mandate,
    R,
    S,
    Seat,
    Unknown,
)
from tenure.wire.journal_codec import JournalCodec

_WAL_BYTES = 16 << 20  # what a checkpoint leaves of the log's file, for the next records to reuse


class SqliteStore(Generic[R, S]):
    """An open journal file, for one thread."""

    def __init__(self, given: Path, codec: JournalCodec[R, S]) -> None:
        """Open the journal, make it if it is missing, and read it through. Raises as `prepare`."""
        self._path = prepare(given, codec)
        self._codec = codec
        with ExitStack() as stack, translated(self._path):
            self._main = stack.enter_context(closing(connect(self._path)))
            self._beats = stack.enter_context(closing(connect(self._path)))
            self._configure()
            self._journal = seat_row(self._main, self._path).journal
            self._watch = FileWatch(self._path)
            self._stack = stack.pop_all()

    def _configure(self) -> None:
        # macOS: its fsync alone does not reach the disk. Elsewhere these two do nothing.
        for connection in (self._main, self._beats):
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA checkpoint_fullfsync = ON")
        self._main.execute("PRAGMA synchronous = FULL")
        self._main.execute("PRAGMA journal_mode = WAL")
        self._main.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        self._beats.execute("PRAGMA synchronous = NORMAL")

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        with translated(self._path):
            self._stack.close()

    def file_bytes(self) -> int:
        """How much room the journal's files take. From any thread."""
        files = (Path(f"{self._path}{end}") for end in ("", "-wal", "-shm"))
        return sum(file.stat().st_size for file in files)

    def free_bytes(self) -> int:
        """How much room is left on their disk. From any thread."""
        return shutil.disk_usage(Path(self._path).parent).free

    def read_seat(self) -> Seat:
        with self._reading() as (_, row):
            return row.seat

    def campaign(self, seen: Seat, taken: Seat) -> Mandate | None:
        check_campaign(seen, taken)
        with self._writing(self._main) as (connection, row):
            if row.seat != seen:
                return None
            connection.execute(
                "UPDATE seat SET leadership = ?, beat = ?, manager = ?, watch_ns = ?",
                (taken.leadership, taken.beat, taken.manager, taken.watch_ns),
            )
        return Mandate(row.journal, taken.leadership)

    def beat(self, mandate: Mandate, beat: int) -> bool:
        with self._writing(self._beats) as (connection, row):
            if not row.leads(mandate):
                return False
            connection.execute("UPDATE seat SET beat = ?", (beat,))
        return True

    def resign(self, mandate: Mandate) -> None:
        with self._writing(self._main) as (connection, row):
            if row.leads(mandate):
                connection.execute("UPDATE seat SET manager = ''")

    def load(self) -> WholeLog[R, S]:
        with self._reading() as (connection, _):
            return history(connection, self._path, self._codec)

    def load_after(self, journal: int, lsn: int) -> WholeLog[R, S] | Tail[R]:
        with self._reading() as (connection, row):
            if row.journal != journal or lsn < snapshot_lsn(connection):
                return history(connection, self._path, self._codec)
            last = last_lsn(connection)
            if lsn > last:
                raise went_back(lsn, last)
            return tail(connection, self._path, self._codec, lsn)

    def append(self, mandate: Mandate, after_lsn: int, records: tuple[R, ...]) -> AppendResult:
        encoded = [self._codec.encode_record(record) for record in records]
        rows = [(after_lsn + i, mandate.leadership, data) for i, data in enumerate(encoded, 1)]
        try:
            return self._append(mandate, after_lsn, rows)
        except FATAL:
            raise
        except JournalError as error:
            return Unknown(str(error))

    def _append(
        self, mandate: Mandate, after_lsn: int, rows: list[tuple[int, int, bytes]]
    ) -> AppendResult:
        with self._writing(self._main) as (connection, row):
            if not row.leads(mandate):
                return Deposed()
            last = last_lsn(connection)
            if after_lsn == last:
                connection.executemany("INSERT INTO records VALUES (?, ?, ?)", rows)
            elif not rows or rows != records_after(connection, after_lsn, len(rows)):
                raise wrong_end(after_lsn, last, mandate.leadership)
        return Committed(after_lsn + len(rows))

    def compact(self, mandate: Mandate, lsn: int, state: S) -> bool:
        data = self._codec.encode_state(state)
        with self._writing(self._main) as (connection, row):
            if not row.leads(mandate):
                return False
            last = last_lsn(connection)
            if lsn > last:
                raise wrong_end(lsn, last, mandate.leadership)
            connection.execute(
                "UPDATE snapshot SET lsn = ?, state = ? WHERE lsn < ?", (lsn, data, lsn)
            )
            connection.execute("DELETE FROM records WHERE lsn <= ?", (lsn,))
        return True

    def restore(self, seen: Seat, lsn: int, beginning: Beginning[S]) -> bool:
        data, seat = self._codec.encode_state(beginning.state), beginning.seat
        with self._writing(self._main) as (connection, row):
            if row.seat != seen or last_lsn(connection) != lsn:
                return False
            connection.execute(
                "UPDATE seat SET journal = ?, leadership = ?, beat = ?, manager = ?, watch_ns = ?",
                (beginning.journal, seat.leadership, seat.beat, seat.manager, seat.watch_ns),
            )
            connection.execute("UPDATE snapshot SET lsn = ?, state = ?", (lsn, data))
            connection.execute("DELETE FROM records")
        self._journal = beginning.journal
        return True

    @contextmanager
    def _writing(
        self, connection: sqlite3.Connection
    ) -> Iterator[tuple[sqlite3.Connection, SeatRow]]:
        try:
            with self._transaction(connection, "BEGIN IMMEDIATE") as found:
                yield found
        except JournalUnwritable:
            with suppress(sqlite3.Error):  # the caller is told about the write itself
                self._main.execute("PRAGMA wal_checkpoint(PASSIVE)")
            raise

    @contextmanager
    def _transaction(
        self, connection: sqlite3.Connection, begin: str
    ) -> Iterator[tuple[sqlite3.Connection, SeatRow]]:
        self._watch.check()
        with translated(self._path):
            connection.execute(begin)
            try:
                yield connection, self._seat_row(connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                    connection.execute("ROLLBACK")
                raise
        self._watch.check()  # a write to a file that nobody will open again is not committed

    @contextmanager
    def _reading(self) -> Iterator[tuple[sqlite3.Connection, SeatRow]]:
        with self._transaction(self._main, "BEGIN") as found:
            yield found

    def _seat_row(self, connection: sqlite3.Connection) -> SeatRow:
        row = seat_row(connection, self._path)
        if row.journal != self._journal:  # overwritten in place, with another journal
            raise replaced(self._path)
        return row
