"""Traps that RocksDB sets for those who do not know it, each as a test (see
`engines/rocksdb.py`).
"""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

import pytest

from tenure.columns.backends import embedded
from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.contract import EngineBusy, Entry
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.engines.rocksdb import MIB, EngineOptions, RocksEngine
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.errors import Overloaded, StoreUnwritable, WriteUnknown
from tenure.protocol.replication.row.versions import Version
from tests.patience import DEADLINE_SECONDS

TABLE = Table("t", f=Family(columns=int))


def test_a_disk_that_does_not_keep_up_refuses_instead_of_holding_everybody(tmp_path: Path) -> None:
    """Without `no_slowdown` the write would wait inside RocksDB, with the interpreter's lock."""
    options = EngineOptions(family_bytes=64 << 10)
    engine = RocksEngine.open(tmp_path / "store", None, options)
    engine.make_spaces(["a.b"])
    written = 0

    def write_until_refused() -> None:
        nonlocal written
        for n in range(100_000):
            engine.apply([("a.b", b"%06d" % n, bytes(20_000))])
            written += 1

    with pytest.raises(EngineBusy):
        write_until_refused()
    engine.flush()
    keys = [key for key, _ in engine.cursor("a.b").walk(b"", None)]
    assert keys == [b"%06d" % n for n in range(written)]  # a refused write left nothing
    engine.close()


def test_rocksdb_is_set_as_we_say(tmp_path: Path) -> None:
    """It writes beside its data what it was told, for all families and for each; its log has what
    that file lacks.
    """
    options = EngineOptions(log_bytes=3 * MIB, family_bytes=2 * MIB, cache_bytes=5 * MIB)
    path, log = tmp_path / "store", tmp_path / "log"
    engine = RocksEngine.open(path, log, options)
    engine.make_spaces(["a.b"])
    engine.close()
    RocksEngine.open(path, log, options).close()
    [*_, latest] = sorted(path.glob("OPTIONS-*"))
    sections = latest.read_text().split("\n[")
    of_all = settings_in(sections, "DBOptions")
    assert (
        of_all.items()
        >= {
            "max_total_wal_size": f"{3 * MIB}",
            "wal_dir": str(log),
            "wal_recovery_mode": "kTolerateCorruptedTailRecords",
            "max_background_jobs": "2",
            "bytes_per_sync": f"{MIB}",
            "keep_log_file_num": "2",
            "max_log_file_size": f"{MIB}",
        }.items()
    )
    of_one = settings_in(sections, 'CFOptions "a.b"')
    assert (
        of_one.items()
        >= {
            "write_buffer_size": f"{2 * MIB}",
            "max_write_buffer_number": "4",
            "compaction_style": "kCompactionStyleUniversal",
            "level0_file_num_compaction_trigger": "16",
            "level0_slowdown_writes_trigger": "64",
            "level0_stop_writes_trigger": "128",
            "compression": "kLZ4Compression",
            "bottommost_compression": "kZSTD",
        }.items()
    )
    merging = set(of_one["compaction_options_universal"].strip("{}").split(";"))
    assert merging >= {
        "stop_style=kCompactionStopStyleSimilarSize",
        "size_ratio=100",
        "max_size_amplification_percent=1000000000",
    }
    said = (path / "LOG").read_text()
    assert (
        settings_in(sections, 'TableOptions/BlockBasedTable "a.b"').items()
        >= {
            "block_size": f"{16 << 10}",
            "no_block_cache": "false",
        }.items()
    )
    collectors = "Sliding window size = 65536 Deletion trigger = 16384 Deletion ratio = 0)"
    assert said.count(collectors) == 2  # one for each family, used or not
    assert said.count(f"capacity : {5 * MIB}\n") == 2
    assert said.count("filter_policy: bloomfilter") == 2


def settings_in(sections: list[str], name: str) -> dict[str, str]:
    """The settings in one section of a file of RocksDB's options."""
    [text] = [each for each in sections if each.startswith(f"{name}]")]
    lines = [line.strip().partition("=") for line in text.splitlines()[1:]]
    return {key: value for key, _, value in lines if key}


class BusyEngine(MemoryEngine):
    """Does not keep up for a while."""

    busy_for = 0

    def apply(self, batch: Sequence[Entry]) -> None:
        if self.busy_for:
            self.busy_for -= 1
            raise EngineBusy("Result incomplete: Write stall")
        super().apply(batch)


