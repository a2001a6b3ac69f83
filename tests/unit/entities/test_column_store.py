"""Entities in rows and columns: what arrives late, what is away, what a commit writes, and the
index of alarms. The contract of entity stores is in `tests/contracts`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from lab.contracts.entity_items import add, found, numbered
from lab.contracts.entity_store import alarmed, lease, put, same
from tenure import ConfigurationError, Fenced, StoreAway, StoreFailed, refusal
from tenure.base.ranges import WHOLE
from tenure.columns.backends.contract import Backend
from tenure.columns.requests import RowMutation
from tenure.errors import NotEnoughReplicas, Unreachable, WriteUnknown
from tenure.protocol.entity.envelope import Envelope, SetAlarm
from tenure.protocol.entity.envelope_columns import HEAD, STATE
from tenure.protocol.replication.row.admission import Attempt, Refused
from tenure.protocol.replication.row.edits import Edit
from tenure.stores import column_store
from tenure.stores.alarm_index import FAMILY
from tenure.stores.column_store import ABOUT, ColumnEntityStore
from tenure.stores.item_rows import MOST_STAYING
from tenure.stores.opening import store_for
from tests.unit.entities.stage import on_stage

pytestmark = pytest.mark.asyncio
_encode = msgspec.msgpack.encode
Fails = Callable[[str, RowMutation | None], Exception | None]


class Troubled:
    """A backend that fails as it is told to, and may do later what nobody waits for any more."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.holds: Callable[[RowMutation], bool] = lambda _: False
        self.fails: Fails = lambda *_: None
        self.held: list[tuple[RowMutation, Attempt]] = []
        self.written: list[RowMutation] = []
        self.asked: list[Any] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever a backend has
        found = getattr(self._backend, name)

        async def asked(*arguments: Any) -> Any:  # noqa: ANN401
            if error := self.fails(name, None):
                raise error
            self.asked += arguments
            return await found(*arguments)

        return asked

    async def write(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        if error := self.fails("write", mutation):
            raise error
        if self.holds(mutation):
            self.held.append((mutation, attempt))
            raise WriteUnknown("no answer came in time")
        self.written.append(mutation)
        return await self._backend.write(mutation, attempt)

    async def let_go(self) -> list[Refused | None]:
        """Carry out what was held. Returns the refusals."""
        held, self.held = self.held, []
        return [await self._backend.write(*each) for each in held]


def troubled(store: ColumnEntityStore) -> Troubled:
    trouble = Troubled(store._store.backend)
    store._store.backend = trouble
    return trouble


@pytest_asyncio.fixture
async def store() -> AsyncIterator[ColumnEntityStore]:
    made = ColumnEntityStore("memory:", "counters", "hashed")
    await made.open()
    yield made
    await made.close()


def is_away(store: ColumnEntityStore) -> bool:
    return store.is_away


def is_of_entities(mutation: RowMutation) -> bool:
    return bool(mutation.table.fenced_by)


def is_of_index(mutation: RowMutation) -> bool:
    return not is_of_entities(mutation)


OLD = Envelope(3, 7, _encode({"a": 1}))
NEW = Envelope(3, 7, _encode({"a": 2, "b": 3}), alarms={"run": SetAlarm(9.0, 9.0)})


# --- late ---


async def test_a_write_that_arrives_after_the_row_was_read_again_changes_nothing(
    store: ColumnEntityStore,
) -> None:
    """Otherwise columns that nobody writes again would appear in the middle of what came since."""
    trouble = troubled(store)
    stored = await put(store, "a", lease(3), OLD)
    trouble.holds = is_of_entities
    with pytest.raises(StoreFailed, match="kept the last change or not"):
        await store.save("a", lease(3), stored, NEW)
    trouble.holds = lambda _: False
    found = await store.load("a", lease(3))
    assert same(found, OLD)
    assert await trouble.let_go() == [None], "the lease is the same, so no fence keeps it out"
    assert same(await store.load("a", lease(3)), OLD)
    assert same(await store.load("a", lease(4)), OLD)


async def test_a_write_of_which_nothing_was_heard_counts_if_it_was_there(
    store: ColumnEntityStore,
) -> None:
    trouble = troubled(store)
    stored = await put(store, "a", lease(3), OLD)
    trouble.holds = is_of_entities
    with pytest.raises(StoreFailed):
        await store.save("a", lease(3), stored, NEW)
    trouble.holds = lambda _: False
    await trouble.let_go()
    found = await store.load("a", lease(3))
    assert same(found, NEW)
    assert found.step > stored.step


async def test_until_it_is_settled_nothing_is_begun(store: ColumnEntityStore) -> None:
    """Two writes in a row are of unknown outcome, and the second is what settles the first."""
    trouble = troubled(store)
    stored = await put(store, "a", lease(3), OLD)
    trouble.holds = is_of_entities
    with pytest.raises(StoreFailed):
        await store.save("a", lease(3), stored, NEW)
    with pytest.raises(StoreAway):
        await store.load("a", lease(3))
    trouble.holds = lambda _: False
    assert same(await store.load("a", lease(3)), OLD)
    await trouble.let_go()
    assert same(await store.load("a", lease(4)), OLD)


async def test_the_next_lease_settles_nothing_because_its_fence_does(
    store: ColumnEntityStore,
) -> None:
    trouble = troubled(store)
    stored = await put(store, "a", lease(3), OLD)
    trouble.holds = is_of_entities
    with pytest.raises(StoreFailed):
        await store.save("a", lease(3), stored, NEW)
    trouble.holds = lambda _: False
    trouble.written.clear()
    assert same(await store.load("a", lease(5)), OLD)
    assert trouble.written == []
    (refused,) = await trouble.let_go()
    assert refused is not None
    assert same(await store.load("a", lease(5)), OLD)


# --- journals ---


async def test_a_directory_takes_any_lease_of_a_new_journal(tmp_path: Path) -> None:
    """`tenure run` begins a new journal each time, whose numbers begin at 1 again."""
    make = store_for(f"rocksdb:{tmp_path / 'store'}")
    kept = Envelope()
    for journal in range(1, 5):
        store = await make("counters", "hashed")
        for number in (1, 2, 900):
            by = lease(number, journal)
            found = await store.load("a", by)
            new = Envelope(number, journal, _encode([journal, number]))
            kept = await store.save("a", by, found, new)
            assert same(await store.load("a", by), new)
        for past in range(1, journal):
            with pytest.raises(Fenced, match="a lease of a later journal"):
                await store.load("a", lease(10_000, past))
            with pytest.raises(Fenced, match="a lease of a later journal"):
                await store.save("a", lease(10_000, past), kept, OLD)
        with pytest.raises(Fenced, match="newer owner"):
            await store.load("a", lease(899, journal))
        await store.close()


async def test_a_journal_that_could_not_be_noted_adopts_nothing(store: ColumnEntityStore) -> None:
    """Otherwise the next process would take its leases for those of a newer one."""
    trouble = troubled(store)
    await put(store, "a", lease(30), OLD)
    trouble.fails = lambda name, _: NotEnoughReplicas("full") if name == "write" else None
    with pytest.raises(StoreAway, match="full"):
        await store.load("a", lease(1, journal=8))
    trouble.fails = lambda *_: None
    assert same(await store.load("a", lease(30)), OLD)


# --- away ---


async def test_what_was_not_sent_is_told_apart_from_what_is_unknown(
    store: ColumnEntityStore, caplog: pytest.LogCaptureFixture
) -> None:
    trouble = troubled(store)
    stored = await put(store, "a", lease(3), OLD)
    trouble.fails = lambda *_: NotEnoughReplicas("one of three is up")
    with pytest.raises(StoreFailed, match="was not sent the last change: one of three"):
        await store.save("a", lease(3), stored, NEW)
    assert is_away(store)
    for asked in (store.look("a"), store.load("a", lease(3)), store.due_within([WHOLE])):
        with pytest.raises(StoreAway, match="nothing was begun: one of three is up"):
            await asked
    trouble.fails = lambda *_: None
    await store.look("a")
    assert not is_away(store)
    assert same(await store.load("a", lease(3)), OLD)
    said = [each for each in caplog.messages if each.startswith("the store of")]
    assert len(said) == 2, said


async def test_a_kept_commit_whose_items_stay_is_not_told_as_not_sent(
    store: ColumnEntityStore,
) -> None:
    trouble = troubled(store)
    kept = await add(store, "a", lease(3), await store.load("a", lease(3)), numbered(range(3)))
    items = store.items.table.name
    trouble.fails = lambda _, mutation: (
        NotEnoughReplicas("full") if mutation and mutation.table.name == items else None
    )
    with pytest.raises(StoreFailed, match="full") as failed:
        await store.save("a", lease(3), kept, Envelope())
    assert "was not sent" not in str(failed.value)
    trouble.fails = lambda *_: None
    loaded = await store.load("a", lease(3))
    assert (loaded.collections, await found(store, "a", loaded)) == ({}, [])


async def test_a_store_that_only_reads_is_away(store: ColumnEntityStore) -> None:
    """As nodes are whose disks are full: a call that could not be kept is not begun."""
    trouble = troubled(store)
    await put(store, "a", lease(3), OLD)
    trouble.fails = lambda name, _: NotEnoughReplicas("full") if name == "write" else None
    with pytest.raises(StoreAway, match="full"):
        await store.look("a")
    trouble.fails = lambda *_: None
    await store.look("a")


async def test_an_alarm_that_cannot_be_listed_is_not_committed(store: ColumnEntityStore) -> None:
    trouble = troubled(store)
    stored = await put(store, "a", lease(3), OLD)

    def fails(_: str, mutation: RowMutation | None) -> Exception | None:
        return Unreachable("nobody answers") if mutation and is_of_index(mutation) else None

    trouble.fails = fails
    with pytest.raises(StoreFailed, match="was not sent"):
        await store.save("a", lease(3), stored, NEW)
    assert same(await store.load("a", lease(3)), OLD)


async def test_while_no_node_answers_calls_of_entities_are_not_begun(tmp_path: Path) -> None:
    async with on_stage(1, store=f"rocksdb:{tmp_path / 'store'}") as stage:
        (counters,) = stage.members
        for key in "ab":
            await stage.done(counters[key].add(1))
        store = counters.station.host.gate.store
        assert isinstance(store, ColumnEntityStore)
        trouble = troubled(store)
        trouble.fails = lambda *_: Unreachable("nobody answers")
        with pytest.raises(StoreFailed):  # it was under way, and may have acted elsewhere
            await stage.done(counters["a"].add(1))
        for key in ("a", "b", "c"):
            with pytest.raises(StoreAway, match="nothing was begun: nobody") as raised:
                await stage.done(counters[key].add(1))
            answer = refusal(raised.value)
            assert answer is not None
            assert (answer.status, answer.headers["Tenure-Outcome"]) == (503, "not-begun")
        trouble.fails = lambda *_: None
        assert [await stage.done(counters[key].add(1)) for key in "abc"] == [2, 2, 1]


# --- what is written ---


async def test_a_commit_writes_what_has_changed(store: ColumnEntityStore) -> None:
    trouble = troubled(store)
    fields = {f"field-{i}": i for i in range(300)}
    stored = await put(store, "a", lease(3), Envelope(3, 7, _encode(fields)))
    trouble.written.clear()
    changed = Envelope(3, 7, _encode({**fields, "field-7": "new"}))
    await store.save("a", lease(3), stored, changed)
    (mutation,) = trouble.written
    names = {edit.name for edit in mutation.edits}
    assert names == {HEAD, b"\0\7field-7"}


async def test_a_pool_in_a_later_layout_is_refused_before_a_row_is_read(
    store: ColumnEntityStore,
) -> None:
    later = {FAMILY: {ABOUT: b"hashed, layout 2"}}
    await store._store.insert(store.index.table, ABOUT, later)
    with pytest.raises(ConfigurationError, match="which is hashed, layout 2, and cannot"):
        await store._check_pool()


async def test_a_row_of_a_later_layout_is_not_read(store: ColumnEntityStore) -> None:
    await put(store, "a", lease(3), OLD)
    later = Edit(STATE, None, HEAD, _encode([2, "whatever"]))
    mutation = RowMutation(store._rows, _encode("a"), [later], number=3, journal=7)
    await store._store.write(mutation)
    with pytest.raises(StoreFailed, match="the layout 2, which a later version"):
        await store.load("a", lease(3))


# --- the index of alarms ---


async def test_an_entry_is_there_before_its_alarm_and_goes_after_it(
    store: ColumnEntityStore,
) -> None:
    trouble = troubled(store)
    stored = await store.load("a", lease(3))
    trouble.written.clear()
    stored = await store.save("a", lease(3), stored, alarmed(3, at=9.0))
    assert [is_of_index(each) for each in trouble.written] == [True, False]
    trouble.written.clear()
    stored = await store.save("a", lease(3), stored, alarmed(3, at=9.0))
    assert [is_of_index(each) for each in trouble.written] == [False], "nothing of it has changed"
    trouble.written.clear()
    await store.save("a", lease(3), stored, alarmed(3, at=None))
    while await store.due_within([WHOLE]):  # noqa: ASYNC110  # nobody waits for it
        await asyncio.sleep(0)
    assert [is_of_index(each) for each in trouble.written] == [False, True]


async def test_alarms_are_found_without_reading_a_row(store: ColumnEntityStore) -> None:
    for number in range(50):
        await put(store, f"room-{number}", lease(3), OLD)
    await put(store, "a", lease(3), NEW)
    trouble = troubled(store)
    assert await store.due_within([WHOLE]) == [("a", 9.0)]
    assert {each.table for each in trouble.asked} == {store.index.table.name}


async def test_an_entry_too_many_is_looked_up_once_and_dropped(store: ColumnEntityStore) -> None:
    """A process was killed between the two writes."""
    trouble = troubled(store)
    stored = await put(store, "a", lease(3), OLD)
    trouble.fails = lambda _, mutation: (
        Unreachable("killed") if mutation and is_of_entities(mutation) else None
    )
    with pytest.raises(StoreFailed):
        await store.save("a", lease(3), stored, NEW)
    trouble.fails = lambda *_: None
    assert await store.due_within([WHOLE]) == [("a", 9.0)]
    assert (await store.load("a", lease(4))).alarms == {}
    while await store.due_within([WHOLE]):  # noqa: ASYNC110  # nobody waits for it
        await asyncio.sleep(0)


async def test_a_former_owner_that_tidies_late_hides_no_alarm_of_the_next(
    store: ColumnEntityStore,
) -> None:
    """The index has no fence: the former owner may write it whenever it wakes up."""
    stored = await put(store, "a", lease(3), alarmed(3, at=9.0))
    found = await store.load("a", lease(5))
    await store.save("a", lease(5), found, alarmed(5, at=20.0))
    store.index.after("a", lease(3), stored, alarmed(3, at=None))
    store.index.after("a", lease(3), stored, alarmed(3, at=99.0))
    while store.index._after:
        await asyncio.wait([*store.index._after.values()])
    ((key, due),) = await store.due_within([WHOLE])
    assert key == "a"
    assert due <= 20.0


# --- items ---


async def test_items_of_keys_that_change_no_more_are_not_kept_in_memory(
    store: ColumnEntityStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit may leave out of the row what was copied; but there may never be another."""
    monkeypatch.setattr(column_store, "MOST_COPIED", 2)
    many = MOST_STAYING + 1
    kept = {}
    for key in "abcde":
        loaded = await store.load(key, lease(3))
        kept[key] = await add(store, key, lease(3), loaded, numbered(range(many)))
    assert len(store._copied) == 2
    for key, before in kept.items():
        now = await add(store, key, lease(3), before, numbered(range(many, many + 1)))
        assert await found(store, key, now, page=900) == [*numbered(range(many + 1)).items()]
        loaded = await store.load(key, lease(4))
        assert await found(store, key, loaded, page=900) == [*numbered(range(many + 1)).items()]


# --- by URL ---


async def test_columns_alone_is_the_store_of_which_the_process_was_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TENURE_STORE", raising=False)
    with pytest.raises(ConfigurationError, match="TENURE_STORE is not set"):
        store_for("columns:")
    for told in ("http://127.0.0.1:7500", "columns:http://127.0.0.1:7500,http://127.0.0.1:7501"):
        monkeypatch.setenv("TENURE_STORE", told)
        store_for("columns:")
    monkeypatch.setenv("TENURE_STORE", "nonsense")
    with pytest.raises(ConfigurationError, match="nonsense"):
        store_for("columns:")


async def test_a_directory_that_another_process_has_is_refused(tmp_path: Path) -> None:
    make = store_for(f"rocksdb:{tmp_path / 'store'}")
    first = await make("counters", "hashed")
    with pytest.raises(ConfigurationError, match=r'store="columns:URL,URL", or use "sqlite:FILE"'):
        await make("counters", "hashed")
    await first.close()
    await (await make("counters", "hashed")).close()


@pytest.mark.parametrize("url", ["columns:nonsense", "cassandra:host", "rocksdb:", "memory:"])
async def test_what_names_no_store_of_columns_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        store_for(url)
