"""The manager's load against the number of nodes, with and without failures (PRS, figures 7 and 8).

To 2,500 nodes on real sockets, a fifth of them owners, as in the paper; with failures each node
lives for 8 hours on the average, so that at the full size one dies without a word every 12 s, and
another comes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks._live import LiveLookup, LiveOwner, Seen, clients
from benchmarks._load import Watched, watching
from benchmarks._manager import ManagerProcess, allow_many_files, running_manager
from benchmarks._packed import port_of, run_packed
from benchmarks._pictures import draw_lines
from benchmarks._quick import QUICK, sized
from benchmarks._report import Picture, Promise, Section, Table, prose
from tenure.protocol.lease.timing import PRESETS

NODES = (500, 1_000, 1_500, 2_000, 2_500) if not QUICK else (100,)
SECONDS = float(sized(60, 5))
LIFE_SECONDS = 8 * 3600.0
PRESET = "default"
CPU_BOUND = 0.05
TEXT = """A fifth of the nodes are owners with 64 ranges each, the others lookups, each on a socket
of its own, preset `{preset}`; {seconds:g} s of each. With failures, each node lives for 8 hours on
the average: then it goes without a word, and another comes. So few die in that time (at 2,500 nodes
one in 12 s) that they are spread evenly, one owner to four lookups. CPU is of the manager's
process, in percent of a core; bytes are those of all connections, both ways, without the headers
of packets; memory is what the process has at the end."""


class Size(NamedTuple):
    """Results with this many nodes."""

    nodes: int
    quiet: Watched
    failing: Watched
    died: int
    memory: float


async def fail(
    owners: list[LiveOwner],
    lookups: list[LiveLookup],
    make_owner: Callable[[], LiveOwner],
    make_lookup: Callable[[], LiveLookup],
    seconds: float,
) -> int:
    """Let nodes die for this long; return how many did."""
    nodes = len(owners) + len(lookups)
    between = LIFE_SECONDS / nodes
    died, loop = 0, asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() + between < end:
        await asyncio.sleep(between)
        died += 1
        if died % 5 == 1:
            owners.pop(0).crash()
            owners.append(make_owner())
        else:
            lookups.pop(0).crash()
            lookups.append(make_lookup())
    await asyncio.sleep(end - loop.time())
    return died


async def measure(
    manager: ManagerProcess, nodes: int, seconds: float, tell: Callable[[str], None]
) -> Size:
    """Measure with a new manager."""
    timing, urls, seen = PRESETS[PRESET], [manager.url], Seen()
    tell(f"{nodes:,} nodes come")
    async with clients(urls, timing, nodes // 5, nodes - nodes // 5, seen) as (owners, lookups):
        await asyncio.sleep(sized(5, 1))
        tell(f"{nodes:,} nodes at rest")
        async with watched(manager, seconds) as quiet:
            await asyncio.sleep(seconds)
        tell(f"{nodes:,} nodes that fail")
        async with watched(manager, seconds) as failing:
            died = await fail(
                owners,
                lookups,
                lambda: LiveOwner(urls, timing, seen),
                lambda: LiveLookup(urls, timing, seen),
                seconds,
            )
    return Size(nodes, quiet, failing, died, memory_of(manager.pid))


@asynccontextmanager
async def watched(manager: ManagerProcess, seconds: float) -> AsyncIterator[Watched]:
    """Watch from here to the end of this, which takes so long."""
    load = Watched(manager.cpu_seconds, port_of(manager.url))
    async with watching([load], seconds / 10):
        yield load


def memory_of(pid: int) -> float:
    """MB that a process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000


def run(
    tell: Callable[[str], None], seconds: float = SECONDS, nodes: Sequence[int] = NODES
) -> Section:
    """The table, and both figures."""
    allow_many_files()
    sizes = []
    for each in nodes:
        with running_manager("--preset", PRESET, log_level="error") as manager:
            sizes.append(run_packed(measure(manager, each, seconds, tell)))
    cpu = sizes[-1].quiet.mean.cpu
    bound = Promise(
        f"{sizes[-1].nodes:,} nodes at rest", f"{cpu:.1%}", f"{CPU_BOUND:.0%}", cpu <= CPU_BOUND
    )
    return Section(
        title="The manager against the number of nodes",
        text=prose(TEXT.format(preset=PRESET, seconds=seconds)),
        tables=[table(sizes)],
        pictures=pictures(sizes),
        promises=[bound],
        notes=["PRS shows curves without figures in its text: it scaled to 2,500 nodes."],
    )


def table(sizes: Sequence[Size]) -> Table:
    head = [
        *("", "CPU at rest", "CPU with failures", "KB/s at rest", "KB/s with failures"),
        *("died", "memory, MB"),
    ]
    rows = [
        [
            f"tenure, {size.nodes:,} nodes",
            *(f"{size.quiet.mean.cpu:.2%}", f"{size.failing.mean.cpu:.2%}"),
            *(f"{size.quiet.mean.sent / 1000:,.1f}", f"{size.failing.mean.sent / 1000:,.1f}"),
            *(f"{size.died}", f"{size.memory:.0f}"),
        ]
        for size in sizes
    ]
    return Table(head, rows)


def pictures(sizes: Sequence[Size]) -> list[Picture]:
    """CPU and network against the number of nodes."""

    def curves(of: Callable[[Watched], float]) -> dict[str, list[tuple[float, float]]]:
        return {
            "at rest": [(size.nodes, of(size.quiet)) for size in sizes],
            "mean life 8 hours": [(size.nodes, of(size.failing)) for size in sizes],
        }

    cpu = curves(lambda load: load.mean.cpu * 100)
    sent = curves(lambda load: load.mean.sent / 1000)
    both = (
        ("scale-cpu.svg", "CPU of the manager", "percent of a core", cpu),
        ("scale-network.svg", "Network of the manager", "KB/s", sent),
    )
    return [
        Picture(file, title, draw_lines(title, "nodes", unit, each))
        for file, title, unit, each in both
    ]
