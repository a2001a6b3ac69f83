"""The fences in databases: one set of claims, through every driver."""

import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from inspect import isawaitable
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import pytest
import pytest_asyncio
from psycopg.rows import dict_row

from tenure import ConfigurationError, Fenced, Lease, PostgresFence, SqliteFence, UsageError
from tenure.errors import RemoteProtocolError
from tenure.fencing.admission import Claim
from tenure.fencing.database import DatabaseFence

pytestmark = pytest.mark.asyncio

TABLE = "CREATE TABLE written (number INTEGER)"
DROP = "DROP TABLE IF EXISTS written, tenure_fence, tenure_fence_history"


def lease(number: int, key: bytes = b"ann", journal: int = 1) -> Lease:
    return Lease(key, number, journal, "carts")


class Store:
    """A connection, its fence, and what was written, the same for every driver."""

    def __init__(self, connection: Any, fence: DatabaseFence) -> None:  # noqa: ANN401  # any driver's
        self.connection = connection
        self.fence = fence

    async def do(self, what: Any) -> Any:  # noqa: ANN401  # any driver's
        return await what if isawaitable(what) else what

    async def execute(self, statement: str) -> Any:  # noqa: ANN401  # any driver's
        return await self.do(self.connection.execute(statement))

    async def write(
        self, claim: Claim, then: Callable[[], object] = lambda: None, statement: str = ""
    ) -> None:
        number = claim.number if isinstance(claim, Lease) else Lease.of(claim).number
        statement = statement or f"INSERT INTO written VALUES ({number})"  # noqa: S608  # a number
        if self.fence._driver is None:
            async with self.fence.admit(claim):
                await self.execute(statement)
                then()
        else:
            with self.fence.admit(claim):
                self.connection.execute(statement)
                then()

    async def written(self) -> list[int]:
        statement = "SELECT number FROM written ORDER BY number"
        if isinstance(self.connection, asyncpg.Connection):
            return [row[0] for row in await self.connection.fetch(statement)]
        cursor = await self.execute(statement)
        found = [row[0] for row in await self.do(cursor.fetchall())]
        await self.do(self.connection.commit())
        return found


@asynccontextmanager
async def opened(driver: str, path: Path, url: str) -> AsyncIterator[Store]:
    """A store through that driver."""
    if driver == "sqlite3":
        connection: Any = sqlite3.connect(path)
        yield Store(connection, SqliteFence(connection))
        connection.close()
    elif driver == "aiosqlite":
        async with aiosqlite.connect(path) as connection:
            yield Store(connection, SqliteFence(connection))
    elif driver == "psycopg":
        with psycopg.connect(url) as connection:
            yield Store(connection, PostgresFence(connection))
    elif driver == "async psycopg":
        async with await psycopg.AsyncConnection.connect(url) as connection:
            yield Store(connection, PostgresFence(connection))
    else:
        parts = dict(each.split("=") for each in url.split())
        connection = await asyncpg.connect(
            host=parts["host"], user=parts["user"], database=parts["dbname"]
        )
        yield Store(connection, PostgresFence(connection))
        await connection.close()


DRIVERS = ("sqlite3", "aiosqlite", "psycopg", "async psycopg", "asyncpg")


