"""Owned state in a store: what is refused, a store that is away, and owners of a real pool."""

import asyncio
import multiprocessing
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.contracts.stored_state import StateHolder, StoredStateContract, until
from tenure import (
    ConfigurationError,
    Fenced,
    LeaseLost,
    NotOwner,
    OwnedState,
    StoreAway,
    StoreFailed,
    refusal,
)
from tenure.base.ranges import WHOLE
from tenure.client.lease import Lease
from tenure.fencing import commit_groups
from tenure.fencing.database import BlockingDriver
from tenure.fencing.fenced_rows import EmptyRow, Key, StoredKeys
from tenure.owned_state.state import IN_A_STORE
from tenure.protocol.entity.envelope import Envelope
from tenure.stores.opening import EntityStore
from tenure.stores.sql_store import SqlEntityStore
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster
from tests.unit.owned_state.stage import copied, holder
from tests.unit.owned_state.stage import put as in_thread

holding = StoredStateContract().holding


class FailingStore:
    """A store that fails as it is told to: before anything is sent, or after."""

    def __init__(self, store: EntityStore) -> None:
        self._store = store
        self.fails = ""
        self.is_away = False
        self.hangs = threading.Event()
        self.go_on = asyncio.Event()

    async def open(self) -> None:
        """It is open."""

    async def close(self) -> None:
        await self._store.close()

    async def look(self, key: Key, /) -> None:
        if self.fails == "away":
            raise StoreAway("on purpose")
        self.is_away = False
        await self._store.look(key)

    async def load(self, key: Key, lease: Lease) -> Envelope:
        if self.fails == "away":
            self.is_away = True
            raise StoreAway("on purpose")
        if self.fails == "fenced":
            raise Fenced("a later journal's")
        return await self._store.load(key, lease)

    async def save(self, key: Key, lease: Lease, stored: Envelope, new: Envelope) -> Envelope:
        if self.fails == "unsent":
            self.is_away = True
            raise StoreFailed("was not sent, on purpose")
        kept = await self._store.save(key, lease, stored, new)
        if self.fails == "silent":
            self.is_away = True
            raise StoreFailed("nobody knows, on purpose")
        if self.fails == "hangs":
            self.hangs.set()
            await self.go_on.wait()
        return kept

    async def page(self, *asked: Any) -> Any:  # noqa: ANN401  # nothing here has items
        raise NotImplementedError

    async def keys(self, after: bytes, most: int, /) -> StoredKeys:
        return await self._store.keys(after, most)

    async def forget(self, rows: Iterable[EmptyRow], /) -> None:
        await self._store.forget(rows)

    async def due_within(self, ranges: Any) -> list[tuple[Key, float]]:  # noqa: ANN401  # as given
        return await self._store.due_within(ranges)


def failing(one: StateHolder) -> FailingStore:
    """Its store from now on."""
    store = one.values._store = FailingStore(one.store)
    return store


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'store'}"


# --- a store that fails ---------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_while_the_store_is_away_no_body_begins(store_url: str) -> None:
    async with holding(store_url, 3) as one:
        await one.put("ann", "tea")
        store = failing(one)
        store.fails = "away"
        with pytest.raises(StoreAway):
            await one.put("bob", "tea", lambda: pytest.fail("a body has begun"))
        with pytest.raises(StoreAway) as refused:
            await one.put("bob", "tea", lambda: pytest.fail("a body has begun"))
        answer = refusal(refused.value)
        assert answer is not None
        assert (answer.status, answer.headers["Tenure-Outcome"]) == (503, "not-begun")
        with pytest.raises(StoreAway):  # what is in memory could not be kept either
            await one.put("ann", "cake", lambda: pytest.fail("a body has begun"))
        store.fails = ""
        await one.put("bob", "tea")
        assert [await one.get(each) for each in ("ann", "bob")] == ["tea", "tea"]


@pytest.mark.parametrize(("how", "kept"), [("unsent", "old"), ("silent", "new")])
@pytest.mark.asyncio
async def test_what_the_store_did_not_confirm_is_read_again(
    how: str, kept: str, store_url: str
) -> None:
    async with holding(store_url, 3) as one:
        await one.put("ann", "old")
        store = failing(one)
        store.fails = how
        with pytest.raises(StoreFailed) as failed:
            await one.put("ann", "new")
        answer = refusal(failed.value)
        assert answer is not None
        assert answer.headers["Tenure-Outcome"] == "unknown"
        store.fails = ""
        assert await one.get("ann") == kept


@pytest.mark.asyncio
async def test_a_fence_above_a_held_lease_is_told_and_nothing_is_begun(store_url: str) -> None:
    """As where the managers lost their journal, and its numbers."""
    async with holding(store_url, 3) as one:
        failing(one).fails = "fenced"
        with pytest.raises(StoreAway, match=r"nothing was begun: a later journal's"):
            await one.put("ann", "tea", lambda: pytest.fail("a body has begun"))


