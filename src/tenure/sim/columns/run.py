"""Running seeds of the store: one, or many on all cores."""

from collections.abc import Iterator, Sequence

from tenure.sim.columns.canaries import NONE, columns_canary
from tenure.sim.columns.trial import ColumnsTrial
from tenure.sim.columns.world import ColumnsWorld
from tenure.sim.kernel.canaries import RuleLeftOut
from tenure.sim.kernel.cores import Progress, no_progress, run_all
from tenure.sim.kernel.run import Outcome, outcome_of


def run_columns(
    trial: ColumnsTrial, broken: RuleLeftOut = NONE, tell: Progress = no_progress
) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    with broken.in_place():
        return outcome_of(trial.seed, ColumnsWorld(trial), tell)


def run_many_columns(
    trials: Sequence[ColumnsTrial],
    broken: str = NONE.name,
    workers: int = 0,
    tell: Progress = no_progress,
) -> Iterator[Outcome]:
    """Simulate many seeds, on all cores unless told otherwise; their outcomes, in order."""
    yield from run_all(_run_named, [(trial, broken) for trial in trials], workers, tell)


def _run_named(work: tuple[ColumnsTrial, str], tell: Progress) -> Outcome:
    trial, broken = work
    return run_columns(trial, columns_canary(broken), tell)
