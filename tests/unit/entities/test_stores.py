"""Stored state survives crashes, and no former owner changes it."""

import asyncio
import sqlite3
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure import (
    ConfigurationError,
    Entities,
    Entity,
    Fenced,
    OutcomeUnknown,
    StoreAway,
    StoreFailed,
    ValueTypeError,
    refusal,
)
from tenure.client.lease import Lease
from tenure.fencing.commit_groups import Program
from tenure.fencing.fenced_rows import DUE
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.entity.key_line import EntityCall
from tenure.routing.trying import InDoubt
from tenure.stores.opening import store_for
from tenure.stores.sql_store import SqlEntityStore
from tests.unit.entities.stage import Counter, on_stage

pytestmark = pytest.mark.asyncio


def lease(number: int, journal: int = 7) -> Lease:
    return Lease(b"", number, journal, "counters")


async def opened(url: str) -> SqlEntityStore:
    found = await store_for(url)("counters", "hashed")
    assert isinstance(found, SqlEntityStore)
    return found


def store_of(counters: Entities[Any]) -> SqlEntityStore:
    found = counters.station.host.gate.store
    assert isinstance(found, SqlEntityStore)
    return found


async def test_what_a_store_does_late_changes_nothing_any_more(store_url: str) -> None:
    """It was asked for, then it seemed to fail, and the same owner went on without it."""
    store = await opened(store_url)
    first = await store.load("a", lease(3))
    again = await store.load("a", lease(3))
    await store.save("a", lease(3), again, Envelope(3, 7, b"later"))
    with pytest.raises(Fenced):
        await store.save("a", lease(3), first, Envelope(3, 7, b"given up"))
    assert (await store.load("a", lease(3))).state == b"later"
    await store.close()


async def test_sqlite_finds_alarms_without_reading_rows_that_have_none(tmp_path: Path) -> None:
    store = await opened(f"sqlite:{tmp_path / 'store'}")
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store")) as file:
        plan = file.execute(f"EXPLAIN QUERY PLAN {DUE}", (b"",)).fetchall()
    assert [each[-1].partition(" (")[0] for each in plan] == [
        "SEARCH tenure_entity USING INDEX tenure_entity_alarms"
    ]


async def test_a_file_that_another_one_is_making_is_waited_for(tmp_path: Path) -> None:
    """SQLite itself does not wait for this lock."""
    path = tmp_path / "store"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TABLE something (n)")
    other.execute("BEGIN IMMEDIATE")
    opening = asyncio.create_task(opened(f"sqlite:{path}"))
    await asyncio.wait([opening], timeout=0.1)
    assert not opening.done()
    other.execute("COMMIT")
    await (await opening).close()
    other.close()


async def test_a_store_of_another_pool_is_refused(store_url: str) -> None:
    await (await opened(store_url)).close()
    with pytest.raises(ConfigurationError, match="of its own"):
        await store_for(store_url)("rooms", "hashed")
    with pytest.raises(ConfigurationError, match="which is hashed"):
        await store_for(store_url)("counters", "ordered")


async def test_a_store_in_a_later_layout_is_refused_before_anything_is_read(store_url: str) -> None:
    """A release with another layout says so beside the kind of the pool, where all of them look."""
    store = await opened(store_url)

    def change() -> Program[None]:
        yield "UPDATE tenure_entity_pool SET kind = 'hashed, layout 2'", ()

    await store._ask(change)
    await store.close()
    with pytest.raises(ConfigurationError, match="which is hashed, layout 2, and cannot"):
        await opened(store_url)


@pytest.mark.parametrize("url", ["", "sqlite:", "sqlite:\0", "mysql://x", 7])
async def test_what_is_no_store_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="store is"):
        store_for(url)


@pytest.mark.parametrize("url", ["postgresql://[::bad", "postgresql://h/x?nonsense=1"])
async def test_what_no_driver_reads_as_a_database_is_refused(url: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(ConfigurationError, match="is not the URL of a PostgreSQL database"):
        store_for(url)


async def test_a_store_that_is_away_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="unable to open"):
        await opened(f"sqlite:{tmp_path / 'nowhere' / 'store'}")
    with pytest.raises(StoreFailed):
        await opened("postgresql://127.0.0.1:1/nothing")


