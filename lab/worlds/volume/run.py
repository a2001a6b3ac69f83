"""Running seeds of caches: one, or many on all cores."""

from functools import partial

from lab.worlds.run import Outcome, outcome_of, run_many
from lab.worlds.volume.owned_world import OwnedCachesWorld
from lab.worlds.volume.trial import VolumeTrial
from lab.worlds.volume.world import VolumeWorld
from tenure.sim.kernel.cores import Progress, no_progress


def run_caches(trial: VolumeTrial, tell: Progress = no_progress) -> Outcome:
    """Simulate one seed to its end, or until a promise is broken."""
    world = OwnedCachesWorld if trial.has_owners else VolumeWorld
    return outcome_of(trial.seed, world(trial), tell)


run_many_caches = partial(run_many, run_caches)
"""Run many seeds, on all cores unless told otherwise."""
