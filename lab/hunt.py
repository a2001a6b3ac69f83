"""Every mutant, from three first seeds: is it caught within 300 hours, and is its twin clean?

`make canaries` runs this on all cores and prints a table, for leases and caches; `--tier` is for
one of the others. It takes many minutes, so it is no test: the tests in `tests/simulation` have one
known seed for each.

Below the table stand the rules that no seed breaks soon enough, and whether the schedule catches
each. Name one, and it is hunted by seeds all the same.

`make hunt` is the short form, which every change must pass: one first seed that nobody has chosen,
and for each mutant the mix of faults by which it is found soon. `--first` names others.

A mutant runs in a process of its own (`mutants.running`), its twin in this one's.
"""

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Any, NamedTuple

from lab.mutants.catalogue import mutant, mutants
from lab.mutants.running import first_broken, run_without
from lab.worlds.columns.run import run_columns
from lab.worlds.columns.trial import ColumnsTrial
from lab.worlds.entity.run import run_entities
from lab.worlds.entity.trial import EntityTrial
from lab.worlds.lease.run import run_seed
from lab.worlds.lease.trial import Trial
from lab.worlds.rivals.run import run_rivals
from lab.worlds.rivals.strikes import RivalsTrial
from lab.worlds.run import Outcome
from lab.worlds.services.run import run_services
from lab.worlds.volume.run import run_caches
from lab.worlds.volume.trial import VolumeTrial
from tests.simulation import (
    test_entity_seeds,
    test_mutants_of_caches,
    test_mutants_of_leases,
    test_mutants_of_the_store,
    test_rivals_seeds,
    test_rules_left_out,
    test_services_seeds,
    test_volume_rules_left_out,
)
from tests.unit.entities import reading_stories, release_stories

FIRST_SEEDS = (0, 1000, 5000)
HOURS = 300
SHORT_FIRST = 7000
SHOWN = 58
BY_DEFAULT = "lease", "cache"
"""Hunting others takes minutes more: `--tier entity`, `services`, `columns`, `rivals`."""


class Tier(NamedTuple):
    """How the mutants of one tier are hunted."""

    run: Callable[[Any], Outcome]
    plain: Callable[[str, int], object]
    """The trial of a seed in the default swarm."""
    soon: Callable[[str, int], object]
    """The trial of a seed in the mix by which a mutant is found soon."""
    most: int = HOURS
    """The short form runs at most this many seeds of a mutant's own mix."""
    stories: Mapping[str, Callable[[], object]] = {}
    """The schedules that catch what seeds would not break soon enough."""


TIERS = {
    "columns": Tier(
        run_columns,
        lambda _, seed: ColumnsTrial(seed=seed),
        test_mutants_of_the_store.trial,
        test_mutants_of_the_store.TRIED,
        test_mutants_of_the_store.STORIES,
    ),
    "lease": Tier(
        run_seed,
        lambda _, seed: Trial(seed=seed),
        test_mutants_of_leases.trial,
        stories=test_rules_left_out.STORIES,
    ),
    "cache": Tier(
        run_caches,
        lambda _, seed: VolumeTrial(seed=seed),
        test_mutants_of_caches.trial,
        stories=test_volume_rules_left_out.STORIES,
    ),
    "entity": Tier(
        run_entities,
        lambda _, seed: EntityTrial(seed=seed),
        test_entity_seeds.trial,
        stories={**release_stories.STORIES, **reading_stories.STORIES},
    ),
    "rivals": Tier(
        run_rivals,
        lambda _, seed: RivalsTrial(seed=seed),
        test_rivals_seeds.trial,
    ),
    "services": Tier(
        run_services,
        test_services_seeds.whole_trial,
        test_services_seeds.trial,
    ),
}


def names_of(tier: str) -> tuple[str, ...]:
    """The mutants of a tier that seeds catch."""
    return tuple(each.name for each in mutants(tier).values() if each.by == "seeds")


class Hunt(NamedTuple):
    """The outcome of one mutant from one first seed."""

    tier: str
    name: str
    first: int
    seeds: int
    """How many were run, an hour each."""
    caught: str | None


def hunt(tier: str, name: str, first: int) -> Hunt:
    """Run seeds from `first` on, an hour each, until the mutant is caught."""
    trials = [TIERS[tier].plain(name, first + i) for i in range(HOURS)]
    return _hunted(tier, name, first, trials)


