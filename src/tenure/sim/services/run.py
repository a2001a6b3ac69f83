"""Running one seed of services."""

import logging

from tenure.sim.kernel.cores import Progress, no_progress
from tenure.sim.kernel.run import Outcome, outcome_of
from tenure.sim.services.canaries import NONE, ServicesCanary
from tenure.sim.services.trial import ServicesTrial
from tenure.sim.services.world import ServicesWorld


def run_services(
    trial: ServicesTrial, broken: ServicesCanary = NONE, tell: Progress = no_progress
) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    logger = logging.getLogger("tenure")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # what fails here fails on purpose
    with broken.in_place():
        world = ServicesWorld(broken.trial(trial))
        try:
            return outcome_of(trial.seed, world, tell)
        finally:
            world.abandon()
            logger.setLevel(level)
