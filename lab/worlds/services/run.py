"""Running seeds of services: one, or many on all cores."""

from functools import partial

from lab.worlds.entity.used_world import run_used
from lab.worlds.run import Outcome, run_many
from lab.worlds.services.trial import ServicesTrial
from lab.worlds.services.world import ServicesWorld
from tenure.sim.kernel.cores import Progress, no_progress


def run_services(trial: ServicesTrial, tell: Progress = no_progress) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    return run_used(partial(ServicesWorld, trial), tell)


run_many_services = partial(run_many, run_services)
"""Many seeds, on all cores unless told otherwise."""
