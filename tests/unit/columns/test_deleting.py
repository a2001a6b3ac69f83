"""Deleted data stays deleted, goes for good in time, and keeps nobody waiting."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.worlds.columns.disks import SimEngine
from tenure.base.ranges import WHOLE
from tenure.columns.backends import embedded
from tenure.columns.backends.embedded import EmbeddedBackend, in_steps
from tenure.columns.checking import check
from tenure.columns.engines.contract import EngineBusy, Entry, StorageEngine
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.engines.rocksdb import RocksEngine
from tenure.columns.replica import Replica
from tenure.columns.requests import RowMutation
from tenure.columns.store import ColumnStore
from tenure.columns.sweeping import Sweep, doomed_within
from tenure.columns.tables import Family, Table
from tenure.errors import ClosedError, StoreUnwritable, TooLate
from tenure.protocol.replication.messages import ReadPage
from tenure.protocol.replication.row.admission import Attempt, Outranked
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.limits import HORIZON_LAG_US
from tenure.protocol.replication.row.pages import Slice, Steps
from tenure.protocol.replication.row.versions import Version

pytestmark = pytest.mark.asyncio

TABLE = Table("t", f=Family(columns=int), t=Family(columns=int, order="time"))
BEGINNING = 1_000_000_000_000_000


class Wall:
    """The clock on the wall, which tests turn."""

    def __init__(self) -> None:
        self.now = BEGINNING

    def __call__(self) -> int:
        return self.now


@asynccontextmanager
async def opened(
    wall: Wall, engine: StorageEngine
) -> AsyncIterator[tuple[ColumnStore, EmbeddedBackend]]:
    backend = EmbeddedBackend(lambda: engine, [TABLE], clock=wall)
    store = ColumnStore(backend, {"t": TABLE}, wall)
    await store.open()
    yield store, backend
    await store.close()


def entries(engine: MemoryEngine) -> int:
    figures = engine.figures()
    return sum(each["entries"] for name, each in figures.items() if name != "meta")


async def test_a_tombstone_goes_when_nothing_may_come_that_it_hides() -> None:
    wall, engine = Wall(), MemoryEngine()
    async with opened(wall, engine) as (store, backend):
        await store.insert(TABLE, "k", {"f": {1: b""}, "t": {1: b""}})
        await store.delete(TABLE, "k", "f", 1)
        deleted = await store.delete(TABLE, "k")
        wall.now += HORIZON_LAG_US
        assert await backend.sweep() < 2  # not yet the second: it is younger by a microsecond
        wall.now += 10
        assert await backend.sweep() > 0
        assert entries(engine) == 0
        with pytest.raises(TooLate, match="is settled") as raised:
            await store.insert(TABLE, "k", {"f": {1: b"late"}}, timestamp=deleted.time)
        assert raised.value.horizon == deleted.time
        assert await store.get(TABLE, "k", "f", 1) is None
        await store.insert(TABLE, "k", {"f": {1: b"new"}}, timestamp=deleted.time + 1)
        assert (await store.get(TABLE, "k", "f", 1)).value == b"new"


async def test_what_was_written_again_stays_when_the_delete_before_it_is_swept() -> None:
    """A column, and what markers of a family and of the row had hidden."""
    wall, engine = Wall(), MemoryEngine()
    async with opened(wall, engine) as (store, backend):
        for path in (("f", 1), ("t", 1), ("f",), ()):
            written = {"f": {1: b"old"}, "t": {1: b"old"}}
            await store.insert(TABLE, "k", written)
            await store.delete(TABLE, "k", *path)
            await store.insert(TABLE, "k", {"f": {1: b"again"}, "t": {1: b"again"}})
            wall.now += 2 * HORIZON_LAG_US
            assert await backend.sweep() > 0
            for family in ("f", "t"):
                assert (await store.get(TABLE, "k", family, 1)).value == b"again"
                assert [each.value for each in await store.get(TABLE, "k", family)] == [b"again"]
        assert await in_steps(check(backend.replica, TABLE)) == []


async def test_a_later_lease_number_at_the_time_of_a_swept_delete_stays() -> None:
    """The former deletes, and a hint of the later brings a write."""
    rooms = Table("rooms", fenced_by="rooms", f=Family(columns=int), t=Family(columns=int))
    replica = Replica(MemoryEngine())
    replica.open([rooms])
    for number, value in ((5, None), (6, b"new")):
        edits = [Edit(family, None, b"n", value) for family in ("f", "t")]
        attempt = Attempt(Version(number, 20), "merge", journal=7)
        assert replica.write(RowMutation(rooms, b"k", edits), attempt, BEGINNING) is None
    replica.raise_horizon(20)
    assert steps(Sweep(replica, rooms).steps()) >= 0
    asked = ReadPage(
        table=rooms.name, key=b"k", family=rooms.shapes["f"].name, super=None, part=Slice(1)
    )
    page = await in_steps(replica.read(asked))
    assert [each.value for each in page.cells] == [b"new"]


@pytest.mark.parametrize("is_under_way", [False, True])
@pytest.mark.parametrize("clear", [Edit("f"), Edit(None)])
async def test_a_marker_that_was_set_again_outlasts_the_sweep_of_the_one_before(
    clear: Edit, is_under_way: bool
) -> None:
    """This holds even if it is set while the sweep is under way, which takes several steps."""
    replica = Replica(MemoryEngine())
    replica.open([TABLE])

    def write(edit: Edit, time: int) -> None:
        mutation = RowMutation(TABLE, b"k", [edit])
        assert replica.write(mutation, Attempt(Version(0, time), "merge"), BEGINNING) is None

    for n in range(2_000):
        write(Edit("f", None, b"%d" % n, b""), 10)
    write(clear, 11)
    replica.raise_horizon(20)
    sweeping = Sweep(replica, TABLE).steps()
    if is_under_way:
        next(sweeping)
    write(clear, 60)
    for _ in sweeping:
        pass
    write(Edit("f", None, b"late", b""), 50)
    page = await in_steps(
        replica.read(
            ReadPage(
                table=TABLE.name, key=b"k", family=TABLE.shapes["f"].name, super=None, part=Slice(5)
            )
        )
    )
    assert page.cells == ()
    assert await in_steps(check(replica, TABLE)) == []


async def test_a_delete_is_swept_once_it_is_as_old_as_the_lag_and_not_before() -> None:
    wall = Wall()
    async with opened(wall, MemoryEngine()) as (store, backend):
        deleted = await store.delete(TABLE, "k", "f", 1)
        wall.now = deleted.time + HORIZON_LAG_US - 1
        assert await backend.sweep() == 0
        assert doomed_within(backend.replica, TABLE, WHOLE, deleted.time - 1) == 0
        assert doomed_within(backend.replica, TABLE, WHOLE, deleted.time) == deleted.time
        wall.now += 1
        assert await backend.sweep() == 1


async def test_a_tombstone_that_was_set_again_outlasts_the_sweep_of_the_one_before() -> None:
    replica = Replica(MemoryEngine())
    replica.open([TABLE])
    for time in (10, 60):
        attempt = Attempt(Version(0, time), "merge")
        gone = [Edit("f", None, b"n"), Edit("t", None, b"n")]
        assert replica.write(RowMutation(TABLE, b"k", gone), attempt, BEGINNING) is None
    replica.raise_horizon(20)
    assert await in_steps(Sweep(replica, TABLE).steps()) == 2
    late = RowMutation(TABLE, b"k", [Edit(each, None, b"n", b"late") for each in ("f", "t")])
    assert replica.write(late, Attempt(Version(0, 50), "merge"), BEGINNING) is None
    for family in ("f", "t"):
        page = await in_steps(
            replica.read(
                ReadPage(
                    table=TABLE.name,
                    key=b"k",
                    family=TABLE.shapes[family].name,
                    super=None,
                    part=Slice(1),
                )
            )
        )
        assert page.cells == ()


async def test_a_swept_tombstone_leaves_nothing_in_the_order_of_time() -> None:
    wall, engine = Wall(), MemoryEngine()
    async with opened(wall, engine) as (store, backend):
        await store.insert(TABLE, "k", {"t": {1: b""}})
        await store.delete(TABLE, "k", "t", 1)
        wall.now += 2 * HORIZON_LAG_US
        assert await backend.sweep() == 1
        assert entries(engine) == 0


async def test_the_fence_of_a_row_outlasts_all_that_the_row_had() -> None:
    rooms = Table("rooms", fenced_by="rooms", f=Family(columns=int))
    replica = Replica(MemoryEngine())
    replica.open([rooms])
    for number, time, edit in ((6, 10, Edit("f", None, b"n", b"")), (6, 11, Edit(None))):
        attempt = Attempt(Version(number, time), journal=7)
        assert replica.write(RowMutation(rooms, b"k", [edit]), attempt, BEGINNING) is None
    replica.raise_horizon(11)
    assert await in_steps(Sweep(replica, rooms).steps()) > 0
    late = RowMutation(rooms, b"k", [Edit("f", None, b"n", b"late")])
    refused = replica.write(late, Attempt(Version(5, 100), journal=7), BEGINNING)
    assert refused == Outranked(6, 7)
    assert replica.adopt(rooms, b"k", 5, 7) == Outranked(6, 7)


async def test_without_deletes_any_time_is_taken() -> None:
    wall = Wall()
    async with opened(wall, MemoryEngine()) as (store, backend):
        await store.insert(TABLE, "k", {"f": {1: b""}})
        wall.now += 10 * HORIZON_LAG_US
        await backend.sweep()
        await store.insert(TABLE, "k", {"f": {2: b""}}, timestamp=1)
        assert (await store.get(TABLE, "k", "f", 2)).version.time == 1


async def test_the_horizon_is_promised_before_anything_goes() -> None:
    wall, engine = Wall(), SimEngine()
    async with opened(wall, engine) as (store, backend):
        await store.delete(TABLE, "k", "f", 1)
        wall.now += 2 * HORIZON_LAG_US
        await backend.sweep()
        engine.crash()
    async with opened(wall, engine) as (_, backend):
        assert backend.replica.horizon == BEGINNING


async def test_a_clock_that_went_back_does_not_hide_new_writes() -> None:
    wall = Wall()
    async with opened(wall, MemoryEngine()) as (store, backend):
        await store.delete(TABLE, "k", "f", 1)
        wall.now += 2 * HORIZON_LAG_US
        await backend.sweep()
        wall.now = BEGINNING - HORIZON_LAG_US
        again = ColumnStore(backend, {"t": TABLE}, wall)
        again._is_open = True
        await again.insert(TABLE, "k", {"f": {1: b"late, and counts"}})
        assert (await again.get(TABLE, "k", "f", 1)).value == b"late, and counts"


async def fill_with_tombstones(store: ColumnStore, count: int) -> None:
    for start in range(0, count, 10_000):
        gone = dict.fromkeys(range(start, start + 10_000), b"")
        await store.insert(TABLE, "k", {"f": gone})
    await store.delete(TABLE, "k", "f")
    await store.insert(TABLE, "k", {"f": {count: b"first", count + 1: b"second"}})


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
async def test_a_page_behind_many_tombstones_lets_the_loop_run(kind: str, tmp_path: Path) -> None:
    """No more tombstones are in memory than a step looks at, either."""
    count = 50_000
    engine = MemoryEngine() if kind == "memory" else RocksEngine.open(tmp_path / "store")
    async with opened(Wall(), engine) as (store, _):
        await fill_with_tombstones(store, count)
        turns = 0

        async def tick() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        tracemalloc.start()
        page = await store.get(TABLE, "k", "f", first=1)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1 << 20
        assert [column.value for column in page] == [b"first"]
        page = await store.get(TABLE, "k", "f", first=5, next=page.next)
        assert [column.value for column in page] == [b"second"]
        ticking.cancel()
        assert turns >= count // 512


async def test_sweeping_goes_on_while_the_row_is_written(tmp_path: Path) -> None:
    wall = Wall()
    async with opened(wall, RocksEngine.open(tmp_path / "store")) as (store, backend):
        await fill_with_tombstones(store, 20_000)
        wall.now += 2 * HORIZON_LAG_US
        sweeping = asyncio.create_task(backend.sweep())
        for n in range(0, 20_000, 1_000):
            await store.insert(TABLE, "k", {"f": {n: b"again"}})
        await sweeping
        page = await store.get(TABLE, "k", "f", first=100)
        assert [each.name for each in page] == [*range(0, 20_000, 1_000), 20_000, 20_001]
        assert len(list(backend.replica.engine.cursor("t.f").walk(b"", None))) == len(page)


async def test_a_reading_that_closing_interrupts_is_no_page(tmp_path: Path) -> None:
    """Closing ends its cursors: the reading must not mistake that for the end of the row."""
    async with opened(Wall(), RocksEngine.open(tmp_path / "store")) as (store, _):
        await store.insert(TABLE, "k", {"f": dict.fromkeys(range(5_000), b"")})
        reading = asyncio.create_task(store.get(TABLE, "k", "f", first=5_000))
        await asyncio.sleep(0)
    with pytest.raises(ClosedError, match="closed in the meantime"):
        await reading


async def test_a_step_ends_after_a_megabyte_too() -> None:
    """Large values that are hidden take as long to pass as many small ones."""
    replica = Replica(MemoryEngine())
    replica.open([TABLE])
    for n in range(16):
        edits = [Edit("f", None, b"%08d" % n, bytes(1 << 20))]
        replica.write(RowMutation(TABLE, b"k", edits), Attempt(Version(0, n + 1)), BEGINNING)
    assert steps(check(replica, TABLE)) >= 32  # it looks twice
    clear = RowMutation(TABLE, b"k", [Edit("f")])
    replica.write(clear, Attempt(Version(0, 20)), BEGINNING)
    asked = ReadPage(
        table=TABLE.name, key=b"k", family=TABLE.shapes["f"].name, super=None, part=Slice(1)
    )
    assert steps(replica.read(asked)) >= 16
    replica.raise_horizon(20)
    assert steps(Sweep(replica, TABLE).steps()) >= 15


async def test_a_step_ends_after_some_tombstones_or_large_columns_that_replaced_them() -> None:
    """Each of both looks at the existing columns, and the list is read 64 at a time."""
    replica = Replica(MemoryEngine())
    replica.open([TABLE])

    def write(number: int, value: bytes | None, time: int) -> None:
        edits = [Edit("f", None, b"%d" % number, value)]
        attempt = Attempt(Version(0, time), "merge")
        assert replica.write(RowMutation(TABLE, b"k", edits), attempt, BEGINNING) is None

    for n in range(8):
        write(n, None, 1 + n)
        write(n, bytes(1 << 20), 11 + n)
    replica.raise_horizon(18)
    assert steps(Sweep(replica, TABLE).steps()) == 8
    for n in range(640):
        write(100 + n, None, 100 + n)
    replica.raise_horizon(1_000)
    assert steps(Sweep(replica, TABLE).steps()) == 10 + 640 // 64


class BrokenEngine(MemoryEngine):
    """Refuses to remove anything, as often as the test wants it."""

    error: Exception
    times = 0

    def apply(self, batch: Sequence[Entry]) -> None:
        if self.times and any(value is None for _, _, value in batch):
            self.times -= 1
            raise self.error
        super().apply(batch)


@asynccontextmanager
async def sweeping_always(
    engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """A store that sweeps at each turn of the loop, in which something was deleted long ago."""
    monkeypatch.setattr(embedded, "SWEEP_SECONDS", 0.0)
    wall = Wall()
    async with opened(wall, engine) as (store, _):
        await store.delete(TABLE, "k", "f", 1)
        wall.now += 2 * HORIZON_LAG_US
        yield


async def is_swept(engine: MemoryEngine) -> bool:
    """Whether nothing is left after what takes a hundred turns of the loop."""
    for _ in range(100):
        await asyncio.sleep(0.001)
        if not entries(engine):
            return True
    return False


async def test_an_open_store_sweeps_now_and_then_even_if_the_disk_is_busy_at_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = BrokenEngine()
    engine.error, engine.times = EngineBusy("Result incomplete: Write stall"), 3
    async with sweeping_always(engine, monkeypatch):
        assert await is_swept(engine)
    assert engine.times == 0


async def test_a_store_whose_disk_fails_says_once_that_it_sweeps_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = BrokenEngine()
    engine.error, engine.times = StoreUnwritable("the disk is gone"), 1
    async with sweeping_always(engine, monkeypatch):
        assert not await is_swept(engine)
    assert engine.times == 0
    assert caplog.text.count("deleted data is no longer swept: the disk is gone") == 1


def steps(of: Steps[Any]) -> int:
    return sum(1 for _ in of)
