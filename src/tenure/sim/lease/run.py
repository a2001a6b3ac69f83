"""Running seeds: one, or many on all cores, and what came of them."""

import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from os import cpu_count
from typing import Any

import msgspec

from tenure.base.instants import SECOND_NS
from tenure.errors import JournalDamaged
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.story import Happening
from tenure.sim.lease.canaries import NONE, Canary, canary
from tenure.sim.lease.trial import Trial
from tenure.sim.lease.world import LeaseWorld

STORY_LINES = 40
LOOK_SECONDS = 0.2
ABOUT_LOOKUPS = ("S2", "L1")
"""Promises in whose stories lookups play a part."""

Progress = Callable[[int], None]
"""Called now and then with the nanoseconds simulated so far, of all seeds together."""


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


def no_progress(simulated_ns: int) -> None:
    """Tell nobody."""


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
    workers = min(workers or cpu_count() or 1, len(trials))
    if workers > 1:
        yield from _on_cores(trials, broken, workers, tell)
        return
    before = 0
    for trial in trials:
        outcome = run_seed(trial, canary(broken), lambda now, done=before: tell(done + now))  # type: ignore[misc]
        before += outcome.simulated_ns
        yield outcome


# --- on many cores ------------------------------------------------------------------------------


def _on_cores(
    trials: Sequence[Trial], broken: str, workers: int, tell: Progress
) -> Iterator[Outcome]:
    context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks as they are
    simulated = context.Value("q", 0)
    with context.Pool(workers, _begin, (simulated,)) as pool:
        outcomes = pool.imap(_run_named, [(trial, broken) for trial in trials])
        for _ in trials:
            while True:
                tell(simulated.value)
                try:
                    outcome = outcomes.next(timeout=LOOK_SECONDS)
                except multiprocessing.TimeoutError:
                    continue
                break
            yield outcome


_SHARED: dict[str, Any] = {}


def _begin(simulated: Any) -> None:
    """A worker begins; an interrupt is for the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _SHARED["simulated"] = simulated


def _run_named(work: tuple[Trial, str]) -> Outcome:
    trial, broken = work
    told = 0

    def tell(now: int) -> None:
        nonlocal told
        simulated = _SHARED["simulated"]
        with simulated.get_lock():
            simulated.value += now - told
        told = now

    return run_seed(trial, canary(broken), tell)


def total(outcomes: Sequence[Outcome], of: str) -> Counter[str]:
    """The sum of one of the outcomes' counts."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(getattr(outcome, of))
    return counts