@pytest.mark.asyncio
async def test_a_fence_above_a_lease_that_is_over_says_who_else_to_ask(store_url: str) -> None:
    async with holding(store_url, 3) as one:
        store, load = failing(one), one.store.load

        async def lost(key: Key, lease: Lease) -> Envelope:
            one.board.lapse()
            await load(key, lease)
            raise Fenced("by its successor")

        store.load = lost  # type: ignore[method-assign]
        with pytest.raises(NotOwner):
            await one.put("ann", "tea", lambda: pytest.fail("a body has begun"))


@pytest.mark.asyncio
async def test_a_turn_that_ends_after_its_lease_says_so(store_url: str) -> None:
    """What it kept counts or not: nobody may be told that it does."""
    async with holding(store_url, 3) as one:
        await one.put("ann", "old")
        store, save = failing(one), one.store.save

        async def late(key: Key, lease: Lease, stored: Envelope, new: Envelope) -> Envelope:
            kept = await save(key, lease, stored, new)
            one.lose()
            return kept

        store.save = late  # type: ignore[method-assign]
        with pytest.raises(LeaseLost):
            await one.put("ann", "new")


@pytest.mark.asyncio
async def test_closing_waits_for_nobody_and_tells_whoever_waits(store_url: str) -> None:
    async with holding(store_url, 3) as one:
        store = failing(one)
        store.fails = "hangs"
        putting = asyncio.create_task(one.put("ann", "tea"))
        await asyncio.to_thread(store.hangs.wait)
        async with asyncio.timeout(30):
            await one.state.close_store()
            with pytest.raises(StoreFailed, match="may have kept"):
                await putting


@pytest.mark.asyncio
async def test_closing_tells_whoever_waits_until_the_store_answers(store_url: str) -> None:
    async with holding(store_url, 3) as one:
        await one.put("ann", "tea")
        store, looks = failing(one), threading.Event()
        store.is_away = True

        async def hang(_: Key, /) -> None:
            looks.set()
            await store.go_on.wait()

        store.look = hang  # type: ignore[method-assign]
        putting = asyncio.create_task(one.put("ann", "cake"))
        await asyncio.to_thread(looks.wait)
        await one.state.close_store()
        with pytest.raises(StoreFailed):  # and it is not cancelled: nobody has done that
            await putting


@pytest.mark.asyncio
async def test_a_value_whose_end_was_told_too_early_goes_when_it_ends(store_url: str) -> None:
    """As where its end was moved while the ends of its range were read."""
    async with holding(store_url, 3) as one:
        async with one.state.at("ann") as it:
            it.value, it.ttl = "tea", 1.0
        sweeps = one.values.on_kept

        async def too_early() -> None:
            sweeps("ann", one.values.wall())

        await asyncio.wrap_future(one.values.submit(too_early()))
        assert await one.get("ann") == "tea"

        async def is_gone() -> bool:
            found = await asyncio.wrap_future(one.values.submit(one.store.due_within([WHOLE])))
            return not found

        await until(is_gone)


@pytest.mark.asyncio
async def test_one_key_that_hangs_keeps_no_other_back(store_url: str) -> None:
    async with holding(store_url, 3) as one:
        store = failing(one)
        store.fails = "hangs"
        putting = asyncio.create_task(one.put("ann", "tea"))
        await asyncio.to_thread(store.hangs.wait)
        assert await one.get("bob") is None
        one.values.submit(_set(store.go_on)).result()
        await putting
        assert await one.get("ann") == "tea"


class LateDatabase:
    """The database of a store, which begins what it is asked when it is told to."""

    def __init__(self, store: EntityStore, monkeypatch: pytest.MonkeyPatch) -> None:
        assert isinstance(store, SqlEntityStore)
        self.goes_on = threading.Event()
        self.has_ended = threading.Event()
        monkeypatch.setattr(commit_groups, "PATIENCE_SECONDS", 0.05)
        database = store._database
        next_one = database.afresh()
        self._transaction = database.transaction
        monkeypatch.setattr(database, "transaction", self._late)
        monkeypatch.setattr(database, "afresh", lambda: next_one)

    @contextmanager
    def _late(self) -> Iterator[BlockingDriver]:
        self.goes_on.wait()
        with self._transaction() as driver:
            yield driver
        self.has_ended.set()