@pytest.mark.asyncio
async def test_a_write_comes_again_until_the_disk_has_kept_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded, "BUSY_SECONDS", 0.0)
    engine = BusyEngine()
    store = ColumnStore(EmbeddedBackend(lambda: engine, [TABLE]), {"t": TABLE})
    await store.open()
    engine.busy_for = 5
    await store.insert(TABLE, "k", {"f": {1: b"v"}})
    assert (await store.get(TABLE, "k", "f", 1)).value == b"v"
    engine.busy_for = 1_000
    with pytest.raises(Overloaded, match="not begun"):
        await store.insert(TABLE, "k", {"f": {2: b"v"}})
    engine.busy_for = 0
    assert await store.get(TABLE, "k", "f", 2) is None
    engine.busy_for = 5
    assert isinstance(await store.backend.adopt(TABLE, b"k", 5, 1), Version)
    engine.busy_for = 1_000
    with pytest.raises(Overloaded, match="not begun"):
        await store.backend.adopt(TABLE, b"k", 6, 1)
    engine.busy_for = 0
    await store.close()


def test_a_sync_does_not_hold_the_interpreter(tmp_path: Path) -> None:
    """A thread goes on counting while another one syncs 8 MB, flushes them and compacts them."""
    engine = RocksEngine.open(tmp_path / "store")
    engine.make_spaces(["a.b"])
    for n in range(8):
        engine.apply([("a.b", b"%d" % n, bytes(MIB))])
    is_over, counted = Event(), 0

    def work() -> None:
        engine.sync()
        engine.flush()
        engine.compact()
        is_over.set()

    thread = Thread(target=work)
    thread.start()
    while not is_over.is_set():
        counted += 1
    thread.join()
    assert counted > 100
    engine.close()


def test_a_batch_is_never_synced_by_itself_and_a_sync_reaches_the_disk(tmp_path: Path) -> None:
    """The first would hold the interpreter. No process can see the second but by counting: what
    it has written is in the system's memory, whatever kills it.
    """
    engine = RocksEngine.open(tmp_path / "store", None, EngineOptions(statistics=True))
    engine.make_spaces(["a.b"])
    engine.sync()
    before = log_syncs(engine)
    for n in range(10):
        engine.apply([("a.b", b"%d" % n, b"")])
    assert log_syncs(engine) == before
    engine.sync()
    assert log_syncs(engine) == before + 1
    engine.close()


def log_syncs(engine: RocksEngine) -> int:
    found = re.search(r"rocksdb\.wal\.synced COUNT : (\d+)", engine.statistics())
    assert found
    return int(found[1])


