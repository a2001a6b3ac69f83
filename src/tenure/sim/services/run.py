"""Running seeds of services: one, or many on all cores."""

from functools import partial

from tenure.sim.entity.used_world import run_used
from tenure.sim.kernel.cores import Progress, no_progress
from tenure.sim.kernel.run import Outcome, run_many
from tenure.sim.services.canaries import NONE, ServicesCanary, services_canary
from tenure.sim.services.trial import ServicesTrial
from tenure.sim.services.world import ServicesWorld


def run_services(
    trial: ServicesTrial, broken: ServicesCanary = NONE, tell: Progress = no_progress
) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    with broken.in_place():
        return run_used(partial(ServicesWorld, broken.trial(trial)), tell)


run_many_services = partial(run_many, run_services, services_canary)
"""Many seeds, on all cores unless told otherwise."""
