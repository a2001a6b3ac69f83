"""The store in a directory: the cost of writing, the blocks that reading touches, and how long
callers wait.

Applying is compared with the bare RocksDB batch of the same cells. A hundred writers share syncs,
and one waits for each of its own. Cells are counted by the second, and by the processor's second,
from which whatever else the machine does is left out. Blocks are counted by RocksDB. How long the
interpreter is held is seen by a thread that sleeps a millisecond at a time and looks how late it
wakes, beside a process that does the same and shares no interpreter. On a busy machine such a
thread is late as well because the one with the interpreter was put aside; so the processor's time
of each turn of the loop is measured, too. It is no less than what was held in that turn.
"""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import NamedTuple

from rocksdict import Options, Rdict, WriteBatch

from benchmarks._old_cassandra import beside_old_cassandra
from benchmarks._quick import QUICK, at_least, at_most, sized, soon
from benchmarks._rounds import line
from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.rocksdb import EngineOptions, RocksEngine
from tenure.columns.replica import Replica
from tenure.columns.requests import RowMutation
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version

TABLE = Table("t", f=Family(columns=bytes), g=Family(columns=int))
VALUE = bytes(100)
NAMES = [b"column-%d" % n for n in range(10)]
ROWS = sized(20_000, 2_000)
ROUNDS = 20
WRITERS = 100
SECONDS = sized(10, 2)
TURNS = sized(5, 2)
SYNC_SECONDS = 0.003
"""The time of a sync on the disk of a common machine (docs/decisions/0016)."""
WIDE = sized(50, 5) << 20
HELD_BYTES = sized(100, 10) << 20
TOMBSTONES = sized(1_000_000, 50_000)
NOW = 1_700_000_000_000_000


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    with TemporaryDirectory() as place:
        path = Path(place)
        are_kept = [
            applying(path / "applying"),
            asyncio.run(inserting(path / "inserting")),
            asyncio.run(reading(path / "reading")),
            asyncio.run(holding(path / "holding")),
            asyncio.run(beside_old_cassandra(path / "beside")),
        ]
    return 0 if all(are_kept) else 1


def told(what: str, found: float, bound: float, *, low: bool = False, unit: str = "") -> bool:
    """A line with a figure beside its bound; whether it is kept."""
    is_kept = found >= bound if low else found <= bound
    sign = ">=" if low else "<="
    print(line(what, f"{found:,.1f}{unit}", f"{sign} {bound:,.1f}{unit}", is_kept=is_kept))
    return is_kept


def applying(path: Path) -> bool:
    """The CPU of a replica's writes beside bare batches of the same cells, in turn."""
    database = Rdict(str(path / "bare"), Options(raw_mode=True))
    engine = RocksEngine.open(path / "store")
    replica = Replica(engine)
    replica.open([TABLE])
    kept = []
    for time_us, what in ((NOW, "new rows"), (NOW + ROWS, "rows that are there")):
        ratio = _beside_bare(replica, database, time_us)
        kept.append(told(f"applying to {what}, beside bare", ratio, at_most(5), unit=" x"))
    database.close()
    engine.close()
    return all(kept)


