"""The kernel runs any set of machines: here a pair that knows no lease, under every fault."""

from collections import Counter

import pytest

from lab.worlds.run import outcome_of
from tenure.base.instants import Instant
from tenure.base.machine import Output
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.cores import no_progress
from tenure.sim.kernel.world import AnyTrial
from tests.unit.sim.kernel.toy import NAMES, Gone, Got, Ping, Pinger, Ponger, Send, ToyWorld


def ran(seed: int, chosen: tuple[str, ...] = NAMES, hours: float = 0.2) -> ToyWorld:
    world = ToyWorld(AnyTrial(seed=seed, hours=hours, faults=chosen))
    world.run()
    return world


def test_every_fault_strikes_a_toy_world_and_it_heals() -> None:
    counts: Counter[str] = Counter()
    for seed in range(12):
        world = ran(seed)
        counts += world.faults.counts
        assert len(world.pongs) > 50
    assert {*NAMES} <= {*counts}


def test_a_seed_is_the_same_run_each_time_and_another_is_another() -> None:
    once, again, other = ran(1), ran(1), ran(2)
    assert once.story.fingerprint == again.story.fingerprint != other.story.fingerprint


def test_without_faults_an_answer_comes_to_every_question() -> None:
    world = ran(3, ())
    pinger = world.slots["client"].machine
    assert isinstance(pinger, Pinger)
    assert len(world.pongs) == pinger.answered


def test_what_does_not_heal_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ponger, "handle", lambda self, now, _: self.advance(now))
    with pytest.raises(Violation, match="L1: not well 10 s after all faults were over: the client"):
        ran(4)


def test_a_machine_that_is_never_content_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ponger, "advance", lambda _, now: Output([], now))
    with pytest.raises(AssertionError, match="wants to be woken at once, for ever"):
        ran(5, ())


def test_what_a_machine_raises_is_a_violation_of_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(_: Ponger, now: Instant) -> Output[Send]:
        raise KeyError(now)

    monkeypatch.setattr(Ponger, "advance", forgetful)
    outcome = outcome_of(6, ToyWorld(AnyTrial(seed=6, hours=0.01, faults=())), no_progress)
    assert outcome.seed == 6
    assert outcome.violation is not None
    assert outcome.violation.startswith("invariant: KeyError(")
    assert outcome.violation.endswith(" in forgetful, test_kernel.py")


def test_a_broken_promise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Ponger.handle

    def too_high(self: Ponger, now: Instant, event: Got | Gone) -> Output[Send]:
        raised = (
            Got(event.sender, Ping(event.message.number + 1)) if isinstance(event, Got) else event
        )
        return answer(self, now, raised)

    monkeypatch.setattr(Ponger, "handle", too_high)
    with pytest.raises(Violation) as caught:
        ran(5)
    assert caught.value.promise == "answers"
