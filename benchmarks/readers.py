"""Caches with real processes: no read is stale during a rolling restart, and during kills.

The service of `python -m lab demo caches`: a manager, owners that keep products before a
database, four frontends that read and write them through caches. Every read is judged by the
frontends' records.

`restart`: twelve owners are restarted, two at a time, each handing its state over, while products
are read that nobody writes, and a few that somebody writes. What owners are asked for meanwhile,
beyond what was written, is fetched anew. `kills`: owners are killed (kill -9) beside neighbours
that see it, 200 times; the longest time without an answer counts. `redis`: the same records of near
caches before a Redis server with client tracking; where this machine has none, that is said.

`--only NAME` is for one of them, `--kills N` for another number of kills. What has happened so far
is told on stderr.
"""

import asyncio
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._quick import at_most, sized
from benchmarks._redis_readers import frontends, redis_binary, serving
from benchmarks._rounds import line
from lab.demo.caches.cache_faults import CacheFaults
from lab.demo.caches.cache_summary import CacheSummary
from lab.demo.caches.cache_view import CachePicture
from lab.demo.caches.read_record import ReadRecordReader
from lab.demo.caches.run import CacheDemo, MakesTrouble
from lab.demo.caches.service import CacheDemoSettings, CacheService
from lab.demo.caches.stale_reads import ReadJudge
from tenure.base.instants import Instant
from tenure.cli.demo.rolling_restart import RollingRestart
from tenure.cli.demo.service import DemoSettings

OWNERS = sized(12, 4)
FRONTENDS = sized(4, 2)
PRODUCTS = sized(1_000, 200)
KILLS = sized(200, 3)
ANEW = 0.01
"""The part of all entries that may be fetched again in a rolling restart."""
READ_AGAIN_MS = at_most(1_000)
TERM_MS = 3_000
WRITTEN_MS = at_most(TERM_MS * 13 / 12 + 1_000)
SHOWN_EVERY_SECONDS = 10.0
REDIS_SECONDS = float(sized(30, 3))


