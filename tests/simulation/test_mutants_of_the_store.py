"""Every mutant of the store's nodes is caught, and its twin is not.

Each has a first seed that finds it within seconds, as in `test_mutants_of_leases.py`.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from lab.mutants.catalogue import mutant, mutants
from lab.mutants.running import first_broken, run_without
from lab.worlds.columns.run import run_columns
from lab.worlds.columns.strikes import FAULTS
from lab.worlds.columns.trial import ColumnsTrial
from tests.unit.columns import test_writes
from tests.unit.protocol.replication import test_filling
from tests.unit.protocol.replication import test_schedules as schedules
from tests.unit.protocol.replication import test_schedules_of_adoptions as adoptions
from tests.unit.protocol.replication import test_schedules_of_lists as lists
from tests.unit.protocol.replication import test_schedules_of_pages as pages
from tests.unit.protocol.replication import test_schedules_of_seals as seals
from tests.unit.protocol.replication import test_schedules_of_writes as writes
from tests.unit.protocol.replication import test_upkeep as upkeep
from tests.unit.protocol.topology import test_newcomers as newcomers
from tests.unit.protocol.topology import test_restoring as restoring

TRIED = 40
STORIES: dict[str, Callable[[], object]] = {
    "no-first-round": writes.test_an_insert_whose_clock_is_behind_is_neither_refused_nor_hidden,
    "drawn-below-the-horizon": writes.test_a_version_is_above_the_horizon_that_was_promised,
    "first-round-in-one-list": (
        writes.test_a_version_is_above_what_the_new_list_has_in_the_joint_step
    ),
    "every-node-in-one-slot": writes.test_no_two_nodes_draw_one_time_and_no_node_draws_one_twice,
    "one-time-for-two-writes": writes.test_no_two_nodes_draw_one_time_and_no_node_draws_one_twice,
    "sent-and-said-not-to-be": (
        writes.test_a_write_that_was_sent_is_unknown_when_too_few_are_left_under_a_later_topology
    ),
    "refused-by-most-is-nowhere": (
        writes.test_a_write_that_one_replica_has_and_two_refuse_is_unknown
    ),
    "repeated-with-another-version": test_writes.test_a_repeat_says_exactly_the_same_again,
    "an-owner-writes-below": seals.test_what_an_owner_with_a_slow_clock_deletes_does_not_come_back,
    "a-round-for-each-family": pages.test_a_row_that_is_read_while_it_is_written_is_seen_whole,
    "rows-mended-in-parts": pages.test_a_row_that_is_read_where_replicas_differ_is_mended_whole,
    "times-not-confirmed": (
        pages.test_a_column_that_is_rewritten_while_a_page_by_time_is_read_is_on_it
    ),
    "no-catching-up": test_filling.test_a_node_catches_up_with_what_a_majority_acknowledged,
    "returned-before-mended": schedules.test_a_read_waits_until_a_quorum_has_what_it_returns,
    "lower-topology-served": (schedules.test_a_replica_with_a_later_topology_refuses_and_tells_it),
    "old-list-alone": schedules.test_in_the_joint_step_a_write_needs_both_lists,
    "merged-whatever-the-adoption": (
        schedules.test_a_former_owners_write_at_a_replica_that_was_not_reached_is_not_seen
    ),
    "pages-end-anywhere": schedules.test_half_of_each_replicas_page_is_deleted,
    "caught-up-from-one": (test_filling.test_a_node_is_not_through_before_a_majority_has_answered),
    "filled-without-wiping": test_filling.test_what_a_node_had_of_what_it_gains_is_wiped,
    "read-before-durable": schedules.test_a_replica_says_nothing_that_is_not_durable,
    "adopted-without-writing-back": (
        schedules.test_a_former_owners_write_at_a_replica_that_was_not_reached_is_not_seen
    ),
    "sealed-without-a-promise": (
        upkeep.test_from_its_promise_on_a_replica_takes_no_write_of_that_time
    ),
    "tombstones-without-a-place": (
        schedules.test_in_the_order_of_time_what_one_reader_saw_deleted_stays_so
    ),
    "mended-below-the-seal": upkeep.test_a_mend_from_before_a_seal_is_ignored,
    "written-in-one-list": schedules.test_in_the_joint_step_a_write_needs_both_lists,
    "read-in-one-list": schedules.test_in_the_joint_step_a_read_needs_both_lists,
    "sealed-without-the-down": upkeep.test_a_replica_that_is_down_holds_a_seal_back_and_is_named,
    "compared-before-promised": (
        seals.test_what_comes_between_the_comparison_and_the_seal_is_refused
    ),
    "promised-before-durable": seals.test_a_promise_survives_a_power_failure,
    "purged-by-a-promise": seals.test_a_tombstone_stays_until_all_have_it,
    "hints-below-the-horizon": seals.test_a_hint_from_before_a_seal_is_dropped,
    "answers-below-the-seal": (
        seals.test_a_read_that_spans_a_seal_does_not_bring_back_what_was_deleted
    ),
    "promises-not-taken-over": test_filling.test_what_was_promised_and_sealed_is_taken_over,
    "seals-not-taken-over": test_filling.test_what_was_promised_and_sealed_is_taken_over,
    "sealed-while-filling": seals.test_while_a_node_fills_nothing_is_sealed,
    "sealed-across-topologies": (
        seals.test_a_seal_is_not_begun_under_one_topology_and_ended_under_another
    ),
    "no-fence-for-hints": adoptions.test_a_former_owners_hints_are_refused,
    "fenced-before-durable": adoptions.test_a_fence_survives_a_power_failure,
    "short-way-while-filling": (
        adoptions.test_a_former_owners_write_at_a_node_that_joins_is_not_seen
    ),
    "short-way-again": adoptions.test_the_first_trys_state_arrives_after_the_second_try,
    "attempts-in-any-order": adoptions.test_the_first_trys_state_arrives_after_the_second_try,
    "mended-whatever-the-adoption": (
        adoptions.test_a_mend_from_before_an_adoption_brings_nothing_of_a_former_owner
    ),
    "a-strangers-version": newcomers.test_a_version_that_a_stranger_makes_up_stops_no_change,
    "one-leap-believed": newcomers.test_one_member_that_leaps_is_not_believed_and_two_are,
    "registered-from-the-future": (
        newcomers.test_a_version_that_a_stranger_makes_up_stops_no_change
    ),
    "who-waits-keeps-a-member-out": (
        newcomers.test_a_member_takes_an_address_that_a_stranger_has_taken
    ),
    "places-to-one-token": newcomers.test_one_token_cannot_keep_out_the_nodes_of_another,
    "records-without-bound": newcomers.test_records_that_strangers_cause_are_bounded_for_each_token,
    "restored-from-anybody": restoring.test_who_is_no_member_makes_up_no_topology,
    "two-voices-for-one-node": (
        newcomers.test_while_a_node_without_a_secret_is_here_nobody_else_speaks_for_it
    ),
    "any-clock": lists.test_a_clock_a_year_ahead_is_refused_and_hinders_nobody,
}


BACK = "disk put back,crash,cut,ring change"
"""The faults that reveal a disk's earlier state."""


