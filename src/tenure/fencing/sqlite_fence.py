"""`SqliteFence`, over `sqlite3` and `aiosqlite`."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar

from tenure.fencing.admission import Row, Statement
from tenure.fencing.database import DatabaseFence

BEGIN = "BEGIN IMMEDIATE"
"""A transaction that reads before it takes the lock fails where another one writes in between."""
COMMIT, ROLLBACK = "COMMIT", "ROLLBACK"
"""As statements, since the methods do nothing for a connection with `autocommit=True`."""


class Sqlite3Driver:
    """A connection of sqlite3."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401  # of the driver's own
        self._connection = connection

    @contextmanager
    def transaction(self) -> Iterator[None]:
        connection = self._connection
        if connection.in_transaction:
            yield
            return
        connection.execute(BEGIN)
        try:
            yield
            if connection.in_transaction:  # the body has not ended it itself
                connection.execute(COMMIT)
        except BaseException:
            if connection.in_transaction:
                connection.execute(ROLLBACK)
            raise

    def first(self, statement: str, values: tuple[object, ...]) -> Row:
        cursor = self._connection.execute(statement, values)
        cursor.row_factory = None  # rows are tuples, whatever the application prefers
        return cursor.fetchone()

    def answers(self, statements: Sequence[Statement]) -> list[list[Row]]:
        execute = self._connection.execute
        return [execute(statement, values).fetchall() for statement, values in statements]


class _Aiosqlite:
    def __init__(self, connection: Any) -> None:  # noqa: ANN401  # of the driver's own
        self._connection = connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        connection = self._connection
        if connection.in_transaction:
            yield
            return
        await connection.execute(BEGIN)
        try:
            yield
            if connection.in_transaction:
                await connection.execute(COMMIT)
        except BaseException:
            if connection.in_transaction:
                await connection.execute(ROLLBACK)
            raise

    async def first(self, statement: str, values: tuple[object, ...]) -> Row:
        async with self._connection.execute(statement, values) as cursor:
            cursor.row_factory = None
            return await cursor.fetchone()


class SqliteFence(DatabaseFence):
    """Refuses what an earlier owner of a key sends late, in an SQLite database.

        with SqliteFence(connection).admit(request.headers):    # Fenced: nothing was written
            connection.execute(...)

    `connection` is one of sqlite3, or of aiosqlite, whose fence is used with `async with`. What
    reads a key in order to write it later is admitted too, so that it reads no older state than it
    will write over.
    """

    tables: ClassVar[tuple[str, ...]] = (
        (
            "CREATE TABLE IF NOT EXISTS tenure_fence_history ("
            "pool TEXT PRIMARY KEY, journal TEXT NOT NULL, past TEXT NOT NULL)"
        ),
        (
            "CREATE TABLE IF NOT EXISTS tenure_fence (pool TEXT NOT NULL, key BLOB NOT NULL, "
            "journal TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (pool, key)) WITHOUT ROWID"
        ),
    )
    _blocking = {"sqlite3.Connection": Sqlite3Driver}  # noqa: RUF012  # never changed
    _awaited = {"aiosqlite.Connection": _Aiosqlite}  # noqa: RUF012  # never changed