@pytest.mark.asyncio
async def test_what_was_not_begun_is_repeated_after_the_clock_went_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The replica has seen a clock as late as its time, so its time is not in the future."""
    monkeypatch.setattr(embedded, "BUSY_SECONDS", 0.0)
    engine, wall = BusyEngine(), [2_000_000_000_000_000]
    backend = EmbeddedBackend(lambda: engine, [TABLE], clock=lambda: wall[0])
    store = ColumnStore(backend, {"t": TABLE}, lambda: wall[0])
    await store.open()
    engine.busy_for = 1_000
    write = store.insert(TABLE, "k", {"f": {1: b"v"}})
    with pytest.raises(Overloaded):
        await write
    engine.busy_for = 0
    wall[0] -= 1_000_000_000_000
    assert await write.repeat() == write.version
    assert (await store.get(TABLE, "k", "f", 1)).value == b"v"
    await store.close()


class SlowEngine(MemoryEngine):
    """Syncs as slowly as the test wants it, and counts what is applied."""

    def __init__(self) -> None:
        super().__init__()
        self.may_sync = Event()
        self.may_sync.set()
        self.applied = 0

    def apply(self, batch: Sequence[Entry]) -> None:
        super().apply(batch)
        self.applied += 1

    def sync(self) -> None:
        self.may_sync.wait()
        super().sync()


@pytest.mark.asyncio
async def test_all_that_wait_share_one_sync() -> None:
    """Writes that come while one sync runs share the next one."""
    engine = SlowEngine()
    backend = EmbeddedBackend(lambda: engine, [TABLE])
    store = ColumnStore(backend, {"t": TABLE})
    await store.open()
    before, engine.applied = backend.commits.count, 0
    engine.may_sync.clear()
    writes = [store.insert(TABLE, f"k{n}", {"f": {1: b""}}) for n in range(100)]
    gathered = asyncio.gather(*writes)
    while engine.applied < len(writes):  # noqa: ASYNC110 - of the engine
        await asyncio.sleep(0)
    assert not gathered.done()
    engine.may_sync.set()
    await gathered
    assert backend.commits.count - before <= 2
    await store.close()


@pytest.mark.asyncio
async def test_closing_waits_for_what_has_begun() -> None:
    engine = SlowEngine()
    store = ColumnStore(EmbeddedBackend(lambda: engine, [TABLE]), {"t": TABLE})
    await store.open()
    engine.may_sync.clear()
    first, second = (asyncio.ensure_future(store.insert(TABLE, k, {"f": {1: b""}})) for k in "ab")
    await asyncio.sleep(0)
    closing = asyncio.create_task(store.close())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not closing.done()
    first.cancel()
    engine.may_sync.set()
    await closing
    assert (await second).number == 0


@pytest.mark.asyncio
async def test_a_program_that_hangs_in_all_its_threads_still_writes() -> None:
    engine, is_over = SlowEngine(), Event()
    store = ColumnStore(EmbeddedBackend(lambda: engine, [TABLE]), {"t": TABLE})
    await store.open()
    hanging = [asyncio.create_task(asyncio.to_thread(is_over.wait)) for _ in range(50)]
    await asyncio.sleep(0)
    await asyncio.wait_for(store.insert(TABLE, "k", {"f": {1: b""}}), DEADLINE_SECONDS)
    is_over.set()
    await asyncio.gather(*hanging)
    await store.close()


class FailingEngine(MemoryEngine):
    """Its disk is gone."""

    is_gone = False

    def sync(self) -> None:
        if self.is_gone:
            raise StoreUnwritable("the disk is gone")
        super().sync()


@pytest.mark.asyncio
async def test_in_fast_mode_a_sync_that_fails_is_told_when_the_store_is_closed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedded, "FAST_SECONDS", 0.0)
    engine = FailingEngine()
    store = ColumnStore(EmbeddedBackend(lambda: engine, [TABLE], "fast"), {"t": TABLE})
    await store.open()
    engine.is_gone = True
    await store.insert(TABLE, "k", {"f": {1: b""}})
    while not caplog.records:  # noqa: ASYNC110 - a line of the log
        await asyncio.sleep(0)
    assert "not kept yet: the disk is gone" in caplog.text
    with pytest.raises(StoreUnwritable):
        await store.close()


class SlowlyFailingEngine(SlowEngine, FailingEngine):
    """Its disk is gone before a sync of it ends."""


@pytest.mark.asyncio
async def test_in_fast_mode_a_sync_that_closing_overtakes_and_that_fails_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded, "FAST_SECONDS", 0.0)
    engine = SlowlyFailingEngine()
    backend = EmbeddedBackend(lambda: engine, [TABLE], "fast")
    store = ColumnStore(backend, {"t": TABLE})
    await store.open()
    engine.may_sync.clear()
    await store.insert(TABLE, "k", {"f": {1: b""}})
    while not backend.commits.count:  # noqa: ASYNC110 - it has begun
        await asyncio.sleep(0)
    engine.is_gone = True
    closing = asyncio.create_task(store.close())
    for _ in range(3):
        await asyncio.sleep(0)
    engine.may_sync.set()
    with pytest.raises(StoreUnwritable):
        await closing


@pytest.mark.asyncio
async def test_a_sync_that_fails_acknowledges_nobody() -> None:
    engine = FailingEngine()
    store = ColumnStore(EmbeddedBackend(lambda: engine, [TABLE]), {"t": TABLE})
    await store.open()
    engine.is_gone = True
    writes = [store.insert(TABLE, f"k{n}", {"f": {1: b""}}) for n in range(10)]
    found = await asyncio.gather(*writes, return_exceptions=True)
    assert [getattr(each, "write", None) for each in found] == writes
    assert all(isinstance(each, WriteUnknown) for each in found)
    engine.is_gone = False
    await writes[0].repeat()
    await store.close()
