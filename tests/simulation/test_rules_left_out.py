"""Rules that chance would leave unbroken for too long: each is caught by a schedule of its own."""

from collections.abc import Callable
from functools import partial

import pytest

from lab.mutants.catalogue import mutant, mutants
from lab.mutants.running import run_without
from tenure.protocol.lease.client_events import ManagerLost
from tenure.protocol.log.journal import Beaten
from tests.simulation.test_schedules import a_failover_onto_a_shorter_preset
from tests.simulation.test_schedules_of_histories import (
    a_first_start_beside_another_history,
    a_journal_is_replaced_under_its_leader,
    a_memory_journal_starts_anew,
    an_owner_has_seen_a_later_leader,
)
from tests.unit.protocol.lease.driven_owner import at, introduction, renewing
from tests.unit.protocol.lease.leader.test_change_log import (
    test_what_is_forgotten_is_not_told_in_part as what_is_forgotten_is_told_in_part,
)
from tests.unit.protocol.lease.leader.test_pool import (
    test_what_is_listed_under_another_number_is_not_listed as what_is_listed_under_another_number,
)
from tests.unit.protocol.lease.lookup.test_another_journal import (
    test_the_first_grant_of_each_range_is_a_loss_once_more as the_first_grant_is_a_loss_once_more,
)
from tests.unit.protocol.lease.owner.test_belief import (
    test_a_number_that_was_seen_is_not_granted_again as a_number_that_was_seen_is_granted_again,
)
from tests.unit.protocol.log.test_leadership import beating


def an_overtaken_leader_answers_a_search() -> None:
    """P19: the owner has followed leadership 2, whose manager fell silent. The first manager,
    stopped all the while, answers the question who leads.
    """
    driven = renewing()
    driven.take(ManagerLost("a"))
    driven.hear(introduction(driven, leadership=2), manager="b")
    assert driven.machine.leadership == 2
    driven.take(ManagerLost("b"), at(2))
    driven.hear(introduction(driven, leadership=1), manager="a")
    assert driven.said() == ["lower leadership"]
    assert driven.machine.leadership == 2


def an_answer_to_a_beat_comes_late() -> None:
    """P19: it waited in the manager's socket, and by now another may lead."""
    leadership = beating()
    sent_at = leadership.asked_at
    leadership.advance(at(1.5))
    leadership.on_beaten(Beaten(1, 1, kept=True))
    assert leadership.proven_until == sent_at + leadership.timing.leadership_ns


STORIES: dict[str, Callable[[], object]] = {
    "takeover-waits-its-own-hold": a_failover_onto_a_shorter_preset,
    "leads-from-the-answer": an_answer_to_a_beat_comes_late,
    "lower-leadership-followed": an_overtaken_leader_answers_a_search,
    "receipt-not-shown": an_owner_has_seen_a_later_leader,
    "listed-numbers-not-compared": what_is_listed_under_another_number,
    "equal-number-granted": a_number_that_was_seen_is_granted_again,
    "new-journal-waits-a-term": partial(a_memory_journal_starts_anew, first_start=False),
    "leads-whatever-journal": a_journal_is_replaced_under_its_leader,
    "other-histories-not-heard": a_first_start_beside_another_history,
    "change-log-forgets-that-it-forgot": what_is_forgotten_is_told_in_part,
    "another-journal-told-once": the_first_grant_is_a_loss_once_more,
}


@pytest.mark.parametrize("name", STORIES)
def test_a_rule_left_out_is_caught_by_its_schedule(name: str) -> None:
    STORIES[name]()
    with pytest.raises(AssertionError):
        run_without(mutant("lease", name), STORIES[name])


def test_every_rule_that_chance_leaves_unbroken_has_a_schedule() -> None:
    by_schedule = {each.name for each in mutants("lease").values() if each.by == "schedule"}
    assert STORIES.keys() == by_schedule