@pytest_asyncio.fixture(params=DRIVERS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with new_store(request, tmp_path) as made:
        yield made


@asynccontextmanager
async def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    driver = request.param
    url = "" if "sqlite" in driver else request.getfixturevalue("postgres")
    async with opened(driver, tmp_path / "store.sqlite", url) as made:
        if url:
            await made.execute(DROP)
        await made.execute(TABLE)
        if driver != "asyncpg":
            await made.do(made.connection.commit())
        await made.do(made.fence.create_tables())
        await made.do(made.fence.create_tables())  # a second time does nothing
        yield made


async def test_what_is_older_than_seen_is_refused_and_nothing_is_written(store: Store) -> None:
    for number in (3, 3, 5):
        await store.write(lease(number).headers())
    with pytest.raises(Fenced, match="lease number 3 of the pool 'carts' is older than number 5"):
        await store.write(lease(3))
    await store.write(lease(1, key=b"\x00\xff"))
    assert await store.written() == [1, 3, 3, 5]


async def test_a_body_that_raises_is_rolled_back_with_its_number(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        await store.write(lease(9), lambda: 1 // 0)
    await store.write(lease(2))
    assert await store.written() == [2]


async def test_another_history_is_refused_until_it_is_declared(store: Store) -> None:
    await store.write(lease(5, journal=1))
    with pytest.raises(Fenced, match=r"say so with declare\('carts', '0000000000000002'\)"):
        await store.write(lease(9, journal=2))
    await store.do(store.fence.declare("carts", 2))
    await store.do(store.fence.declare("carts", "2"))
    await store.write(lease(1, journal=2))
    with pytest.raises(Fenced, match="which was replaced"):
        await store.write(lease(9, journal=1))
    with pytest.raises(ConfigurationError, match="was replaced before"):
        await store.do(store.fence.declare("carts", 1))
    await store.do(store.fence.declare("carts", 3))
    await store.write(lease(1, journal=3))
    assert await store.written() == [1, 1, 5]


async def test_a_history_may_be_declared_first(store: Store) -> None:
    await store.do(store.fence.declare("carts", 2))
    with pytest.raises(Fenced):
        await store.write(lease(9, journal=1))
    await store.write(lease(9, journal=2))


async def test_a_transaction_that_is_open_is_joined(store: Store) -> None:
    if isinstance(store.connection, asyncpg.Connection):
        transaction = store.connection.transaction()
        await transaction.start()
        await store.write(lease(3))
        await transaction.rollback()
    else:
        await store.execute("INSERT INTO written VALUES (0)")
        await store.write(lease(3))
        await store.do(store.connection.rollback())
    assert await store.written() == []
    await store.write(lease(1))
    assert await store.written() == [1]


async def test_rows_may_be_of_any_form(store: Store) -> None:
    """Applications choose how rows look; asyncpg has one form alone."""
    if "sqlite" in type(store.connection).__module__:
        store.connection.row_factory = lambda cursor, row: {
            column[0]: value for column, value in zip(cursor.description, row, strict=True)
        }
    elif not isinstance(store.connection, asyncpg.Connection):
        store.connection.row_factory = dict_row
    await store.write(lease(5))
    with pytest.raises(Fenced, match="older than number 5"):
        await store.write(lease(3))
    await store.do(store.fence.declare("carts", 2))
    await store.write(lease(1, journal=2))


CHILD = (
    "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
    "CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
)


@pytest.mark.parametrize("store", ["sqlite3", "aiosqlite"], indirect=True)
async def test_a_commit_that_fails_leaves_no_transaction_open(store: Store) -> None:
    """Otherwise the next write would join it, and never be committed."""
    for each in ("PRAGMA foreign_keys = ON", *CHILD):
        await store.execute(each)
    with pytest.raises(sqlite3.IntegrityError):
        await store.write(lease(3), statement="INSERT INTO child VALUES (7)")
    assert not store.connection.in_transaction
    await store.write(lease(4))
    assert not store.connection.in_transaction
    assert await store.written() == [4]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has no autocommit before")
@pytest.mark.parametrize("driver", ["sqlite3", "aiosqlite"])
async def test_a_connection_that_commits_each_statement_has_transactions(
    driver: str, tmp_path: Path
) -> None:
    path = tmp_path / "store"
    options: dict[str, Any] = {"autocommit": True}
    if driver == "sqlite3":
        connection: Any = sqlite3.connect(path, **options)
    else:
        connection = await aiosqlite.connect(path, **options)
    store = Store(connection, SqliteFence(connection))
    await store.execute(TABLE)
    await store.do(store.fence.create_tables())
    await store.write(lease(3))
    assert not connection.in_transaction
    with pytest.raises(ZeroDivisionError):
        await store.write(lease(4), lambda: 1 // 0)
    with pytest.raises(Fenced):
        await store.write(lease(2))
    assert await store.written() == [3]
    await store.do(connection.close())


async def test_the_largest_that_a_lease_can_be_fits(store: Store) -> None:
    largest = Lease(b"x" * 1024, 2**63 - 1, 2**64 - 1, "p" * 200)
    body = store.fence.admit(largest)
    if store.fence._driver is None:
        async with body:
            pass
    else:
        with body:
            pass
    with pytest.raises(Fenced):
        await store.write(Lease(b"x" * 1024, 1, 2**64 - 1, "p" * 200))


async def test_the_form_is_the_drivers(store: Store) -> None:
    if store.fence._driver is None:
        with pytest.raises(UsageError, match="this driver is awaited"), store.fence.admit(lease(1)):
            pass
    else:
        with pytest.raises(UsageError, match="this driver blocks"):
            async with store.fence.admit(lease(1)):
                pass
    with pytest.raises(RemoteProtocolError):
        store.fence.admit({})


async def test_what_is_no_connection_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"a aiosqlite\.Connection, sqlite3\.Connection"):
        SqliteFence("store.sqlite")
    with pytest.raises(ConfigurationError, match=r"asyncpg\.Connection"):
        PostgresFence(sqlite3.connect(":memory:"))
