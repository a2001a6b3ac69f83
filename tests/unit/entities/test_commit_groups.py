"""What keys ask of a store at the same time is one transaction, and fails one by one."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import msgspec
import psycopg
import pytest

from tenure import Fenced, StoreAway, StoreFailed
from tenure.client.lease import Lease
from tenure.fencing import commit_groups, databases
from tenure.fencing.commit_groups import MOST_TOGETHER, Program
from tenure.fencing.database import BlockingDriver
from tenure.protocol.entity.envelope import Envelope
from tenure.stores.sql_store import SqlEntityStore
from tests.unit.entities.store_urls import emptied
from tests.unit.entities.test_stores import lease, opened

pytestmark = pytest.mark.asyncio
KEYS = [f"key-{i}" for i in range(64)]
TOO_LONG = 5000
REFUSE_LONG = {
    "sqlite": "CREATE TRIGGER refuse_long BEFORE UPDATE ON tenure_entity "
    f"WHEN length(new.data) > {TOO_LONG} BEGIN SELECT RAISE(ABORT, 'it is too long'); END",
    "postgresql": "ALTER TABLE tenure_entity ADD CONSTRAINT refuse_long "
    f"CHECK (octet_length(data) <= {TOO_LONG})",
}


LOADED = Envelope(step=1)
"""What a store has of a key that was loaded once."""


def kept(state: bytes = b"state", number: int = 3) -> Envelope:
    return Envelope(number, 7, state)


def transactions(store: SqlEntityStore, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    begun: list[None] = []
    transaction = store._database.transaction

    @contextlib.contextmanager
    def counted() -> Iterator[BlockingDriver]:
        begun.append(None)
        with transaction() as driver:
            yield driver

    monkeypatch.setattr(store._database, "transaction", counted)
    return begun


async def outcome(store: SqlEntityStore, key: str, by: Lease, envelope: Envelope) -> object:
    try:
        await store.save(key, by, LOADED, envelope)
    except (Fenced, StoreFailed) as error:
        return error
    return None


async def test_what_waits_is_committed_together(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, later = await opened(store_url), await opened(store_url)
    begun = transactions(store, monkeypatch)
    assert {
        each.step for each in await asyncio.gather(*(store.load(k, lease(3)) for k in KEYS))
    } == {1}
    await asyncio.gather(*(store.save(key, lease(3), LOADED, kept(key.encode())) for key in KEYS))
    assert len(begun) <= 2 * (1 + -(-len(KEYS) // MOST_TOGETHER)), "the first, and those that wait"
    found = await asyncio.gather(*(later.load(key, lease(4)) for key in KEYS))
    assert [each.state for each in found] == [key.encode() for key in KEYS]
    await asyncio.gather(store.close(), later.close())


async def test_one_that_is_fenced_does_not_keep_the_others_back(store_url: str) -> None:
    store, later = await opened(store_url), await opened(store_url)
    await asyncio.gather(*(store.load(key, lease(3)) for key in KEYS))
    await later.load(KEYS[10], lease(5))
    told = await asyncio.gather(*(outcome(store, key, lease(3), kept()) for key in KEYS))
    assert [key for key, each in zip(KEYS, told, strict=True) if each is not None] == [KEYS[10]]
    assert isinstance(told[10], Fenced)
    found = await asyncio.gather(*(later.load(key, lease(6)) for key in KEYS))
    assert [KEYS[i] for i, each in enumerate(found) if each.state != b"state"] == [KEYS[10]]
    await asyncio.gather(store.close(), later.close())


async def test_one_that_the_database_refuses_fails_alone(store_url: str) -> None:
    store = await opened(store_url)
    await asyncio.gather(*(store.load(key, lease(3)) for key in KEYS))

    def refuse_long() -> Program[None]:
        yield REFUSE_LONG[store_url.partition(":")[0]], ()

    await store._do(refuse_long)
    states = [b"x" * (TOO_LONG + 1 if key == KEYS[20] else 10) for key in KEYS]
    told = await asyncio.gather(
        *(
            outcome(store, key, lease(3), kept(state))
            for key, state in zip(KEYS, states, strict=True)
        )
    )
    assert [key for key, each in zip(KEYS, told, strict=True) if each is not None] == [KEYS[20]]
    assert isinstance(told[20], StoreFailed)
    found = await asyncio.gather(*(store.load(key, lease(4)) for key in KEYS))
    assert [KEYS[i] for i, each in enumerate(found) if each.state != b"x" * 10] == [KEYS[20]]
    await store.close()


async def test_a_commit_that_fails_is_not_tried_again(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been done, and a save that is repeated would be told that it is too old."""
    store = await opened(store_url)
    await asyncio.gather(*(store.load(key, lease(3)) for key in KEYS))
    transaction = store._database.transaction
    begun: list[None] = []

    @contextlib.contextmanager
    def without_an_answer() -> Iterator[BlockingDriver]:
        begun.append(None)
        with transaction() as driver:
            yield driver
        raise store._database.errors("the connection broke")

    with monkeypatch.context() as patched:
        patched.setattr(store._database, "transaction", without_an_answer)
        told = await asyncio.gather(*(outcome(store, key, lease(3), kept()) for key in KEYS))
        assert {type(each) for each in told} == {StoreFailed}
        assert len(begun) == 2
    found = await asyncio.gather(*(store.load(key, lease(4)) for key in KEYS))
    assert {each.state for each in found} == {b"state"}
    await store.close()


