"""The tables of an SQLite journal, and how they are read back.

SQLite keeps any value in any column, and somebody may have written one: values are checked before
they are believed. `records` has one row for each LSN after that of `snapshot`; `seat` and
`snapshot` have one row.
"""

import sqlite3
from pathlib import Path
from typing import Final

import msgspec

from tenure.base.numbers import JournalId, Number
from tenure.errors import JournalDamaged
from tenure.journals.contract import Tail, WholeLog
from tenure.protocol.log.journal import Mandate, R, S, Seat
from tenure.wire.journal_codec import WAY_OUT, JournalCodec

TABLES: Final = {
    "seat": """
        CREATE TABLE seat (
            only INTEGER PRIMARY KEY CHECK (only = 1), journal INTEGER NOT NULL,
            leadership INTEGER NOT NULL, beat INTEGER NOT NULL, manager TEXT NOT NULL,
            watch_ns INTEGER NOT NULL)""",
    "snapshot": """
        CREATE TABLE snapshot (
            only INTEGER PRIMARY KEY CHECK (only = 1), lsn INTEGER NOT NULL,
            state BLOB NOT NULL)""",
    "records": """
        CREATE TABLE records (
            lsn INTEGER PRIMARY KEY, leadership INTEGER NOT NULL, record BLOB NOT NULL)""",
}


class SeatRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The seat, and which journal it is the seat of."""

    journal: JournalId
    leadership: Number
    beat: Number
    manager: str
    watch_ns: Number

    @property
    def seat(self) -> Seat:
        return Seat(self.leadership, self.beat, self.manager, self.watch_ns)

    def leads(self, mandate: Mandate) -> bool:
        has_seat = self.leadership == mandate.leadership and self.manager != ""
        return self.journal == mandate.journal and has_seat


def begin(connection: sqlite3.Connection, journal: int, state: bytes) -> None:
    """Make the tables of a new journal with that identity."""
    for statement in TABLES.values():
        connection.execute(statement)
    connection.execute("INSERT INTO seat VALUES (1, ?, 0, 0, '', 0)", (journal,))
    connection.execute("INSERT INTO snapshot VALUES (1, 0, ?)", (state,))


def seat_row(connection: sqlite3.Connection, path: Path) -> SeatRow:
    """The seat. Raises JournalDamaged."""
    row = connection.execute(
        "SELECT journal, leadership, beat, manager, watch_ns FROM seat"
    ).fetchone()
    try:
        return msgspec.convert(row, SeatRow)
    except msgspec.ValidationError as error:
        raise damaged(path, f"its seat reads {row}") from error


def history(
    connection: sqlite3.Connection, path: Path, codec: JournalCodec[R, S]
) -> WholeLog[R, S]:
    """All that was committed. Raises JournalDamaged, and JournalTooNew for a format of later."""
    journal = seat_row(connection, path).journal
    match connection.execute("SELECT lsn, state FROM snapshot").fetchone():
        case (int(lsn), bytes(data)):
            state = codec.decode_state(data, f"the snapshot of LSN {lsn} in {path}")
        case row:
            raise damaged(path, f"its snapshot is a {type(row).__name__}")
    return WholeLog(journal, state, lsn, tail(connection, path, codec, lsn).records)


def tail(
    connection: sqlite3.Connection, path: Path, codec: JournalCodec[R, S], lsn: int
) -> Tail[R]:
    """The records after `lsn`. Raises JournalDamaged."""
    records: list[R] = []
    wanted = "SELECT lsn, record FROM records WHERE lsn > ? ORDER BY lsn"
    for found, data in connection.execute(wanted, (lsn,)):
        if found != lsn + len(records) + 1:
            raise damaged(path, f"after LSN {lsn + len(records)} comes {found}")
        raw = data if isinstance(data, bytes) else b""
        records.append(codec.decode_record(raw, f"LSN {found} of {path}"))
    return Tail(lsn, tuple(records))


def snapshot_lsn(connection: sqlite3.Connection) -> int:
    """The LSN up to which a snapshot has replaced the records."""
    return max(lsn or 0 for (lsn,) in connection.execute("SELECT lsn FROM snapshot"))


def last_lsn(connection: sqlite3.Connection) -> int:
    """The LSN of the last record, also of one that a snapshot has replaced."""
    rows = connection.execute("SELECT max(lsn) FROM records UNION ALL SELECT lsn FROM snapshot")
    return max(lsn or 0 for (lsn,) in rows)


def records_after(
    connection: sqlite3.Connection, lsn: int, count: int
) -> list[tuple[int, int, bytes]]:
    """Up to `count` rows after `lsn`: LSN, leadership, record."""
    return connection.execute(
        "SELECT lsn, leadership, record FROM records WHERE lsn > ? ORDER BY lsn LIMIT ?",
        (lsn, count),
    ).fetchall()


def damaged(path: Path, what: str) -> JournalDamaged:
    """The error for impossible rows."""
    return JournalDamaged(f"the journal {path} cannot be read back: {what}. {WAY_OUT}")
