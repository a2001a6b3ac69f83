"""Every canary, from three first seeds: is it caught within 300 hours, and is its twin clean?

`make canaries` runs this on all cores and prints a table. It takes some minutes, so it is no test;
`test_canaries.py` has one known seed for each.

`make hunt` is the short form, which every change must pass: one first seed that nobody has chosen,
and for each canary the mix of faults by which it is found soon.
"""

import sys
from collections.abc import Callable, Iterable
from itertools import product
from multiprocessing import get_context
from multiprocessing.pool import Pool
from typing import Any, NamedTuple

from tenure.sim.lease.canaries import CANARIES, NONE, canary
from tenure.sim.lease.run import run_seed
from tenure.sim.lease.trial import Trial
from tests.simulation.test_canaries import KNOWN, plan

FIRST_SEEDS = (0, 1000, 5000)
HOURS = 300
SHORT_FIRST, SHORT_HOURS = 7000, 60
SHOWN = 58


class Hunt(NamedTuple):
    """What came of one canary from one first seed."""

    name: str
    first: int
    seeds: int
    """How many were run, an hour each."""
    caught: str | None


def hunt(name: str, first: int, hours: int = HOURS) -> Hunt:
    """Run seeds from `first` on, an hour each, until the canary is caught."""
    for seed in range(first, first + hours):
        violation = run_seed(Trial(seed=seed), canary(name)).violation
        if violation is not None:
            return Hunt(name, first, seed - first + 1, violation)
    return Hunt(name, first, hours, None)


def hunt_soon(name: str) -> Hunt:
    """Run seeds of the mix by which the canary is found soon, and its twin on the last of them."""
    known = KNOWN[name]
    for seed in range(SHORT_FIRST, SHORT_FIRST + SHORT_HOURS):
        violation = run_seed(plan(known, seed), canary(name)).violation
        if violation is not None:
            twin = run_seed(plan(known, seed)).violation
            caught = None if twin else violation  # whoever catches the twin has caught nothing
            return Hunt(name, SHORT_FIRST, seed - SHORT_FIRST + 1, caught)
    return Hunt(name, SHORT_FIRST, SHORT_HOURS, None)


def short() -> int:
    """Hunt each once; 0 if all were caught and no twin was."""
    with get_context("spawn").Pool() as pool:
        hunts = show(pool, hunt_soon, ((each.name,) for each in CANARIES))
    missed = [each.name for each in hunts if each.caught is None]
    print(f"\n{len(missed)} of {len(hunts)} not caught{': ' if missed else ''}{', '.join(missed)}")
    return int(bool(missed))


def main() -> int:
    """Hunt them all, and print a table; 0 if all were caught and no twin was."""
    names = [each.name for each in CANARIES]
    print(f"{'canary':<32}{'seed':>6}{'hours':>7}  caught by")
    with get_context("spawn").Pool() as pool:
        hunts = show(pool, hunt, product(names, FIRST_SEEDS))
        print("\nthe unbroken twin, on the same seeds:")
        longest = {
            first: max(each.seeds for each in hunts if each.first == first) for first in FIRST_SEEDS
        }
        twins = show(pool, hunt, ((NONE.name, *each) for each in longest.items()))
    missed = [each for each in hunts if each.caught is None]
    broken = [each for each in twins if each.caught is not None]
    print(f"\n{len(missed)} of {len(hunts)} not caught; {len(broken)} of {len(twins)} twins broken")
    return int(bool(missed or broken))


def show(pool: Pool, work: Callable[..., Hunt], tasks: Iterable[tuple[Any, ...]]) -> list[Hunt]:
    """Do the tasks on all cores, telling what came of each as soon as those before it are told."""
    jobs = [pool.apply_async(work, task) for task in tasks]
    done = []
    for job in jobs:
        each: Hunt = job.get()
        done.append(each)
        said = (each.caught or "-")[:SHOWN]
        print(f"{each.name:<32}{each.first:>6}{each.seeds:>7}  {said}", flush=True)
    return done


if __name__ == "__main__":
    sys.exit(short() if "--short" in sys.argv[1:] else main())
