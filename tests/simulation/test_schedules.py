"""The schedules that a naive version fails, 1 to 6: names, requests, answers, recalls.

Each is told as its story, under its number in the documentation of the protocol. Whatever a story
does not mention goes well, and at once. The stage checks the promises all the while.
"""

from typing import Any

import msgspec

from tenure.base.instants import seconds
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.messages import Join
from tenure.protocol.lease.timing import DEFAULT, PAPER
from tenure.protocol.log.journal import Beat
from tests.simulation.actors import ManagerActor, OwnerActor
from tests.simulation.stage import REQUESTS, RESPONSES, Stage
from tests.simulation.stories import FAST, HIGH, KEY, LOW, SLOW, ends_badly, one_owner

# --- 1: two presets -------------------------------------------------------------------------------


def a_failover_onto_a_shorter_preset() -> None:
    stage, a, o = one_owner(timing=PAPER)
    b = stage.manager("b", timing=DEFAULT)
    stage.owner("p")
    stage.part("o", "b")
    a.kill()
    stage.run_until(lambda: b.leads)
    stage.run(14)
    assert stage.holders(KEY) == ["o"], "longer than b's own hold, shorter than a's term"
    stage.run_until(lambda: o.number_of(KEY) is None)
    stage.run_until(lambda: stage.holders(KEY) == ["p"])


def test_1_a_leader_with_a_shorter_hold_waits_out_its_predecessors() -> None:
    """P7: the paper's manager promised 65 s; its successor would hold for 13 only."""
    a_failover_onto_a_shorter_preset()
    ends_badly(
        a_failover_onto_a_shorter_preset,
        without="takeover-waits-its-own-hold",
        promise="freed too early",
    )


def test_1_the_longest_promise_outlives_a_leader_that_did_not_wait_it_out() -> None:
    """P7: a (65 s), b (13 s) and again b within the minute: the third leader waits like the second.
    Only once the promise has run out is it lowered.
    """
    stage, a, _ = one_owner(timing=PAPER)
    promised = stage.committed.promise_ns
    a.kill()
    for _ in range(2):
        b = stage.manager("b")
        stage.run_until(lambda: stage.managers["b"].leads)
        assert b.leader.context.inherited_until - b.now >= promised - seconds(1)
        assert stage.committed.promise_ns == promised
        b.kill()
    b = stage.manager("b")
    stage.run(100)
    assert stage.committed.promise_ns == b.leader.promise_ns < promised


def test_1_an_owner_counts_on_what_its_manager_says() -> None:
    """P7: no owner is configured with a term; told 60 first and 12 after, it counts on 12."""
    stage, a, o = one_owner(timing=PAPER)
    assert 50 < o.seconds_left <= 60
    b = stage.manager("b", timing=DEFAULT)
    a.kill()
    stage.run_until(lambda: b.leads)
    number = o.number_of(KEY)
    stage.run_until(lambda: o.seconds_left <= 12)
    assert o.number_of(KEY) == number, "and loses nothing by it"


# --- 2: two processes, one name -------------------------------------------------------------------


def test_2_two_live_processes_under_one_name_never_take_turns() -> None:
    """P8: the second is refused for as long as the first lives, and told how long to wait."""
    stage, _, o = one_owner()
    number = o.number_of(KEY)
    twin = stage.owner("twin", name="o")
    stage.run(60)
    assert (o.number_of(KEY), twin.holdings.leases) == (number, ())
    assert "refused: name_held" in twin.notes
    o.close()
    stage.run_until(lambda: stage.holders(KEY) == ["twin"], at_most=2)


def test_2_who_was_stopped_past_its_hold_finds_its_name_taken() -> None:
    """P8: once its hold has run out, the name is free; when it goes on it is the second."""
    stage, _, o = one_owner()
    twin = stage.owner("twin", name="o")
    o.stop()
    stage.run_until(lambda: stage.holders(KEY) == ["twin"], at_most=15)
    number = twin.number_of(KEY)
    o.go_on()
    stage.run(30)
    assert (o.holdings.leases, twin.number_of(KEY)) == ((), number)
    assert {"lapsed", "refused: past", "refused: name_held"} <= set(o.notes)


