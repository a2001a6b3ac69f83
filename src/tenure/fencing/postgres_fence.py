"""`PostgresFence`, over `psycopg` (both kinds of connection) and `asyncpg`.

The row of the key is locked from when it is admitted until the transaction ends. So a newer owner
waits for an older one's open transaction, and comes after it; and an older owner that comes later
finds the newer number.
"""

import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from itertools import count
from typing import Any, ClassVar

from tenure.fencing.admission import Row, Statement
from tenure.fencing.database import DatabaseFence


def _tuples(_: object) -> type[tuple[Any, ...]]:
    """Makes rows tuples, whatever the application prefers."""
    return tuple


class _PostgresConnection:
    """A connection of the application, whatever its driver."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401  # of the driver's own
        self._connection = connection


class PsycopgDriver(_PostgresConnection):
    """A connection of psycopg."""

    def transaction(self) -> AbstractContextManager[object]:
        open_one: AbstractContextManager[object] = self._connection.transaction()
        return open_one

    def first(self, statement: str, values: tuple[object, ...]) -> Row:
        cursor = self._connection.cursor(row_factory=_tuples)
        cursor.execute(statement.replace("?", "%s"), values)
        return cursor.fetchone() if cursor.description else None

    def answers(self, statements: Sequence[Statement]) -> list[list[Row]]:
        with self._connection.pipeline() if len(statements) > 1 else nullcontext():
            cursors = [
                self._connection.execute(statement.replace("?", "%s"), values)
                for statement, values in statements
            ]
        return [each.fetchall() if each.description else [] for each in cursors]


class _AwaitedPostgres(_PostgresConnection):
    def transaction(self) -> AbstractAsyncContextManager[object]:
        open_one: AbstractAsyncContextManager[object] = self._connection.transaction()
        return open_one


class _AsyncPsycopg(_AwaitedPostgres):
    async def first(self, statement: str, values: tuple[object, ...]) -> Row:
        cursor = self._connection.cursor(row_factory=_tuples)
        await cursor.execute(statement.replace("?", "%s"), values)
        return await cursor.fetchone() if cursor.description else None


class _Asyncpg(_AwaitedPostgres):
    async def first(self, statement: str, values: tuple[object, ...]) -> Row:
        numbers = count(1)
        numbered = re.sub(r"\?", lambda _: f"${next(numbers)}", statement)
        return await self._connection.fetchrow(numbered, *values)


class PostgresFence(DatabaseFence):
    """Refuses what an earlier owner of a key sends late, in a PostgreSQL database.

        async with PostgresFence(connection).admit(request.headers):  # Fenced: nothing was written
            await connection.execute(...)

    `connection` is a psycopg Connection, used with `with`; or a psycopg AsyncConnection or one of
    asyncpg, used with `async with`. A transaction that is open already is joined as a savepoint.
    """

    tables: ClassVar[tuple[str, ...]] = (
        (
            "CREATE TABLE IF NOT EXISTS tenure_fence_history ("
            "pool text PRIMARY KEY, journal text NOT NULL, past text NOT NULL)"
        ),
        (
            "CREATE TABLE IF NOT EXISTS tenure_fence (pool text, key bytea, "
            "journal text NOT NULL, number bigint NOT NULL, PRIMARY KEY (pool, key))"
        ),
    )
    _lock_read = " FOR SHARE"
    _lock_write = " FOR UPDATE"
    _blocking = {"psycopg.Connection": PsycopgDriver}  # noqa: RUF012  # never changed
    _awaited = {  # noqa: RUF012  # never changed
        "psycopg.AsyncConnection": _AsyncPsycopg,
        "asyncpg.Connection": _Asyncpg,
        "asyncpg.PoolConnectionProxy": _Asyncpg,
    }
