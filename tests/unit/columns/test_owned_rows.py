"""Rows under a lease: a former owner is refused, and memory is what the store has."""

import asyncio
import gc
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from lab.worlds.columns.disks import SimEngine
from tenure.base.keys import hashed_key
from tenure.client.lease import Lease
from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.opening import open_store
from tenure.columns.owned_rows import OwnedRow, OwnedRows
from tenure.columns.paths import edits_of, key_of
from tenure.columns.requests import RowMutation
from tenure.columns.results import Column
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.errors import ConfigurationError, Fenced, Full, LeaseLost, Unsupported, WriteUnknown
from tenure.protocol.replication.row.admission import Attempt, Refused
from tenure.protocol.replication.row.limits import PAGE_COLUMNS

pytestmark = pytest.mark.asyncio

ROOMS = Table(
    "rooms",
    fenced_by="rooms",
    state=Family(columns=str),
    log=Family(columns=int, order="time"),
    by=Family(supers=str, columns=int),
)


def lease(number: int, key: str = "attic", journal: int = 1, pool: str = "rooms") -> Lease:
    return Lease(hashed_key(key), number, journal, pool)


def names(page: Iterable[Column]) -> list[Any]:
    return [each.name for each in page]


async def test_a_former_owner_is_refused_and_what_it_wrote_before_is_there() -> None:
    async with open_store("memory:", ROOMS) as store:
        old, new = OwnedRows(store, ROOMS), OwnedRows(store, ROOMS)
        room = await old.load(lease(5), "attic")
        await room.insert({"state": {"topic": b"tea"}})
        successor = await new.load(lease(6), "attic")
        assert successor.get("state", "topic").value == b"tea"
        with pytest.raises(LeaseLost, match="newer owner") as raised:
            await room.insert({"state": {"topic": b"coffee"}})
        assert isinstance(raised.value.__cause__, Fenced)
        with pytest.raises(LeaseLost, match="number 6"):
            await OwnedRows(store, ROOMS).load(lease(5), "attic")
        assert (await store.get(ROOMS, "attic", "state", "topic")).value == b"tea"
        await successor.insert({"state": {"topic": b"milk"}})
        assert (await store.get(ROOMS, "attic", "state", "topic")).value == b"milk"


async def test_the_promise_is_kept_through_a_crash() -> None:
    engine = SimEngine()
    backend = EmbeddedBackend(lambda: engine, [ROOMS])
    store = ColumnStore(backend, {"rooms": ROOMS})
    await store.open()
    await OwnedRows(store, ROOMS).load(lease(6), "attic")
    engine.crash()
    with pytest.raises(LeaseLost):
        await OwnedRows(store, ROOMS).load(lease(5), "attic")
    await store.close()


async def test_a_number_of_another_journal_must_be_higher() -> None:
    async with open_store("memory:", ROOMS) as store:
        kept = OwnedRows(store, ROOMS)
        room = await kept.load(lease(6, journal=1), "attic")
        assert room.number == 6
        for number in (6, 5):
            with pytest.raises(LeaseLost):
                await OwnedRows(store, ROOMS).load(lease(number, journal=2), "attic")
            with pytest.raises(LeaseLost):
                await kept.load(lease(number, journal=2), "attic")
        await OwnedRows(store, ROOMS).load(lease(7, journal=2), "attic")


async def test_a_lease_number_wins_over_any_clock() -> None:
    wall = [2_000_000_000_000_000]
    engine = MemoryEngine()
    backend = EmbeddedBackend(lambda: engine, [ROOMS], clock=lambda: wall[0])
    store = ColumnStore(backend, {"rooms": ROOMS}, lambda: wall[0])
    await store.open()
    old = await OwnedRows(store, ROOMS).load(lease(5), "attic")
    ahead = await old.insert({"state": {"topic": b"from a clock that is ahead"}})
    wall[0] -= 1_000_000_000_000
    slow = ColumnStore(backend, {"rooms": ROOMS}, lambda: wall[0])
    new = await OwnedRows(slow, ROOMS).load(lease(6), "attic")
    version = await new.insert({"state": {"topic": b"tea"}})
    assert (version.number, version.time) == (6, ahead.time + 1)
    assert (await store.get(ROOMS, "attic", "state", "topic")).value == b"tea"
    await store.close()


