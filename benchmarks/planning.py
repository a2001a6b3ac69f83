"""How long a plan takes, of 1,000 owners with 64 ranges each and a load.

Bound: 1 s of CPU for `weighted`, on its own, in the round that has most to do: the first one with
loads, after an even deal. A round that has nothing to do is printed beside it, and so is the ring.

A leader plans so large a pool in a thread, beside its event loop. How long that loop stands still
at most, for the interpreter's lock and for collecting garbage, is bounded by a third of the
shortest leadership.
"""

import asyncio
import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import perf_counter, process_time

from benchmarks._balance import World
from benchmarks._quick import sized, soon
from benchmarks._rounds import line
from tenure.base.instants import Instant, seconds
from tenure.protocol.balance.planning import Planning
from tenure.protocol.balance.policy import Plan, Policy, Situation
from tenure.protocol.balance.ring import Ring
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.records import UNSTEERED

OWNERS = sized(1_000, 100)
ROUNDS = 3
BOUND_SECONDS = 1.0
STOP_SECONDS = soon(0.5)


def main() -> int:
    """Measure and print; return 1 if the bound is not kept."""
    world = World(Weighted(), OWNERS, 0.8, seed=1)
    for candidate in world.candidates:
        world.picture.take(world.report(candidate.incarnation))
    now = Instant(seconds(3))
    situation = Situation(world.candidates, world.table, now, world.picture.loads(now))
    first, plan = timed(Weighted(), situation)
    then = situation._replace(now=Instant(seconds(6)), memory=plan.memory)
    second, _ = timed(Weighted(), then)
    ring, _ = timed(Ring(), situation)
    print(f"a round with little to do  {second:.2f} s")
    print(f"the ring                   {ring:.2f} s")
    stop = asyncio.run(longest_stop(situation))
    is_kept = report(first)
    stands = "the loop stands still beside it, at most"
    print(line(stands, f"{stop:.3f} s", f"<= {STOP_SECONDS:g} s", is_kept=stop <= STOP_SECONDS))
    return 0 if is_kept and stop <= STOP_SECONDS else 1


async def longest_stop(situation: Situation) -> float:
    """How long the loop does not come back while a plan is made in a thread; the copy included."""
    longest = 0.0
    gc.collect()
    gc.freeze()  # the simulated world is no part of a leader
    with ThreadPoolExecutor(1) as thread:
        for _ in range(ROUNDS):
            last = perf_counter()
            work = Planning("pool", Weighted(), situation, UNSTEERED, 0)
            made = asyncio.get_running_loop().run_in_executor(thread, work.carry_out)
            while not made.done():
                await asyncio.sleep(0)
                now = perf_counter()
                longest, last = max(longest, now - last), now
    return longest


def timed(policy: Policy, situation: Situation) -> tuple[float, Plan]:
    """The median of some rounds, and the plan of the last."""
    times = []
    plan = policy(situation)
    for _ in range(ROUNDS):
        began = process_time()
        plan = policy(situation)
        times.append(process_time() - began)
    return median(times), plan


def report(first: float) -> bool:
    """The figure beside its bound; whether it is kept."""
    is_kept = first <= BOUND_SECONDS
    what = f"the first plan with loads, {OWNERS:,} owners"
    print(line(what, f"{first:.2f} s", f"<= {BOUND_SECONDS:g} s", is_kept=is_kept))
    return is_kept


if __name__ == "__main__":
    sys.exit(main())