def _beside_bare(replica: Replica, database: Rdict, time_us: int) -> float:
    """How many times the CPU of the bare batch: the median of all rounds."""
    rows = [b"row-%08d" % (n * 7_919 % ROWS) for n in range(ROWS)]
    edits = [Edit("f", None, name, VALUE) for name in NAMES]
    ratios = []
    for start in range(0, ROWS, ROWS // ROUNDS):
        part = rows[start : start + ROWS // ROUNDS]
        began = time.thread_time()
        for row in part:
            batch = WriteBatch(raw_mode=True)
            for name in NAMES:
                batch.put(row + name, VALUE)
            database.write(batch)
        bare = time.thread_time() - began
        began = time.thread_time()
        for n, row in enumerate(part, start):
            attempt = Attempt(Version(0, time_us + n))
            assert replica.write(RowMutation(TABLE, row, edits), attempt, NOW) is None
        ratios.append((time.thread_time() - began) / bare)
    return median(ratios)


async def inserting(path: Path) -> bool:
    """Writes that are synced, of one writer and of a hundred: of one cell, and of ten.

    In turns, since what a disk takes changes from second to second. A disk that syncs in no time
    leaves little to share; so the ratio is that on one which takes `SYNC_SECONDS` at least.
    """
    kinds = {
        "one": (1, NAMES[:1], SYNC_SECONDS),
        "many": (WRITERS, NAMES[:1], SYNC_SECONDS),
        "here": (1, NAMES[:1], 0.0),
        "cells": (WRITERS, NAMES, 0.0),
    }
    found: dict[str, list[Rate]] = {kind: [] for kind in kinds}
    for turn in range(TURNS):
        for kind, (writers, names, least) in kinds.items():
            found[kind].append(await rate(path / f"{kind}-{turn}", writers, names, least))
    one, many, here, wall = (median(each.writes for each in found[kind]) for kind in kinds)
    shared = median(each.shared for each in found["many"])
    print(
        f"inserts: {one:,.0f}/s by one writer, {many:,.0f}/s by {WRITERS}; {here:,.0f}/s by one "
        f"as fast as this disk syncs; {wall:,.0f}/s of ten cells by {WRITERS}"
    )
    kept = [
        told("inserts that share a sync", shared, 10, low=True),
        told("a hundred writers, beside one", many / one, at_least(10), low=True, unit=" x"),
    ]
    if not QUICK:  # seconds would also count whatever else the machine does
        cells = wall * len(NAMES)
        kept.append(told("cells of rows of ten, a second", cells, 50_000, low=True))
    cells = median(each.cells for each in found["cells"])
    what = "cells of rows of ten, in a processor's second"
    return told(what, cells, at_least(50_000), low=True) and all(kept)


class Rate(NamedTuple):
    """Inserts a second, inserts a sync, and cells in a second of the processor."""

    writes: float
    shared: float
    cells: float


async def rate(path: Path, writers: int, names: list[bytes], least: float) -> Rate:
    """How fast that many writers insert where a sync takes `least` seconds, or more."""
    backend = EmbeddedBackend(lambda: SlowedEngine.beside(path, least), [TABLE])
    store = ColumnStore(backend, {"t": TABLE})
    await store.open()
    count = 0
    began, processor, syncs = time.monotonic(), time.process_time(), backend.commits.count
    end = began + SECONDS / TURNS

    async def write(writer: int) -> None:
        nonlocal count
        n = 0
        while time.monotonic() < end:
            await store.insert(TABLE, f"{writer}-{n}", {"f": dict.fromkeys(names, VALUE)})
            n, count = n + 1, count + 1

    await asyncio.gather(*(write(writer) for writer in range(writers)))
    seconds, processor = time.monotonic() - began, time.process_time() - processor
    syncs = backend.commits.count - syncs
    await store.close()
    return Rate(count / seconds, count / syncs, count * len(names) / processor)


class SlowedEngine(RocksEngine):
    """An engine on a disk that takes its time."""

    least = 0.0

    @classmethod
    def beside(cls, path: Path, least: float) -> "SlowedEngine":
        engine = cls.open(path)
        engine.least = least
        return engine

    def sync(self) -> None:
        began = time.monotonic()
        super().sync()
        time.sleep(max(0.0, self.least - (time.monotonic() - began)))


def opened(path: Path) -> ColumnStore:
    """A store that counts blocks."""
    options = EngineOptions(statistics=True)
    backend = EmbeddedBackend(lambda: RocksEngine.open(path, None, options), [TABLE])
    return ColumnStore(backend, {"t": TABLE})


async def reading(path: Path) -> bool:
    """How many data blocks a read looks at, and how many it must fetch."""
    store = opened(path)
    await store.open()
    for n in range(1_000):
        await store.insert(TABLE, f"row-{n}", {"f": {b"x": VALUE}, "g": {1: VALUE}})
    for start in range(0, WIDE // 10_000, 100):
        columns = {n: bytes(10_000) for n in range(start, start + 100)}
        await store.insert(TABLE, "wide", {"g": columns})
    await store.close()
    store = opened(path)
    await store.open()
    engine = engine_of(store)
    engine.compact()
    before = blocks(engine, "hit", "miss")
    for n in range(1_000):
        assert await store.get(TABLE, f"row-{n}x", "f", b"x") is None
    missing = (blocks(engine, "hit", "miss") - before) / 1_000
    kept = told("data blocks of a missing row", missing, 0.05)
    before = blocks(engine, "miss")
    assert await store.get(TABLE, "wide", "g", WIDE // 10_000 - 1) is not None
    last = blocks(engine, "miss") - before
    kept = told("data blocks for the last column of a wide row", last, 2) and kept
    await store.close()
    store = opened(path)
    await store.open()
    engine = engine_of(store)
    await store.warm(TABLE, "row-7")
    await store.warmed()
    before = blocks(engine, "miss")
    await store.get(TABLE, "row-7", "f")
    await store.get(TABLE, "row-7", "g")
    warm = blocks(engine, "miss") - before
    await store.close()
    return told("data blocks fetched after warm", warm, 0) and kept


def engine_of(store: ColumnStore) -> RocksEngine:
    assert isinstance(store.backend, EmbeddedBackend)
    engine = store.backend.replica.engine
    assert isinstance(engine, RocksEngine)
    return engine


def blocks(engine: RocksEngine, *kinds: str) -> int:
    """Return the blocks that RocksDB has counted so far."""
    text = engine.statistics()
    found = [
        re.search(rf"rocksdb\.block\.cache\.data\.{kind} COUNT : (\d+)", text) for kind in kinds
    ]
    return sum(int(each[1]) for each in found if each)


async def holding(path: Path) -> bool:
    """How long another thread waits for the interpreter, at the 99.9th percentile."""
    store = opened(path)
    await store.open()
    engine = engine_of(store)
    with (
        TemporaryDirectory() as place,
        late(Path(place) / "beside") as (lates, beside),
        turns() as spent,
    ):
        for n in range(HELD_BYTES // 1_000_000):
            row = {name: bytes(100_000) for name in NAMES}
            await store.insert(TABLE, f"row-{n}", {"f": row})
        for start in range(0, TOMBSTONES, 1_000):
            columns = dict.fromkeys(range(start, start + 1_000), b"")
            await store.insert(TABLE, "gone", {"g": columns})
        await asyncio.to_thread(engine.flush)
        await asyncio.to_thread(engine.compact)
        await store.delete(TABLE, "gone", "g")
        began = time.monotonic()
        page = await store.get(TABLE, "gone", "g")
        seconds = time.monotonic() - began
        await store.close()
    assert len(page) == 0
    print(f"a page behind {TOMBSTONES:,} tombstones: {seconds:.1f} s; {len(lates):,} wakings")
    found, other = percentile(lates), percentile(beside)
    print(f"late at the 99.9th percentile: {found:.1f} ms here, {other:.1f} ms in a process beside")
    kept = told("a turn of the loop, of the processor's time", percentile(spent), 20, unit=" ms")
    held = found - other
    return told("the interpreter is held, beyond that", held, soon(20), unit=" ms") and kept


def percentile(of: list[float]) -> float:
    """The 99.9th, in milliseconds."""
    ordered = sorted(of)
    return ordered[int(len(ordered) * 0.999)] * 1e3


@contextmanager
def turns() -> Iterator[list[float]]:
    """How much of the processor's time each callback takes that the loop runs."""
    spent: list[float] = []
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        spent.append(time.thread_time() - began)

    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
    try:
        yield spent
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]


WATCH = """
import sys, time
found = []
with open(sys.argv[1], "w") as file:
    while True:
        began = time.perf_counter()
        time.sleep(0.001)
        print(time.perf_counter() - began - 0.001, file=file, flush=True)
"""


@contextmanager
def late(path: Path) -> Iterator[tuple[list[float], list[float]]]:
    """How late, in seconds, a thread and a process wake that sleep a millisecond at a time."""
    found: list[float] = []
    beside: list[float] = []
    is_over = Event()

    def watch() -> None:
        while not is_over.is_set():
            began = time.perf_counter()
            time.sleep(0.001)
            found.append(time.perf_counter() - began - 0.001)

    thread = Thread(target=watch)
    with subprocess.Popen([sys.executable, "-c", WATCH, str(path)]) as process:
        thread.start()
        try:
            yield found, beside
        finally:
            is_over.set()
            thread.join()
            process.kill()
    beside += [float(each) for each in path.read_text().splitlines()[:-1]]


if __name__ == "__main__":
    sys.exit(main())