async def test_memory_is_what_the_store_has() -> None:
    async with open_store("memory:", ROOMS) as store:
        kept = OwnedRows(store, ROOMS)
        room = await kept.load(lease(5), "attic")
        await room.insert({"state": {"a": b"1", "b": b"2"}, "log": {1: b"", 2: b""}})
        await room.insert({"log": {3: b"", 1: b"again"}, "by": {"ann": {1: b""}, "bob": {2: b""}}})
        await room.delete("state", "a")
        await room.delete("by", "ann")
        again = await OwnedRows(store, ROOMS).load(lease(6), "attic")
        for path in (("state",), ("log",), ("by",), ("by", "bob"), ("log", 1), ("state", "a")):
            assert room.get(*path) == again.get(*path)
        assert names(room.get("log")) == [1, 3, 2]
        assert names(room.get("by")) == ["bob"]
        assert room.get("by") == again.get()["by"]
        await again.delete()
        assert all(len(page) == 0 for page in again.get().values())


async def test_a_row_is_adopted_once_for_each_lease_number() -> None:
    async with open_store("memory:", ROOMS) as store:
        kept = OwnedRows(store, ROOMS, limit=1)
        room = await kept.load(lease(5), "attic")
        assert await kept.load(lease(5), "attic") is room
        other = await kept.load(lease(6), "attic")
        assert other is not room
        await kept.load(lease(1, "cellar"), "cellar")
        assert await kept.load(lease(6), "attic") is other  # somebody has it: there is one of it
        del other
        gc.collect()
        await kept.load(lease(1, "cellar"), "cellar")
        assert len(kept._alive) == 1
        both = await asyncio.gather(*(kept.load(lease(7), "attic") for _ in range(2)))
        assert both[0] is both[1]


@pytest.mark.parametrize("limit", [0, -1, 1.0, True, None])
async def test_a_limit_that_no_number_of_rows_is_is_refused(limit: Any) -> None:  # noqa: ANN401
    async with open_store("memory:", ROOMS) as store:
        with pytest.raises(ConfigurationError, match="limit is a number of rows"):
            OwnedRows(store, ROOMS, limit=limit)


async def test_a_table_with_a_fence_takes_no_write_without_a_lease() -> None:
    plain = Table("plain", state=Family(columns=str))
    async with open_store("memory:", ROOMS, plain) as store:
        with pytest.raises(Unsupported, match="OwnedRows"):
            await store.insert(ROOMS, "attic", {"state": {"topic": b"tea"}})
        with pytest.raises(ConfigurationError, match="not fenced"):
            OwnedRows(store, plain)
        kept = OwnedRows(store, ROOMS)
        with pytest.raises(ConfigurationError, match="another key"):
            await kept.load(lease(5, "cellar"), "attic")
        for wrong in (None, 5, "attic"):
            with pytest.raises(ConfigurationError, match="does not own the key"):
                await kept.load(wrong, "attic")  # type: ignore[arg-type]
            with pytest.raises(ConfigurationError, match="not a Table"):
                OwnedRows(store, wrong)  # type: ignore[arg-type]
            with pytest.raises(ConfigurationError, match="entered with `async with`"):
                OwnedRows(wrong, ROOMS)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="of the pool 'others'"):
            await kept.load(lease(5, pool="others"), "attic")


@pytest.mark.parametrize("wrong", [None, True, 1.0, "5", 0, -1, 1 << 63])
@pytest.mark.parametrize("what", ["number", "journal"])
async def test_a_lease_of_a_wrong_kind_is_not_kept_with_the_row(what: str, wrong: Any) -> None:  # noqa: ANN401
    """A record that has it could not be read again, and neither could the row."""
    async with open_store("memory:", ROOMS) as store:
        with pytest.raises(ConfigurationError, match=f"the {what} of a lease"):
            await OwnedRows(store, ROOMS).load(
                msgspec.structs.replace(lease(5), **{what: wrong}), "attic"
            )
        await OwnedRows(store, ROOMS).load(lease(1), "attic")


async def test_a_row_has_a_limit() -> None:
    async with open_store("memory:", ROOMS) as store:
        room = await OwnedRows(store, ROOMS).load(lease(5), "attic")
        await room.insert({"state": {"a": bytes(9 << 20)}})
        with pytest.raises(Full, match="memory holds all of it"):
            await room.insert({"state": {"b": bytes(9 << 20)}})
        assert names(room.get("state")) == ["a"]


async def write(store: ColumnStore, mutation: dict[str, Any]) -> None:
    """Write the row under the lease, as its owner's process did that took no notice of limits."""
    edits = edits_of(ROOMS, mutation)
    key = key_of(ROOMS, "attic")
    await store.write(RowMutation(ROOMS, key, edits, number=5, journal=1))