def hunt_soon(tier: str, name: str, first: int) -> Hunt:
    """Run seeds of the mix by which the mutant is found soon, and its twin on the last of them."""
    run, trial = TIERS[tier].run, TIERS[tier].soon
    found = _hunted(tier, name, first, [trial(name, first + i) for i in range(TIERS[tier].most)])
    if found.caught and run(trial(name, first + found.seeds - 1)).violation:
        return found._replace(caught=None)  # if a run catches the twin, it has caught nothing
    return found


def _hunted(tier: str, name: str, first: int, trials: Sequence[object]) -> Hunt:
    caught = run_without(mutant(tier, name), first_broken, TIERS[tier].run, trials)
    if caught is None:
        return Hunt(tier, name, first, len(trials), None)
    return Hunt(tier, name, first, caught.seed - first + 1, caught.violation)


def run_twin(tier: str, first: int, hours: int) -> Hunt:
    """Run seeds from `first` on with every rule in its place."""
    trials = [TIERS[tier].plain("", first + i) for i in range(hours)]
    caught = first_broken(TIERS[tier].run, trials)
    return Hunt(tier, "none", first, hours, caught and caught.violation)


def short(tiers: Sequence[str], names: Sequence[str], firsts: Sequence[int]) -> int:
    """Hunt each once from each first seed; 0 if all were caught and no twin was."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        hunts = show(pool, hunt_soon, tasks(tiers, names, firsts or [SHORT_FIRST]))
    missed = [each.name for each in hunts if each.caught is None]
    print(f"\n{len(missed)} of {len(hunts)} not caught{': ' if missed else ''}{', '.join(missed)}")
    return int(bool(missed))


def whole(tiers: Sequence[str], names: Sequence[str], firsts: Sequence[int]) -> int:
    """Hunt them all, and print a table; 0 if all were caught and no twin was."""
    print(f"{'mutant':<38}{'seed':>6}{'hours':>7}  caught by")
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        hunts = show(pool, hunt, tasks(tiers, names, firsts))
        print("\nthe unbroken twin, on the same seeds:")
        longest = {
            (tier, first): max(
                each.seeds for each in hunts if (each.tier, each.first) == (tier, first)
            )
            for tier, first in product(tiers, firsts)
        }
        twins = show(
            pool, run_twin, [(tier, first, hours) for (tier, first), hours in longest.items()]
        )
    missed = [each for each in hunts if each.caught is None]
    uncaught = [] if names else by_schedule(tiers)
    broken = [each for each in twins if each.caught is not None]
    print(f"\n{len(missed)} of {len(hunts)} not caught; {len(broken)} of {len(twins)} twins broken")
    return int(bool(missed or broken or uncaught))


def tasks(
    tiers: Sequence[str], names: Sequence[str], firsts: Sequence[int]
) -> list[tuple[str, str, int]]:
    """What is to be hunted: these mutants, or all of the tiers that seeds catch."""
    return [
        (tier, name, first)
        for tier in tiers
        for name, first in product(names or names_of(tier), firsts)
    ]


def by_schedule(tiers: Sequence[str]) -> list[str]:
    """Play the schedules; the names of those that catch nothing."""
    uncaught = []
    print("\nwhat no seed breaks soon enough, by its schedule:")
    for tier in tiers:
        for name, story in TIERS[tier].stories.items():
            is_caught = catches(story, tier, name)
            print(f"{tier} {name:<32}  {'caught' if is_caught else '-'}")
            if not is_caught:
                uncaught.append(name)
    return uncaught


def catches(story: Callable[[], object], tier: str, name: str) -> bool:
    """Whether the schedule passes with the rule, and fails without it."""
    story()
    try:
        run_without(mutant(tier, name), story)
    except AssertionError:
        return True
    return False


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
    parser = ArgumentParser(prog="python -m lab hunt", description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--tier", choices=tuple(TIERS), help="leases and caches by default")
    said = (
        f"{SHORT_FIRST} with --short, and otherwise {', '.join(map(str, FIRST_SEEDS))}, by default"
    )
    parser.add_argument("--first", action="append", type=int, help=f"a first seed, or more; {said}")
    parser.add_argument("names", nargs="*", help="mutants of that tier; all by default")
    asked = parser.parse_args(arguments)
    tiers = (asked.tier,) if asked.tier else BY_DEFAULT
    if asked.short:
        return short(tiers, asked.names, asked.first or ())
    return whole(tiers, asked.names, asked.first or FIRST_SEEDS)
