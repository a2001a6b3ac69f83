"""A store on several nodes: requests through every change of the ring, and skewed load.

    python -m benchmarks ring                     # 200,000 requests
    python -m benchmarks ring --requests 20000
    python -m benchmarks --quick ring

All nodes are processes of this host. *Requests*: with three nodes, one is killed and comes back,
one is added, one moved, one removed, under load that knows what it must read. It ends after
`--seconds`, too, and says how many requests there were. *Skew*: six nodes, of which few have what
is asked for; moves are made until none is proposed. `copies` has how fast nodes copy.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from benchmarks._quick import sized
from lab.demo.ring.home_ring import REPAIR_SECONDS, HomeRing
from lab.demo.ring.ring_load import RingLoad
from lab.demo.ring.ring_run import RingSummary, running

REQUESTS = sized(200_000, 6_000)
SECONDS = 3_600
"""An hour: 200,000 requests take about half of it on two cores."""
TOLD_SECONDS = 10.0
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


async def _told(load: RingLoad, wanted: int) -> None:
    """Say how far it is, now and then."""
    while True:
        await asyncio.sleep(TOLD_SECONDS)
        print(f"  {load.counts['requests']} of {wanted} requests", flush=True)


async def _requests(wanted: int, seconds: float) -> RingSummary:
    ends_at = asyncio.get_running_loop().time() + seconds
    async with _home(3, 1) as home, running(home, _say) as demo:
        telling = asyncio.create_task(_told(demo.load, wanted))
        await demo.kill("node-1")
        await demo.start_again("node-1")
        await demo.add("node-4")
        await demo.move("node-2")
        await demo.remove("node-3")
        with suppress(TimeoutError):
            async with asyncio.timeout_at(ends_at):
                await demo.load.until(wanted)
        telling.cancel()
    return demo.summary


async def _skewed() -> RingSummary:
    async with _home(SKEWED_NODES) as home, running(home, _say) as demo:
        await demo.even_out(MOST_MOVES)
    return demo.summary


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks ring")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="how many requests")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long they may take")
    said = parser.parse_args()
    print(f"requests at quorum, three nodes, {said.requests} of them", flush=True)
    asked = asyncio.run(_requests(said.requests, said.seconds))
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
    wrong = [
        what
        for what, is_wrong in (
            (f"only {asked.requests} requests in time", asked.requests < said.requests),
            ("requests failed, or were stale", not asked.is_good or not skewed.is_good),
            (f"the load is more uneven than {UNEVEN}", skewed.after > UNEVEN),
        )
        if is_wrong
    ]
    for each in wrong:
        print(f"NOT REACHED: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
