"""Every canary, from three first seeds: is it caught within 300 hours, and is its twin clean?

`make canaries` runs this on all cores and prints a table, for leases and caches; `--tier`
is for one of them. It takes many minutes, so it is no test; `test_canaries.py` and
`test_volume_canaries.py` have one known seed for each.

Below the table stand the rules that no seed breaks soon enough, and whether the schedule catches
each. Name one, and it is hunted by seeds all the same.

`make hunt` is the short form, which every change must pass: one first seed that nobody has chosen,
and for each canary the mix of faults by which it is found soon. `--first` names others.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Any, NamedTuple

from tenure.sim.columns import canaries as of_columns
from tenure.sim.columns.run import run_columns
from tenure.sim.columns.trial import ColumnsTrial
from tenure.sim.entity import canaries as of_entities
from tenure.sim.entity.run import run_entities
from tenure.sim.entity.trial import EntityTrial
from tenure.sim.kernel.canaries import RuleLeftOut
from tenure.sim.lease import canaries as of_leases
from tenure.sim.lease.run import run_seed
from tenure.sim.lease.trial import Trial
from tenure.sim.services import canaries as of_services
from tenure.sim.services.run import run_services
from tenure.sim.services.trial import ServicesTrial
from tenure.sim.volume import canaries as of_caches
from tenure.sim.volume.run import run_caches
from tenure.sim.volume.trial import VolumeTrial
from tests.simulation import (
    test_canaries,
    test_columns_canaries,
    test_rules_left_out,
    test_volume_canaries,
    test_volume_rules_left_out,
)

FIRST_SEEDS = (0, 1000, 5000)
HOURS = 300
SHORT_FIRST = 7000
SHOWN = 58
TWIN = "none"
BY_DEFAULT = "lease", "cache"
"""Hunting others takes minutes more: `--tier entity`, `--tier services`, `--tier columns`."""


class Tier(NamedTuple):
    """The canaries of one tier, and how to run a seed of it, with the canary's name or TWIN."""

    names: tuple[str, ...]
    run: Callable[[str, int], str | None]
    """Runs a seed in the default swarm, and returns what is violated."""
    run_soon: Callable[[str, str, int], str | None]
    """Runs a seed in the mix of a canary, which may itself be left whole."""
    soon: int = HOURS
    """The short form runs at most this many seeds of a canary's own mix."""


def _lease(name: str, seed: int) -> str | None:
    return run_seed(Trial(seed=seed), of_leases.canary(name)).violation


def _lease_soon(mix: str, name: str, seed: int) -> str | None:
    trial = test_canaries.plan(test_canaries.KNOWN[mix], seed)
    return run_seed(trial, of_leases.canary(name)).violation


def _cache(name: str, seed: int) -> str | None:
    return run_caches(VolumeTrial(seed=seed), of_caches.cache_canary(name)).violation


def _cache_soon(mix: str, name: str, seed: int) -> str | None:
    trial = test_volume_canaries.plan(test_volume_canaries.SOON[mix], seed)
    return run_caches(trial, of_caches.cache_canary(name)).violation


def _entity(name: str, seed: int) -> str | None:
    return run_entities(EntityTrial(seed=seed), of_entities.entity_canary(name)).violation


def _entity_soon(mix: str, name: str, seed: int) -> str | None:
    trial = of_entities.entity_canary(mix).trial(EntityTrial(seed=seed, hours=0.5))
    broken = of_entities.entity_canary(name)
    return run_entities(trial, broken).violation


def _services(name: str, seed: int) -> str | None:
    trial = of_services.services_canary(name).trial(ServicesTrial(seed=seed, apart=0.05))
    return run_services(trial, of_services.services_canary(name)).violation


def _services_soon(mix: str, name: str, seed: int) -> str | None:
    trial = of_services.services_canary(mix).trial(ServicesTrial(seed=seed, hours=0.1, apart=0.05))
    return run_services(trial, of_services.services_canary(name)).violation


def _columns(name: str, seed: int) -> str | None:
    return run_columns(ColumnsTrial(seed=seed), of_columns.columns_canary(name)).violation


def _columns_soon(mix: str, name: str, seed: int) -> str | None:
    trial = test_columns_canaries.plan(test_columns_canaries.SOON[mix], seed)
    return run_columns(trial, of_columns.columns_canary(name)).violation


TIERS = {
    "columns": Tier(
        tuple(each.name for each in of_columns.CANARIES),
        _columns,
        _columns_soon,
        soon=test_columns_canaries.TRIED,
    ),
    "lease": Tier(tuple(each.name for each in of_leases.CANARIES), _lease, _lease_soon),
    "cache": Tier(tuple(each.name for each in of_caches.CANARIES), _cache, _cache_soon),
    "entity": Tier(tuple(each.name for each in of_entities.CANARIES), _entity, _entity_soon),
    "services": Tier(tuple(each.name for each in of_services.CANARIES), _services, _services_soon),
}


class Scheduled(NamedTuple):
    """Rules that are left out of a tier, and the schedule that catches each."""

    stories: Mapping[str, Callable[[], object]]
    canary: Callable[[str], RuleLeftOut]

    def catches(self, name: str) -> bool:
        """Whether the schedule passes with the rule, and fails without it."""
        story = self.stories[name]
        story()
        with self.canary(name).in_place():
            try:
                story()
            except AssertionError:
                return True
        return False


