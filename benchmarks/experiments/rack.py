"""A rack of 50 owners returns to a pool of 250, as 1,000 frontends go on (PRS, figure 9).

The manager, its sockets and its clients are real. Frontends do operations on keys drawn at random:
each asks the owner that its own table names at that moment, and again after a pause where that one
does not hold the key. All of that is in this process, so that an operation that is served at once
takes no time here: what is measured is the time that a key is not to be had.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from random import Random
from time import monotonic
from typing import NamedTuple

import msgspec

from benchmarks._live import LiveLookup, LiveOwner, Seen, clients
from benchmarks._manager import allow_many_files, running_manager
from benchmarks._packed import run_packed
from benchmarks._pictures import draw_lines
from benchmarks._quick import QUICK, sized
from benchmarks._report import Picture, Section, Table, prose
from tenure.base.instants import in_seconds
from tenure.base.rangemap import RangeMap
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.timing import PRESETS

OWNERS, RETURNING, FRONTENDS = sized(250, 25), sized(50, 5), sized(1_000, 50)
SECONDS = float(sized(60, 5))
"""The seconds that are measured: in normal operation, and from the rack's return on."""
RATE = float(sized(1_000, 200))
"""Operations a second."""
AGAIN_SECONDS = 0.05
PRESET = "paper" if not QUICK else "test"
PERCENTILES = (0.5, 0.8, 0.9, 0.99, 0.999, 1.0)
TEXT = """{frontends:,} frontends and {owners} owners of a real manager, preset `{preset}`, on real
sockets. {returning} owners are gone, their leases have expired, and the others have their keys;
then all {returning} return at once. {rate:,.0f} operations a second, on keys and by frontends drawn
at random, for {seconds:g} s; one that the owner refuses, or that finds no owner, is tried again
after {again:g} ms. Network and work take no time here, so that an operation that waits for nothing
takes 0 ms. In PRS no other owner had the keys meanwhile, frontends tried again every 30 s, and one
operation in five waited for tens of seconds."""

_entries = msgspec.msgpack.Decoder(tuple[Entry, ...]).decode


class Tables:
    """The lease table after each push, as lookups are told: one of them for all, by its LSN."""

    def __init__(self) -> None:
        self._lsns: list[int] = [0]
        self._tables: list[RangeMap[int]] = [RangeMap(0)]

    def told(self, lsn: int, entries: msgspec.Raw) -> None:
        """Take a change from the first lookup that has it; the others are told the same."""
        if lsn <= self._lsns[-1]:
            return
        table = self._tables[-1].copy()
        for entry in _entries(entries):
            table.assign(entry.range, entry.owner)
        self._lsns.append(lsn)
        self._tables.append(table)

    def at(self, lsn: int) -> RangeMap[int]:
        """Return what a lookup finds that knows this much."""
        return self._tables[bisect_right(self._lsns, lsn) - 1]


class Operation(NamedTuple):
    """The outcome of one operation."""

    began: float
    seconds: float


class Operations:
    """The operations of all frontends."""

    def __init__(
        self, owners: list[LiveOwner], lookups: Sequence[LiveLookup], tables: Tables
    ) -> None:
        self.owners = owners
        self._lookups = lookups
        self._tables = tables
        self._known: dict[int, LiveOwner] = {}
        """The owners, by incarnation."""
        self._dice = Random(1)
        self.done: list[Operation] = []
        self.refused = 0

    async def carry_out(self, seconds: float) -> list[Operation]:
        """Carry out this many a second, for this long, and wait for all of them."""
        self.done, self.refused = [], 0
        loop = asyncio.get_running_loop()
        began, tasks = loop.time(), []
        for number in range(round(seconds * RATE)):
            if (left := began + number / RATE - loop.time()) > 0:
                await asyncio.sleep(left)
            frontend, key = self._dice.choice(self._lookups), self._dice.randbytes(8)
            if self._holds(frontend, key):
                self.done.append(Operation(monotonic(), 0.0))
            else:
                tasks.append(asyncio.create_task(self._again(frontend, key)))
        await asyncio.gather(*tasks)
        return self.done

    async def _again(self, frontend: LiveLookup, key: bytes) -> None:
        began = monotonic()
        while not self._holds(frontend, key):
            self.refused += 1
            await asyncio.sleep(AGAIN_SECONDS)
        self.done.append(Operation(began, monotonic() - began))

    def _holds(self, frontend: LiveLookup, key: bytes) -> bool:
        """Whether the owner that this frontend finds has the key."""
        incarnation = self._tables.at(frontend.lsn)[key]
        owner = self._known.get(incarnation)
        if owner is None or owner not in self.owners:
            self._known = {each.self.incarnation: each for each in self.owners if each.self}
            owner = self._known.get(incarnation)
        return owner is not None and any(
            each.start <= key and (each.end is None or key < each.end) for each in owner.held
        )


async def measure(url: str, tell: Callable[[str], None]) -> tuple[list[Operation], list[Operation]]:
    """Operations in normal operation, and from the rack's return on."""
    timing, urls, seen, tables = PRESETS[PRESET], [url], Seen(), Tables()
    tell(f"{OWNERS} owners and {FRONTENDS:,} frontends come")
    async with clients(urls, timing, OWNERS, FRONTENDS, seen, tables.told) as (owners, lookups):
        operations = Operations(owners, lookups, tables)
        tell("normal operation")
        quiet = await operations.carry_out(SECONDS)
        for _ in range(RETURNING):
            owners.pop(0).crash()
        tell("a rack is gone, its leases expire")
        await asyncio.sleep(in_seconds(timing.hold_ns + 2 * timing.renew_ns))
        tell("it returns")
        owners += [LiveOwner(urls, timing, seen) for _ in range(RETURNING)]
        return quiet, await operations.carry_out(SECONDS)


def run(tell: Callable[[str], None]) -> Section:
    """The distribution, as a table and a picture."""
    allow_many_files()
    with running_manager("--preset", PRESET, log_level="error") as manager:
        quiet, back = run_packed(measure(manager.url, tell))
    found = {
        "tenure, normal operation": sorted(each.seconds for each in quiet),
        "tenure, after the rack's return": sorted(each.seconds for each in back),
    }
    rows = [
        [name, f"{len(times):,}", f"{sum(map(bool, times)) / len(times):.2%}"]
        + [f"{at(times, part) * 1000:,.0f}" for part in PERCENTILES]
        for name, times in found.items()
    ]
    head = ["", "operations", "that waited", *(f"p{part * 100:g}, ms" for part in PERCENTILES)]
    head[-1] = "longest, ms"
    title = "Operations, by how long they took at most"
    curves = {
        name: [(at(times, part / 1000) * 1000, part / 10) for part in range(800, 1001)]
        for name, times in found.items()
    }
    text = TEXT.format(
        owners=OWNERS,
        returning=RETURNING,
        frontends=FRONTENDS,
        preset=PRESET,
        rate=RATE,
        seconds=SECONDS,
        again=AGAIN_SECONDS * 1000,
    )
    return Section(
        title="A rack of owners returns",
        text=prose(text),
        tables=[Table(head, rows)],
        pictures=[
            Picture("rack.svg", title, draw_lines(title, "ms", "percent of operations", curves))
        ],
    )


def at(times: Sequence[float], part: float) -> float:
    """Return the time that this many operations do not exceed, from sorted times."""
    return times[min(round(part * len(times)), len(times)) - 1]
