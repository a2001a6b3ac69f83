"""Running seeds of caches, and what came of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenure.base.instants import SECOND_NS
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.cores import Progress, no_progress, run_all
from tenure.sim.volume.canaries import NONE, VolumeCanary, cache_canary
from tenure.sim.volume.trial import VolumeTrial
from tenure.sim.volume.world import VolumeWorld

STORY_LINES = 60


class CacheOutcome(NamedTuple):
    """What came of one seed."""

    seed: int
    simulated_ns: int
    messages: int
    fingerprint: int
    mix: str
    faults: dict[str, int]
    notes: dict[str, int]
    workload: dict[str, int]
    violation: str | None = None
    story: tuple[str, ...] = ()

    @property
    def simulated_hours(self) -> float:
        """How long it was, for its world."""
        return self.simulated_ns / SECOND_NS / 3600


def run_caches(
    trial: VolumeTrial, broken: VolumeCanary = NONE, tell: Progress = no_progress
) -> CacheOutcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    with broken.in_place():
        world = VolumeWorld(broken.trial(trial))
        violation = None
        try:
            world.run_trial(tell)
            world.judge.check_histories()
        except Violation as error:
            violation = str(error)
        except AssertionError as error:
            violation = f"invariant: {error!r}"
    return CacheOutcome(
        trial.seed,
        world.now,
        world.network.messages,
        world.story.fingerprint,
        str(world.mix),
        dict(sorted(world.faults.counts.items())),
        dict(sorted(world.notes.items())),
        dict(sorted(world.applications.counts.items())),
        violation,
        tuple(world.story.lines(STORY_LINES)) if violation else (),
    )


def run_many_caches(
    trials: Sequence[VolumeTrial],
    broken: str = NONE.name,
    workers: int = 0,
    tell: Progress = no_progress,
) -> Iterator[CacheOutcome]:
    """Simulate many seeds, on all cores unless told otherwise; their outcomes, in order."""
    yield from run_all(_run_named, [(trial, broken) for trial in trials], workers, tell)


def _run_named(work: tuple[VolumeTrial, str], tell: Progress) -> CacheOutcome:
    trial, broken = work
    return run_caches(trial, cache_canary(broken), tell)
