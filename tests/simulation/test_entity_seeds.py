"""Some seeds of entities: every promise is kept, and everything that may go wrong does."""

import msgspec
import pytest

from lab.mutants.catalogue import mutant, mutants
from lab.mutants.running import run_without
from lab.worlds.entity.faults import FAULTS
from lab.worlds.entity.run import run_entities, run_many_entities
from lab.worlds.entity.trial import EntityTrial
from lab.worlds.run import total


@pytest.mark.parametrize("seed", range(6))
def test_every_promise_of_entities_is_kept(seed: int) -> None:
    outcome = run_entities(EntityTrial(seed=seed, hours=0.5))
    assert outcome.violation is None, (outcome.violation, *outcome.story)
    assert outcome.simulated_hours >= 0.5


def test_users_repeat_no_call_whose_answer_may_be_forgotten() -> None:
    """In this run a user once repeated a call after twelve minutes, and it was done again."""
    outcome = run_entities(EntityTrial(seed=102, hours=0.85))
    assert outcome.violation is None, (outcome.violation, *outcome.story)


def test_nothing_is_asked_of_a_world_whose_journal_is_about_to_be_restored() -> None:
    """In this run it was restored two minutes after all faults were over, and all had healed."""
    outcome = run_entities(EntityTrial(seed=410029, hours=0.557))
    assert outcome.violation is None, (outcome.violation, *outcome.story)


def test_an_alarm_whose_handler_fails_is_not_put_off_until_before_its_time() -> None:
    """In this run wall clocks were set back when the handler had failed."""
    outcome = run_entities(EntityTrial(seed=410585, hours=0.18))
    assert outcome.violation is None, (outcome.violation, *outcome.story)


def test_a_socket_that_is_opened_anew_goes_on_with_no_numbers_of_before() -> None:
    """In this run an entity was lost when a socket had its first frame, and its edge no answer."""
    outcome = run_entities(EntityTrial(seed=410019, hours=0.1))
    assert outcome.violation is None, (outcome.violation, *outcome.story)


def test_users_see_what_users_of_entities_see_and_every_fault_of_a_store_strikes() -> None:
    plan = EntityTrial(seed=0, hours=0.15, stored=True, calls_apart=0.1)
    trials = [msgspec.structs.replace(plan, seed=seed) for seed in (4, 11, 12)]
    outcomes = list(run_many_entities(trials, workers=1))
    assert [each.violation for each in outcomes] == [None] * 3
    seen, struck = total(outcomes, "workload"), total(outcomes, "faults")
    for what in ("add", "twice", "forward", "raised", "frames", "closed with 0"):
        assert seen[what], what
    assert [each.name for each in FAULTS.aliases["store"] if not struck[each.name]] == []


def test_users_read_copies_and_readings_are_waited_for_nowhere_when_all_is_well() -> None:
    outcome = run_entities(EntityTrial(seed=2, hours=0.3, reads="everywhere"))
    assert outcome.violation is None, (outcome.violation, *outcome.story)
    assert outcome.workload["hits"]
    assert outcome.workload["glance"]


MIXES = {
    "unfenced-store": ("pause past the term", "store slow", "store late"),
    "late-store": ("store late",),
}
"""The faults of mutants that all faults together hardly ever show."""


OF_COPIES: dict[str, tuple[str, ...]] = {
    "changes-wait-for-no-copy": (),
    "copies-given-unnoted": (),
    "copied-in-the-middle": ("store slow",),
}
"""The same for mutants that show only where entities are read everywhere."""


def trial(name: str, seed: int) -> EntityTrial:
    """A seed of the mix by which the mutant is found soon."""
    plan = EntityTrial(seed=seed, hours=0.5)
    if (faults := OF_COPIES.get(name)) is not None:
        is_stored = "store slow" in faults
        return EntityTrial(
            seed=seed,
            hours=0.3,
            reads="everywhere",
            faults=faults,
            stored=is_stored,
            calls_apart=0.1,
        )
    if name not in MIXES:
        return plan
    return msgspec.structs.replace(plan, faults=MIXES[name], stored=True, calls_apart=0.02)


SOON = (
    "no-turns",
    "no-answers",
    "new-id-each-time",
    "nothing-rolled-back",
    "readings-of-turns",
    "frames-taken-again",
    "time-goes-back",
    "own-items-unseen",
    "unknown-fields-dropped",
    "unknown-in-lists-dropped",
    *OF_COPIES,
)


@pytest.mark.parametrize("name", SOON)
def test_a_rule_of_entities_left_out_is_noticed(name: str) -> None:
    """These are the rules that the first seed reveals; `python -m lab hunt --tier entity` has
    all.
    """
    outcome = run_without(mutant("entity", name), run_entities, trial(name, seed=0))
    assert outcome.violation is not None


def test_every_mix_is_that_of_a_mutant() -> None:
    assert (MIXES | OF_COPIES).keys() < mutants("entity").keys()


def test_the_same_seed_of_entities_is_the_same_run() -> None:
    first, again = (run_entities(EntityTrial(seed=3, hours=0.1)) for _ in range(2))
    assert first == again
    assert first.fingerprint != run_entities(EntityTrial(seed=4, hours=0.1)).fingerprint
