"""Running seeds of leases: one, or many on all cores."""

from collections.abc import Iterator, Sequence

from tenure.sim.kernel.cores import Progress, no_progress, run_all
from tenure.sim.kernel.run import Outcome, outcome_of
from tenure.sim.lease.canaries import NONE, Canary, canary
from tenure.sim.lease.trial import Trial
from tenure.sim.lease.world import LeaseWorld


def run_seed(trial: Trial, broken: Canary = NONE, tell: Progress = no_progress) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    with broken.in_place():
        return outcome_of(trial.seed, LeaseWorld(trial, broken), tell)


def run_seeds(
    trials: Sequence[Trial],
    broken: str = NONE.name,
    workers: int = 0,
    tell: Progress = no_progress,
) -> Iterator[Outcome]:
    """Simulate many seeds, on all cores unless told otherwise; their outcomes, in order."""
    yield from run_all(_run_named, [(trial, broken) for trial in trials], workers, tell)


def _run_named(work: tuple[Trial, str], tell: Progress) -> Outcome:
    trial, broken = work
    return run_seed(trial, canary(broken), tell)
