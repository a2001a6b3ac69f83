"""Columns that Cassandra 1.2.0 lists although they were deleted, and that the store does not show.

The old server keeps a delete of a super column or a family as one entry, before everything that it
deletes. It reads a row's file from the first name of a slice on, and so overlooks that entry: it
lists columns of another file, or of memory, which the entry hides. If it is asked for one column
alone, it answers correctly.

Seed 2225344036 met this at its write 44,183, in a reversed slice, after enough rows had come for
the server to write them into files.
"""

import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from tenure.columns.backends.cassandra.backend import CassandraBackend
from tenure.columns.backends.cassandra.statements import bounds_of, slice_of
from tenure.columns.opening import open_store
from tenure.columns.store import ColumnStore
from tenure.protocol.replication.row.pages import Slice
from tests.integration.cassandra.comparing import TABLE
from tests.integration.cassandra.server import DRIVER_OPTIONS, Cassandra

SUPER: tuple[Any, ...] = ("supers", b"s")
SIMPLE: tuple[Any, ...] = ("simple",)


@pytest.fixture
def keyspace() -> str:
    return f"k{uuid4().hex}"


@pytest_asyncio.fixture
async def store(old_cassandra: Cassandra, keyspace: str) -> AsyncIterator[ColumnStore]:
    url = f"cassandra:127.0.0.1:{old_cassandra.cql_port}/{keyspace}"
    async with open_store(url, TABLE, create=True, driver=DRIVER_OPTIONS) as opened:
        yield opened


async def put(store: ColumnStore, path: tuple[Any, ...], name: bytes, at: int) -> None:
    columns = {name: b"x"}
    mutation = {"supers": {b"s": columns}} if path == SUPER else {"simple": columns}
    await store.insert(TABLE, b"row", mutation, timestamp=at)


async def listed_by_the_server(
    store: ColumnStore, path: tuple[Any, ...], *, reverse: bool
) -> list[bytes]:
    backend = store.backend
    assert isinstance(backend, CassandraBackend)
    within = (b"row", str(path[0]), path[1] if path == SUPER else b"")
    said = slice_of(TABLE, within, bounds_of(Slice(100, reverse=reverse), None), 100)
    return [name for name, value, _ in await backend._driver.execute(said, "one") if value]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "cleared", "reverse"),
    [(SUPER, SUPER, True), (SUPER, ("supers",), False), (SIMPLE, SIMPLE, False)],
    ids=["super column, reversed", "family of super columns", "simple family"],
)
async def test_what_a_delete_in_a_file_hides_is_not_in_a_page(
    store: ColumnStore,
    keyspace: str,
    old_cassandra: Cassandra,
    path: tuple[Any, ...],
    cleared: tuple[Any, ...],
    *,
    reverse: bool,
) -> None:
    early = time.time_ns() // 1_000 - 5_000_000
    await put(store, path, b"a", early + 9)
    await store.delete(TABLE, b"row", *cleared, timestamp=early + 5)
    old_cassandra.flush(keyspace)
    await put(store, path, b"m", early + 1)

    assert b"m" in await listed_by_the_server(store, path, reverse=reverse)  # the server's fault
    for first in (1, 10):
        page = await store.get(TABLE, b"row", *path, reverse=reverse, first=first)
        assert [each.name for each in page] == [b"a"]
    assert await store.get(TABLE, b"row", *path, b"m") is None
