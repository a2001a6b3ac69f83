"""All owners are restarted, then all lookups (Centrifuge, table 1 and figure 14).

200 owners and 2,016 lookups on real sockets, restarted one after another over 32 minutes each, as
in the paper; `--minutes 4` is eight times as rapid. A restarted owner gives everything back and
comes again under a new name, as a process of the library does; a restarted lookup comes without
anything that it knew, and is told the whole table.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from statistics import quantiles
from typing import NamedTuple, TypeVar

from benchmarks._live import LiveLookup, LiveOwner, Seen, clients
from benchmarks._load import Watched, watching
from benchmarks._manager import ManagerProcess, allow_many_files, running_manager
from benchmarks._packed import port_of, run_packed
from benchmarks._pictures import draw_lines
from benchmarks._quick import QUICK, sized
from benchmarks._report import Picture, Promise, Section, Table, prose
from tenure.protocol.lease.timing import PRESETS

OWNERS, LOOKUPS = sized(200, 40), sized(2_016, 200)
PAPER_MINUTES = 32.0
MINUTES = sized(3200, 15) / 100
SAMPLES = 60
DOWN_SECONDS = 1.0
C = TypeVar("C", LiveOwner, LiveLookup)
SENT_BOUND = 5_000_000
PRESET = "paper" if not QUICK else "default"
TEXT = """{owners} owners with 64 ranges each and {lookups:,} lookups, each on a socket of its own,
preset `{preset}`. At rest for a fourth of the time; then {those} are restarted, one after another,
over {minutes:g} minutes each. Centrifuge took 32 minutes for all of each: here restarts are {how}.
CPU is of the manager's process, in percent of a core;
bytes are those of all connections, both ways, without the headers of packets. *Longest answer* is
of a renewal; a term that ran out between two renewals would be a late one."""


class Phase(NamedTuple):
    """The processes that were restarted, and the cost."""

    name: str
    load: Watched
    seen: Seen


async def restart(those: list[C], many: int, make: Callable[[], C], seconds: float) -> None:
    """Restart so many of them, one after another, over this many seconds."""
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def one(place: int) -> None:
        await those[place].leave()
        await asyncio.sleep(DOWN_SECONDS)
        those[place] = make()
        await those[place].is_in.wait()

    under_way = []
    for place in range(many):
        await asyncio.sleep(began + seconds * place / many - loop.time())
        under_way.append(asyncio.create_task(one(place)))
    await asyncio.gather(*under_way)
    await asyncio.sleep(began + seconds - loop.time())


async def measure(
    manager: ManagerProcess, minutes: float, share: float, tell: Callable[[str], None]
) -> list[Phase]:
    """Measure at rest, and while this share of each kind is restarted."""
    timing, urls, seen = PRESETS[PRESET], [manager.url], Seen()
    found = []
    tell(f"{OWNERS} owners and {LOOKUPS:,} lookups come")
    async with clients(urls, timing, OWNERS, LOOKUPS, seen) as (owners, lookups):
        steps: dict[str, Callable[[], Awaitable[None]]] = {
            "at rest": lambda: asyncio.sleep(minutes * 60 / 4),
            "owners restart": lambda: restart(
                owners,
                round(OWNERS * share),
                lambda: LiveOwner(urls, timing, seen),
                minutes * 60,
            ),
            "lookups restart": lambda: restart(
                lookups,
                round(LOOKUPS * share),
                lambda: LiveLookup(urls, timing, seen),
                minutes * 60,
            ),
        }
        for name, step in steps.items():
            tell(f"{name}, {minutes:g} minutes")
            seen.begin()
            load = Watched(manager.cpu_seconds, port_of(manager.url))
            async with watching([load], max(1.0, minutes * 60 / SAMPLES)):
                await step()
            found.append(Phase(name, load, seen.copy()))
    return found


def run(
    tell: Callable[[str], None], minutes: float = MINUTES, pace: float | None = None
) -> Section:
    """The table, and the figure's two pictures. At `pace`, all of a kind would take so many
    minutes.
    """
    allow_many_files()
    pace = max(pace or minutes, minutes)
    share = minutes / pace
    with running_manager("--preset", PRESET, log_level="error") as manager:
        phases = run_packed(measure(manager, minutes, share, tell))
    text = TEXT.format(
        owners=OWNERS,
        lookups=LOOKUPS,
        preset=PRESET,
        minutes=minutes,
        those=whom(share),
        how="as rapid" if pace == PAPER_MINUTES else f"{PAPER_MINUTES / pace:.3g} times as rapid",
    )
    most = max(phase.load.most_sent for phase in phases)
    lapsed = sum(phase.seen.lapsed for phase in phases)
    network = Promise("network, at most", f"{most / 1e6:.2f} MB/s", "5 MB/s", most <= SENT_BOUND)
    late = Promise("renewals that were late", f"{lapsed}", "0", lapsed == 0)
    return Section(
        title="Restarts of all owners, and of all lookups",
        text=prose(text),
        tables=[table(phases)],
        pictures=pictures(phases),
        promises=[late] if QUICK else [network, late],
    )


def whom(share: float) -> str:
    """Which of them are restarted."""
    if share == 1:
        return "all owners, then all lookups"
    return f"{round(OWNERS * share)} of the owners, then {round(LOOKUPS * share)} of the lookups"


def table(phases: Sequence[Phase]) -> Table:
    """One line for each phase, below the paper's."""
    head = [
        *("", "CPU, mean", "CPU, at most", "KB/s, mean", "KB/s, at most"),
        *("renewals", "answer p99, ms", "longest answer, ms", "tables told"),
    ]
    rows = [["Centrifuge (figure 14)", "light", "", "", "about 5,000", "", "", "", ""]]
    for name, load, seen in phases:
        answers = seen.answer_seconds
        p99 = quantiles([0.0, 0.0, *answers], n=100, method="inclusive")[98]
        longest = max(answers, default=0.0)
        rows.append(
            [
                f"tenure, {name}",
                *(f"{load.mean.cpu:.2%}", f"{load.most_cpu:.2%}"),
                *(f"{load.mean.sent / 1000:,.1f}", f"{load.most_sent / 1000:,.1f}"),
                *(
                    f"{len(answers):,}",
                    f"{p99 * 1000:.0f}",
                    f"{longest * 1000:.0f}",
                ),
                f"{seen.tables:,}",
            ]
        )
    return Table(head, rows)


def pictures(phases: Sequence[Phase]) -> list[Picture]:
    """CPU and network over time."""
    found = []
    for file, what, unit in (
        ("restarts-cpu.svg", "CPU of the manager under restarts", "percent of a core"),
        ("restarts-network.svg", "Network of the manager under restarts", "KB/s"),
    ):
        curves = {
            phase.name: [
                (each.minute, each.cpu * 100 if "cpu" in file else each.sent / 1000)
                for each in phase.load.samples
            ]
            for phase in phases
        }
        found.append(Picture(file, what, draw_lines(what, "minutes", unit, curves)))
    return found