class Soon(NamedTuple):
    """How a mutant is found soon."""

    seed: int = 0
    promises: tuple[str, ...] = ("D2",)
    faults: str = "all"
    keys: int = 1
    clients: int = 6


SOON = {
    "answered-before-durable": Soon(6),
    "digests-not-compared": Soon(0),
    "no-fence-for-writes": Soon(0, ("D6", "D2"), "message,crash,cut,pause"),
    "short-way-with-a-quorum": Soon(7, ("D6", "D2"), "message,crash,cut,pause"),
    "never-compared": Soon(0, ("L1", "D2")),
    "tombstones-by-time": Soon(2),
    "vouched-by-nobody": Soon(0, ("D2", "D3", "D8"), BACK),
    "put-back-and-taken": Soon(2, ("D2", "D3", "D8", "L1"), BACK),
    "believed-of-anybody": Soon(0, ("D8",)),
    "what-a-scrub-finds-is-not-told": Soon(63, ("R35",), "slow sync", keys=3, clients=2),
    "no-joint-step": Soon(13, ("D2", "D3"), "ring change,crash,cut,message"),
}


def trial(name: str, seed: int) -> ColumnsTrial:
    """A seed of the mix by which the mutant is found soon."""
    soon = SOON[name]
    return ColumnsTrial(
        seed=seed,
        hours=0.5,
        faults=FAULTS.chosen(soon.faults),
        keys=soon.keys,
        clients=soon.clients,
    )


@pytest.mark.parametrize("name", SOON)
def test_a_mutant_of_the_store_is_caught_and_its_twin_is_not(name: str) -> None:
    soon = SOON[name]
    trials = [trial(name, seed) for seed in range(soon.seed, soon.seed + TRIED)]
    caught = run_without(mutant("columns", name), first_broken, run_columns, trials)
    assert caught is not None
    assert caught.violation is not None
    assert caught.violation.startswith(soon.promises)
    assert caught.story
    twin = run_columns(trial(name, caught.seed))
    assert twin.violation is None, (twin.violation, *twin.story)


@pytest.mark.parametrize("name", STORIES)
def test_a_rule_of_the_store_left_out_is_caught_by_its_schedule(name: str) -> None:
    STORIES[name]()
    with pytest.raises(AssertionError):
        run_without(mutant("columns", name), STORIES[name])


def test_every_mutant_of_the_store_is_hunted() -> None:
    there = mutants("columns").values()
    assert SOON.keys() == {each.name for each in there if each.by == "seeds"}
    assert STORIES.keys() == {each.name for each in there if each.by == "schedule"}
