"""The leader's role goes around (Centrifuge, figure 13).

Three managers on an etcd of three members, with the paper's 130 owners and 1,000 lookups on real
sockets. The leader is told to stop and started again as a standby, until each has led. In the paper
a security patch did that; the network of the next leader peaked at almost 500 KB/s.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks._live import Seen, clients
from benchmarks._load import Watched, watching
from benchmarks._manager import ManagerProcess, allow_many_files
from benchmarks._packed import port_of, run_packed
from benchmarks._pictures import draw_lines
from benchmarks._quick import QUICK, sized
from benchmarks._report import Picture, Promise, Section, Table, prose
from tests.integration.failover.stage import TERMINATE, Manager, Stage, on_etcd

OWNERS, LOOKUPS = sized(130, 20), sized(1_000, 100)
SECONDS = float(sized(60, 3))
"""The seconds between two changes of the leader."""
MANAGERS = 3
PRESET = "paper" if not QUICK else "default"
TEXT = """{owners} owners and {lookups:,} lookups on real sockets, preset `{preset}`, and three
managers on an etcd of three members. Every {seconds:g} s the leader is told to stop, and started
again to stand by, until the role has gone around. Each line is the time under one leader, from the
order to its predecessor on: what it used, and what its connections carried, both ways, second by
second. The longest answer is of a renewal, the time without a leader included."""


class Reign(NamedTuple):
    """The time under one leader."""

    name: str
    load: Watched
    seen: Seen


async def measure(directory: Path, tell: Callable[[str], None]) -> list[Reign]:
    """The first leader at rest, and then all in turn."""
    found: list[Reign] = []
    async with on_etcd(directory, preset=PRESET, managers=MANAGERS) as stage:
        seen, urls = Seen(), stage.urls
        names = {port_of(url): f"manager {n}" for n, url in enumerate(urls, 1)}
        tell(f"{OWNERS} owners and {LOOKUPS:,} lookups come")
        async with clients(urls, stage.timing, OWNERS, LOOKUPS, seen):
            leader = await stage.leader()
            for turn in range(MANAGERS + 1):
                if turn:
                    tell(f"change {turn} of {MANAGERS}")
                    leader = await next_leader(stage, leader, found, names, seen)
                else:
                    found.append(begin(leader, names, seen))
                async with watching([found[-1].load], 1.0):
                    await asyncio.sleep(SECONDS)
                found[-1] = found[-1]._replace(seen=seen.copy())
    return found


def begin(leader: Manager, names: dict[int, str], seen: Seen) -> Reign:
    """Begin to watch from now on."""
    port = port_of(leader.url)
    process = ManagerProcess(leader.url, leader.process.pid)
    seen.begin()
    return Reign(names[port], Watched(process.cpu_seconds, port), seen)


async def next_leader(
    stage: Stage, leader: Manager, found: list[Reign], names: dict[int, str], seen: Seen
) -> Manager:
    """Stop this one, start it again, and return whichever leads then, watched since
    before it did.
    """
    standing = {each: begin(each, names, seen) for each in stage.standbys}
    leader.send(TERMINATE)
    new = await stage.leader(after=leader.leadership)
    found.append(standing[new])
    await leader.ended()
    stage.managers.remove(leader)
    again = stage.start(leader.journal, "--port", leader.url.rpartition(":")[2])
    await again.until_role("standing by")
    return new


def run(tell: Callable[[str], None]) -> Section:
    """The table, and the figure."""
    allow_many_files()
    with TemporaryDirectory(prefix="tenure-bench-") as directory:
        reigns = run_packed(measure(Path(directory), tell))
    most = max(reign.load.most_sent for reign in reigns)
    lapsed = sum(reign.seen.lapsed for reign in reigns)
    text = TEXT.format(owners=OWNERS, lookups=LOOKUPS, preset=PRESET, seconds=SECONDS)
    return Section(
        title="The leader's role goes around",
        text=prose(text),
        tables=[table(reigns)],
        pictures=[picture(reigns)],
        promises=[Promise("terms that ran out", f"{lapsed}", "0", lapsed == 0)],
        notes=[f"The highest burst was {most / 1000:,.0f} KB/s, Centrifuge's almost 500."],
    )


def table(reigns: Sequence[Reign]) -> Table:
    """One line for each leader, below the paper's."""
    head = [
        *("", "CPU, mean", "CPU, at most", "KB/s, mean", "KB/s, at most"),
        *("longest answer, s", "tables told"),
    ]
    rows = [["Centrifuge (figure 13)", "", "", "about 10 at rest", "almost 500", "", ""]]
    for n, (name, load, seen) in enumerate(reigns):
        rows.append(
            [
                f"tenure, {name} {'takes over' if n else 'at rest'}",
                *(f"{load.mean.cpu:.2%}", f"{load.most_cpu:.2%}"),
                *(f"{load.mean.sent / 1000:,.1f}", f"{load.most_sent / 1000:,.1f}"),
                *(f"{max(seen.answer_seconds, default=0.0):.2f}", f"{seen.tables:,}"),
            ]
        )
    return Table(head, rows)


def picture(reigns: Sequence[Reign]) -> Picture:
    """Network over time, one line for each leader."""
    title = "Network of each leader, as the role goes around"
    curves: dict[str, list[tuple[float, float]]] = {}
    for n, (name, load, _) in enumerate(reigns):
        since = n * SECONDS
        points = [(since + each.minute * 60, each.sent / 1000) for each in load.samples]
        curves[f"{name}{'' if n else ', at rest'}"] = points
    return Picture("rotation.svg", title, draw_lines(title, "seconds", "KB/s", curves))
