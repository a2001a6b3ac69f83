"""Stored state survives crashes, and no former owner changes it."""

import asyncio
import sqlite3
from collections.abc import Awaitable
from pathlib import Path

import msgspec
import pytest

from tenure import (
    ConfigurationError,
    Entity,
    Fenced,
    OutcomeUnknown,
    StoreAway,
    StoreFailed,
    ValueTypeError,
    refusal,
)
from tenure.base.ranges import WHOLE, KeyRange
from tenure.client.lease import Lease
from tenure.entities.stores import EntityStore, store_for
from tenure.fencing.commit_groups import Program
from tenure.fencing.fenced_rows import EmptyRow
from tenure.protocol.entity.envelope import Envelope, SetAlarm
from tenure.protocol.entity.key_line import EntityCall
from tenure.routing.trying import InDoubt
from tests.unit.entities.stage import Counter, on_stage

pytestmark = pytest.mark.asyncio


def lease(number: int, journal: int = 7) -> Lease:
    return Lease(b"", number, journal, "counters")


async def opened(url: str) -> EntityStore:
    return await store_for(url)("counters", "hashed")


async def test_a_store_keeps_what_was_saved_and_refuses_older_leases(store_url: str) -> None:
    one, two = await opened(store_url), await opened(store_url)
    empty = await one.load("a", lease(3))
    assert empty == Envelope(step=1)
    kept = Envelope(3, 7, b"state", 1.5, (), {"run": SetAlarm(9.0, 9.5, 1)}, step=2)
    await one.save("a", lease(3), kept)
    assert await two.load("a", lease(5)) == msgspec.structs.replace(kept, step=3)
    with pytest.raises(Fenced):
        await one.save("a", lease(3), Envelope(3, 7, b"late", step=4))
    with pytest.raises(Fenced):
        await one.load("a", lease(4))
    assert await two.load("a", lease(5)) == msgspec.structs.replace(kept, step=4)
    for each in (one, two):
        await each.close()


async def test_what_a_store_does_late_changes_nothing_any_more(store_url: str) -> None:
    """It was asked for, then it seemed to fail, and the same owner went on without it."""
    store = await opened(store_url)
    first = await store.load("a", lease(3))
    again = await store.load("a", lease(3))
    await store.save("a", lease(3), Envelope(3, 7, b"later", step=again.step + 1))
    with pytest.raises(Fenced):
        await store.save("a", lease(3), Envelope(3, 7, b"given up", step=first.step + 1))
    assert (await store.load("a", lease(3))).state == b"later"
    await store.close()


async def test_the_first_lease_of_a_new_journal_ends_the_old_one(store_url: str) -> None:
    one, two = await opened(store_url), await opened(store_url)
    await one.load("a", lease(30))
    await one.save("a", lease(30), Envelope(30, 7, b"state", step=2))
    found = await two.load("a", lease(1, journal=8))
    assert found.state == b"state"
    with pytest.raises(Fenced, match="later journal"):
        await one.save("a", lease(30), Envelope(30, 7, b"late", step=3))
    with pytest.raises(Fenced, match="later journal"):
        await one.load("b", lease(31))
    await two.save("a", lease(1, journal=8), Envelope(1, 8, b"new", step=found.step + 1))
    for each in (one, two):
        await each.close()


async def test_alarms_are_found_by_range(store_url: str) -> None:
    store = await opened(store_url)
    for i in range(20):
        await store.load(i << 56, lease(1))
        alarms = {"run": SetAlarm(float(i), float(i))} if i % 2 else {}
        await store.save(i << 56, lease(1), Envelope(1, 7, b"", 0.0, (), alarms, step=2))
    assert len(await store.due_within([WHOLE])) == 10
    part = KeyRange(bytes([4]), bytes([8]))
    assert sorted(await store.due_within([part])) == [(5 << 56, 5.0), (7 << 56, 7.0)]
    await store.close()


async def test_two_open_one_store_at_once(store_url: str) -> None:
    for each in await asyncio.gather(*(opened(store_url) for _ in range(4))):
        await each.close()


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


async def test_with_a_store_a_crash_loses_nothing_that_was_answered(store_url: str) -> None:
    async with on_stage(2, store=store_url) as stage:
        one, two = stage.members
        keys = [f"key-{i}" for i in range(12)]
        for key in keys:
            assert await stage.done(one[key].add(3)) == 3
        await stage.crash(one)
        assert [await stage.done(two[key].add(1)) for key in keys] == [4] * 12


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


def refuse(store: EntityStore, patched: pytest.MonkeyPatch) -> None:
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
        store = counters.station.host.gate.store
        assert store is not None
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


async def test_an_entity_that_is_at_work_begins_nothing_while_its_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state is here, and could be changed; but it could not be kept."""
    async with on_stage(1, store=f"sqlite:{tmp_path / 'store'}") as stage:
        (counters,) = stage.members
        for key in "ab":
            await stage.done(counters[key].add(1))
        store = counters.station.host.gate.store
        assert store is not None
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
        store = counters.station.host.gate.store
        assert store is not None
        save = store.save

        async def save_and_say_nothing(key: str | int, lease: Lease, kept: Envelope) -> None:
            await save(key, lease, kept)
            raise StoreFailed("its answer was lost")

        with monkeypatch.context() as patched:
            patched.setattr(store, "save", save_and_say_nothing)
            with pytest.raises(StoreFailed, match="answer was lost"):
                await stage.done(counters["a"].add(1))
        assert await stage.done(counters["a"].value()) == 2
        assert await stage.done(counters["a"].add(1)) == 3


def rows(store: EntityStore) -> Awaitable[int]:
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


async def test_an_older_lease_writes_nothing_where_there_is_no_row_any_more(store_url: str) -> None:
    store = await opened(store_url)
    early = await store.load("a", lease(3))
    late = await store.load("a", lease(5))
    await store.forget([EmptyRow("a", 3, early.step), EmptyRow("a", 5, late.step + 1)])
    assert await rows(store) == 1, "somebody has used it since"
    await store.forget([EmptyRow("a", 5, late.step)])
    assert await rows(store) == 0
    with pytest.raises(Fenced):
        await store.save("a", lease(3), Envelope(3, 7, b"late", step=early.step + 1))
    assert (await store.load("a", lease(5))).state == b""
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
