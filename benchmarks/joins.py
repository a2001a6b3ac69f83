"""How many appends it costs that 200 owners join at once.

A manager of the default preset on a local etcd of three members, with an empty pool. 200 owners,
the library's own, in one event loop of this process, are entered at the same time. What is counted
is what stands in etcd: an append is one key. It ends when every owner holds ranges, all keys have
an owner, and nothing has moved for a while.

An owner's number, and what it is granted, are a record each, so that 200 owners write 400 at the
least; that they fit into so few appends is the gathering in the ledger.
"""

import asyncio
import logging
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from threading import Thread
from time import monotonic

import pytest

from benchmarks._manager import allow_many_files
from benchmarks._quick import sized
from benchmarks._rounds import line
from tenure import Lookup, Owner
from tenure.client.environment import RealEnvironment
from tenure.protocol.balance.load import share_of
from tenure.runtime.loops import SharedLoop
from tests.integration.etcd.keys import keys_under
from tests.integration.failover.stage import KILL, Stage, on_etcd
from tests.patience import until

OWNERS = sized(200, 40)
BOUND = 40
REPEATS = sized(3, 1)
POOL = "bench"
QUIET_SECONDS = 2.0


class OneLoop(RealEnvironment):
    """Real but for the home: one event loop for all, where production has one for each."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.runner = SharedLoop(loop)


@asynccontextmanager
async def another_loop() -> AsyncIterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread, to the end of this."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)
        loop.close()


async def appends(stage: Stage) -> int:
    assert stage.etcd
    return len(await keys_under(stage.etcd, "/tenure/records/"))


async def join(stage: Stage, environment: RealEnvironment) -> tuple[int, float]:
    """The appends that it took, and the seconds until all had their ranges."""
    owners = {
        address: Owner(stage.urls, pool=POOL, address=address, _environment=environment)
        for address in (f"http://owner-{n}" for n in range(OWNERS))
    }
    lookup = Lookup(stage.urls, pool=POOL, _environment=environment)

    async def all_hold_theirs() -> bool:
        held = {address: sum(map(share_of, owner.ranges)) for address, owner in owners.items()}
        known: defaultdict[str | None, float] = defaultdict(float)
        for part, address in lookup.table():
            known[address] += share_of(part)
        return known == pytest.approx(held) and min(held.values()) > 0

    before, began = await appends(stage), monotonic()
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(each) for each in owners.values()))
        await stack.enter_async_context(lookup)
        while True:
            await until(all_hold_theirs, "every owner holds its ranges, and the lookup knows")
            took, count = monotonic() - began, await appends(stage)
            await asyncio.sleep(QUIET_SECONDS)
            if count == await appends(stage) and await all_hold_theirs():
                break
        stage.managers[0].send(KILL)
        for each in owners.values():
            each._engine.on_reader_lapsed()  # no manager is left to return it to: let it lapse now
    return count - before, took


async def measure(directory: Path) -> bool:
    good = True
    async with another_loop() as loop:
        for repeat in range(REPEATS):
            async with on_etcd(directory / str(repeat), managers=1) as stage:
                count, seconds = await join(stage, OneLoop(loop))
            good &= report(count, seconds)
    return good


def report(count: int, seconds: float) -> bool:
    """The figure beside its bound; whether it is kept."""
    is_kept = count <= BOUND
    what = f"{OWNERS} owners join at once, all served in {seconds:.2f} s"
    print(line(what, f"{count} appends", f"<= {BOUND}", is_kept=is_kept), flush=True)
    return is_kept


def main() -> int:
    allow_many_files()
    logging.disable(logging.WARNING)  # warnings of owners whose leases lapse when all is measured
    with tempfile.TemporaryDirectory() as directory:
        return 0 if asyncio.run(measure(Path(directory))) else 1


if __name__ == "__main__":
    sys.exit(main())
