"""The schedules that a naive version fails, 12 to 16: being away, being late, being past.

As in `test_schedules`.
"""

from tenure.base.instants import seconds
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.client_events import ManagerLost
from tenure.protocol.lease.messages import Join, LeaseRequest, SyncResponse
from tenure.protocol.lease.timing import DEFAULT
from tenure.protocol.log.journal import Append
from tests.simulation.stage import REQUESTS, Stage
from tests.simulation.stories import KEY, ends_badly, one_owner

# --- 12: the lookup that was away -----------------------------------------------------------------


def a_range_is_lost_and_then_moves_cleanly() -> None:
    stage, _, o = one_owner()
    lookup = stage.lookup("l")
    stage.run(1)
    assert (lookup.find(KEY), lookup.losses) == ("o", [])
    mend = stage.part("l", "a")
    stage.owner("q", hand_off=True)
    stage.prefer((WHOLE, ("p", "q")))
    o.close()
    p = stage.owner("p", hand_off=True)
    stage.run(1)
    p.drain()
    stage.run(1)
    assert (stage.holders(KEY), stage.right(KEY).since < stage.right(KEY).number) == (["q"], True)
    mend()
    stage.run(6)
    assert (lookup.find(KEY), lookup.lost(KEY)) == ("q", ["lost"])


def test_12_a_loss_is_signalled_to_a_lookup_that_was_away() -> None:
    """P16: away while its range was lost and then handed over cleanly, it sees the last change
    only; that one was clean. What it knew is older than `since`, so it was lost.
    """
    a_range_is_lost_and_then_moves_cleanly()
    ends_badly(a_range_is_lost_and_then_moves_cleanly, without="loss-by-last-flag")


def test_12_a_clean_change_is_not_signalled() -> None:
    """P16, S2: nothing was lost, so no lookup is told of a loss, whether it was there or away."""
    stage, _, o = one_owner(hand_off=True)
    there, away = stage.lookup("there"), stage.lookup("away")
    stage.owner("p", hand_off=True)
    stage.run(1)
    mend = stage.part("away", "a")
    o.drain()
    stage.run(1)
    mend()
    stage.run(6)
    assert [lookup.find(KEY) for lookup in (there, away)] == ["p", "p"]
    assert there.losses + away.losses == []


def test_12_a_lookup_that_is_parted_for_ever_stops_routing() -> None:
    """P17: past its bound everything it knew counts as lost, once, and it finds nothing."""
    stage, _, _ = one_owner()
    lookup = stage.lookup("l")
    stage.run(1)
    stage.part("l", "a")
    stage.run(4)
    assert (lookup.find(KEY), lookup.losses) == ("o", []), "within its bound it goes on"
    stage.run(60)
    assert lookup.losses == [(WHOLE, "out of contact")]
    assert lookup.find(KEY) is None


def test_12_contact_counts_from_when_the_answered_question_was_sent() -> None:
    """P17: the answer takes 3 s; a loss in the meantime may be unknown for 10 s, not for 13."""
    stage, _, _ = one_owner()
    answers = stage.hold(SyncResponse, sender="a")
    lookup = stage.lookup("l")
    asked_at = stage.now
    mend = stage.part("l", "a")
    stage.run(0.05)
    answers.caught[0].deliver()
    assert lookup.clock.real(lookup.machine.contact_until) == asked_at + DEFAULT.contact_ns
    mend()


# --- 13: the join storm ---------------------------------------------------------------------------


def test_13_ranges_that_come_free_faster_than_the_owner_can_ask() -> None:
    """P1: every 50 ms a range comes free for an owner that is 120 ms away. It asks once a round
    trip, disclaims nothing that crossed its request, and has them all soon after the last.
    """
    cuts = [bytes([5 * i]) for i in range(1, 21)]
    ranges = [KeyRange(low, high) for low, high in zip(cuts, [*cuts[1:], None], strict=True)]
    names = [f"q{i}" for i in range(len(ranges))]
    stage = Stage()
    stage.prefer((WHOLE, ("o",)), *((r, (n, "o")) for r, n in zip(ranges, names, strict=True)))
    stage.latency_ns["o"] = seconds(0.06)
    stage.manager("a")
    others = [stage.owner(name) for name in names]
    o = stage.owner("o")
    stage.run(10)
    requests = stage.count(LeaseRequest, sender="o")
    for other in others:
        other.close()
        stage.run(0.05)
    stage.run(0.5)
    assert {stage.holders(key_range.start)[0] for key_range in ranges} == {"o"}
    assert o.revoked == []
    assert stage.count(LeaseRequest, sender="o") - requests <= 1.5 / 0.12


