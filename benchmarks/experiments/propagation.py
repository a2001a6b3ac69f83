"""How soon one change reaches 2,000 lookups, on real sockets.

As in the benchmark `push`: an owner takes a range and gives it back, and every lookup is told over
a socket of its own. The time counts from the owner's request to when a lookup's process has read
the change, so that the time of this process, which reads all of them, counts too.
"""

import asyncio
from collections.abc import Callable
from statistics import quantiles
from time import perf_counter

from benchmarks import push
from benchmarks._manager import allow_many_files, running_manager
from benchmarks._packed import PackedSocket, run_packed
from benchmarks._quick import sized
from benchmarks._report import Promise, Section, Table, prose
from benchmarks.experiments.coordinator import renewing
from benchmarks.renewal import Owner, settle
from tenure.base.instants import in_seconds
from tenure.protocol.lease.timing import DEFAULT

CHANGES = sized(200, 20)
PATIENCE_SECONDS = 60
BETWEEN_SECONDS = 0.05
BOUNDS = {"median": 0.05, "p99": 0.25, "p99.9": 1.0}
TEXT = """{lookups:,} lookups, each on a socket of its own, in one process beside one manager of
preset `default`; they ask every 5 s, as lookups do. {changes} changes, one after the other. From
the owner's request, the journal and the gathering of changes (20 ms) included, until the lookups'
process has read what each is told."""


class Timed(push.Told):
    """Notes when each lookup is told."""

    def __init__(self, lookups: int) -> None:
        super().__init__(lookups)
        self.began = 0.0
        self.seconds: list[float] = []

    def count(self) -> None:
        self.seconds.append(perf_counter() - self.began)
        super().count()


async def measure(url: str, lookups: int, changes: int, tell: Callable[[str], None]) -> list[float]:
    """The seconds of every lookup and change."""
    owner = Owner(0, await PackedSocket.connect(url + "/v1/owner"))
    await owner.join()
    await settle([owner])
    told = Timed(lookups)
    tell(f"{lookups:,} lookups connect")
    connecting = asyncio.create_task(push.connect(url, lookups, told))
    while not connecting.done():  # connecting all takes a while, and the lease must not end
        await owner.renew()
        await asyncio.wait([connecting], timeout=1)
    following = connecting.result()
    # A lookup that does not ask is not pushed to for longer than `contact_ns`.
    async with renewing([each.sync for each in following], in_seconds(DEFAULT.sync_ns), wait=False):
        for number in range(changes):
            if number % 20 == 0:
                tell(f"change {number} of {changes}")
            told.began = perf_counter()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await push.change(owner, told, following)
            await asyncio.sleep(BETWEEN_SECONDS)
    return told.seconds


def run(
    tell: Callable[[str], None], changes: int = CHANGES, lookups: int = push.LOOKUPS
) -> Section:
    """The figures beside their bounds."""
    allow_many_files()
    with running_manager("--preset", "default", log_level="error") as manager:
        cpu = manager.cpu_seconds()
        seconds = run_packed(measure(manager.url, lookups, changes, tell))
        cpu = manager.cpu_seconds() - cpu
    cuts = quantiles(seconds, n=1000, method="inclusive")
    found = dict(zip(BOUNDS, (cuts[499], cuts[989], cuts[998]), strict=True))
    rows = [["tenure", *(f"{each * 1000:.0f}" for each in (*found.values(), max(seconds)))]]
    return Section(
        title="One change reaches all lookups",
        text=prose(TEXT.format(lookups=lookups, changes=changes)),
        tables=[Table(["", "median, ms", "p99, ms", "p99.9, ms", "longest, ms"], rows)],
        promises=[
            Promise(
                what, f"{found[what] * 1000:.0f} ms", f"{bound * 1000:.0f} ms", found[what] <= bound
            )
            for what, bound in BOUNDS.items()
        ],
        notes=[f"The manager used {cpu / changes * 1000:.1f} ms of CPU a change, joins included."],
    )