SCHEDULED = {
    "lease": Scheduled(test_rules_left_out.STORIES, of_leases.canary),
    "cache": Scheduled(test_volume_rules_left_out.STORIES, of_caches.cache_canary),
    "columns": Scheduled(test_columns_canaries.STORIES, of_columns.columns_canary),
}


class Hunt(NamedTuple):
    """The outcome of one canary from one first seed."""

    tier: str
    name: str
    first: int
    seeds: int
    """How many were run, an hour each."""
    caught: str | None


def hunt(tier: str, name: str, first: int, hours: int = HOURS) -> Hunt:
    """Run seeds from `first` on, an hour each, until the canary is caught."""
    for seed in range(first, first + hours):
        violation = TIERS[tier].run(name, seed)
        if violation is not None:
            return Hunt(tier, name, first, seed - first + 1, violation)
    return Hunt(tier, name, first, hours, None)


def hunt_soon(tier: str, name: str, first: int) -> Hunt:
    """Run seeds of the mix by which the canary is found soon, and its twin on the last of them."""
    run, most = TIERS[tier].run_soon, TIERS[tier].soon
    for seed in range(first, first + most):
        violation = run(name, name, seed)
        if violation is not None:
            # If a run catches the twin, it has caught nothing.
            caught = None if run(name, TWIN, seed) else violation
            return Hunt(tier, name, first, seed - first + 1, caught)
    return Hunt(tier, name, first, most, None)


def short(tiers: Sequence[str], names: Sequence[str], firsts: Sequence[int]) -> int:
    """Hunt each once from each first seed; 0 if all were caught and no twin was."""
    tasks = [
        (tier, name, first)
        for tier in tiers
        for name, first in product(names or TIERS[tier].names, firsts or [SHORT_FIRST])
    ]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        hunts = show(pool, hunt_soon, tasks)
    missed = [each.name for each in hunts if each.caught is None]
    print(f"\n{len(missed)} of {len(hunts)} not caught{': ' if missed else ''}{', '.join(missed)}")
    return int(bool(missed))


def whole(tiers: Sequence[str], names: Sequence[str], firsts: Sequence[int]) -> int:
    """Hunt them all, and print a table; 0 if all were caught and no twin was."""
    tasks = [
        (tier, name, first)
        for tier in tiers
        for name, first in product(names or TIERS[tier].names, firsts)
    ]
    print(f"{'canary':<38}{'seed':>6}{'hours':>7}  caught by")
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        hunts = show(pool, hunt, tasks)
        print("\nthe unbroken twin, on the same seeds:")
        longest = {
            (tier, first): max(
                each.seeds for each in hunts if (each.tier, each.first) == (tier, first)
            )
            for tier, first in product(tiers, firsts)
        }
        asked = [(tier, TWIN, first, hours) for (tier, first), hours in longest.items()]
        twins = show(pool, hunt, asked)
    missed = [each for each in hunts if each.caught is None]
    uncaught = [] if names else by_schedule(tiers)
    broken = [each for each in twins if each.caught is not None]
    print(f"\n{len(missed)} of {len(hunts)} not caught; {len(broken)} of {len(twins)} twins broken")
    return int(bool(missed or broken or uncaught))


def by_schedule(tiers: Sequence[str]) -> list[str]:
    """Play the schedules; the names of those that catch nothing."""
    uncaught = []
    print("\nwhat no seed breaks soon enough, by its schedule:")
    for tier, there in SCHEDULED.items():
        if tier not in tiers:
            continue
        for name in there.stories:
            is_caught = there.catches(name)
            print(f"{tier} {name:<32}  {'caught' if is_caught else '-'}")
            if not is_caught:
                uncaught.append(name)
    return uncaught


def show(
    pool: ProcessPoolExecutor, work: Callable[..., Hunt], tasks: Iterable[tuple[Any, ...]]
) -> list[Hunt]:
    """Do the tasks on all cores, and show each outcome as soon as those before it are shown.

    Raises BrokenProcessPool if a process is killed: multiprocessing's own pool would wait for ever
    for what that one had to do.
    """
    jobs = [pool.submit(work, *task) for task in tasks]
    done = []
    for job in jobs:
        each = job.result()
        done.append(each)
        said = (each.caught or "-")[:SHOWN]
        print(f"{each.tier} {each.name:<32}{each.first:>6}{each.seeds:>7}  {said}", flush=True)
    return done


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says."""
    parser = ArgumentParser(prog="python -m tests.simulation.hunt", description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--tier", choices=tuple(TIERS), help="leases and caches by default")
    said = (
        f"{SHORT_FIRST} with --short, and otherwise {', '.join(map(str, FIRST_SEEDS))}, by default"
    )
    parser.add_argument("--first", action="append", type=int, help=f"a first seed, or more; {said}")
    parser.add_argument("names", nargs="*", help="canaries of that tier; all by default")
    asked = parser.parse_args(arguments)
    tiers = (asked.tier,) if asked.tier else BY_DEFAULT
    if asked.short:
        return short(tiers, asked.names, asked.first or ())
    return whole(tiers, asked.names, asked.first or FIRST_SEEDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