def a_dead_ones_join_arrives_after_its_successors() -> None:
    stage = Stage()
    a = stage.manager("a")
    stage.owner("none").close()
    joins = stage.hold(Join, sender="o1")
    stage.owner("o1", name="o").kill()
    joins.end()
    o2 = stage.owner("o2", name="o")
    stage.run(1)
    number = o2.number_of(KEY)
    joins.last.deliver()
    stage.run(20)
    assert stage.holders(KEY) == ["o2"]
    assert (o2.number_of(KEY), "owner expired" in a.notes) == (number, False)


def test_2_a_straggling_join_does_not_unseat_its_successor() -> None:
    """P8: the join of a process that is dead by now comes after its successor's."""
    a_dead_ones_join_arrives_after_its_successors()
    ends_badly(
        a_dead_ones_join_arrives_after_its_successors,
        without="a-name-is-taken",
        promise="freed too early",
    )


# --- 3: the straggling request --------------------------------------------------------------------


def an_owner_with_a_straggling_request() -> tuple[Stage, ManagerActor, OwnerActor, Any]:
    """The owner's first request, which lists nothing, is on its way; its second was answered."""
    stage = Stage()
    stage.prefer((WHOLE, ("o", "p")))
    a = stage.manager("a")
    requests = stage.hold(*REQUESTS, sender="o")
    o = stage.owner("o")
    stage.run(0.5)
    requests.end()
    stage.run(4)
    assert (requests.last.what.held, stage.holders(KEY)) == ((), ["o"])
    return stage, a, o, requests.last


def a_request_is_overtaken_by_a_later_one() -> None:
    stage, a, _, straggler = an_owner_with_a_straggling_request()
    straggler.deliver()
    stage.run(1)
    assert "late request" in a.notes


def test_3_a_request_that_was_overtaken_is_not_taken() -> None:
    """P2: it lists less than its owner has since been granted, and would return all of it."""
    a_request_is_overtaken_by_a_later_one()
    ends_badly(
        a_request_is_overtaken_by_a_later_one,
        without="requests-in-any-order",
        promise="freed too early",
    )


def a_request_is_read_by_the_next_leader() -> None:
    stage, a, o, straggler = an_owner_with_a_straggling_request()
    number = o.number_of(KEY)
    a.kill()
    again = stage.manager("a")
    others = stage.hold(sender="o", receiver="a")
    stage.run_until(lambda: again.leads)
    straggler.deliver()
    others.end()
    stage.run(20)
    assert o.number_of(KEY) == number


def test_3_a_request_from_before_the_takeover_changes_nothing() -> None:
    """P2, P9: sent to the address of a manager that had not begun to lead when it was sent."""
    a_request_is_read_by_the_next_leader()
    ends_badly(
        a_request_is_read_by_the_next_leader, without="no-nonce-check", promise="freed too early"
    )


def the_next_leader_reads_a_dead_ones_join() -> None:
    stage, a, _ = one_owner()
    joins = stage.hold(Join, sender="dead")
    stage.owner("dead").kill()
    a.kill()
    again = stage.manager("a")
    stage.run_until(lambda: again.leads)
    members = stage.right(KEY), again.pool.table.members
    joins.last.deliver()
    assert (stage.right(KEY), again.pool.table.members) == members
    assert "dead" not in again.pool.table.numbered


def test_3_the_join_of_a_dead_process_is_not_numbered_by_the_next_leader() -> None:
    """P9: nothing changes because of a message without the manager's own present nonce."""
    the_next_leader_reads_a_dead_ones_join()
    ends_badly(the_next_leader_reads_a_dead_ones_join, without="no-nonce-check")


