"""What keys ask of a store at the same time is one transaction, and fails one by one."""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from tenure import Fenced, StoreAway, StoreFailed
from tenure.client.lease import Lease
from tenure.entities.sql_store import SqlEntityStore
from tenure.fencing.commit_groups import MOST_TOGETHER, Program
from tenure.fencing.database import BlockingDriver
from tenure.protocol.entity.envelope import Envelope
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
