"""Rules of caches that chance leaves unbroken, or for long: a schedule catches each at once."""

from collections.abc import Callable
from functools import partial

import pytest

from lab.mutants.catalogue import mutant, mutants
from lab.mutants.running import run_without
from tests.unit.protocol.volume import test_schedules as schedules
from tests.unit.protocol.volume import test_schedules_of_servers as of_servers
from tests.unit.protocol.volume import test_schedules_of_starts as of_starts

STORIES: dict[str, Callable[[], object]] = {
    "live-before-lease": (schedules.test_the_reader_that_was_stopped_while_its_client_had_no_lease),
    "lease-before-items": schedules.test_the_order_of_what_an_answer_does,
    "items-of-any-reader": schedules.test_an_item_of_a_past_reader,
    "acknowledged-and-not-applied": (
        schedules.test_an_item_for_a_reader_number_that_is_not_known_yet
    ),
    "reconnects-in-any-order": schedules.test_the_doubled_reconnect,
    "written-twice": schedules.test_a_write_that_comes_twice,
    "listed-without-marks": schedules.test_withdrawn_before_the_answer,
    "quiet-without-margin": of_starts.test_starting_at_once,
    "deaf-to-what-others-saw": schedules.test_what_others_saw,
    "last-request-remembered": schedules.test_the_late_own_write,
    "lease-beyond-the-term": of_servers.test_a_volume_lease_ends_within_the_owners_term,
    "answer-before-the-end-of-the-term": (
        of_servers.test_a_stopped_owner_looks_at_its_clock_before_it_answers
    ),
    "returned-undrained": partial(of_servers.test_returned_undrained, served=True),
    "leased-while-draining": of_servers.test_no_lease_is_given_while_draining,
    "written-while-draining": (
        of_servers.test_a_write_while_draining_waits_for_the_holders_of_the_drain
    ),
    "no-quiet-after-death": (
        of_servers.test_dead_and_then_nothing_is_written_while_its_readers_may_hit
    ),
    "read-as-lost-at-once": of_servers.test_dead_with_its_state_and_then_reads_wait_as_well,
    "as-of-by-count-alone": of_servers.test_as_of_another_owner,
    "grant-without-a-floor": of_servers.test_the_number_of_a_grant_is_its_floor,
}


@pytest.mark.parametrize("name", STORIES)
def test_a_rule_of_caches_left_out_is_caught_by_its_schedule(name: str) -> None:
    STORIES[name]()
    with pytest.raises(AssertionError):
        run_without(mutant("cache", name), STORIES[name])


def test_what_chance_does_not_break_has_a_schedule() -> None:
    by_schedule = {each.name for each in mutants("cache").values() if each.by == "schedule"}
    assert by_schedule <= STORIES.keys()