async def test_with_a_store_a_crash_loses_nothing_that_was_answered(any_store_url: str) -> None:
    async with on_stage(1, store=any_store_url) as stage:
        (one,) = stage.members
        keys = [f"key-{i}" for i in range(12)]
        for key in keys:
            assert await stage.done(one[key].add(3)) == 3
        await stage.crash(one)
        two = await stage.enter(store=any_store_url)
        assert [await stage.done(two[key].add(1)) for key in keys] == [4] * 12


async def test_a_key_that_moves_finds_its_state_and_a_late_owner_is_refused(
    shared_store_url: str,
) -> None:
    async with on_stage(2, store=shared_store_url) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        assert await stage.done(one[key].add(1)) == 1
        gate = one.station.host.gate
        before = one.station.owner.check(key)
        assert before is not None
        assert gate.store is not None
        stored = one.station.host._live[key].stored
        await stage.move(key, two)
        assert await stage.done(two[key].add(1)) == 2
        with pytest.raises(Fenced):
            await stage.done(gate.store.save(key, before, stored, stored))
        await stage.move(key, one)
        assert await stage.done(two[key].add(1)) == 3


async def test_a_store_that_is_full_is_told_and_nothing_is_half_kept(tmp_path: Path) -> None:
    async with on_stage(1, store=f"sqlite:{tmp_path / 'store'}") as stage:
        (counters,) = stage.members
        await stage.done(counters["a"].add(1))
        other = sqlite3.connect(tmp_path / "store", isolation_level=None)
        other.execute(
            "CREATE TRIGGER full BEFORE UPDATE OF data ON tenure_entity BEGIN "
            "SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
        with pytest.raises(StoreFailed, match="disk is full"):
            await stage.done(counters["a"].add(1))
        assert await stage.done(counters["a"].value()) == 1
        other.execute("DROP TRIGGER full")
        other.close()
        assert await stage.done(counters["a"].add(1)) == 2


class Refuses(sqlite3.OperationalError):
    """As a database does to which nobody can connect."""


def refuse(store: SqlEntityStore, patched: pytest.MonkeyPatch) -> None:
    def connect() -> object:
        raise Refuses("connection refused")

    store._database.drop()
    patched.setattr(store._database, "_connect", connect)


async def test_while_a_store_refuses_the_connection_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients may send all of it again. The log says when it begins, and when it ends."""
    async with on_stage(1, store=f"sqlite:{tmp_path / 'store'}") as stage:
        (counters,) = stage.members
        assert await stage.done(counters["a"].add(1)) == 1
        store = store_of(counters)
        with monkeypatch.context() as patched:
            refuse(store, patched)
            with pytest.raises(StoreFailed):  # it was under way, and may have acted elsewhere
                await stage.done(counters["a"].add(1))
            for key in ("a", "b", "c", "a"):
                with pytest.raises(StoreAway, match="nothing was begun: connection") as raised:
                    await stage.done(counters[key].add(1))
                answer = refusal(raised.value)
                assert answer is not None
                assert (answer.status, answer.headers["Tenure-Outcome"]) == (503, "not-begun")
            with pytest.raises(StoreAway):
                await stage.done(counters["b"].value())
        assert [await stage.done(counters[key].add(1)) for key in "abc"] == [2, 1, 1]
    said = [each for each in caplog.messages if each.startswith("the store of")]
    assert len(said) == 2, said
    assert "cannot be asked, so calls are refused and alarms wait" in said[0]
    assert "answers again" in said[1]


async def test_a_fence_above_a_held_lease_is_told_at_once_and_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the managers lost their journal: to repeat the call would help nobody."""
    async with on_stage(1, store=f"sqlite:{tmp_path / 'store'}") as stage:
        (counters,) = stage.members

        async def refuse_it(key: str | int, lease: Lease) -> Envelope:
            raise Fenced("of a later journal: here is the way out")

        with monkeypatch.context() as patched:
            patched.setattr(store_of(counters), "load", refuse_it)
            with pytest.raises(StoreAway, match=r"nothing was begun: .*here is the way out"):
                await stage.done(counters["a"].add(1))
        assert await stage.done(counters["a"].add(1)) == 1


async def test_an_entity_that_is_at_work_begins_nothing_while_its_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state is here, and could be changed; but it could not be kept."""
    async with on_stage(1, store=f"sqlite:{tmp_path / 'store'}") as stage:
        (counters,) = stage.members
        for key in "ab":
            await stage.done(counters[key].add(1))
        store = store_of(counters)
        with monkeypatch.context() as patched:
            refuse(store, patched)
            with pytest.raises(StoreFailed):
                await stage.done(counters["a"].add(1))
            with pytest.raises(StoreAway):
                await stage.done(counters["b"].add(1))
        assert [await stage.done(counters[key].add(1)) for key in "ab"] == [2, 2]


async def test_what_an_earlier_attempt_may_have_done_is_not_called_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_stage(1, store=f"sqlite:{tmp_path / 'store'}") as stage:
        (counters,) = stage.members
        await stage.done(counters["a"].add(1))
        caller, attempts = counters.station.caller, [InDoubt("the connection broke")]

        async def attempt(*_: object) -> InDoubt:
            if attempts:
                return attempts.pop()
            raise StoreAway("the store cannot be asked")

        monkeypatch.setattr(caller, "_attempt", attempt)
        with pytest.raises(OutcomeUnknown, match="could not be repeated: the store cannot"):
            await stage.done(caller._ask(EntityCall("a", b"i", "add", b""), None))


async def test_what_may_be_stored_or_not_is_read_again(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the next call would save below what the store has, and be refused for ever."""
    async with on_stage(1, store=store_url) as stage:
        (counters,) = stage.members
        assert await stage.done(counters["a"].add(1)) == 1
        store = store_of(counters)
        save = store.save

        async def save_and_say_nothing(
            key: str | int, lease: Lease, stored: Envelope, kept: Envelope
        ) -> Envelope:
            await save(key, lease, stored, kept)
            raise StoreFailed("its answer was lost")

        with monkeypatch.context() as patched:
            patched.setattr(store, "save", save_and_say_nothing)
            with pytest.raises(StoreFailed, match="answer was lost"):
                await stage.done(counters["a"].add(1))
        assert await stage.done(counters["a"].value()) == 2
        assert await stage.done(counters["a"].add(1)) == 3


def rows(store: SqlEntityStore) -> Awaitable[int]:
    def count() -> Program[int]:
        [(found,)] = yield "SELECT count(*) FROM tenure_entity", ()
        return int(found)

    return store._do(count)


async def test_a_store_does_not_grow_by_keys_of_which_nothing_is_kept(store_url: str) -> None:
    store = await opened(store_url)
    async with on_stage(1, store=store_url, limit=10) as stage:
        (counters,) = stage.members
        host = counters.station.host
        for i in range(30):
            assert await stage.done(counters[f"key-{i}"].value()) == 0
        await stage.done(counters["kept"].add(1))
        host.passivate(float("inf"))
        await stage.done(host.tidy())
        assert await rows(store) == 1
        assert await stage.done(counters["key-3"].add(1)) == 1
        host.passivate(float("inf"))
        await stage.done(host.tidy())
        assert await rows(store) == 2
        assert await stage.done(counters["key-3"].value()) == 1
    await store.close()


class More(msgspec.Struct):
    value: int = 0
    log: list[str] = []
    new: str = "default"


class Later(Entity[More]):
    async def both(self) -> tuple[int, str]:
        return self.state.value, self.state.new


class Other(msgspec.Struct):
    value: str = ""


class Wrong(Entity[Other]):
    async def value(self) -> str:
        return self.state.value


async def test_state_of_an_older_class_is_read_with_defaults_or_refused(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'store'}"
    async with on_stage(1, kind=Counter, store=store) as stage:
        await stage.done(stage.members[0]["a"].add(5))
        await stage.leave(stage.members[0])
        later = await stage.enter(kind=Later, store=store)
        assert await stage.done(later["a"].both()) == (5, "default")
        await stage.leave(later)
        wrong = await stage.enter(kind=Wrong, store=store)
        with pytest.raises(ValueTypeError, match="another version"):
            await stage.done(wrong["a"].value())
