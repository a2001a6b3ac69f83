"""`python -m lab simulate`: the very machines of the service, in virtual time, with faults.

What is printed on standard output follows from the arguments alone, byte for byte, so that two runs
can be compared. How far it is and how fast it was goes to standard error.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Literal, NamedTuple

import msgspec
from cyclopts import Parameter

from lab.mutants.catalogue import mutant
from lab.mutants.running import run_without
from lab.simulate.verdict import (
    CacheVerdict,
    ColumnsVerdict,
    EntityVerdict,
    LeaseVerdict,
    ServicesVerdict,
    Verdict,
)
from lab.worlds.columns.run import run_many_columns
from lab.worlds.columns.trial import ColumnsTrial
from lab.worlds.entity.run import run_many_entities
from lab.worlds.entity.trial import EntityTrial
from lab.worlds.lease import strikes as of_leases
from lab.worlds.lease.run import run_seeds
from lab.worlds.lease.trial import Trial
from lab.worlds.run import Outcome, total
from lab.worlds.services.run import run_many_services
from lab.worlds.services.trial import ServicesTrial
from lab.worlds.volume.run import run_many_caches
from lab.worlds.volume.trial import VolumeTrial
from tenure.base.instants import SECOND_NS
from tenure.cli.output import put, remark, say
from tenure.cli.waiting import WaitingLine, without_line
from tenure.errors import ConfigurationError
from tenure.protocol.lease.timing import PRESETS
from tenure.protocol.lease.timing import preset as preset_called
from tenure.sim.kernel.cores import Progress
from tenure.sim.kernel.world import AnyTrial

Run = Callable[[Progress], Iterator[Outcome]]
DEFAULT_SEEDS = 100
MOST_HOURS = 1e6
HOUR_NS = 3600 * SECOND_NS


class Tier(NamedTuple):
    """The parts that simulate one tier."""

    verdict: type[Verdict]
    trial: Callable[..., AnyTrial]
    run_many: Callable[..., Iterator[Outcome]]
    has_presets: bool


TIERS = {
    "lease": Tier(LeaseVerdict, Trial, run_seeds, has_presets=True),
    "cache": Tier(CacheVerdict, VolumeTrial, run_many_caches, has_presets=False),
    "entity": Tier(EntityVerdict, EntityTrial, run_many_entities, has_presets=True),
    "services": Tier(ServicesVerdict, ServicesTrial, run_many_services, has_presets=True),
    "columns": Tier(ColumnsVerdict, ColumnsTrial, run_many_columns, has_presets=False),
}


def simulate(  # noqa: PLR0913  # a parameter is an option
    without: str = "",
    /,
    *,
    tier: Annotated[
        Literal["lease", "cache", "entity", "services", "columns"],
        Parameter(
            help="What to simulate: owners and their leases, consistent caches, entities, the "
            "services over them, or the store on several nodes."
        ),
    ] = "lease",
    seeds: int | None = None,
    seed: int | None = None,
    hours: float = 1.0,
    preset: Annotated[
        str,
        Parameter(help=f"How long leases last: one of {', '.join(PRESETS)}; paper by default."),
    ] = "paper",
    faults: Annotated[
        str,
        Parameter(
            help="What may go wrong, separated by commas; everything by default. One name for "
            f"several: {', '.join(of_leases.FAULTS.aliases)}. One by one: "
            f"{', '.join(of_leases.FAULTS.kinds)}."
        ),
    ] = "all",
    workers: Annotated[int, Parameter(name=["--workers", "--jobs"])] = 0,
    columns: Annotated[bool, Parameter(negative="")] = False,
    every_fault: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Run a tier through simulated years of faults, and check that it keeps its promises.

    Each seed is a separate world with its own mix of faults; the same seed gives the same world.
    The exit code is 1 if a promise was broken, or if --every-fault is given and a kind of fault
    never struck.

    Parameters
    ----------
    without
        A mutant of the tier, to read how that is noticed: the name of a rule to leave out.
    seeds
        How many seeds to run; 100 by default, or 1 if --seed is given.
    seed
        The first seed; 0 by default.
    hours
        How long each seed runs, in simulated hours; 1 by default.
    workers
        How many cores to use; by default all of them.
    columns
        The same as --tier columns.
    every_fault
        Fail if a kind of fault that was allowed never struck.
    json
        Print the summary as one JSON object.
    """
    count = seeds if seeds is not None else (DEFAULT_SEEDS if seed is None else 1)
    _check(count, seed or 0, hours, workers)
    plan = AnyTrial(seed=seed or 0, hours=hours, faults=())
    which = _tier_meant(tier, columns=columns)
    if without:
        options = {"seeds": count, "seed": seed, "hours": hours, "preset": preset}
        shown = {"faults": faults, "workers": workers, "every_fault": every_fault, "json": json}
        with without_line():  # the mutant's process has one of its own
            return run_without(mutant(which, without), simulate, tier=which, **options, **shown)
    verdict, run = _planned(which, preset, faults, count, plan, workers)
    outcomes = _run(verdict, run, count * round(hours * 3600 * SECOND_NS), json=json)
    return _exit_code(verdict, outcomes, every_fault=every_fault)


