"""Running seeds of leases: one, or many on all cores."""

from functools import partial

from lab.worlds.lease.trial import Trial
from lab.worlds.lease.world import LeaseWorld
from lab.worlds.run import Outcome, outcome_of, run_many
from tenure.sim.kernel.cores import Progress, no_progress


def run_seed(trial: Trial, tell: Progress = no_progress) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    return outcome_of(trial.seed, LeaseWorld(trial), tell)


run_seeds = partial(run_many, run_seed)
"""Many seeds, on all cores unless told otherwise."""
