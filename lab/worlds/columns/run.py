"""Running seeds of the store: one, or many on all cores."""

from functools import partial

from lab.worlds.columns.trial import ColumnsTrial
from lab.worlds.columns.world import ColumnsWorld
from lab.worlds.run import Outcome, outcome_of, run_many
from tenure.sim.kernel.cores import Progress, no_progress


def run_columns(trial: ColumnsTrial, tell: Progress = no_progress) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    return outcome_of(trial.seed, ColumnsWorld(trial), tell)


run_many_columns = partial(run_many, run_columns)
"""Simulates many seeds, on all cores unless told otherwise."""
