"""The manager of the paper's testbed at rest: its CPU and network (Centrifuge, figure 12).

About 130 owners and 1,000 lookups are on real sockets, and nothing changes. Figure 12 shows about
10 KB a second at Centrifuge's manager, with the terms that our preset `paper` has. The clients are
written by hand, so that they fit into one process: they send what the library sends.
"""

import asyncio
from collections.abc import Callable
from time import monotonic

from benchmarks import push
from benchmarks._manager import ManagerProcess, allow_many_files, running_manager
from benchmarks._packed import packed, run_packed
from benchmarks._quick import sized
from benchmarks._report import Promise, Section, Table, prose
from benchmarks.experiments.coordinator import Rest, carried, renewing
from benchmarks.renewal import Owner, settle
from tenure.base.instants import in_seconds
from tenure.protocol.lease.timing import PRESETS

OWNERS, LOOKUPS = sized(130, 65), sized(1_000, 200)
SECONDS = float(sized(120, 8))
CPU_BOUND, SENT_BOUND = 0.01, 20_000
TEXT = """{owners} owners, which renew what they hold, and {lookups:,} lookups, which ask what has
changed; {seconds:g} s in which nothing does. CPU is of the manager's process, in percent of a
core; bytes are those of all its connections, both ways, without the headers of packets.
Centrifuge's figure 12 shows about 10 KB/s, for 130 owners and 1,000 lookups."""


async def measure(manager: ManagerProcess, preset: str, seconds: float) -> Rest:
    """Measure the cost of a second once all clients are connected."""
    timing = PRESETS[preset]
    sockets = await packed(manager.url + "/v1/owner", OWNERS)
    owners = [Owner(number, socket) for number, socket in enumerate(sockets)]
    await asyncio.gather(*(owner.join() for owner in owners))
    await settle(owners)
    async with renewing(
        [owner.renew_in_short for owner in owners],
        in_seconds(timing.renew_ns),
        wait=False,
        told=owners,
    ):
        lookups = await push.connect(manager.url, LOOKUPS, push.Told(LOOKUPS))
        syncs = [lookup.sync for lookup in lookups]
        async with renewing(syncs, in_seconds(timing.sync_ns), told=lookups):
            cpu, sent, began = manager.cpu_seconds(), carried(), monotonic()
            await asyncio.sleep(seconds)
            took = monotonic() - began
            return Rest((manager.cpu_seconds() - cpu) / took, (carried() - sent) / took)


def run(tell: Callable[[str], None], seconds: float = SECONDS) -> Section:
    """Run with the paper's terms, and with those of `default`."""
    allow_many_files()
    found = {}
    for preset in ("default",) if SECONDS < 20 else ("paper", "default"):
        tell(f"preset {preset}")
        with running_manager("--preset", preset, log_level="error") as manager:
            found[preset] = run_packed(measure(manager, preset, seconds))
    rows = [["Centrifuge (figure 12)", "", "about 10"]]
    rows += [
        [f"tenure, preset `{preset}`", f"{rest.cpu:.2%}", f"{rest.sent / 1000:.1f}"]
        for preset, rest in found.items()
    ]
    promises = []
    if (paper := found.get("paper")) is not None:
        cpu, sent = f"{paper.cpu:.2%}", f"{paper.sent / 1000:.1f} KB/s"
        promises += [
            Promise("`paper`: CPU of a core", cpu, f"{CPU_BOUND:.0%}", paper.cpu <= CPU_BOUND),
            Promise("`paper`: network", sent, "20 KB/s", paper.sent <= SENT_BOUND),
        ]
    return Section(
        title="The paper's testbed at rest",
        text=prose(TEXT.format(owners=OWNERS, lookups=LOOKUPS, seconds=seconds)),
        tables=[Table(["", "CPU of a core", "KB/s"], rows)],
        promises=promises,
    )
