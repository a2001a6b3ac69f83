"""Some seeds of everything: the promises are kept, and everything that may go wrong does.

Thousands of hours are for `python -m lab simulate`; these fail fast.
"""

import pytest

from lab.worlds.lease.run import run_seed
from lab.worlds.lease.strikes import FAULTS, PUT_BACK
from lab.worlds.lease.trial import Trial
from lab.worlds.run import total
from tenure.protocol.lease.timing import PRESETS
from tenure.sim.lease.faults import CALLBACK_HANGS, HAND_OFF_FAULTS
from tenure.sim.lease.strikes import JOURNALS_CHANGED


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("journal", ["memory", "durable"])
def test_every_promise_is_kept(preset: str, journal: str) -> None:
    timing = PRESETS[preset]
    hours = (2 * timing.longest_hold_ns + 30 * timing.hold_ns) / 3.6e12
    for seed in range(6):
        outcome = run_seed(Trial(seed=seed, hours=hours, timing=timing, journal=journal))
        assert outcome.violation is None, (seed, outcome.violation, *outcome.story)
        assert outcome.simulated_hours >= hours


def test_every_kind_of_fault_happens_within_a_hundred_seeds() -> None:
    outcomes = [run_seed(Trial(seed=seed, hours=0.1)) for seed in range(100)]
    faults = total(outcomes, "faults")
    assert [kind for kind in FAULTS.kinds if not faults[kind]] == []


def test_clients_publish_and_are_told_of_losses() -> None:
    outcomes = [run_seed(Trial(seed=seed, hours=0.3)) for seed in range(6)]
    assert all(total(outcomes, "workload").values())
    assert total(outcomes, "notes")["owner expired"] > 0


def test_where_nothing_may_go_wrong_nothing_does() -> None:
    for seed in range(3):
        outcome = run_seed(Trial(seed=seed, hours=0.2, faults=FAULTS.chosen("none")))
        assert outcome.faults == {}
        assert outcome.violation is None
        assert "owner expired" not in outcome.notes
        assert outcome.notes["takeovers"] == 1


@pytest.mark.parametrize("kind", FAULTS.kinds)
def test_a_kind_that_is_asked_for_alone_comes_alone(kind: str) -> None:
    of_moves = {each.name for each in (*HAND_OFF_FAULTS, CALLBACK_HANGS)}
    movers = ("burst of joins", "leaving") if kind in of_moves else ()  # otherwise nothing moves
    rare = {each.name for each in (*JOURNALS_CHANGED, PUT_BACK)}
    faults, rate, seeds = (*movers, kind), *((9, 40) if movers or kind in rare else (3, 8))
    plans = [Trial(seed=seed, hours=0.1, faults=faults, fault_rate=rate) for seed in range(seeds)]
    outcomes = [run_seed(plan) for plan in plans]
    consequence = {"cut message"} if "cut" in kind else set()
    assert {kind} <= set(total(outcomes, "faults")) <= {*faults} | consequence