def a_leader_leads_again() -> None:
    stage, a, o, straggler = an_owner_with_a_straggling_request()
    number = o.number_of(KEY)
    b = stage.manager("b")
    a.stop()
    stage.run_until(lambda: b.leads)
    stage.run(5)
    a.go_on()
    assert not a.leads
    others = stage.hold(sender="o", receiver="a")
    b.kill()
    stage.run_until(lambda: a.leads)
    straggler.deliver()
    others.end()
    stage.run(10)
    assert o.number_of(KEY) == number


def test_3_a_leader_that_leads_again_does_not_take_up_its_first_time() -> None:
    """P2: stopped, deposed and leading again, with a request of its first time in its sockets."""
    a_leader_leads_again()
    ends_badly(
        a_leader_leads_again, without="nonce-kept-across-leaderships", promise="freed too early"
    )


# --- 4: between two leaders -----------------------------------------------------------------------


def the_old_leader_renews_after_the_takeover() -> None:
    stage = Stage()
    stage.prefer((WHOLE, ("o", "p")))
    a = stage.manager("a", rate=SLOW)
    o, p = stage.owner("o", rate=SLOW), stage.owner("p", rate=FAST)
    b = stage.manager("b", rate=FAST)
    stage.run(10)
    stage.run_until(lambda: 1.3 < (o.wakes_at - stage.now) / seconds(1) < 1.4)
    beats = stage.hold(Beat, sender="a")
    stage.journal.vacate()
    stage.run_until(lambda: b.leads, at_most=0.5)
    stage.part("o", "b")
    before = o.seconds_left
    stage.run_until(lambda: o.seconds_left > before)  # a, which does not know, has renewed it
    stage.part("o", "a")
    beats.end_and_deliver()
    assert not a.leads
    stage.run_until(lambda: p.number_of(KEY) is not None)


def test_4_a_new_leader_waits_out_what_the_old_one_answers_after_the_takeover() -> None:
    """P19: leadership revoked early, all clocks at the bound; a, which counts on its last beat,
    renews once more after b has taken over.
    """
    the_old_leader_renews_after_the_takeover()
    ends_badly(
        the_old_leader_renews_after_the_takeover,
        without="takeover-does-not-wait",
        promise="freed too early",
    )
    ends_badly(
        the_old_leader_renews_after_the_takeover, without="hold-only", promise="freed too early"
    )


def test_4_who_has_met_the_new_leader_ignores_the_old() -> None:
    """P19: renewed first by the new leader, then by the old one, whose answer was on its way."""
    stage, _, o = one_owner()
    b = stage.manager("b")
    answers = stage.hold(*RESPONSES, sender="a")
    stage.run_until(lambda: bool(answers.caught))
    stage.part("a", "o", "journal")
    stage.run_until(lambda: b.leads)
    stage.run_until(lambda: o.machine.leadership == 2, at_most=5)
    stage.part("o", "b")
    until = o.holdings.expires_at
    for answer in answers.caught:
        answer.deliver()
    assert (o.notes.count("old answer"), o.holdings.expires_at) == (len(answers.caught), until)


# --- 5: the recall that outlives its hold ---------------------------------------------------------


def test_5_a_recalled_range_stays_with_its_owner_while_it_renews() -> None:
    """P10, P4: letting go takes 30 s, more than twice the hold. Renewals go on, and the hold with
    them, and no other owner gets the range before the deadline, unless it is returned.
    """
    stage = Stage(msgspec.structs.replace(DEFAULT, recall_ns=seconds(30)))
    a, o = stage.manager("a"), stage.owner("o")
    stage.run(1)
    stage.owner("p")
    o.slow_callbacks = True
    stage.prefer((LOW, ("o",)), (HIGH, ("p",)))
    stage.run(29)
    assert (stage.holders(b"z"), stage.holders(KEY)) == ([], ["o"]), "it has ceased to believe"
    assert stage.right(b"z").owner == o.holdings.incarnation
    assert "owner expired" not in a.notes
    stage.run(5)
    assert (stage.holders(b"z"), stage.holders(KEY)) == (["p"], ["o"])