# --- 14: the late advance -------------------------------------------------------------------------


def an_answer_is_handled_after_the_end_of_the_term() -> None:
    stage, _, o = one_owner()
    number = o.number_of(KEY)
    requests = stage.hold(*REQUESTS, sender="o")
    stage.run_until(lambda: o.seconds_left < 0.5)
    o.post(ManagerLost("a"))  # it asks who leads, and then asks again
    stage.settle()
    o.stop()
    requests.last.deliver()
    stage.run(0.6)
    o.go_on()
    assert o.number_of(KEY) != number
    requests.end()
    stage.run(5)
    assert stage.holders(KEY) == ["o"], "under another number"


def test_14_what_is_due_is_done_before_an_answer_is_looked_at() -> None:
    """P6: the term ends during a stall, and the answer to the newest request, sent in time, is
    handled before the timer. Nothing is ever un-expired.
    """
    an_answer_is_handled_after_the_end_of_the_term()
    ends_badly(
        an_answer_is_handled_after_the_end_of_the_term, without="answer-before-expiry", promise="S3"
    )


def test_14_what_was_renewed_while_it_ran_out_does_not_come_back() -> None:
    """P5, P6: the answer renews what its request listed, but the owner has dropped it since."""
    story = an_answer_is_handled_after_the_end_of_the_term
    ends_badly(story, without="lapsed-lease-revived", promise="S3")


# --- 15: the lapsed owner kept alive by renewals --------------------------------------------------


def an_owner_lapses_and_its_manager_does_not_know() -> None:
    stage, a, o = one_owner()
    number = o.number_of(KEY)
    o.stop()
    stage.run(11.6)
    o.go_on()
    stage.run(5)
    assert "owner expired" not in a.notes
    assert o.number_of(KEY) not in (None, number)


def test_15_an_owner_that_let_its_term_run_out_disclaims_by_itself() -> None:
    """P5: its term is over, the manager's hold is not, and it renews in time. What it does not list
    is free again; otherwise its manager would renew for ever what no owner believes in.
    """
    an_owner_lapses_and_its_manager_does_not_know()
    story = an_owner_lapses_and_its_manager_does_not_know
    ends_badly(story, without="lapsed-lease-not-disclaimed")


# --- 16: the owner whose number is past -----------------------------------------------------------


def test_16_an_owner_that_is_told_it_is_past_joins_anew() -> None:
    """P9: away for longer than its hold, while a join of an earlier life, of a process that is
    dead, is numbered after it.
    """
    stage = Stage()
    a = stage.manager("a")
    stage.owner("none").close()
    joins = stage.hold(Join, sender="earlier")
    stage.owner("earlier", name="o").kill()
    joins.end()
    o = stage.owner("o")
    stage.run(1)
    mend = stage.part("o", "a")
    stage.run_until(lambda: "owner expired" in a.notes)
    joins.last.deliver()
    mend()
    # It holds nothing any more, so it looks for a leader every 3 s at least.
    stage.run_until(lambda: "refused: past" in o.notes, at_most=3.1)
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=16)


def the_manager_falls_silent() -> None:
    stage, a, o = one_owner()
    b = stage.manager("b")
    a.stop()
    stage.run_until(lambda: b.leads, at_most=4)
    stage.run_until(lambda: o.machine.leadership == 2, at_most=8)
    stage.run(10)
    assert o.revoked == []


def test_16_silence_is_followed_by_a_search_although_requests_are_repeated() -> None:
    """P24: no connection breaks, no answer comes. Silence counts from the first request that was
    not answered; each retry sets a timer again, but does not restart this.
    """
    the_manager_falls_silent()
    ends_badly(the_manager_falls_silent, without="silence-unnoticed")


def test_16_an_owner_whose_answers_take_longer_than_a_retry_is_served() -> None:
    """P2, L1: only the answer to the newest request is taken. If it were repeated every second, an
    owner that is 1.2 s away would never be told anything.
    """
    stage = Stage()
    stage.manager("a")
    stage.latency_ns["o"] = seconds(0.6)
    o = stage.owner("o")
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=20)
    stage.run(60)
    assert (stage.holders(KEY), o.revoked) == (["o"], [])


def test_16_silence_loses_nothing_where_another_leads() -> None:
    """P24: the failover takes less than a term, so the owner keeps its lease and its number."""
    stage, a, o = one_owner()
    number = o.number_of(KEY)
    stage.manager("b")
    a.kill()
    appends = stage.count(Append, sender="b")
    stage.run(30)
    assert o.number_of(KEY) == number
    assert stage.count(Append, sender="b") > appends
