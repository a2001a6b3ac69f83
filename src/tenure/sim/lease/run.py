"""Running seeds: one, or many on all cores, and what came of them."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from tenure.base.instants import SECOND_NS
from tenure.errors import JournalDamaged
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.cores import Progress, no_progress, run_all
from tenure.sim.kernel.story import Happening
from tenure.sim.lease.canaries import NONE, Canary, canary
from tenure.sim.lease.trial import Trial
from tenure.sim.lease.world import LeaseWorld

STORY_LINES = 40
ABOUT_LOOKUPS = ("S2", "L1")
"""Promises in whose stories lookups play a part."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of one seed."""

    seed: int
    simulated_ns: int
    messages: int
    takeovers: int
    fingerprint: int
    """Of everything that happened: the same seed gives the same one, on any machine."""
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


def run_seed(trial: Trial, broken: Canary = NONE, tell: Progress = no_progress) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    with broken.in_place():
        world = LeaseWorld(trial, broken)
        violation = None
        try:
            world.run_trial(tell)
        except Violation as error:
            violation = str(error)
        except (AssertionError, JournalDamaged) as error:
            violation = f"invariant: {error!r}"
    return Outcome(
        trial.seed,
        world.now,
        world.network.messages,
        world.takeovers,
        world.story.fingerprint,
        str(world.mix),
        dict(sorted(world.faults.counts.items())),
        dict(sorted(world.notes.items())),
        dict(world.workload.counts),
        violation,
        _story(world, violation) if violation else (),
    )


def _story(world: LeaseWorld, violation: str) -> tuple[str, ...]:
    if violation.startswith(ABOUT_LOOKUPS):
        return tuple(world.story.lines(STORY_LINES))
    return tuple(world.story.lines(STORY_LINES, is_of_a_lookup))


def is_of_a_lookup(event: Happening) -> bool:
    """Whether only a story about lookups needs it."""
    return event.who.startswith("l") or event.what.startswith("gets Sync ")


def run_seeds(
    trials: Sequence[Trial],
    broken: str = NONE.name,
    workers: int = 0,
    tell: Progress = no_progress,
) -> Iterator[Outcome]:
    """Simulate many seeds, on all cores unless told otherwise; their outcomes, in order."""
    yield from run_all(_run_named, [(trial, broken) for trial in trials], workers, tell)


def _run_named(work: tuple[Trial, str], tell: Progress) -> Outcome:
    trial, broken = work
    return run_seed(trial, canary(broken), tell)


def total(outcomes: Sequence[Outcome], of: str) -> Counter[str]:
    """The sum of one of the outcomes' counts."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(getattr(outcome, of))
    return counts
