"""Stories of leaving: what is returned, when, and what a leaving owner is not given."""

from tenure.base.instants import seconds
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.messages import Join, LeaseRequest
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.log.journal import Append
from tests.simulation.stage import Stage
from tests.simulation.stories import HIGH, KEY, LOW, ends_badly, one_owner


def two_owners() -> Stage:
    """`o` holds the low keys and `p` the high ones; each would have the other's after it."""
    stage = Stage()
    stage.prefer((LOW, ("o", "p")), (HIGH, ("p", "o")))
    stage.manager("a")
    stage.owner("o")
    stage.owner("p")
    stage.run(1)
    assert (stage.holders(KEY), stage.holders(b"z")) == (["o"], ["p"])
    return stage


def test_who_closes_returns_everything_at_once() -> None:
    stage = two_owners()
    o, p = stage.owners
    o.close()
    stage.run(0.2)
    assert (o.closed, p.number_of(KEY) is not None) == (True, True)


def test_who_closes_keeps_its_ranges_from_others_until_its_callbacks_are_done() -> None:
    """P10: it believes nothing more, but what is being written out belongs to no other
    owner yet.
    """
    stage = two_owners()
    o = stage.owners[0]
    o.slow_callbacks = True
    o.close()
    assert stage.holders(KEY) == []
    stage.run(5)
    assert (o.closed, stage.right(KEY).owner) == (False, o.machine.belief.incarnation)
    o.finish_callbacks()
    o.work()
    stage.run(0.2)
    assert (o.closed, stage.holders(KEY)) == (True, ["p"])


def test_who_is_closing_is_given_nothing_new() -> None:
    """While `o` is closing, its callbacks still running, `p` goes, and would leave it everything.
    What it does not want it must not be offered again and again: each time is two records.
    """
    stage = two_owners()
    o, p = stage.owners
    o.slow_callbacks = True
    o.close()
    requests, appends = stage.count(LeaseRequest, sender="o"), stage.count(Append, sender="a")
    p.close()
    stage.run(5)
    assert (o.closed, o.granted, stage.right(b"z").owner) == (False, o.granted[:1], 0)
    assert stage.count(LeaseRequest, sender="o") - requests < 10
    assert stage.count(Append, sender="a") - appends < 10


def test_who_leaves_gives_its_name_free_at_once() -> None:
    """P8: it returned everything; a restart under the same name need not wait for a hold."""
    stage, _, o = one_owner()
    o.close()
    successor = stage.owner("successor", name="o")
    stage.run(1)
    assert (successor.number_of(KEY) is not None, successor.notes[0]) == (True, "joined")


def test_a_goodbye_whose_answer_was_lost_is_said_again() -> None:
    """It is past by then, and takes that for an answer."""
    stage, _, o = one_owner()
    answers = stage.hold(sender="a", receiver="o")
    o.close()
    stage.run(1.5)  # the first request only says that it is letting go
    assert (o.closed, stage.right(KEY).owner) == (False, 0)
    answers.end()
    stage.run(1)
    assert o.closed


def test_who_meets_another_journal_while_closing_is_gone() -> None:
    """P22: nothing that it had means anything there. It must not join again to say goodbye to a
    manager that never met it, and keep its name there for a whole hold.
    """
    stage, a, o = one_owner()
    o.slow_callbacks = True
    a.kill()
    o.close()
    stage.begin_history()
    a = stage.manager("a")
    joins = stage.count(Join, sender="o")
    stage.run(10)
    assert (o.closed, stage.count(Join, sender="o") - joins, o.holdings.leases) == (True, 0, ())
    assert a.leader.pools == {}


def test_a_hung_owner_lets_its_leases_run_out() -> None:
    """The watchdog: an application that shows no life keeps its keys for a term, not for ever."""
    stage, _, o = one_owner(watchdog=2)
    stage.owner("p")
    stage.run_until(lambda: stage.holders(KEY) == ["p"], at_most=2 + 3 + 13)
    o.post(owner_events.Alive())  # and shows itself again: as another incarnation, preferred to p
    stage.run(2)
    assert "refused: past" in o.notes
    assert stage.holders(KEY) == ["o"]


