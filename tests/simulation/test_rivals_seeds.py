"""Some seeds of two masters (P25): every promise is kept. Each rule left out is noticed by a seed,
and by a schedule.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from lab.mutants.catalogue import mutant, mutants
from lab.mutants.running import first_broken, run_without
from lab.worlds.rivals.run import run_rivals
from lab.worlds.rivals.strikes import FAULTS, Knows, RivalsTrial
from tests.simulation.test_schedules_of_two_masters import (
    a_leader_was_stopped_for_a_minute,
    a_manager_ends_after_its_answer,
    managers_that_know_no_rivals,
    managers_that_name_each_other,
    one_owner_that_knows_both,
)

TRIED = 6
HOURS = 0.3


@pytest.mark.parametrize(
    ("knows", "told"), [("managers", "another journal has a living leader"), ("an owner", None)]
)
def test_who_can_see_two_masters_says_so_and_no_key_has_two_owners(
    knows: Knows, told: str | None
) -> None:
    outcome = run_rivals(RivalsTrial(seed=1, hours=HOURS, knows=knows))
    assert outcome.violation is None, (outcome.violation, *outcome.story)
    assert outcome.notes["won leadership"] > 1
    if told is None:
        assert outcome.workload["told of two leaders"]
    else:
        assert outcome.notes[told]


def test_masters_that_come_in_turn_are_never_two() -> None:
    outcome = run_rivals(RivalsTrial(seed=1, hours=HOURS, knows="in turn"))
    assert outcome.violation is None, (outcome.violation, *outcome.story)
    assert outcome.workload["told of two leaders"] == 0
    assert outcome.notes["won leadership"] > 5


class Known(NamedTuple):
    """How a mutant is found soon."""

    knows: Knows
    promises: tuple[str, ...]
    """It must be seen to break one of these."""
    faults: str = "all"
    rate: float = 1.0
    seed: int = 0


KNOWN = {
    "grants-beside-a-rival": Known("managers", ("S1: two owners", "L1", "invariant")),
    "renews-beside-a-rival": Known("an owner", ("S1: two owners", "L1")),
    "looked-once-for-all": Known("managers", ("invariant", "P25: granted without a look")),
    "takes-beside-a-rival": Known("an owner", ("P25: took something beside a rival",)),
    "answer-of-an-ended-leader": Known(
        "in turn", ("P25: two were told of, and there was one",), "straggler,delay", 4.0, 19
    ),
}
STORIES: dict[str, Callable[[], object]] = {
    "grants-beside-a-rival": managers_that_name_each_other,
    "renews-beside-a-rival": one_owner_that_knows_both,
    "looked-once-for-all": a_leader_was_stopped_for_a_minute,
    "takes-beside-a-rival": managers_that_know_no_rivals,
    "answer-of-an-ended-leader": a_manager_ends_after_its_answer,
}


def trial(name: str, seed: int) -> RivalsTrial:
    """A seed of the mix by which the mutant is found soon."""
    known = KNOWN[name]
    return RivalsTrial(
        seed=seed,
        hours=HOURS,
        knows=known.knows,
        faults=FAULTS.chosen(known.faults),
        fault_rate=known.rate,
        has_all_faults=known.faults != "all",
    )


@pytest.mark.parametrize("name", KNOWN)
def test_a_rule_left_out_is_noticed_and_its_twin_is_well(name: str) -> None:
    known = KNOWN[name]
    trials = [trial(name, seed) for seed in range(known.seed, known.seed + TRIED)]
    caught = run_without(mutant("rivals", name), first_broken, run_rivals, trials)
    assert caught is not None
    assert caught.violation.startswith(known.promises), caught.violation
    twin = run_rivals(trial(name, caught.seed))
    assert twin.violation is None, (twin.violation, *twin.story)


@pytest.mark.parametrize("name", STORIES)
def test_a_rule_left_out_is_caught_by_its_schedule(name: str) -> None:
    STORIES[name]()
    with pytest.raises(AssertionError):
        run_without(mutant("rivals", name), STORIES[name])


def test_every_mutant_of_rivals_is_hunted() -> None:
    assert KNOWN.keys() == STORIES.keys() == mutants("rivals").keys()