async def test_a_database_that_is_away_is_asked_once_for_all(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(store_url)
    tried: list[None] = []

    def refuse() -> None:
        tried.append(None)
        raise store._database.errors("there is nobody")

    with monkeypatch.context() as patched:
        store._database.drop()
        patched.setattr(store._database, "_connect", refuse)
        told = await asyncio.gather(
            *(store.load(key, lease(3)) for key in KEYS), return_exceptions=True
        )
        assert {type(each) for each in told} == {StoreAway}
        assert len(tried) <= 3, "the first, and those that waited: together, then one of them"
    assert (await store.load("a", lease(3))).step == 1
    await store.close()


async def test_nothing_is_done_for_who_has_gone_while_it_waited(store_url: str) -> None:
    store = await opened(store_url)
    first, *others = [asyncio.ensure_future(store.load(key, lease(3))) for key in KEYS]
    await asyncio.sleep(0)
    for each in others:
        each.cancel()
    await first
    await asyncio.wait(others)
    assert [(await store.load(key, lease(3))).step for key in KEYS[:3]] == [2, 1, 1]
    await store.close()


async def test_closing_waits_for_what_was_asked(store_url: str) -> None:
    store = await opened(store_url)
    loading = [asyncio.ensure_future(store.load(key, lease(3))) for key in KEYS]
    await asyncio.sleep(0)
    await store.close()
    assert {each.result().step for each in loading} == {1}


async def test_a_store_is_opened_again_while_the_connection_of_before_is_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = databases.SqliteDatabase(str(tmp_path / "entities.db"))
    may_drop, drop = Event(), databases.SqliteDatabase.drop

    def drop_late(it: databases.SqliteDatabase) -> None:
        may_drop.wait()
        drop(it)

    monkeypatch.setattr(databases.SqliteDatabase, "drop", drop_late)
    for number in (1, 2):
        store = SqlEntityStore(database, "counters", "hashed")
        await store.open()
        assert (await store.load("ann", lease(number))).step == number
        await store.close()
    may_drop.set()


async def test_two_processes_begin_a_journal_at_once(postgres: str) -> None:
    """Both read which journal was the last, under a lock that both may have, and then write."""
    one, two = await opened(emptied(postgres)), await opened(postgres)
    for journal in range(8, 40):
        by = lease(1, journal)
        found = await asyncio.gather(*(each.load("a", by) for each in (one, two)))
        assert len(found) == 2
    await asyncio.gather(one.close(), two.close())


# --- a database that hangs ---


class Hung:
    """A program's database that does not answer before it is told to."""

    def __init__(self, store: SqlEntityStore, patched: pytest.MonkeyPatch) -> None:
        self.goes_on = Event()
        self.is_entered = Event()
        patched.setattr(commit_groups, "PATIENCE_SECONDS", 0.05)
        database = store._database
        transaction = database.transaction

        @contextlib.contextmanager
        def hanging() -> Iterator[BlockingDriver]:
            with transaction() as driver:
                yield driver
                self.is_entered.set()
                self.goes_on.wait()

        patched.setattr(database, "transaction", hanging)
        patched.setattr(database, "hang_up", lambda: None)
        patched.setattr(database, "afresh", lambda: type(database)(opened_at(store)))


def opened_at(store: SqlEntityStore) -> str:
    """What the database of a store is made of."""
    database = store._database
    found: str = getattr(database, "_path", None) or getattr(database, "_url")  # noqa: B009
    return found


async def test_a_database_that_hangs_blocks_neither_those_that_follow_nor_closing(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(store_url)
    await store.load("a", lease(3))
    with monkeypatch.context() as patched:
        hung = Hung(store, patched)
        with pytest.raises(StoreAway, match="has not answered for"):
            await store.load("b", lease(3))
    hung.goes_on.set()
    assert (await store.load("b", lease(3))).step in {1, 2}
    await store.close()


async def test_closing_does_not_wait_for_a_database_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(f"sqlite:{tmp_path / 'store'}")
    hung = Hung(store, monkeypatch)
    asked = [asyncio.ensure_future(store.load(key, lease(3))) for key in KEYS]
    await asyncio.sleep(0)
    await store.close()
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(each) for each in told} == {StoreAway}
    hung.goes_on.set()


async def test_a_row_that_somebody_has_locked_keeps_no_other_key_waiting(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "LOCK_SECONDS", 1)
    store = await opened(emptied(postgres))
    await asyncio.gather(*(store.load(key, lease(3)) for key in KEYS))
    with psycopg.connect(postgres) as other:
        other.execute(
            "SELECT * FROM tenure_entity WHERE key = %s FOR UPDATE",
            (msgspec.msgpack.encode("key-7"),),
        )
        told = await asyncio.gather(*(outcome(store, key, lease(3), kept()) for key in KEYS))
        failed = [key for key, each in zip(KEYS, told, strict=True) if each is not None]
        assert failed == ["key-7"]
    await store.close()


async def test_a_server_that_stands_still_is_left(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session waits for ever, as one to a host that is gone does."""
    store = await opened(emptied(postgres))
    await store.load("a", lease(3))
    monkeypatch.setattr(commit_groups, "PATIENCE_SECONDS", 0.2)

    def sleep() -> Program[None]:
        yield "SELECT pg_sleep(1000)", ()

    with pytest.raises(StoreFailed, match="has not answered"):
        await store._do(sleep)
    monkeypatch.undo()
    assert (await store.load("a", lease(3))).step == 2
    await store.close()
    with psycopg.connect(postgres) as other:  # it notices nothing while it sleeps
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query LIKE 'SELECT pg_sleep(%'"
        )
