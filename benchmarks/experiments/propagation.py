"""How soon one change reaches 2,000 lookups, on real sockets.

As in the benchmark `push`: an owner takes a range and gives it back, and every lookup is told over
a socket of its own. The time counts from the owner's request to when a lookup's process has read
the change, so that the time of this process, which reads all of them, counts too.
"""

import asyncio
from collections.abc import Callable
from statistics import quantiles
from time import perf_counter

import aiohttp

from benchmarks import push
from benchmarks._manager import allow_many_files, running_manager
from benchmarks._quick import sized
from benchmarks._report import Promise, Section, Table, prose
from benchmarks.renewal import Owner, settle
from tenure.wire.versions import SUBPROTOCOLS

CHANGES = sized(200, 20)
PATIENCE_SECONDS = 60
BOUNDS = {"median": 0.05, "p99": 0.25, "p99.9": 1.0}
TEXT = """{lookups:,} lookups, each on a socket of its own, in one process beside one manager of
preset `paper`, which keeps lookups that do not ask for a minute; {changes} changes, one after the
other. From the owner's request, the journal and the gathering of changes (50 ms, where `default`
has 20) included, until the lookups' process has read what each is told."""


class Timed(push.Told):
    """Notes when each lookup is told."""

    def __init__(self) -> None:
        super().__init__()
        self.began = 0.0
        self.seconds: list[float] = []

    def count(self, data: bytes) -> None:
        self.seconds.append(perf_counter() - self.began)
        super().count(data)


async def measure(url: str, changes: int, tell: Callable[[str], None]) -> list[float]:
    """The seconds of every lookup and change."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        owner = Owner(0, await session.ws_connect(url + "/v1/owner", protocols=SUBPROTOCOLS))
        await owner.join()
        await settle([owner])
        told = Timed()
        connecting = asyncio.create_task(push.connect(session, url + "/v1/lookup"))
        while not connecting.done():  # so many take a while, and the lease must not end
            await owner.renew()
            await asyncio.wait([connecting], timeout=1)
        lookups = connecting.result()
        following = [asyncio.create_task(lookup.follow(told)) for lookup in lookups]
        for number in range(changes):
            if number % 20 == 0:
                tell(f"change {number} of {changes}")
            told.began = perf_counter()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await push.change(owner, told)
            await asyncio.sleep(0.05)
        for task in following:
            task.cancel()
        await asyncio.wait(following)
        return told.seconds


def run(tell: Callable[[str], None], changes: int = CHANGES) -> Section:
    """The figures beside their bounds."""
    allow_many_files()
    with running_manager("--preset", "paper", log_level="error") as manager:
        cpu = manager.cpu_seconds()
        seconds = asyncio.run(measure(manager.url, changes, tell))
        cpu = manager.cpu_seconds() - cpu
    cuts = quantiles(seconds, n=1000, method="inclusive")
    found = dict(zip(BOUNDS, (cuts[499], cuts[989], cuts[998]), strict=True))
    rows = [["tenure", *(f"{each * 1000:.0f}" for each in (*found.values(), max(seconds)))]]
    return Section(
        title="One change reaches all lookups",
        text=prose(TEXT.format(lookups=push.LOOKUPS, changes=changes)),
        tables=[Table(["", "median, ms", "p99, ms", "p99.9, ms", "longest, ms"], rows)],
        promises=[
            Promise(
                what, f"{found[what] * 1000:.0f} ms", f"{bound * 1000:.0f} ms", found[what] <= bound
            )
            for what, bound in BOUNDS.items()
        ],
        notes=[f"The manager used {cpu / changes * 1000:.1f} ms of CPU a change, joins included."],
    )
