"""Clocks that jump: writes go on, and none hides one that was acknowledged before it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tenure.base.keys import hashed_key
from tenure.client.lease import Lease
from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.owned_rows import OwnedRows
from tenure.columns.requests import RowMutation
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.columns.writes import RowWrite
from tenure.errors import ConfigurationError, WriteUnknown
from tenure.protocol.replication.row.admission import Attempt, Refused
from tenure.protocol.replication.row.limits import HORIZON_LAG_US

pytestmark = pytest.mark.asyncio

TABLE = Table("t", f=Family(columns=int))
ROOMS = Table("rooms", fenced_by="rooms", f=Family(columns=int))
YEAR_US = 365 * 86_400 * 1_000_000


class Wall:
    """The clock on the wall, which tests turn."""

    def __init__(self) -> None:
        self.now = 50 * YEAR_US

    def __call__(self) -> int:
        return self.now


@asynccontextmanager
async def opened(wall: Wall, engine: MemoryEngine) -> AsyncIterator[ColumnStore]:
    backend = EmbeddedBackend(lambda: engine, [TABLE, ROOMS], clock=wall)
    store = ColumnStore(backend, {"t": TABLE, "rooms": ROOMS}, wall)
    await store.open()
    yield store
    await store.close()


async def value(store: ColumnStore, key: str) -> Any:  # noqa: ANN401 - of a column
    found = await store.get(TABLE, key, "f", 1)
    return found.value if found else None


@pytest.mark.parametrize("is_reopened", [False, True])
async def test_a_clock_that_went_back_a_year_stops_no_write(is_reopened: bool) -> None:
    wall, engine = Wall(), MemoryEngine()
    async with opened(wall, engine) as store:
        await store.insert(TABLE, "old", {"f": {1: b"1"}})
        room = await OwnedRows(store, ROOMS).load(Lease(hashed_key("a"), 1, 1, "rooms"), "a")
        await room.insert({"f": {1: b"1"}})
        if not is_reopened:
            await _write_a_year_before(wall, store)
    if is_reopened:
        async with opened(wall, engine) as store:
            await _write_a_year_before(wall, store)


async def _write_a_year_before(wall: Wall, store: ColumnStore) -> None:
    wall.now -= YEAR_US
    for n in range(3):
        for key in ("old", f"new-{n}", "old", f"newer-{n}"):
            written = b"%d, %d" % (n, wall.now)
            await store.insert(TABLE, key, {"f": {1: written}})
            assert await value(store, key) == written
        await store.delete(TABLE, "old")
        assert await value(store, "old") is None
        wall.now += 1
    room = await OwnedRows(store, ROOMS).load(Lease(hashed_key("a"), 2, 1, "rooms"), "a")
    await room.insert({"f": {1: b"2"}})
    found = await store.get(ROOMS, "a", "f", 1)
    assert found.value == b"2"


async def test_a_write_is_repeated_after_the_clock_went_back() -> None:
    wall = Wall()
    async with opened(wall, MemoryEngine()) as store:
        write = store.insert(TABLE, "k", {"f": {1: b"1"}})
        version = await write
        wall.now -= YEAR_US
        assert await write.repeat() == version


async def test_a_clock_that_went_back_below_the_horizon_stops_no_write() -> None:
    wall, engine = Wall(), MemoryEngine()
    async with opened(wall, engine) as store:
        await store.delete(TABLE, "k")
        wall.now += 2 * HORIZON_LAG_US
        assert isinstance(store.backend, EmbeddedBackend)
        await store.backend.sweep()
    wall.now -= YEAR_US
    async with opened(wall, engine) as store:
        for key in ("k", "other"):
            await store.insert(TABLE, key, {"f": {1: b"1"}})
            assert await value(store, key) == b"1"


async def test_a_time_that_is_given_is_still_held_to_the_clock() -> None:
    wall = Wall()
    async with opened(wall, MemoryEngine()) as store:
        with pytest.raises(ConfigurationError, match="a minute ahead"):
            await store.insert(TABLE, "k", {"f": {1: b""}}, timestamp=wall.now + YEAR_US)


class Unsure(EmbeddedBackend):
    """Applies no write while it is unsure, and cannot say so."""

    is_unsure = True
    attempt: Attempt | None = None

    async def write(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        self.attempt = attempt
        if self.is_unsure:
            raise WriteUnknown("the disk did not answer")
        return await super().write(mutation, attempt)


async def test_a_repeated_write_keeps_the_time_that_it_was_given() -> None:
    """A node is also asked to merge it, and not whether it was there before: it would
    draw a time.
    """
    wall = Wall()
    backend = Unsure(MemoryEngine, [TABLE], clock=wall)
    store = ColumnStore(backend, {"t": TABLE}, wall)
    await store.open()
    with pytest.raises(WriteUnknown) as raised:
        await store.insert(TABLE, "k", {"f": {1: b"older"}}, timestamp=wall.now)
    backend.is_unsure = False
    await store.insert(TABLE, "k", {"f": {1: b"newer"}}, timestamp=wall.now + 1)
    unknown = raised.value.write
    assert isinstance(unknown, RowWrite)
    assert (await unknown.repeat()).time == wall.now
    assert backend.attempt is not None
    assert backend.attempt.kind == "merge"
    assert await value(store, "k") == b"newer"
    await store.close()
