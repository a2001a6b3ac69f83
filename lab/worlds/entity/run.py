"""Running seeds of entities: one, or many on all cores."""

from functools import partial

from lab.worlds.entity.trial import EntityTrial
from lab.worlds.entity.used_world import run_used
from lab.worlds.entity.world import EntityWorld
from lab.worlds.run import Outcome, run_many
from tenure.sim.kernel.cores import Progress, no_progress


def run_entities(trial: EntityTrial, tell: Progress = no_progress) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    return run_used(partial(EntityWorld, trial), tell)


run_many_entities = partial(run_many, run_entities)
"""Simulates many seeds, on all cores unless told otherwise."""
