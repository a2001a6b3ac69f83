"""A journal is restored when nobody uses it; otherwise the error names its user."""

import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tenure.base.instants import Instant, in_seconds
from tenure.errors import ConfigurationError, JournalDamaged, JournalError
from tenure.journals import Journal, Restorable, open_copy, open_journal
from tenure.manager.restore import RestoredCopy, read_copy, restore
from tenure.protocol.lease.records import AnyRecord, Joined, PoolCreated, State, TookOver
from tenure.protocol.lease.restoration import Vigil
from tenure.protocol.log.journal import Mandate
from tenure.testing.clock import TurnedClock
from tenure.testing.contracts.journal import lead
from tenure.wire.lease_records import LEASE_RECORDS

pytestmark = pytest.mark.asyncio


class Watcher:
    """The time and the patience of a restoration, and what others do meanwhile."""

    def __init__(self) -> None:
        self.clock = TurnedClock()
        self.told: list[float] = []
        self.meanwhile: Callable[[float], Awaitable[object] | None] | None = None

    async def pause(self, seconds: float) -> None:
        self.clock.jump(seconds)
        done = self.meanwhile(self.told[0] - self.told[-1]) if self.meanwhile else None
        if done is not None:
            await done

    async def restore(self, journal: Restorable[AnyRecord, State], copy: RestoredCopy) -> int:
        begun = await restore(journal, copy, self.told.append, clock=self.clock, pause=self.pause)
        return begun.journal


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/journal.sqlite"


@pytest_asyncio.fixture
async def manager(url: str) -> AsyncIterator[Journal[AnyRecord, State]]:
    """Yield the journal of a manager that leads."""
    journal = open_journal(url, LEASE_RECORDS)
    leadership = await lead(journal, "http://10.0.1.1:7400")
    records = (
        TookOver(leadership=leadership.leadership, promise_ns=5, manager="http://10.0.1.1:7400"),
        PoolCreated(pool="rooms", kind="hashed"),
        Joined(pool="rooms", incarnation=1, name="a", nonce=7, address="http://10.0.0.7"),
    )
    await journal.append(leadership, 0, records)
    yield journal
    await journal.close()


@pytest_asyncio.fixture
async def copy(
    manager: Journal[AnyRecord, State], url: str
) -> AsyncIterator[Restorable[AnyRecord, State]]:
    journal = open_copy(url, LEASE_RECORDS)
    yield journal
    await journal.close()


async def test_it_is_watched_then_restored(copy: Restorable[AnyRecord, State]) -> None:
    watcher, found = Watcher(), await read_copy(copy)
    identity = await watcher.restore(copy, found)
    vigil = Vigil(watcher.clock(), found.seat)
    assert watcher.told[0] == in_seconds(vigil.over_at - watcher.clock())
    assert watcher.told == sorted(watcher.told, reverse=True)
    now = await read_copy(copy)
    assert now.journal == identity != found.journal
    assert (now.lsn, now.seat.manager) == (found.lsn, "")
    assert now.history.tables["rooms"].members == {}


async def test_a_manager_that_beats_is_named(
    manager: Journal[AnyRecord, State], copy: Restorable[AnyRecord, State]
) -> None:
    watcher, found = Watcher(), await read_copy(copy)
    watcher.meanwhile = lambda passed: (
        manager.beat(Mandate(found.journal, 1), 9) if passed > 10 else None
    )
    with pytest.raises(JournalError, match=r"the manager http://10.0.1.1:7400 beats") as caught:
        await watcher.restore(copy, found)
    assert "nothing was changed" in str(caught.value)
    assert 10 < watcher.told[0] - watcher.told[-1] < 11
    assert (await read_copy(copy)).journal == found.journal
    assert await manager.beat(Mandate(found.journal, 1), 10)


async def test_one_that_beats_at_the_last_moment_is_named(
    url: str, copy: Restorable[AnyRecord, State]
) -> None:
    """After the last look, and before the change."""
    watcher, found = Watcher(), await read_copy(copy)
    over_at = Vigil(watcher.clock(), found.seat).over_at

    def clock() -> Instant:
        if watcher.clock() >= over_at:
            with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as connection, connection:
                connection.execute("UPDATE seat SET beat = beat + 1")
        return watcher.clock()

    with pytest.raises(JournalError, match=r"the manager http://10.0.1.1:7400 beats"):
        await restore(copy, found, watcher.told.append, clock=clock, pause=watcher.pause)
    assert watcher.clock() >= over_at
    assert (await read_copy(copy)).journal == found.journal


async def test_a_manager_that_stood_by_is_stopped_by_it(
    manager: Journal[AnyRecord, State], copy: Restorable[AnyRecord, State]
) -> None:
    seat = await manager.read_seat()
    await Watcher().restore(copy, await read_copy(copy))
    with pytest.raises(JournalDamaged, match="replaced while it was in use"):
        await manager.campaign(seat, msgspec.structs.replace(seat, leadership=2))


async def test_a_copy_without_pools_is_not_worth_it(tmp_path: Path) -> None:
    """Once restored, it would look like a new journal to a manager."""
    url = f"sqlite:{tmp_path}/empty.sqlite"
    await open_journal(url, LEASE_RECORDS).close()
    journal = open_copy(url, LEASE_RECORDS)
    try:
        with pytest.raises(ConfigurationError, match="knows no pool"):
            await read_copy(journal)
    finally:
        await journal.close()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("memory", "gone with its manager"),
        ("redis:localhost", "no journal is called 'redis:localhost'"),
        ("sqlite:", "no journal is called 'sqlite:'"),
        ("etcd:", "no endpoint"),
        ("etcd:http://a:1?colour=red", "does not know colour"),
    ],
)
async def test_what_cannot_be_restored_is_refused(url: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        open_copy(url, LEASE_RECORDS)


async def test_where_no_file_is_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"there is no file {tmp_path}/journal.sqlite"):
        open_copy(f"sqlite:{tmp_path}/journal.sqlite", LEASE_RECORDS)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - in a coroutine, where there is no other
