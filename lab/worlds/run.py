"""Running one seed to its end, and its outcome."""

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tenure.base.instants import SECOND_NS
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.cores import Progress, no_progress, run_all
from tenure.sim.kernel.world import AnyTrial, World


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one seed."""

    seed: int
    simulated_ns: int
    messages: int
    fingerprint: int
    """A hash of everything that happened. The same seed gives the same hash on any machine."""
    mix: str
    faults: dict[str, int]
    notes: dict[str, int]
    workload: dict[str, int]
    violation: str | None = None
    story: tuple[str, ...] = ()

    @property
    def simulated_hours(self) -> float:
        """How many simulated hours have passed in the seed's world."""
        return self.simulated_ns / SECOND_NS / 3600


def outcome_of(seed: int, world: World, tell: Progress) -> Outcome:
    """Run the world to its end, or until a promise is broken."""
    violation = None
    try:
        world.run(tell)
    except Violation as error:
        violation = str(error)
    except Exception as error:  # noqa: BLE001 -- a machine that raises is found like any other fault
        where = traceback.extract_tb(error.__traceback__)[-1]
        violation = f"invariant: {error!r} in {where.name}, {Path(where.filename).name}"
    return Outcome(
        seed=seed,
        simulated_ns=world.now,
        messages=world.network.messages,
        fingerprint=world.story.fingerprint,
        mix=str(world.mix),
        faults=dict(sorted(world.faults.counts.items())),
        notes=dict(sorted(world.notes.items())),
        workload=dict(sorted(world.seen_by_clients().items())),
        violation=violation,
        story=tuple(world.story_of(violation)) if violation else (),
    )


def run_many(
    run: Callable[[Any, Progress], Outcome],
    trials: Sequence[AnyTrial],
    workers: int = 0,
    tell: Progress = no_progress,
) -> Iterator[Outcome]:
    """Simulate many seeds of one tier, on all cores unless told otherwise; their outcomes."""
    yield from run_all(run, trials, workers, tell)


def total(outcomes: Sequence[Outcome], of: str) -> Counter[str]:
    """The sum of the counts named `of`, over all outcomes."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(getattr(outcome, of))
    return counts