def a_recall_that_its_owner_never_hears_of() -> None:
    stage, a, o = one_owner()
    p = stage.owner("p")
    stage.run(2.5)
    stage.prefer((WHOLE, ("p",)))
    answers = stage.hold(*RESPONSES, sender="a", receiver="o")
    a.plan_anew()
    stage.run_until(lambda: bool(answers.caught))
    stage.part("o", "a")
    stage.run_until(lambda: p.number_of(KEY) is not None, at_most=14)
    assert o.seconds_left < 0


def test_5_a_recalled_range_is_not_free_at_the_deadline() -> None:
    """P10, P4: the answer that recalls it is lost; only the hold tells when belief has ended."""
    a_recall_that_its_owner_never_hears_of()
    ends_badly(
        a_recall_that_its_owner_never_hears_of,
        without="recall-outlives-nothing",
        promise="freed too early",
    )


# --- 6: the repeated answer -----------------------------------------------------------------------


def the_answer_is_lost_and_the_request_repeated() -> None:
    stage, _, o = one_owner()
    stage.owner("p")
    answers = stage.hold(*RESPONSES, sender="a", receiver="o")
    stage.run_until(lambda: bool(answers.caught))
    asked_at = stage.now
    stage.part("o", "a")
    stage.run(5)
    answers.caught[0].deliver()
    assert o.clock.real(o.holdings.expires_at) <= asked_at + DEFAULT.term_ns
    stage.run_until(lambda: stage.holders(KEY) == ["p"])


def test_6_only_the_answer_to_the_newest_request_is_taken() -> None:
    """P2, P3: the answer comes 5 s later, when the request was repeated five times, in vain. It
    must not count from the last of these, of which the manager has not heard.
    """
    the_answer_is_lost_and_the_request_repeated()
    ends_badly(the_answer_is_lost_and_the_request_repeated, without="any-answer")


def an_answer_comes_late_with_all_clocks_at_the_bound() -> None:
    stage = Stage()
    stage.prefer((WHOLE, ("o", "p")))
    stage.manager("a", rate=FAST)
    stage.owner("o", rate=SLOW)
    stage.run(1)
    stage.owner("p")
    answers = stage.hold(*RESPONSES, sender="a", receiver="o")
    stage.run_until(lambda: bool(answers.caught))
    stage.part("o", "a")
    stage.run(0.9)
    answers.last.deliver()
    stage.run_until(lambda: stage.holders(KEY) == ["p"], at_most=14)


def test_6_an_answer_counts_from_when_its_request_was_sent() -> None:
    """P3: counted from its receipt, it would outlast the hold by the time that it was under way."""
    story = an_answer_comes_late_with_all_clocks_at_the_bound
    story()
    ends_badly(story, without="term-from-receipt", promise="freed too early")
    ends_badly(story, without="no-margin", promise="freed too early")


def test_6_an_answer_that_sat_in_a_socket_buffer_grants_nothing() -> None:
    """P3: for 20 s, because its process was stopped; its ranges are another's by then."""
    stage = Stage()
    stage.prefer((WHOLE, ("o", "p")))
    stage.manager("a")
    requests = stage.hold(*REQUESTS, sender="o")
    o = stage.owner("o")
    requests.last.deliver()
    stage.run(0.2)  # poked, it asks for what it is to be granted
    o.stop()
    requests.end()
    requests.last.deliver()
    assert stage.right(KEY).owner == o.machine.belief.incarnation
    stage.owner("p")
    stage.run(20)
    assert stage.holders(KEY) == ["p"]
    o.go_on()
    assert (stage.holders(KEY), o.granted) == (["p"], [])
