"""An ordered insert beside one in `clock` mode: the CPU of all nodes and the client.

    python -m benchmarks ordered                # 1 and 16 writers
    python -m benchmarks --quick ordered

An ordered write has a round more: a version is drawn before it is written (R4). Three nodes are
processes of this host, and keep three replicas. A row has ten cells of 100 bytes. The two tables
are written to in turns, all in one run, so that whatever else the machine does meets both.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

from benchmarks._quick import at_most, sized
from benchmarks._rounds import line
from benchmarks.routing import cpu
from lab.demo.ring.home_ring import HomeRing
from tenure.columns.opening import open_store
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table

CLOCK = Table("clock", writes="clock", f=Family(columns=bytes))
ORDERED = Table("ordered", f=Family(columns=bytes))
NAMES = [b"column-%d" % n for n in range(10)]
VALUE = bytes(100)
NODES = 3
TURNS = sized(20, 3)
WRITES = sized(400, 80)
"""The inserts of a turn. A process's CPU is counted in hundredths of a second."""
BOUND = 1.3


async def turn(store: ColumnStore, table: Table, writers: int, first: int) -> None:
    """Insert as many new rows as a turn has, so many at once."""

    async def write(start: int) -> None:
        for n in range(start, WRITES, writers):
            await store.insert(table, f"row-{first + n:08}", {"f": dict.fromkeys(NAMES, VALUE)})

    await asyncio.gather(*(write(start) for start in range(writers)))


async def ratio(store: ColumnStore, pids: Sequence[int], writers: int) -> float:
    """How many times the CPU of a `clock` insert an ordered one takes, with so many writers."""
    spent: dict[Table, list[float]] = {CLOCK: [], ORDERED: []}
    for number in range(-1, TURNS):
        for table, found in spent.items():
            before = process_time() + sum(map(cpu, pids))
            await turn(store, table, writers, (number + 1) * WRITES + writers * 10_000_000)
            if number >= 0:  # the first turn finds nothing in any cache
                found.append(process_time() + sum(map(cpu, pids)) - before)
    each = {table: sum(found) / len(found) / WRITES * 1e6 for table, found in spent.items()}
    print(
        f"{writers} writers: an insert takes {each[CLOCK]:.0f} µs of CPU by the clock, "
        f"{each[ORDERED]:.0f} µs ordered"
    )
    return median(of / to for of, to in zip(spent[ORDERED], spent[CLOCK], strict=True))


async def compare(place: Path) -> bool:
    """Print it all; whether the bound is kept."""
    home = HomeRing(place, NODES, spares=0, options=())
    try:
        await home.start()
        pids = [pid for name, pid in home.pids().items() if name.startswith("node")]
        assert len(pids) == NODES
        async with open_store(home.url, CLOCK, ORDERED) as store:
            are_kept = []
            for writers in (1, 16):
                found = await ratio(store, pids, writers)
                are_kept.append(found <= at_most(BOUND))
                what = f"an ordered insert beside one by the clock, {writers} at once"
                print(line(what, f"{found:.2f} x", f"<= {BOUND} x", is_kept=are_kept[-1]))
        return all(are_kept)
    finally:
        await home.end()


def main() -> int:
    """Measure, and return 1 if the bound is not kept."""
    with TemporaryDirectory(prefix="tenure-ordered-") as place:
        return 0 if asyncio.run(compare(Path(place))) else 1


if __name__ == "__main__":
    sys.exit(main())
