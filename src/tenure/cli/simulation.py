"""`tenure simulate`: a simulated test of one's own service, under many seeds, on all cores."""

import importlib
import logging
import sys
from pathlib import Path
from typing import NamedTuple

from tenure.base.instants import SECOND_NS
from tenure.cli.output import counted, put, say
from tenure.cli.waiting import WaitingLine
from tenure.errors import ConfigurationError
from tenure.sim.kernel.cores import Progress, run_all
from tenure.testing.simulation import SeedFailed, SimulatedTest

FAILED = 1


class SeedWork(NamedTuple):
    """One seed to run, in whichever process."""

    place: str
    seed: int
    minutes: float | None
    faults: str | None


def simulate(
    test: str,
    /,
    *,
    seeds: int | None = None,
    seed: int = 0,
    minutes: float | None = None,
    faults: str | None = None,
    workers: int = 0,
) -> int:
    """Run a simulated test of your own service under many seeds, and stop at the first that fails.

    The test is one that `tenure.testing.simulated` decorates. The exit code is 1 if a seed fails.

    Parameters
    ----------
    test
        Its place, as MODULE:TEST, with the module as Python imports it from here.
    seeds
        How many seeds to run; by default as many as the test says.
    seed
        The first of them; 0 by default.
    minutes
        How many simulated minutes each seed runs; by default as many as the test says.
    faults
        What may go wrong, separated by commas; by default what the test says.
    workers
        How many cores to use; by default all of them.
    """
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    there = found(test).limited(minutes, faults)
    count = len(there.seeds) if seeds is None else seeds
    for name, given, least in (("seeds", count, 1), ("seed", seed, 0), ("workers", workers, 0)):
        if given < least:
            raise ConfigurationError(f"--{name} {given}: from {least} on")
    works = [SeedWork(test, each, minutes, faults) for each in range(seed, seed + count)]
    judged = passed = 0
    with WaitingLine(lambda: f"{passed} of {counted(count, 'seed')} passed"):
        for failure, found_in in run_all(run_one, works, workers):
            if failure:
                put(failure)
                return FAILED
            passed, judged = passed + 1, judged + found_in
    there.check_judged(judged)
    say(f"every seed passed ({seed} to {seed + count - 1}, {judged:,} answers and frames judged)")
    return 0


def run_one(work: SeedWork, tell: Progress) -> tuple[str, int]:
    """What is said of a seed that fails, or nothing; and how much was judged."""
    test = found(work.place).limited(work.minutes, work.faults)
    logging.disable()  # of thousands of lines, the story of a failure says those that matter
    try:
        judged = test.run(work.seed)
    except SeedFailed as failed:
        return str(failed), 0
    finally:
        logging.disable(logging.NOTSET)
    tell(round(test.trial.hours * 3600 * SECOND_NS))
    return "", judged


def found(place: str) -> SimulatedTest:
    """The test at MODULE:TEST. Raises ConfigurationError."""
    module_name, _, name = place.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (ModuleNotFoundError, ValueError) as error:
        raise ConfigurationError(
            f"{place!r}: {error}. Name the test as MODULE:TEST, from the folder in which its "
            "module is, such as test_chat:test_nobody_misses_a_line"
        ) from None
    test = getattr(getattr(module, name, None), "simulated", None)
    if not isinstance(test, SimulatedTest):
        tests = [each for each, it in vars(module).items() if hasattr(it, "simulated")]
        raise ConfigurationError(
            f"{module_name} has no simulated test {name!r}; it has {', '.join(tests) or 'none'}"
        )
    return test
