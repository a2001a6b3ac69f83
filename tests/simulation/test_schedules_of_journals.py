"""The schedules that a naive version fails, 9 and 11: takeovers, and stopped leaders.

As in `test_schedules`.
"""

from tenure.base.instants import seconds
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.messages import LeaseResponse, Standby
from tenure.protocol.log.journal import Append, Load
from tests.simulation.actors import ManagerActor, OwnerActor
from tests.simulation.flight import JOURNAL
from tests.simulation.stage import REQUESTS, Stage
from tests.simulation.stories import KEY, ends_badly, one_owner

# --- 9: takeover before catching up ---------------------------------------------------------------


def test_9_a_leader_answers_nobody_before_it_has_caught_up() -> None:
    """P19: it has won, but not read what was appended before; until then it stands by."""
    stage, a, o = one_owner()
    number = o.number_of(KEY)
    b = stage.manager("b")
    loads = stage.hold(Load, sender="b")
    a.kill()
    stage.run_until(lambda: any(item.what.leadership for item in loads.caught))
    stage.run(5)
    answers = {type(item.what) for item in stage.sent if item.sender is b and item.receiver == "o"}
    assert answers == {Standby}
    loads.end_and_deliver()
    stage.run(3)
    assert (stage.holders(KEY), o.number_of(KEY)) == (["o"], number)


def test_9_what_was_appended_and_not_heard_of_is_known_to_the_next_leader() -> None:
    """P18, S4: a's last append, a grant, took effect, and then a was killed; nobody was told. The
    owner did not list it, so b grants again, under a higher number.
    """
    stage = Stage()
    a = stage.manager("a")
    stage.owner("none").close()
    o = stage.owner("o")
    appends = stage.hold(Append, sender="a")
    stage.run(1)
    appends.last.take_effect()
    a.kill()
    number = stage.right(KEY).number
    assert (stage.right(KEY).owner, o.holdings.leases) == (o.machine.belief.incarnation, ())
    b = stage.manager("b")
    stage.run_until(lambda: b.leads)
    assert b.pool.table.rights[KEY].number == number
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=5)
    assert stage.right(KEY).number > number


def an_append_whose_answer_was_lost(*, took_effect: bool) -> None:
    stage, a, o = one_owner()
    appends = stage.hold(Append, sender="a")
    stage.owner("p").stop()
    call = appends.last
    if took_effect:
        call.take_effect()
    call.fail()
    stage.run(1)
    assert "append unknown" in a.notes
    assert all(item.what == call.what for item in appends.caught), "that very record, no other"
    assert len(appends.caught) < 20, "not in a busy loop"
    lsn = stage.journal.lsn
    appends.end()
    appends.last.deliver()
    stage.run(1)
    assert stage.journal.lsn == lsn + (0 if took_effect else len(call.what.records))
    assert a.pool.table.numbered.keys() == {"o", "p"}
    assert o.revoked == []


def test_9_an_append_whose_answer_was_lost_is_repeated_as_it_was() -> None:
    """P18: it took effect; the journal finds the very records there, and says so."""
    an_append_whose_answer_was_lost(took_effect=True)


def test_9_an_append_that_was_lost_is_repeated_as_it_was() -> None:
    """P18: it did not take effect; nothing else was appended meanwhile, and now it is."""
    an_append_whose_answer_was_lost(took_effect=False)


def the_records_with_the_highest_numbers_are_compacted_away() -> None:
    stage = Stage()
    stage.prefer((WHOLE, ("o", "p", "q")))
    a = stage.manager("a", compact_after=1)
    o = stage.owner("o")
    p = stage.owner("p")
    stage.run(1)
    o.stop()
    stage.run_until(lambda: stage.holders(KEY) == ["p"])
    number = p.number_of(KEY)
    assert number is not None
    assert stage.journal.state_lsn == stage.journal.lsn
    a.kill()
    b = stage.manager("b")
    stage.run_until(lambda: b.leads)
    p.kill()
    q = stage.owner("q")
    stage.run_until(lambda: stage.holders(KEY) == ["q"])
    assert (q.number_of(KEY) or 0) > number


def test_9_the_highest_number_freed_compacted_and_not_given_out_again() -> None:
    """P21: the snapshot carries the next number; the next leader goes on from there."""
    the_records_with_the_highest_numbers_are_compacted_away()
    story = the_records_with_the_highest_numbers_are_compacted_away
    ends_badly(story, without="no-counter")


