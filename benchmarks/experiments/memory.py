"""The manager's memory for 1,000 owners and 10,000 lookups that are connected.

Lookups come knowing the table, as they do from another manager: if each of 10,000 were told all
64,000 ranges, that would be 15 GB, and would say nothing about the cost of a connection. They ask
once, and are silent; owners go on renewing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from benchmarks._manager import ManagerProcess, allow_many_files, running_manager
from benchmarks._packed import packed, run_packed
from benchmarks._quick import QUICK, sized
from benchmarks._report import Promise, Section, Table, prose
from benchmarks.experiments.coordinator import renewing
from benchmarks.experiments.scale import memory_of
from benchmarks.push import Lookup, Told
from benchmarks.renewal import Owner, settle
from tenure.base.instants import in_seconds
from tenure.protocol.lease.timing import PAPER

OWNERS = sized(1_000, 50)
STEPS = (2_000, 5_000, 10_000) if not QUICK else (250, 500)
"""One after the other, in all."""
SETTLE_SECONDS = 1.0
BOUND_MB = 150
TEXT = """{owners:,} owners with 64 ranges each, which renew what they hold, and up to {lookups:,}
lookups, each on a socket of its own, preset `paper`. Memory is what the manager's process has
(RSS), Python and all its modules included."""


class Found(NamedTuple):
    """Results with this many connections."""

    owners: int
    lookups: int
    memory: float
    """MB."""


async def measure(manager: ManagerProcess, tell: Callable[[str], None]) -> list[Found]:
    """Measure the memory after each step."""
    found = [Found(0, 0, memory_of(manager.pid))]
    tell(f"{OWNERS:,} owners come")
    sockets = await packed(manager.url + "/v1/owner", OWNERS)
    owners = [Owner(number, socket) for number, socket in enumerate(sockets)]
    await asyncio.gather(*(owner.join() for owner in owners))
    await settle(owners)
    found.append(Found(OWNERS, 0, memory_of(manager.pid)))
    lookups: list[Lookup] = []
    renewals: list[Callable[[], Awaitable[object]]] = [owner.renew_in_short for owner in owners]
    async with renewing(renewals, in_seconds(PAPER.renew_ns), wait=False):
        for many in STEPS:
            tell(f"{many:,} lookups come")
            await come(manager.url + "/v1/lookup", lookups, many)
            await asyncio.sleep(SETTLE_SECONDS)
            found.append(Found(OWNERS, many, memory_of(manager.pid)))
    return found


async def come(url: str, lookups: list[Lookup], many: int) -> None:
    """Connect until there are this many; all but the first know the table."""
    told = Told(many)
    if not lookups:
        [socket] = await packed(url, 1)
        lookups.append(Lookup(0, socket, told))
        await lookups[0].sync()
    first = lookups[0]
    for socket in await packed(url, many - len(lookups)):
        lookup = Lookup(len(lookups), socket, told)
        lookup.known, lookup.lsn = first.known, first.lsn
        lookups.append(lookup)
        await lookup.sync()


def run(tell: Callable[[str], None]) -> Section:
    """The table; the bound is that of the full size."""
    allow_many_files()
    with running_manager("--preset", "paper", log_level="error") as manager:
        found = run_packed(measure(manager, tell))
    memory = found[-1].memory
    promises = []
    if not QUICK:
        what = f"memory with {OWNERS:,} owners and {STEPS[-1]:,} lookups"
        kept = memory <= BOUND_MB
        promises.append(Promise(what, f"{memory:.0f} MB", f"{BOUND_MB} MB", kept))
    each = (memory - found[1].memory) / found[-1].lookups * 1e3
    return Section(
        title="Memory of the manager",
        text=prose(TEXT.format(owners=OWNERS, lookups=STEPS[-1])),
        tables=[
            Table(
                ["", "memory, MB"],
                [
                    [
                        f"tenure, {row.owners:,} owners and {row.lookups:,} lookups",
                        f"{row.memory:.0f}",
                    ]
                    for row in found
                ],
            )
        ],
        promises=promises,
        notes=[f"Each lookup at rest takes {each:.1f} KB of it."],
    )
