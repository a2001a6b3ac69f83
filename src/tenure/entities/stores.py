"""What keeps entities beyond the life of their process.

A store keeps an envelope under the number of the lease of whoever writes it, and refuses whoever
has an older one: loading raises the number, so an earlier owner that was stopped in the middle
cannot write once the next one has begun. Numbers of two journals cannot be compared. A manager that
begins a new one waits until nobody can hold a lease of the one before, so the first lease of a new
journal ends the old one for good.

Loading a key of which nothing is kept makes a row, which refuses older leases. It goes when nobody
uses the key any more, so that a store does not grow by what was only asked for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from tenure.base.keys import PoolKind, key_function
from tenure.base.ranges import KeyRange
from tenure.client.lease import Lease
from tenure.entities.databases import Database, PostgresDatabase, SqliteDatabase
from tenure.errors import ConfigurationError, Fenced, StoreFailed
from tenure.protocol.entity.envelope import Envelope

T = TypeVar("T")
Key: TypeAlias = str | int
HISTORY = "SELECT journal, past FROM tenure_entity_pool"
_encode = msgspec.msgpack.Encoder().encode
_envelope: msgspec.msgpack.Decoder[Envelope] = msgspec.msgpack.Decoder(Envelope)
_key: msgspec.msgpack.Decoder[Key] = msgspec.msgpack.Decoder(str | int)


class EmptyRow(NamedTuple):
    """A row that a store has because a key was loaded, or forgotten."""

    key: Key
    number: int
    """Of the lease under which it was last loaded or saved."""
    step: int


class EntityStore(Protocol):
    """Where the entities of one pool are kept."""

    async def load(self, key: Key, lease: Lease) -> Envelope:
        """What is kept of the key, which from here on no older lease changes. Raises Fenced where
        `lease` is older itself, and StoreFailed.
        """
        ...

    async def save(self, key: Key, lease: Lease, envelope: Envelope) -> None:
        """Keep it: durable when this returns. Raises Fenced, and StoreFailed."""
        ...

    async def forget(self, rows: Iterable["EmptyRow"]) -> None:
        """Keep no row of these keys, of which nothing is kept, unless somebody has used them since.
        Raises StoreFailed.
        """
        ...

    async def alarms_within(self, ranges: Iterable[KeyRange]) -> list[tuple[Key, float]]:
        """The keys that have alarms, and when the first of each rings."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...