def test_a_recall_deadline_passes_in_spite_of_a_callback_that_hangs() -> None:
    """P10: the application has all of `recall_ns`, but not more."""
    stage, a, o = one_owner()
    p = stage.owner("p")
    stage.run(1)
    o.slow_callbacks = True
    stage.prefer((WHOLE, ("p",)))
    a.plan_anew()
    waited = stage.run_until(lambda: p.number_of(KEY) is not None, at_most=15)
    recall = stage.timing.recall_ns / seconds(1)
    assert recall <= waited <= recall + stage.timing.renew_ns / seconds(1) + 0.1


def a_supervisor_ends_all_owners_before_new_ones_have_joined() -> None:
    """As gunicorn does at SIGHUP: for some seconds nobody can take what the old ones have."""
    stage = Stage()
    stage.prefer((LOW, ("o", "q")), (HIGH, ("p", "q")))
    stage.manager("a")
    o, p = stage.owner("o", hand_off=True), stage.owner("p", hand_off=True)
    stage.run(1)
    stage.transfers.write(o, KEY)
    stage.transfers.write(p, b"z")
    lookup = stage.lookup("l")
    stage.run(1)
    for each in (o, p):
        each.drain(waits=True)
    stage.run(8)
    assert (stage.holders(KEY), stage.holders(b"z")) == (["o"], ["p"]), "they serve meanwhile"
    stage.transfers.write(o, KEY)
    stage.owner("q", hand_off=True)
    stage.run(2)
    assert (o.closed, p.closed) == (True, True)
    assert (stage.holders(KEY), stage.holders(b"z")) == (["q"], ["q"])
    stage.run(6)
    assert (lookup.find(KEY), lookup.losses) == ("q", [])


def test_who_leaves_waits_for_an_owner_that_joins() -> None:
    """P12: its state moves to the first one that can take it."""
    a_supervisor_ends_all_owners_before_new_ones_have_joined()
    ends_badly(
        a_supervisor_ends_all_owners_before_new_ones_have_joined, without="leaver-not-waited-for"
    )


def test_who_has_waited_for_nobody_returns_what_it_has() -> None:
    """P12, S3: and lookups are told that its state is lost."""
    stage, _, o = one_owner(hand_off=True)
    stage.transfers.write(o, KEY)
    lookup = stage.lookup("l")
    o.drain(waits=True)
    stage.run(8)
    assert (o.closed, stage.holders(KEY)) == (False, ["o"])
    o.drain(waits=False)
    stage.run(1)
    assert (o.closed, stage.right(KEY).owner) == (True, 0)
    stage.run(6)
    assert lookup.lost(KEY) == ["lost"]


def test_who_cannot_hand_over_waits_for_nobody() -> None:
    stage, _, o = one_owner()
    o.drain(waits=True)
    stage.run(1)
    assert (o.closed, stage.right(KEY).owner) == (True, 0)


def test_who_joins_but_cannot_take_state_ends_the_wait() -> None:
    """P13: what is planned for it is recalled, as ever; the loss is told."""
    stage, _, o = one_owner(hand_off=True)
    stage.transfers.write(o, KEY)
    lookup = stage.lookup("l")
    o.drain(waits=True)
    stage.run(1)
    stage.owner("p")
    stage.run(2)
    assert (o.closed, stage.holders(KEY)) == (True, ["p"])
    stage.run(6)
    assert lookup.lost(KEY) == ["lost"]


def test_a_new_leader_lets_a_leaver_wait_on() -> None:
    """P12: whoever leads learns it from the next request."""
    stage, a, o = one_owner(hand_off=True)
    stage.transfers.write(o, KEY)
    o.drain(waits=True)
    stage.run(1)
    a.kill()
    stage.manager("b")
    stage.run(15)
    assert (o.closed, stage.holders(KEY)) == (False, ["o"])
    stage.owner("p", hand_off=True)
    stage.run(4)
    assert (o.closed, stage.holders(KEY)) == (True, ["p"])
    assert stage.right(KEY).since < stage.right(KEY).number
