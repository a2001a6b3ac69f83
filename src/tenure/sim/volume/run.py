"""Running seeds of caches: one, or many on all cores."""

from collections.abc import Iterator, Sequence

from tenure.sim.kernel.cores import Progress, no_progress, run_all
from tenure.sim.kernel.run import Outcome, outcome_of
from tenure.sim.volume.canaries import NONE, VolumeCanary, cache_canary
from tenure.sim.volume.owned_world import OwnedCachesWorld
from tenure.sim.volume.trial import VolumeTrial
from tenure.sim.volume.world import VolumeWorld


def run_caches(
    trial: VolumeTrial, broken: VolumeCanary = NONE, tell: Progress = no_progress
) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    with broken.in_place():
        world = OwnedCachesWorld if trial.has_owners else VolumeWorld
        return outcome_of(trial.seed, world(broken.trial(trial)), tell)


def run_many_caches(
    trials: Sequence[VolumeTrial],
    broken: str = NONE.name,
    workers: int = 0,
    tell: Progress = no_progress,
) -> Iterator[Outcome]:
    """Simulate many seeds, on all cores unless told otherwise; their outcomes, in order."""
    yield from run_all(_run_named, [(trial, broken) for trial in trials], workers, tell)


def _run_named(work: tuple[VolumeTrial, str], tell: Progress) -> Outcome:
    trial, broken = work
    return run_caches(trial, cache_canary(broken), tell)
