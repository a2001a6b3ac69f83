"""The store in a directory beside a real Cassandra 1.2.0: how much one client does in a second.

Both keep rows of ten cells on the same disk, in turns. Cassandra is asked over a socket, by a
client written by hand in Python for its binary protocol, whose time counts too; the store is called
in the process. Cassandra answers before it syncs, as the store does with `sync="fast"`.
"""

import itertools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from benchmarks._quick import QUICK, at_least, sized
from benchmarks._rounds import line
from tenure.columns.opening import open_store
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tests.integration.cassandra.server import cassandra, why_not
from tests.integration.cassandra.thrift import Column, Slice, ThriftClient

TABLE = Table("t", writes="clock", f=Family(columns=bytes))
NAMES = [b"column-%d" % n for n in range(10)]
VALUE = bytes(100)
WARM = sized(5_000, 500)
"""Requests before anything is measured: Java is slow at first."""
TURNS = sized(7, 3)
SECONDS = sized(2, 1)


async def beside_old_cassandra(path: Path) -> bool:
    """Print rates and ratios; return whether the bounds are kept. True if there is no Java."""
    if missing := why_not():
        print(f"beside Cassandra 1.2.0: not measured: {missing}")
        return True
    with (
        cassandra(path / "cassandra") as running,
        ThriftClient(running.host, running.thrift_port) as old,
    ):
        old.add_keyspace("k", {"f": ("BytesType", None)})
        old.set_keyspace("k")
        async with (
            open_store(f"rocksdb:{path / 'normal'}", TABLE) as normal,
            open_store(f"rocksdb:{path / 'fast'}", TABLE, sync="fast") as fast,
        ):
            return await _compare(old, normal, fast)


async def _compare(old: ThriftClient, normal: ColumnStore, fast: ColumnStore) -> bool:
    numbers = itertools.count()

    async def insert_old() -> None:
        at = time.time_ns() // 1_000
        changes = [Column(name, VALUE, at) for name in NAMES]
        old.mutate(b"row-%08d" % next(numbers), {"f": changes})

    def insert(store: ColumnStore) -> Callable[[], Awaitable[object]]:
        return lambda: store.insert(
            TABLE, f"row-{next(numbers):08}", {"f": dict.fromkeys(NAMES, VALUE)}
        )

    async def get_old() -> None:
        found = old.slice(b"row-%08d" % (next(numbers) % WARM), "f", Slice(most=10))
        assert len(found) == 10

    async def get() -> None:
        page = await fast.get(TABLE, f"row-{next(numbers) % WARM:08}", "f", first=10)
        assert len(page) == 10

    for n in range(WARM):
        old.mutate(b"row-%08d" % n, {"f": [Column(name, VALUE, 1) for name in NAMES]})
        await fast.insert(TABLE, f"row-{n:08}", {"f": dict.fromkeys(NAMES, VALUE)})
        await get_old()
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "1.2.0 inserts": insert_old,
        "normal inserts": insert(normal),
        "fast inserts": insert(fast),
        "1.2.0 gets": get_old,
        "gets": get,
    }
    rates: dict[str, list[float]] = {what: [] for what in calls}
    for _ in range(TURNS):
        for what, call in calls.items():
            rates[what].append(await _rate(call))
    found = {what: median(each) for what, each in rates.items()}
    print("one client: " + ", ".join(f"{rate:,.0f} {what}/s" for what, rate in found.items()))
    bounds = {"gets": 1.0, "fast inserts": 1.0, "normal inserts": 0.5}
    kept = True
    for what, bound in bounds.items():
        ratio = found[what] / found["1.2.0 gets" if what == "gets" else "1.2.0 inserts"]
        is_kept = ratio >= at_least(bound) or (QUICK and what == "normal inserts")
        print(line(f"{what}, beside 1.2.0", f"{ratio:.1f} x", f">= {bound} x", is_kept=is_kept))
        kept = kept and is_kept
    return kept


async def _rate(call: Callable[[], Awaitable[object]]) -> float:
    count, began = 0, time.monotonic()
    while (spent := time.monotonic() - began) < SECONDS:
        await call()
        count += 1
    return count / spent