@pytest.mark.asyncio
async def test_what_a_hung_database_does_after_all_changes_nothing(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also under the same lease: the turn that came after it has found the value without it."""
    async with holding(store_url, 3) as one:
        await one.put("ann", "tea")
        late = LateDatabase(one.store, monkeypatch)
        with pytest.raises(StoreFailed, match="has not answered"):
            await one.put("ann", "wine")
        monkeypatch.undo()
        assert await one.get("ann") == "tea"
        late.goes_on.set()
        await asyncio.to_thread(late.has_ended.wait)
        await one.put("bob", "milk")
        assert await one.get("ann") == "tea"
    async with holding(store_url, 4) as next_one:
        assert await next_one.get("ann") == "tea"


async def _set(event: asyncio.Event) -> None:
    event.set()


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["", "sqlite:", "memory:", "sqlite::memory:", "mysql:x", 7])
def test_what_is_no_store_is_refused_at_once(url: Any) -> None:  # noqa: ANN401  # any input
    with pytest.raises(ConfigurationError, match=r"store"):
        OwnedState(store=url)


@pytest.mark.asyncio
async def test_a_store_of_entities_is_refused(store_url: str) -> None:
    from tenure.stores.opening import store_for  # noqa: PLC0415  # as entities open it

    await (await store_for(store_url)("counters", "hashed")).close()
    with pytest.raises(ConfigurationError, match=r"entities of the pool 'counters'.*of its own"):
        async with holding(store_url, 3):
            pass


@pytest.mark.asyncio
async def test_an_owner_with_a_store_and_one_without_hand_nothing_over(store_url: str) -> None:
    async with holding(store_url, 3) as one:
        plain: OwnedState[Any] = holder().state
        await asyncio.to_thread(in_thread, plain, "ann", "tea")
        _, chunks = copied(plain, WHOLE)
        with pytest.raises(ValueError, match=r"has a store=, and that of the other owner has none"):
            one.state.import_chunk(WHOLE, chunks[0])
        _, chunks = copied(one.state, WHOLE)
        assert chunks == [IN_A_STORE]
        with pytest.raises(ValueError, match=r"has no store=, and that of the other owner has one"):
            plain.import_chunk(WHOLE, IN_A_STORE)
        one.state.import_chunk(WHOLE, IN_A_STORE)


# --- owners of a real pool ------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_owners_hand_over_and_crash_and_values_stay(store_url: str) -> None:
    clock = TurnedClock()
    states = [OwnedState[list[str]](value_type=list[str], store=store_url) for _ in range(3)]

    async def put(state: OwnedState[list[str]], item: str) -> None:
        async with state.at("ann") as it:
            it.value = [*(it.value or []), item]

    async with InProcessCluster(["carts"], clock=clock) as cluster:
        owners = [cluster.owner(hand_off=each) for each in states]
        entering = asyncio.create_task(owners[0].__aenter__())
        await until_done(cluster, entering)
        await cluster.turn(1)
        await put(states[0], "tea")
        entering = asyncio.create_task(owners[1].__aenter__())
        await until_done(cluster, entering)
        await until_done(cluster, asyncio.ensure_future(owners[0].close()))
        await put(states[1], "cake")
        await until_done(cluster, asyncio.ensure_future(owners[1].close(drain=0)))
        entering = asyncio.create_task(owners[2].__aenter__())
        await until_done(cluster, entering)
        await cluster.turn(30)
        async with states[2].at("ann") as it:
            assert it.value == ["tea", "cake"]
        with pytest.raises(NotOwner):
            await put(states[1], "late")
        await until_done(cluster, asyncio.ensure_future(owners[2].close()))


async def until_done(cluster: InProcessCluster, work: "asyncio.Future[Any]") -> Any:  # noqa: ANN401
    while not work.done():
        await cluster.turn(0.1)
    return work.result()


@pytest.mark.asyncio
async def test_an_owner_does_not_join_with_the_store_of_another_pool(store_url: str) -> None:
    async with holding(store_url, 3):
        pass
    async with InProcessCluster(["carts"], clock=TurnedClock()) as cluster:
        owner = cluster.owner(hand_off=OwnedState(store=store_url))
        entering = asyncio.create_task(owner.__aenter__())
        with pytest.raises(ConfigurationError, match=r"'counters'.*'carts'"):
            await until_done(cluster, entering)


def _put_and_die(url: str) -> None:
    """Keep a value, and end as by kill -9 with another one in a body."""
    import os  # noqa: PLC0415  # in a process of its own
    import signal  # noqa: PLC0415

    async def main() -> None:
        async with holding(url, 3) as one:
            await one.put("ann", "kept")
            await one.put("ann", "lost", lambda: os.kill(os.getpid(), signal.SIGKILL))

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["sqlite", "rocksdb"])
@pytest.mark.asyncio
async def test_a_killed_process_has_kept_what_it_acknowledged(kind: str, tmp_path: Path) -> None:
    url = f"{kind}:{tmp_path / 'store'}"
    process = multiprocessing.get_context("spawn").Process(target=_put_and_die, args=(url,))
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode == -9
    async with holding(url, 4) as two:
        assert await two.get("ann") == "kept"


@pytest.mark.asyncio
async def test_rows_of_keys_that_were_only_asked_for_go(store_url: str) -> None:
    async with holding(store_url, 3) as one:
        for i in range(20):
            assert await one.get(i) is None
        await one.put("ann", "tea")
        await one.put("bob", "tea")
        await one.put("bob", None)
        await asyncio.wrap_future(one.values.submit(one.values.tidy()))
        assert await one.get("bob") is None
    with sqlite3.connect(store_url.removeprefix("sqlite:")) as database:
        assert database.execute("SELECT count(*) FROM tenure_entity").fetchone() == (2,)
