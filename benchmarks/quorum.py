"""Three nodes at quorum beside three of Cassandra 1.2.0: how long one client waits.

    python -m benchmarks quorum                 # 5,000 inserts and gets of each
    python -m benchmarks quorum --synced        # 1.2.0 syncs before it answers, too
    python -m benchmarks --quick quorum

All nodes are processes of this host, and both clusters run all the time; they are asked in turns.
A row has ten cells of 100 bytes, on three replicas. The nodes sync before they answer. With its own
settings 1.2.0 answers up to ten seconds before it syncs, so that a power failure takes what it has
acknowledged. It was just started: Java compiles on the way. Without Java it is left out, and that
is said.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks._quick import QUICK, sized
from benchmarks._rounds import line
from lab.demo.ring.home_ring import HomeRing
from tenure.columns.opening import open_store
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tests.integration.cassandra.server import Cassandra, cassandra_ring, why_not
from tests.integration.cassandra.thrift import QUORUM, Column, Slice, ThriftClient

TABLE = Table("t", f=Family(columns=bytes))
NAMES = [b"column-%d" % n for n in range(10)]
VALUE = bytes(100)
NODES = 3
REQUESTS = sized(5_000, 300)
TURN = 100
"""Requests to one of the clusters, before the other has its turn."""

Call = Callable[[int], Awaitable[object]]
Waited = dict[str, list[float]]
"""Seconds, by what was asked of whom."""


def of_nodes(store: ColumnStore) -> dict[str, Call]:
    """Return the operations of our store that are measured."""

    async def insert(n: int) -> None:
        await store.insert(TABLE, f"row-{n:08}", {"f": dict.fromkeys(NAMES, VALUE)})

    async def get(n: int) -> None:
        assert len(await store.get(TABLE, f"row-{n:08}", "f", first=10)) == len(NAMES)

    return {"inserts": insert, "gets": get}


def of_old(client: ThriftClient) -> dict[str, Call]:
    """The same of 1.2.0."""

    async def insert(n: int) -> None:
        at = time.time_ns() // 1_000
        client.mutate(b"row-%08d" % n, {"f": [Column(name, VALUE, at) for name in NAMES]})

    async def get(n: int) -> None:
        assert len(client.slice(b"row-%08d" % n, "f", Slice(most=10))) == len(NAMES)

    return {"1.2.0 inserts": insert, "1.2.0 gets": get}


async def measured(calls: dict[str, Call]) -> Waited:
    """Ask all, a turn of each after the other. Rows are read that were written in that turn."""
    waited: Waited = {what: [] for what in calls}
    for start in range(0, REQUESTS, TURN):
        for what, call in calls.items():
            for n in range(start, start + TURN):
                began = time.perf_counter()
                await call(n)
                waited[what].append(time.perf_counter() - began)
    return waited


async def compare(place: Path, ring: list[Cassandra]) -> bool:
    """Print what each client waited for; whether ours waited no longer at the 99th percentile."""
    home = HomeRing(place, NODES, spares=0, options=())  # it is repaired as often as any cluster
    try:
        await home.start()
        async with open_store(home.url, TABLE) as store:
            calls = of_nodes(store)
            if not ring:
                return said(await measured(calls))
            with ThriftClient(ring[0].host, ring[0].thrift_port, QUORUM) as client:
                client.add_keyspace("k", {"f": ("BytesType", None)}, replicas=NODES)
                client.set_keyspace("k")
                await asyncio.sleep(2)  # the other two hear of it
                return said(await measured(calls | of_old(client)))
    finally:
        await home.end()


def said(waited: Waited) -> bool:
    """Print it all."""
    for what, times in waited.items():
        print(
            f"{what:<14} {len(times) / sum(times):8,.0f}/s   median {median(times) * 1e3:6.2f} ms"
            f"   p99 {p99(times):6.2f} ms"
        )
    are_kept = True
    for what in ("inserts", "gets"):
        if (old := waited.get(f"1.2.0 {what}")) is None:
            continue
        ours, bound = p99(waited[what]), p99(old)
        is_kept = ours <= bound or QUICK
        print(line(f"p99 of {what}", f"{ours:.2f} ms", f"<= {bound:.2f} ms", is_kept=is_kept))
        are_kept = are_kept and is_kept
    return are_kept


def p99(times: list[float]) -> float:
    """Return the 99th percentile, in milliseconds."""
    return sorted(times)[int(len(times) * 0.99)] * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks quorum")
    parser.add_argument("--synced", action="store_true", help="1.2.0 syncs before it answers")
    is_synced = parser.parse_args().synced
    with TemporaryDirectory(prefix="tenure-quorum-") as place:
        if missing := why_not():
            print(f"beside Cassandra 1.2.0: not measured: {missing}")
            return 0 if asyncio.run(compare(Path(place) / "nodes", [])) else 1
        with cassandra_ring(Path(place) / "ring", is_synced=is_synced) as ring:
            return 0 if asyncio.run(compare(Path(place) / "nodes", ring)) else 1


if __name__ == "__main__":
    sys.exit(main())
