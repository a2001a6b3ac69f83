"""Running seeds of caches: one, or many on all cores."""

from functools import partial

from tenure.sim.kernel.cores import Progress, no_progress
from tenure.sim.kernel.run import Outcome, outcome_of, run_many
from tenure.sim.volume.owned_world import OwnedCachesWorld
from tenure.sim.volume.trial import VolumeTrial
from tenure.sim.volume.world import VolumeWorld


def run_caches(trial: VolumeTrial, tell: Progress = no_progress) -> Outcome:
    """Simulate one seed to its end, or until a promise is broken."""
    world = OwnedCachesWorld if trial.has_owners else VolumeWorld
    return outcome_of(trial.seed, world(trial), tell)


run_many_caches = partial(run_many, run_caches)
"""Run many seeds, on all cores unless told otherwise."""