async def test_a_row_of_many_pages_is_read_whole() -> None:
    many = PAGE_COLUMNS + 1
    async with open_store("memory:", ROOMS) as store:
        await OwnedRows(store, ROOMS).load(lease(5), "attic")
        await write(store, {"log": dict.fromkeys(range(many), b"")})
        await write(store, {"by": {f"{n:05}": {1: b""} for n in range(many)}})
        room = await OwnedRows(store, ROOMS).load(lease(6), "attic")
        assert len(room.get("log")) == len(room.get("by")) == many


async def test_a_row_that_is_too_large_is_not_loaded() -> None:
    async with open_store("memory:", ROOMS) as store:
        await OwnedRows(store, ROOMS).load(lease(5), "attic")
        for name in ("a", "b"):
            await write(store, {"state": {name: bytes(9 << 20)}})
        with pytest.raises(Full, match="memory holds all of it"):
            await OwnedRows(store, ROOMS).load(lease(6), "attic")


class Uncertain(EmbeddedBackend):
    """Applies the next write, or does not, and then cannot say which."""

    outcomes: tuple[bool, ...] = ()

    async def write(self, *what: Any) -> Refused | None:  # noqa: ANN401
        attempts.append(what[1])
        if not self.outcomes:
            return await super().write(*what)
        is_applied, *rest = self.outcomes
        self.outcomes = tuple(rest)
        if is_applied:
            await super().write(*what)
        raise WriteUnknown("the disk did not answer")


attempts: list[Attempt] = []


@pytest.mark.parametrize("is_applied", [True, False])
async def test_an_unknown_write_is_repeated_before_another_one(is_applied: bool) -> None:
    backend = Uncertain(MemoryEngine, [ROOMS])
    store = ColumnStore(backend, {"rooms": ROOMS})
    await store.open()
    room = await OwnedRows(store, ROOMS).load(lease(5), "attic")
    attempts.clear()
    backend.outcomes = (is_applied,)
    with pytest.raises(WriteUnknown):
        await room.insert({"log": {1: b""}})
    assert names(room.get("log")) == []
    [unknown] = attempts
    attempts.clear()
    await room.insert({"log": {2: b""}})
    repeated, next_one = attempts
    assert repeated == unknown
    assert next_one.version > repeated.version
    assert names(room.get("log")) == names(await store.get(ROOMS, "attic", "log")) == [2, 1]
    await store.close()


async def test_a_cancelled_write_is_repeated_before_another_one() -> None:
    async with open_store("memory:", ROOMS) as store:
        room: OwnedRow = await OwnedRows(store, ROOMS).load(lease(5), "attic")
        task = asyncio.create_task(room.insert({"log": {1: b""}}))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await room.insert({"log": {2: b""}})
        assert names(room.get("log")) == names(await store.get(ROOMS, "attic", "log"))


class Watched(EmbeddedBackend):
    """Says how often a row was adopted, and how many writes are under way at once; before the next
    adoption another owner may write.
    """

    adopted = 0
    under_way = 0
    most = 0
    before: OwnedRow | None = None

    async def adopt(self, *what: Any) -> Any:  # noqa: ANN401 - as it is
        self.adopted += 1
        if (former := self.before) is not None:
            self.before = None
            await former.insert({"state": {"topic": b"the last word"}})
        return await super().adopt(*what)

    async def write(self, *what: Any) -> Refused | None:  # noqa: ANN401
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await super().write(*what)
        finally:
            self.under_way -= 1


async def test_a_row_is_read_after_the_promise_and_has_one_write_under_way() -> None:
    """A write that a former owner made just before the promise is there. Of many writes each waits
    for the one before it; otherwise a repeat could not be told from what came later (R21, R22).
    """
    backend = Watched(MemoryEngine, [ROOMS])
    store = ColumnStore(backend, {"rooms": ROOMS})
    await store.open()
    backend.before = await OwnedRows(store, ROOMS).load(lease(5), "attic")
    kept = OwnedRows(store, ROOMS)
    room = await kept.load(lease(6), "attic")
    assert room.get("state", "topic").value == b"the last word"
    backend.adopted = 0
    assert await kept.load(lease(6), "attic") is room
    assert backend.adopted == 0
    await asyncio.gather(*(room.insert({"log": {n: b""}}) for n in range(5)))
    assert backend.most == 1
    assert names(room.get("log")) == [4, 3, 2, 1, 0]
    await store.close()