class SqlStore:
    """Entities of one pool in a database, which one thread talks to."""

    def __init__(self, database: Database, pool: str, kind: PoolKind) -> None:
        self._database = database
        self._pool = pool
        self._kind = kind
        self._place = key_function(kind)
        self._thread = ThreadPoolExecutor(1, "tenure store")

    async def _do(self, what: Callable[[Any], T]) -> T:
        """In one transaction. Raises StoreFailed where the database does."""

        def work() -> T:
            try:
                with self._database.transaction() as cursor:
                    return what(cursor)
            except self._database.errors() as error:
                self._database.drop()
                raise StoreFailed(
                    f"the store of {self._pool!r}, {self._database.name}, failed, and may have "
                    f"kept the last change or not: {error}"
                ) from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def open(self) -> None:
        """Create what is missing. Raises ConfigurationError where it is another pool's."""

        def look(cursor: Any) -> tuple[str, str]:  # noqa: ANN401  # of the driver's own
            for each in self._database.tables:
                cursor.execute(each)
            first = "INSERT INTO tenure_entity_pool VALUES (1, ?, ?, '', '') ON CONFLICT DO NOTHING"
            cursor.execute(self._database.sql(first), (self._pool, self._kind))
            cursor.execute("SELECT pool, kind FROM tenure_entity_pool")
            found: tuple[str, str] = cursor.fetchone()
            return found

        pool, kind = await self._do(look)
        if (pool, kind) != (self._pool, self._kind):
            raise ConfigurationError(
                f"the store {self._database.name} has the entities of the pool {pool!r}, which is "
                f"{kind}, and cannot keep those of {self._pool!r}, which is {self._kind}: give "
                "each pool a file or a database of its own"
            )

    async def load(self, key: Key, lease: Lease) -> Envelope:
        """See `EntityStore`."""
        name, place, sql = _encode(key), self._place(key), self._database.sql

        def load(cursor: Any) -> tuple[int, bytes]:  # noqa: ANN401
            self._check_history(cursor, lease, may_begin=True)
            new = "INSERT INTO tenure_entity VALUES (?, ?, 0, 0, ?, NULL) ON CONFLICT DO NOTHING"
            cursor.execute(sql(new), (name, place, b""))
            mark = (
                "UPDATE tenure_entity SET number = ?, step = step + 1 WHERE key = ? AND number <= ?"
            )
            cursor.execute(sql(mark), (lease.number, name, lease.number))
            if not cursor.rowcount:
                raise _fenced(key, lease, "a newer lease")
            cursor.execute(sql("SELECT step, data FROM tenure_entity WHERE key = ?"), (name,))
            step, data = cursor.fetchone()
            return step, bytes(data)

        step, data = await self._do(load)
        try:
            found = _envelope.decode(data) if data else Envelope()
        except ValueError as error:
            raise StoreFailed(f"what is kept of {key!r:.100} cannot be read: {error}") from None
        return msgspec.structs.replace(found, step=step)

    async def save(self, key: Key, lease: Lease, envelope: Envelope) -> None:
        """See `EntityStore`."""
        of_row = _encode(key), lease.number, envelope.step - 1
        values = lease.number, envelope.step, _encode(envelope), envelope.next_alarm(), *of_row
        statement = self._database.sql(
            "UPDATE tenure_entity SET number = ?, step = ?, data = ?, alarm = ? "
            "WHERE key = ? AND number <= ? AND step = ?"
        )

        def save(cursor: Any) -> None:  # noqa: ANN401
            self._check_history(cursor, lease, may_begin=False)
            cursor.execute(statement, values)
            if not cursor.rowcount:
                raise _fenced(key, lease, "a newer lease")

        await self._do(save)

    async def forget(self, rows: Iterable[EmptyRow]) -> None:
        """See `EntityStore`. An older lease writes nothing either where there is no row."""
        gone = [(_encode(each.key), each.number, each.step) for each in rows]
        statement = self._database.sql(
            "DELETE FROM tenure_entity WHERE key = ? AND number = ? AND step = ?"
        )
        await self._do(lambda cursor: cursor.executemany(statement, gone))

    def _check_history(self, cursor: Any, lease: Lease, *, may_begin: bool) -> None:  # noqa: ANN401
        journal = f"{lease.journal:016x}"
        cursor.execute(HISTORY + self._database.shared)
        present, past = cursor.fetchone()
        if present == journal:
            return
        if not may_begin or journal in past.split():
            raise _fenced(lease.key, lease, "a lease of a later journal")
        cursor.execute(HISTORY + self._database.alone)
        present, past = cursor.fetchone()
        if present != journal:
            now_past = f"{past} {present}".strip()
            begin = "UPDATE tenure_entity_pool SET journal = ?, past = ?"
            cursor.execute(self._database.sql(begin), (journal, now_past))
            cursor.execute("UPDATE tenure_entity SET number = 0")

    async def alarms_within(self, ranges: Iterable[KeyRange]) -> list[tuple[Key, float]]:
        """See `EntityStore`."""
        asked = list(ranges)
        some = "SELECT key, alarm FROM tenure_entity WHERE alarm IS NOT NULL AND place >= ?"

        def find(cursor: Any) -> list[tuple[bytes, float]]:  # noqa: ANN401
            found: list[tuple[bytes, float]] = []
            for each in asked:
                if each.end is None:
                    cursor.execute(self._database.sql(some), (each.start,))
                else:
                    bounded = self._database.sql(some + " AND place < ?")
                    cursor.execute(bounded, (each.start, each.end))
                found += cursor.fetchall()
            return found

        return [(_key.decode(bytes(key)), at) for key, at in await self._do(find)]

    async def close(self) -> None:
        """See `EntityStore`."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.drop)
        self._thread.shutdown(wait=False)


def _fenced(key: object, lease: Lease, by: str) -> Fenced:
    return Fenced(
        f"the store has seen {by} of {key!r:.100}, so the lease of number {lease.number} writes no "
        "more: another owner has begun meanwhile"
    )


MakeStore: TypeAlias = Callable[[str, PoolKind], Awaitable[EntityStore]]


def store_for(url: str) -> MakeStore:
    """What opens the store of this URL. Raises ConfigurationError if it names none."""
    if isinstance(url, str) and url.startswith("sqlite:") and url != "sqlite:":
        database: Database = SqliteDatabase(url.removeprefix("sqlite:"))
    elif isinstance(url, str) and url.startswith(("postgresql://", "postgres://")):
        database = PostgresDatabase(url)
    else:
        raise ConfigurationError(
            f'store is "sqlite:FILE" or "postgresql://HOST/DATABASE", not {url!r}'
        )

    async def make(pool: str, kind: PoolKind) -> EntityStore:
        store = SqlStore(database, pool, kind)
        try:
            await store.open()
        except BaseException:
            await store.close()
            raise
        return store

    return make