class Progress:
    """Shows what is stale, and now and then how far it has come."""

    def __init__(self) -> None:
        self._shown = 0.0
        self._last = ""

    def event(self, at: float | None, text: str) -> None:
        """See `CacheDisplay`."""
        self._last = text
        if "STALE" in text:
            print(f"   {at or 0:.1f} s  {text}", flush=True)

    def show(self, picture: CachePicture) -> None:
        """See `CacheDisplay`."""
        if picture.elapsed < self._shown + SHOWN_EVERY_SECONDS:
            return
        self._shown = picture.elapsed
        print(
            f"   {picture.elapsed:.0f} s: {picture.judged:,} reads judged, {picture.stale} stale; "
            f"{self._last}",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        """See `CacheDisplay`."""


class Restarts:
    """Every owner once, two at a time."""

    def __init__(self, service: CacheService, tell: Callable[[str], None]) -> None:
        self.counts: Counter[str] = Counter()
        self.dark: list[float] = []
        self._restart = RollingRestart(service, tell)

    async def play(self, end: Instant) -> None:
        """Restart them."""
        await self._restart.play(end)
        self.counts["owner_restarts"] = len(self._restart.times)
        await asyncio.sleep(2)  # the frontends read what they were given last


class Kills:
    """One owner after the other."""

    def __init__(self, service: CacheService, tell: Callable[[str], None], kills: int) -> None:
        self._faults = CacheFaults(service, tell)
        self._kills = kills

    @property
    def counts(self) -> Counter[str]:
        return self._faults.counts

    @property
    def dark(self) -> list[float]:
        return self._faults.dark

    async def play(self, end: Instant) -> None:
        """Kill them."""
        for number in range(self._kills):
            await self._faults.kill_one()
            if not (number + 1) % 10:
                print(f"   {number + 1} of {self._kills} kills", file=sys.stderr, flush=True)
            await asyncio.sleep(0.2)


def settings(
    owners: int, *, written: int, reads: float, writes: float, preset: str
) -> CacheDemoSettings:
    service = DemoSettings(
        seconds=0.001, owners=owners, frontends=FRONTENDS, preset=preset, scenario="owner-faults"
    )
    return CacheDemoSettings(
        service=service,
        products=PRODUCTS,
        written=written,
        reads_per_second=reads,
        writes_per_second=writes,
    )


def told(what: str, figure: str, bound: str, *, is_kept: bool) -> bool:
    print(line(what, figure, bound, is_kept=is_kept))
    return is_kept


async def restart(_: int) -> bool:
    """Twelve owners, one after the other."""
    asked = settings(OWNERS, written=FRONTENDS, reads=200, writes=0.2, preset="default")
    found = await run(asked, Restarts)
    entries = PRODUCTS * FRONTENDS
    # Each write is fetched by the other frontends at most once, if nobody writes in between.
    anew = max(0, found.loads - found.writes * FRONTENDS) / entries
    kept = [
        told("stale reads", f"{found.stale} of {found.judged:,}", "0", is_kept=not found.stale),
        told("failed reads", f"{found.failed}", "0", is_kept=not found.failed),
        told(
            f"fetched anew, {found.owner_restarts} owners, {found.moves} ranges moved",
            f"{anew:.2%} of {entries:,}",
            f"< {ANEW:.0%}",
            is_kept=anew < ANEW,
        ),
    ]
    print(f"   {found.loads} loads, {found.writes} writes, slowest {found.slowest_write_ms:.0f} ms")
    return all(kept)


async def kills(count: int) -> bool:
    """One owner after the other, and what that costs."""
    asked = settings(4, written=PRODUCTS, reads=1_500, writes=5, preset="default")
    found = await run(asked, lambda service, tell: Kills(service, tell, count))
    kept = [
        told(
            f"stale reads, {found.owner_kills} kills",
            f"{found.stale} of {found.judged:,}",
            "0",
            is_kept=not found.stale,
        ),
        told("failed reads", f"{found.failed}", "0", is_kept=not found.failed),
        told(
            "slowest read",
            f"{found.slowest_read_ms:.0f} ms",
            f"{READ_AGAIN_MS:.0f}",
            is_kept=found.slowest_read_ms <= READ_AGAIN_MS,
        ),
        told(
            "slowest write",
            f"{found.slowest_write_ms:.0f} ms",
            f"{WRITTEN_MS:.0f}",
            is_kept=found.slowest_write_ms <= WRITTEN_MS,
        ),
    ]
    print(f"   {found.reads:,} reads, {found.writes:,} writes in {found.seconds:.0f} s")
    return all(kept)


async def run(
    asked: CacheDemoSettings,
    trouble: Callable[[CacheService, Callable[[str], None]], MakesTrouble],
) -> CacheSummary:
    with TemporaryDirectory(prefix="tenure-readers-") as directory:
        return await CacheDemo(asked, Path(directory), Progress(), trouble).run()


async def redis(_: int) -> bool:
    """The same record, of near caches before Redis: how often they are stale is not bounded."""
    binary = redis_binary()
    if binary is None:
        print("   left out: this machine has no redis-server (`.ci/redis` unpacks Debian's)")
        return True
    with TemporaryDirectory(prefix="tenure-redis-") as directory:
        place = Path(directory)
        await asyncio.to_thread(read_before_redis, binary, place)
        judge = ReadJudge(FRONTENDS)
        for frontend, entry in ReadRecordReader(place).new():
            judge.add(frontend, entry)
        judge.judge(is_over=True)
    print(
        f"   stale reads before Redis with client tracking: {len(judge.found)} of {judge.reads:,}"
    )
    return True


def read_before_redis(binary: str, place: Path) -> None:
    with serving(binary, place) as path:
        frontends(path, place, FRONTENDS, 20, REDIS_SECONDS)


PARTS = {"restart": restart, "kills": kills, "redis": redis}


def main() -> int:
    parser = ArgumentParser(prog="python -m benchmarks readers", description=__doc__)
    parser.add_argument("--only", choices=tuple(PARTS))
    parser.add_argument("--kills", type=int, default=KILLS)
    asked = parser.parse_args()
    kept = []
    for name in (asked.only,) if asked.only else PARTS:
        print(f"-- {name}", flush=True)
        kept.append(asyncio.run(PARTS[name](asked.kills)))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
