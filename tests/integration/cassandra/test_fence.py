"""Rows that only the holder of a lease changes, on Cassandra: a lightweight transaction a write."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tenure.base.keys import hashed_key
from tenure.columns.backends.cassandra.driver import CassandraDriver, Level
from tenure.columns.backends.cassandra.statements import Cql
from tenure.columns.opening import StoreOpening, open_store
from tenure.columns.owned_rows import OwnedRow, OwnedRows
from tenure.columns.paths import DELETE
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.errors import LeaseLost, Unsupported, WriteUnknown
from tests.integration.cassandra.cql_server import (
    DRIVER_OPTIONS,
    WRITE_TIMEOUT,
    SmallServer,
    small_server,
)

ROOMS = Table(
    "rooms",
    kind="hashed",
    fenced_by="rooms",
    state=Family(columns=str),
    lines=Family(supers=str, columns=int),
)


class GivenLease:
    """A lease as a manager may give it."""

    pool = "rooms"
    key = hashed_key("attic")

    def __init__(self, number: int, journal: int = 7) -> None:
        self.number = number
        self.journal = journal


@pytest.fixture
def server() -> Iterator[SmallServer]:
    with small_server() as running:
        running.keyspace = f"k{uuid4().hex}"
        yield running


def opening(server: SmallServer, *tables: Table, fence: str = "lwt") -> StoreOpening:
    return open_store(
        f"cassandra:127.0.0.1:{server.port}/{server.keyspace}",
        *(tables or (ROOMS,)),
        create=True,
        fence=fence,  # type: ignore[arg-type]
        driver=DRIVER_OPTIONS,
    )


async def row_of(store: ColumnStore, number: int, journal: int = 7) -> OwnedRow:
    return await OwnedRows(store, ROOMS).load(GivenLease(number, journal), "attic")


async def topic(store: ColumnStore) -> bytes | None:
    found = await store.get(ROOMS, "attic", "state", "topic")
    return found.value if found else None


@pytest.mark.asyncio
async def test_what_an_owner_writes_is_there_for_the_next(server: SmallServer) -> None:
    async with opening(server) as store:
        first = await row_of(store, 1)
        await first.insert({"state": {"topic": b"tea", "old": b""}, "lines": {"ann": {1: b"hi"}}})
        await first.insert({"state": {"old": DELETE}})
        second = await row_of(store, 2)
        assert [each.name for each in second.get("state")] == ["topic"]
        assert second.get("lines", "ann", 1).value == b"hi"


@pytest.mark.asyncio
async def test_a_former_owners_late_write_is_refused_and_changes_nothing(
    server: SmallServer,
) -> None:
    async with opening(server) as store:
        former = await row_of(store, 1)
        await former.insert({"state": {"topic": b"tea"}})
        present = await row_of(store, 5)
        with pytest.raises(LeaseLost):
            await former.insert({"state": {"topic": b"late"}})
        with pytest.raises(LeaseLost):
            await former.delete()
        assert await topic(store) == b"tea"
        await present.insert({"state": {"topic": b"milk"}})
        with pytest.raises(LeaseLost):
            await row_of(store, 4)
        assert await topic(store) == b"milk"


@pytest.mark.asyncio
async def test_the_same_number_of_another_journal_is_another_lease(server: SmallServer) -> None:
    async with opening(server) as store:
        await (await row_of(store, 5)).insert({"state": {"topic": b"tea"}})
        with pytest.raises(LeaseLost):
            await row_of(store, 5, journal=8)
        await (await row_of(store, 6, journal=8)).insert({"state": {"topic": b"milk"}})
        assert await topic(store) == b"milk"


@pytest.mark.asyncio
async def test_of_two_that_load_at_once_the_later_lease_wins(server: SmallServer) -> None:
    async with opening(server) as one, opening(server) as other:
        loads = (row_of(each, number) for each, number in ((one, 1), (other, 2)))
        came = await asyncio.gather(*loads, return_exceptions=True)
        assert isinstance(came[1], OwnedRow)
        await came[1].insert({"state": {"topic": b"tea"}})
        if isinstance(came[0], OwnedRow):
            with pytest.raises(LeaseLost):
                await came[0].insert({"state": {"topic": b"late"}})
        assert await topic(other) == b"tea"


@pytest.mark.asyncio
async def test_deleting_the_row_leaves_its_fence(server: SmallServer) -> None:
    async with opening(server) as store:
        former = await row_of(store, 1)
        present = await row_of(store, 2)
        await present.insert({"state": {"topic": b"tea"}, "lines": {"ann": {1: b""}}})
        await present.delete()
        assert present.get("state").columns == ()
        with pytest.raises(LeaseLost):
            await former.insert({"state": {"topic": b"late"}})
        assert await topic(store) is None


@pytest.mark.asyncio
async def test_a_write_whose_answer_is_lost_is_repeated_first(server: SmallServer) -> None:
    async with opening(server) as store:
        row = await row_of(store, 1)
        server.fails = lambda text: WRITE_TIMEOUT if "IF fence = ?" in text else None
        with pytest.raises(WriteUnknown):
            await row.insert({"state": {"topic": b"tea"}})
        server.fails = lambda _: None
        await row.insert({"state": {"mood": b"calm"}})
        assert await topic(store) == b"tea"
        assert row.get("state", "topic").value == b"tea"


@pytest.mark.asyncio
async def test_a_write_that_is_carried_out_late_hides_nothing_that_came_after_it(
    server: SmallServer,
) -> None:
    """A node that stood still has it in its socket. Its owner has repeated it meanwhile, at another
    node, and written on; the server draws the times, so the late one would be the newest.
    """
    async with opening(server) as store:
        row = await row_of(store, 1)
        server.holds = lambda text: "IF fence = ?" in text
        with pytest.raises(WriteUnknown):
            await row.insert({"state": {"topic": b"tea"}})
        server.holds = lambda _: False
        await row.insert({"state": {"topic": b"milk"}})
        server.let_go()
        assert await topic(store) == row.get("state", "topic").value == b"milk"


@pytest.mark.asyncio
async def test_a_write_that_was_applied_is_not_applied_again(server: SmallServer) -> None:
    """Its repeat finds that its turn is over. So does any other holder of the lease whose clock is
    behind, and it draws a later time.
    """
    async with opening(server) as one, opening(server) as other:
        row = await row_of(one, 1)
        server.fails = lambda text: WRITE_TIMEOUT if "IF fence = ?" in text else None
        with pytest.raises(WriteUnknown):
            await row.insert({"state": {"topic": b"tea"}})
        server.fails = lambda _: None
        at = (await one.get(ROOMS, "attic", "state", "topic")).version
        await row.insert({"state": {"mood": b"calm"}})
        assert (await one.get(ROOMS, "attic", "state", "topic")).version == at
        await other.backend.close()  # it is opened again, under another clock
        behind = ColumnStore(other.backend, other.tables, lambda: 1)
        await behind.open()
        await (await row_of(behind, 1)).insert({"state": {"topic": b"milk"}})
        assert await topic(one) == b"milk"


@pytest.mark.asyncio
async def test_what_is_promised_is_read_with_what_was_begun(
    server: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A serial read completes a transaction that a node was killed in; another one overlooks it."""
    execute, levels = CassandraDriver.execute, set()

    async def noted(driver: CassandraDriver, said: Cql, level: Level = "quorum", **how: Any) -> Any:  # noqa: ANN401
        if said.text.startswith("SELECT fence"):
            levels.add(level)
        return await execute(driver, said, level, **how)

    monkeypatch.setattr(CassandraDriver, "execute", noted)
    async with opening(server) as store:
        await (await row_of(store, 1)).insert({"state": {"topic": b"tea"}})
        await row_of(store, 2)
    assert levels == {"serial"}


@pytest.mark.asyncio
async def test_no_statement_of_a_fenced_table_has_a_time_of_ours(server: SmallServer) -> None:
    async with opening(server) as store:
        row = await row_of(store, 1)
        server.statements.clear()
        await row.insert({"state": {"topic": b"tea"}})
        await row.delete("state", "topic")
    written = [each for each in server.statements if "rooms" in each and "SELECT" not in each]
    assert len(written) == 2
    assert all("IF fence = ?" in each and "TIMESTAMP" not in each for each in written)


@pytest.mark.asyncio
async def test_without_the_fence_or_by_time_it_is_refused_at_opening(server: SmallServer) -> None:
    with pytest.raises(Unsupported, match="open the store with fence='lwt'"):
        await opening(server, fence="").__aenter__()
    by_time = Table(
        "rooms", kind="hashed", fenced_by="rooms", log=Family(columns=int, order="time")
    )
    with pytest.raises(Unsupported, match="'log' is in the order of time"):
        await opening(server, by_time).__aenter__()
