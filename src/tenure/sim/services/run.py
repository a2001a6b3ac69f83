"""Running seeds of services: one, or many on all cores."""

import logging
from collections.abc import Iterator, Sequence

from tenure.sim.kernel.cores import Progress, no_progress, run_all
from tenure.sim.kernel.run import Outcome, outcome_of
from tenure.sim.services.canaries import NONE, ServicesCanary, services_canary
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


def run_many_services(
    trials: Sequence[ServicesTrial],
    broken: str = NONE.name,
    workers: int = 0,
    tell: Progress = no_progress,
) -> Iterator[Outcome]:
    """Simulate many seeds, on all cores unless told otherwise; their outcomes, in order."""
    yield from run_all(_run_named, [(trial, broken) for trial in trials], workers, tell)


def _run_named(work: tuple[ServicesTrial, str], tell: Progress) -> Outcome:
    trial, broken = work
    return run_services(trial, services_canary(broken), tell)