def _tier_meant(tier: str, *, columns: bool) -> str:
    if columns and tier not in ("lease", "columns"):
        raise ConfigurationError(f"--columns is --tier columns, and not --tier {tier}")
    return "columns" if columns else tier


def _exit_code(verdict: Verdict, outcomes: list[Outcome], *, every_fault: bool) -> int:
    if outcomes[-1].violation:
        return 1
    never = verdict.never_struck(total(outcomes, "faults")) if every_fault else []
    if never:
        remark(f"never seen: {', '.join(never)}")
    return int(bool(never))


def _planned(  # as many as options
    tier: str, preset: str, faults: str, count: int, plan: AnyTrial, workers: int
) -> tuple[Verdict, Run]:
    """Return what to run for one tier, and how to show it."""
    of = TIERS[tier]
    if not of.has_presets and preset != "paper":
        raise ConfigurationError(f"--preset is for --tier lease; {tier} has durations of its own")
    timing = {"timing": preset_called(preset)} if of.has_presets else {}
    kinds = of.verdict.table.chosen(faults)
    trial = of.trial(seed=plan.seed, hours=plan.hours, faults=kinds, **timing)
    trials = [msgspec.structs.replace(trial, seed=trial.seed + i) for i in range(count)]
    return of.verdict(trial, faults), partial(of.run_many, trials, workers)


def _run(verdict: Verdict, run: Run, whole_ns: int, *, json: bool) -> list[Outcome]:
    """Run the seeds up to the first that breaks a promise, and print what came of them."""
    began, done, whole = time.perf_counter(), 0.0, whole_ns / HOUR_NS
    outcomes = []

    def reached(simulated_ns: int) -> None:
        nonlocal done
        done = simulated_ns / HOUR_NS

    def text() -> str:
        left = (time.perf_counter() - began) * (whole / done - 1) if done else 0.0
        soon = f", about {left:.0f} s to go" if left > 1 else ""
        return f"simulated {done:,.1f} of {whole:,.1f} hours{soon}"

    with WaitingLine(text):
        for outcome in run(reached):
            outcomes.append(outcome)
            if outcome.violation:
                break
    seconds = time.perf_counter() - began
    if json:
        put(verdict.as_json(outcomes))
        return outcomes
    for line in verdict.lines(outcomes):
        say(line)
    simulated = sum(outcome.simulated_ns for outcome in outcomes) / SECOND_NS
    speed = f"{simulated / seconds:,.0f} times as fast as real time"
    remark(f"took {seconds:.1f} s, {speed}")
    return outcomes


def _check(count: int, seed: int, hours: float, workers: int) -> None:
    if count < 1:
        raise ConfigurationError(f"--seeds {count}: run at least one seed")
    if seed < 0:
        raise ConfigurationError(f"--seed {seed}: seeds are numbers from 0")
    if not 0 < hours <= MOST_HOURS:  # which refuses what is not a number, too
        raise ConfigurationError(
            f"--hours {hours:g}: a seed runs for more than 0 and at most {MOST_HOURS:,.0f} hours"
        )
    if workers < 0:
        raise ConfigurationError(f"--workers {workers}: 0 for all cores, or how many")
