"""Running seeds of two masters."""

from functools import partial

from lab.worlds.rivals.strikes import RivalsTrial
from lab.worlds.rivals.world import RivalsWorld
from lab.worlds.run import Outcome, outcome_of, run_many
from tenure.sim.kernel.cores import Progress, no_progress


def run_rivals(trial: RivalsTrial, tell: Progress = no_progress) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    return outcome_of(trial.seed, RivalsWorld(trial), tell)


run_many_rivals = partial(run_many, run_rivals)
"""Many seeds, on all cores unless told otherwise."""
