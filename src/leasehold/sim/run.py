"""Running seeds: one, or many on all cores, and what came of them."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from os import cpu_count

import msgspec

from leasehold.base.instants import SECOND_NS
from leasehold.sim.canaries import NONE, Canary, canary
from leasehold.sim.checkers import Violation
from leasehold.sim.world import Plan, World

STORY_LINES = 60


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


def run_seed(plan: Plan, broken: Canary = NONE) -> Outcome:
    """Simulate one seed to its end, or to the first promise that is broken."""
    with broken.in_place():
        world = World(plan, broken)
        violation = None
        try:
            world.run()
        except (Violation, AssertionError) as error:
            violation = f"{error}" if isinstance(error, Violation) else f"invariant: {error!r}"
    return Outcome(
        plan.seed,
        world.now,
        world.network.messages,
        world.takeovers,
        world.story.fingerprint,
        str(world.mix),
        dict(sorted(world.faults.counts.items())),
        dict(sorted(world.notes.items())),
        dict(world.workload.counts),
        violation,
        tuple(world.story.lines(STORY_LINES)) if violation else (),
    )


def run_seeds(plans: list[Plan], broken: str = NONE.name, workers: int = 0) -> Iterator[Outcome]:
    """Simulate many seeds on all cores; their outcomes in order, as they come."""
    workers = workers or cpu_count() or 1
    if workers == 1 or len(plans) == 1:
        yield from (run_seed(plan, canary(broken)) for plan in plans)
        return
    with ProcessPoolExecutor(workers) as executor:
        jobs = [executor.submit(_run_named, plan, broken) for plan in plans]
        try:
            for job in jobs:
                yield job.result()
        finally:
            for job in jobs:
                job.cancel()


def _run_named(plan: Plan, broken: str) -> Outcome:
    return run_seed(plan, canary(broken))


def total(outcomes: list[Outcome], of: str) -> Counter[str]:
    """The sum of one of the outcomes' counts."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(getattr(outcome, of))
    return counts
