"""How long it takes until another manager renews leases, and what a failover costs.

Three managers of the default preset on a local etcd of three members, owners and a lookup under
load. The leader is killed (kill -9), or told to stop (SIGTERM), ten times each; every time another
manager takes its place first. The time counts from the signal to the moment when every owner was
renewed, and the lookup answered, by the new leader; what the takeover took of it is shown beside.
Nothing may be lost in any of them: no lease, no request, and no loss signalled.
"""

import asyncio
import signal
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks._quick import sized, soon
from benchmarks._rounds import line
from tenure.base.instants import in_seconds
from tenure.runtime.clock import boot_clock
from tests.integration.failover.stage import Manager, Stage, on_etcd
from tests.integration.failover.traffic import Traffic

REPEATS = sized(10, 1)
MANAGERS = 3
BOUNDS = ((signal.SIGKILL, "kill -9", soon(3.0)), (signal.SIGTERM, "SIGTERM", soon(0.3)))


class Failover(NamedTuple):
    """The seconds until another leads, and until all are renewed by it."""

    led: float
    renewed: float
    slowest_request: float


async def failover(stage: Stage, traffic: Traffic, number: signal.Signals) -> Failover:
    leader = await stage.leader()
    journal = leader.journal
    await traffic.renewed(boot_clock(), leader.leadership)
    traffic.settle()
    began = boot_clock()
    leader.send(number)
    await stage.leader(after=leader.leadership)
    led = boot_clock()
    await traffic.renewed(began, leader.leadership + 1)
    renewed = boot_clock()
    await traffic.have_served()
    traffic.check_unharmed()
    await replace(stage, leader, journal)
    return Failover(in_seconds(led - began), in_seconds(renewed - began), traffic.slowest_seconds)


async def replace(stage: Stage, gone: Manager, journal: str) -> None:
    """Start another manager at the same place, standing by."""
    await gone.ended()
    stage.managers.remove(gone)
    new = stage.start(journal, "--port", gone.url.rpartition(":")[2])
    await new.until_role("standing by")


async def measure(directory: Path) -> bool:
    good = True
    async with on_etcd(directory, managers=MANAGERS) as stage, stage.traffic() as traffic:
        for number, name, bound in BOUNDS:
            found = [await failover(stage, traffic, number) for _ in range(REPEATS)]
            took = median(each.renewed for each in found)
            good &= took <= bound
            is_kept = took <= bound
            print(line(f"{name}: all renewed", f"{took:.3f} s", f"<= {bound:g} s", is_kept=is_kept))
            print(f"  each: {', '.join(f'{each.renewed:.2f}' for each in found)}")
            print(f"  another leads after: {', '.join(f'{each.led:.2f}' for each in found)}")
            print(f"  slowest request: {max(each.slowest_request for each in found):.3f} s")
        count = REPEATS * len(BOUNDS)
        print(f"{count} failovers: no lease lost, no request failed, no loss signalled")
    return good


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        return 0 if asyncio.run(measure(Path(directory))) else 1


if __name__ == "__main__":
    sys.exit(main())