def a_grant_is_not_yet_durable() -> None:
    stage = Stage()
    a, o = stage.manager("a"), stage.owner("o")
    appends = stage.hold(Append, sender="a")
    stage.run(1)
    assert a.pool.table.rights[KEY].owner == o.machine.belief.incarnation
    assert stage.holders(KEY) == []
    appends.end_and_deliver()
    assert stage.holders(KEY) == ["o"]


def test_9_nothing_is_said_before_it_is_durable() -> None:
    """P18: what a decision is told of waits for the decision's record."""
    a_grant_is_not_yet_durable()
    ends_badly(a_grant_is_not_yet_durable, without="answer-before-commit", promise="S4")


# --- 11: the stopped leader -----------------------------------------------------------------------


def stopped_with_a_grant_in_hand() -> tuple[Stage, ManagerActor, OwnerActor]:
    stage = Stage()
    stage.prefer((WHOLE, ("o", "p")))
    a = stage.manager("a")
    stage.owner("none").close()
    o = stage.owner("o")
    a.stop_before(Append)
    stage.run(1)
    assert a.stopped
    return stage, a, o


def test_11_stopped_between_its_check_and_its_append() -> None:
    """P18: it had proven its leadership, decided to grant, and then was stopped; when it goes on,
    another leads, and the append is refused. Nobody hears of the grant.
    """
    stage, a, o = stopped_with_a_grant_in_hand()
    b = stage.manager("b")
    stage.run_until(lambda: stage.holders(KEY) == ["o"])
    number = o.number_of(KEY)
    said = stage.count(LeaseResponse, sender="a")
    a.go_on()
    stage.run(5)
    assert (a.leads, b.leads, o.number_of(KEY)) == (False, True, number)
    assert stage.count(LeaseResponse, sender="a") == said
    assert o.revoked == []


def test_11_stopped_between_its_append_and_its_answer() -> None:
    """P19: the grant is durable, and the leader stopped before it could say so. When it goes on its
    leadership is not proven any more, and it says nothing.
    """
    stage = Stage()
    a = stage.manager("a")
    stage.owner("none").close()
    appends = stage.hold(Append, sender="a")
    o = stage.owner("o")
    for _ in range(2):  # it is numbered, and granted
        appends.last.deliver()
        stage.run(0.2)
    a.stop()
    appends.last.deliver()
    incarnation = o.machine.belief.incarnation
    assert stage.right(KEY).owner == incarnation
    b = stage.manager("b")
    stage.run_until(lambda: b.leads)
    said = stage.count(LeaseResponse, sender="a")
    stage.part("o", "b")
    a.go_on()
    stage.run(1)
    assert stage.count(LeaseResponse, sender="a") == said


def stopped_with_the_clock_read() -> None:
    stage, a, o = one_owner()
    p, b = stage.owner("p"), stage.manager("b")
    stage.run(0.5)
    requests = stage.hold(*REQUESTS, sender="o")
    stage.run_until(lambda: bool(requests.caught))
    a.stop_with_the_clock_read()
    requests.last.deliver()
    stage.part("o", "b", JOURNAL)
    o.stop()
    stage.run_until(lambda: p.number_of(KEY) is not None)
    assert b.leads
    said = stage.count(LeaseResponse, sender="a")
    a.go_on()
    assert stage.count(LeaseResponse, sender="a") == said + 1, "it believes that it leads"
    o.go_on()
    stage.run(0.1)
    assert stage.holders(KEY) == ["p"]


def test_11_stopped_between_reading_the_clock_and_using_it() -> None:
    """P3, P6: by the time that it read, 15 s ago, its leadership is proven, and it answers. What
    its owner may believe counts from its request, and is over.
    """
    stopped_with_the_clock_read()


def test_11_an_owner_stopped_between_reading_the_clock_and_using_it() -> None:
    """P6, S3: by the time that it read, its term has not run out, and the answer in hand prolongs
    it. But a reader has seen the end, and was told no: so it has ended.
    """
    stage, _, o = one_owner()
    number = o.number_of(KEY)
    requests = stage.hold(*REQUESTS, sender="o")
    stage.run_until(lambda: o.seconds_left < 0.3)
    o.stop_with_the_clock_read()
    requests.last.deliver()
    requests.end()
    stage.run(0.5)
    assert o.reader_looks(KEY) is None
    o.go_on()
    assert o.reader_looks(KEY) != number
    stage.run(4)
    assert o.reader_looks(KEY) not in (None, number)
    assert stage.now < seconds(60)
