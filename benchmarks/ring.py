"""A store on several nodes: requests through every change of the ring, copies, and skewed load.

    python -m benchmarks ring                 # 200,000 requests, copies of 512 MB
    python -m benchmarks --quick ring

All nodes are processes of this host. *Requests*: with three nodes, one is killed and comes back,
one is added, one moved, one removed, under load that knows what it must read. *Copies*: a node
takes the place of a dead one, from one replica or from two. *Skew*: six nodes, of which few have
what is asked for; moves are made until none is proposed. The quick form prints how fast copies are,
and asks nothing of it: a copy of 24 MB is over before it is under way.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

from benchmarks._quick import QUICK, sized
from tenure.cli.demo.ring.home_ring import REPAIR_SECONDS, HomeRing, until
from tenure.cli.demo.ring.ring_run import RingSummary, running
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table

REQUESTS = sized(200_000, 6_000)
COPIED_BYTES = sized(512_000_000, 24_000_000)
VALUE_BYTES = 100_000
WRITERS = 8
MB_A_SECOND = 40.0
"""What the paper has from one node."""
COPIED = Table("copied", kind="hashed", said=Family(columns=str))
"""Hashed, so that its rows are everywhere on the ring: parts of it are copied side by side."""
SKEWED_NODES = 6
MOST_MOVES = 12
UNEVEN = 1.5
EXTRA = ("--repair-every", f"{REPAIR_SECONDS:g}", "--copy-rate", "10000")


def _say(line: str) -> None:
    if not line.startswith("  "):  # the load, every two seconds
        print(f"  {line}", flush=True)


@asynccontextmanager
async def _home(nodes: int, spares: int = 0) -> AsyncIterator[HomeRing]:
    with tempfile.TemporaryDirectory(prefix="tenure-ring-") as place:
        yield HomeRing(Path(place), nodes, spares, EXTRA)


async def _requests() -> RingSummary:
    async with _home(3, 1) as home, running(home, _say) as demo:
        await demo.kill("node-1")
        await demo.start_again("node-1")
        await demo.add("node-4")
        await demo.move("node-2")
        await demo.remove("node-3")
        await demo.load.until(REQUESTS)
    return demo.summary


async def _skewed() -> RingSummary:
    async with _home(SKEWED_NODES) as home, running(home, _say) as demo:
        await demo.even_out(MOST_MOVES)
    return demo.summary


async def _copy_rate(sources: int) -> float:
    """Megabytes a second that a node copies from so many."""
    dead, new = f"node-{sources + 1}", f"node-{sources + 2}"
    async with _home(sources + 1, 1) as home:
        try:
            await home.start()
            await _fill(home)
            home.kill(dead)
            await until(home.down, lambda down: dead in down, f"{dead} is not left out")
            await home.launch(new)
            await until(lambda: home.node(new), lambda node: node is not None, f"{new} is missing")
            began = monotonic()
            await home.said("replace", {"node": dead, "by": new})
            await until(home.ring, lambda ring: ring.phase != "filling", "it is not copied")
            seconds = monotonic() - began
            return COPIED_BYTES / seconds / 1e6  # each node had all of it
        finally:
            await home.end()


async def _fill(home: HomeRing) -> None:
    async with open_store(home.url, COPIED) as store:
        count = COPIED_BYTES // VALUE_BYTES

        async def write(worker: int) -> None:
            for number in range(worker, count, WRITERS):
                value = bytes([number % 256]) * VALUE_BYTES
                await store.insert(
                    COPIED, f"room-{number}", {"said": {"all": value}}, consistency="all"
                )

        await asyncio.gather(*(write(worker) for worker in range(WRITERS)))


def main() -> int:
    print(f"requests at quorum, three nodes, {REQUESTS} of them", flush=True)
    asked = asyncio.run(_requests())
    print(
        f"  {asked.requests} requests in {asked.seconds:.0f} s: {asked.failed} failed, "
        f"{asked.stale} stale, {asked.lost} lost; p99 of the latest {asked.p99_ms:.1f} ms"
    )
    print("skewed load, six nodes", flush=True)
    skewed = asyncio.run(_skewed())
    moved = sum(move.bytes for move in skewed.moves) / 1e6
    print(
        f"  max/mean load {skewed.before:.2f} before {len(skewed.moves)} moves, {skewed.after:.2f} "
        f"after them; {moved:.1f} MB moved"
    )
    rates = [asyncio.run(_copy_rate(sources)) for sources in (1, 2)]
    print(f"copies: {rates[0]:.1f} MB/s from one node, {rates[1]:.1f} MB/s from two")
    wrong = [
        what
        for what, is_wrong in (
            ("requests failed, or were stale", not asked.is_good or not skewed.is_good),
            (f"the load is more uneven than {UNEVEN}", skewed.after > UNEVEN),
            (f"less than {MB_A_SECOND:g} MB/s from one", not QUICK and rates[0] < MB_A_SECOND),
            ("two nodes are not faster than one", not QUICK and rates[1] <= rates[0]),
        )
        if is_wrong
    ]
    for each in wrong:
        print(f"NOT REACHED: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
