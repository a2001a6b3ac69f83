"""The schedules that a naive version fails, 10: other histories, and old copies of this one.

As in `test_schedules`.
"""

from functools import partial

import pytest

from tenure.base.instants import in_seconds, seconds
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.client_events import ManagerLost
from tenure.protocol.lease.messages import Hello
from tenure.protocol.lease.timing import DEFAULT
from tenure.protocol.log.journal import Append, Beat, Load
from tests.simulation.actors import ManagerActor
from tests.simulation.stage import Stage
from tests.simulation.stories import HIGH, KEY, LOW, ends_badly, one_owner

# --- 10: another history --------------------------------------------------------------------------


def a_memory_journal_starts_anew(*, first_start: bool) -> None:
    stage, a, o = one_owner()
    p = stage.owner("p")
    stage.run(1)
    stage.part("o", "a")
    a.kill()
    stage.begin_history()
    stage.manager("a", first_start=first_start)
    p.post(ManagerLost("a"))
    begin = stage.now
    stage.run_until(lambda: stage.holders(KEY) == ["p"], at_most=80)
    assert stage.now - begin >= DEFAULT.longest_hold_ns
    assert o.seconds_left < 0


def test_10_a_journal_without_records_waits_the_longest_hold() -> None:
    """P22: a manager with a memory journal is restarted, or the file deleted, and knows nothing of
    what its predecessor promised; the owner `o` does not hear of it.
    """
    a_memory_journal_starts_anew(first_start=False)


def test_10_the_operators_word_that_nothing_was_promised_must_be_true() -> None:
    """P22: what would be if it did not wait, and no owner with the old history reached it."""
    ends_badly(
        partial(a_memory_journal_starts_anew, first_start=True),
        without="other-histories-not-heard",
        promise="S1",
    )


def a_first_start_beside_another_history() -> None:
    """The owner p is the one that reaches the new manager, and it had nothing; o is cut off, and
    believes in all that it had.
    """
    a_memory_journal_starts_anew(first_start=True)


def test_10_who_comes_with_another_history_proves_that_it_is_no_first_start() -> None:
    """P22."""
    a_first_start_beside_another_history()


def test_10_what_proves_it_is_kept_for_the_next_leader() -> None:
    """P22: by then the owner has met the new journal, and says nothing of the old one."""
    stage, a, o = one_owner()
    stage.run(1)
    a.kill()
    stage.begin_history()
    a = stage.manager("a", first_start=True)
    o.post(ManagerLost("a"))
    stage.run(2)
    assert "not the first start" in a.notes
    assert (o.machine.belief.journal, o.holdings.leases) == (stage.journal.journal, ())
    a.kill()
    a = stage.manager("a", first_start=True)
    begin = stage.now
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=80)
    assert stage.now - begin >= DEFAULT.longest_hold_ns
    assert a.notes.count("not the first start") == 0


def test_10_without_another_history_a_first_start_listens_for_a_moment() -> None:
    stage = Stage()
    stage.begin_history()
    a = stage.manager("a", first_start=True)
    stage.owner("o")
    assert a.machine.view(a.now).is_listening
    assert stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=3) >= 1
    assert not a.machine.view(a.now).is_listening


def test_10_a_history_that_comes_later_delays_nobody() -> None:
    """A liar can cause one wait, and only at the beginning: ranges have been granted since."""
    stage = Stage()
    stage.begin_history()
    a = stage.manager("a", first_start=True)
    o = stage.owner("o")
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=3)
    stage.send_to_manager(o, "a", Hello(pool="pool", token=5, journal=77, name="liar"))
    stage.run(1)
    stage.lookup("l").machine.journal = 77
    stage.run(1)
    assert "not the first start" not in a.notes
    stage.owner("p")
    o.close()
    stage.run_until(lambda: stage.holders(KEY) == ["p"], at_most=3)


def test_10_one_liar_causes_one_wait() -> None:
    """However often it lies, and whatever manager leads meanwhile."""
    stage = Stage()
    stage.begin_history()
    a = stage.manager("a", first_start=True)
    liar = stage.owner("liar")
    begin = stage.now
    while stage.holders(KEY) == []:
        lie = Hello(pool="pool", token=5, journal=77 + stage.now, name="liar")
        stage.send_to_manager(liar, "a", lie)
        stage.run(0.5)
        assert stage.now - begin < DEFAULT.longest_hold_ns + seconds(3)
    assert a.notes.count("not the first start") == 1


def test_10_an_owner_and_a_lookup_that_meet_another_journal_begin_anew() -> None:
    """P22: numbers of two journals do not compare: the owner drops all, the lookup signals all."""
    stage, a, o = one_owner()
    lookup = stage.lookup("l")
    stage.run(1)
    a.kill()
    stage.begin_history()
    a = stage.manager("a", first_start=False)
    stage.run_until(lambda: o.holdings.leases == (), at_most=10)
    stage.run(5)
    assert "another journal" in o.notes
    assert lookup.losses == [(WHOLE, "another journal")]
    assert (lookup.find(KEY), lookup.machine.journal) == (None, stage.journal.journal)
    assert "late request" not in a.notes
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=70)
    stage.run(1)
    assert lookup.find(KEY) == "o"


def a_journal_is_replaced_under_its_leader() -> None:
    """An empty one is in its place, and b is the first to lead it: under the number that a has in
    the other. a's beats would keep its owner's leases alive beside those that b grants.
    """
    stage = Stage()
    a = stage.manager("a")
    stage.run_until(lambda: a.leads)
    stage.part("b", "o")
    stage.part("a", "p")
    o = stage.owner("o")
    stage.run_until(lambda: stage.holders(KEY) == ["o"])
    stage.begin_history()
    b = stage.manager("b", first_start=False)
    assert b.leads
    assert b.machine.leadership.leadership == a.machine.leadership.leadership
    stage.owner("p")
    stage.run(in_seconds(DEFAULT.longest_hold_ns))
    assert (o.notes[-1], stage.holders(KEY)) == ("lapsed", ["p"])


def test_10_who_leads_another_journal_does_not_lead_this_one() -> None:
    """P18, P22: leaderships are numbered within a journal; their numbers do not say which."""
    a_journal_is_replaced_under_its_leader()


def test_10_a_late_append_does_not_reach_the_journal_that_came_after() -> None:
    """The other journal is as long, and is led under the same number."""
    stage, a, _ = one_owner()
    appends = stage.hold(Append, sender="a")
    stage.owner("p")
    late = appends.last
    appends.end()
    stage.begin_history()
    b = stage.manager("b")
    stage.owner("q")
    stage.run_until(lambda: stage.journal.lsn >= late.what.after_lsn)
    assert b.machine.leadership.leadership == a.machine.leadership.leadership
    records = stage.journal.records
    late.deliver()
    assert stage.journal.records == records
    assert not a.leads


def test_10_a_journal_replaced_between_a_campaign_and_the_reading_is_not_led() -> None:
    """The manager won the seat in the other journal, which is gone."""
    stage = Stage()
    loads = stage.hold(Load)
    a = stage.manager("a")
    stage.begin_history()
    loads.end_and_deliver()
    assert not a.leads
    stage.run(1)
    assert a.gave_up is not None
    assert stage.journal.records == ()


def test_10_lsns_that_have_grown_past_the_old_ones_are_of_another_history() -> None:
    """P15, P22: the lookup was away for 5 s; the new journal is longer than the old one was.
    Changes since the old LSN would mean nothing.
    """
    stage, a, _ = one_owner()
    lookup = stage.lookup("l")
    stage.run(1)
    mend = stage.part("l", "a")
    a.kill()
    stage.begin_history(waits=False)
    stage.manager("a")
    stage.run_until(lambda: stage.holders(KEY) != [], at_most=10)
    for i in range(5):
        stage.owner(f"p{i}").close()
    assert stage.journal.lsn > lookup.machine.lsn
    assert lookup.machine.in_contact
    mend()
    stage.run(5)
    assert lookup.losses == [(WHOLE, "another journal")]
    assert (lookup.find(KEY), lookup.machine.lsn) == ("o", stage.journal.lsn)


def test_10_a_journal_that_went_back_is_refused() -> None:
    """P22, S4: an old copy of the file was put in its place. A lookup has seen records after it: as
    many as the new leader has written since, so that its LSN alone tells nothing. But these cannot
    have been told under the leadership before.
    """
    stage, a, _ = one_owner()
    lookup = stage.lookup("l")
    old = stage.journal.seat, a.leader.context.history.state(), stage.journal.lsn
    stage.owner("p")
    stage.run(6)
    assert lookup.machine.lsn == old[2] + 1
    a.kill()
    stage.put_back(*old)
    again = stage.manager("a")
    stage.run(8)
    assert "old copy" in (again.gave_up or "it went on")
    assert lookup.losses == []


def test_10_a_restored_journal_that_went_back_to_before_its_first_leader_is_refused() -> None:
    """P22, S4: whoever leads on the copy can open what its first leader sealed."""
    stage, a, _ = one_owner()
    a.kill()
    stage.restore()
    old = stage.journal.seat, stage.journal.state, stage.journal.lsn
    a = stage.manager("a")
    lookup = stage.lookup("l")
    stage.run_until(lambda: lookup.machine.in_contact, at_most=20)
    a.kill()
    stage.put_back(*old)
    again = stage.manager("a")
    stage.run(8)
    assert "old copy" in (again.gave_up or "it went on")


def test_10_a_journal_that_does_not_know_a_living_owner_is_refused() -> None:
    """P22, S4: as before, without lookups: the owner was numbered in a record that is not there."""
    stage, a, _ = one_owner()
    old = stage.journal.seat, a.leader.context.history.state(), stage.journal.lsn
    p = stage.owner("p")
    stage.run(1)
    a.kill()
    stage.put_back(*old)
    again = stage.manager("a")
    stage.run(8)
    assert p.machine.belief.incarnation == 2
    assert "old copy" in (again.gave_up or "it went on")


def two_led_under_one_number() -> None:
    """The copy is of before b led; a, started anew, leads on it under b's own number. By then b had
    given `p` half of what `o` had, and `p` is slow to hear of a. `o` does not list that half; for a
    leader that believes the copy it is free then, and `q` would take it.
    """
    stage, a, _ = one_owner()
    old = stage.journal.seat, a.leader.context.history.state(), stage.journal.lsn
    a.kill()
    b = stage.manager("b")
    stage.prefer((LOW, ("o",)), (HIGH, ("q", "p")))
    stage.owner("p")
    stage.run_until(lambda: stage.holders(b"x") == ["p"])
    stage.run(1)
    stage.part("p", "a")
    b.kill()
    stage.put_back(*old)
    again = stage.manager("a")
    stage.owner("q")
    stage.run_until(lambda: again.gave_up is not None, at_most=30)
    assert "old copy" in (again.gave_up or "")
    assert again.machine.leadership.leadership == b.machine.leadership.leadership
    assert stage.holders(b"x") in ([], ["p"])
    assert stage.holders(KEY) in ([], ["o"])


def test_10_another_leader_under_the_same_number_is_refused() -> None:
    """P22: owners have spoken with the first: they know its nonce, and have its receipt."""
    two_led_under_one_number()
    ends_badly(two_led_under_one_number, without="follows-anybody", promise="S1")


def an_owner_has_seen_a_later_leader() -> None:
    """The copy is of the first leader's time, before any owner was given anything. `p`, which has
    every key from the third, finds nobody but the second one, which leads on the copy.
    """
    stage = Stage()
    a = stage.manager("a")
    stage.owner("none").close()
    old = stage.journal.seat, a.leader.context.history.state(), stage.journal.lsn
    for before, after in ("ab", "ba"):
        stage.managers[before].kill()
        stage.manager(after)
        stage.run(5)
    p = stage.owner("p")
    stage.run_until(lambda: stage.holders(KEY) == ["p"])
    stage.managers["a"].kill()
    stage.put_back(*old)
    again = stage.manager("b")
    stage.run_until(lambda: again.leads, at_most=5)
    assert (again.machine.leadership.leadership, p.machine.leadership) == (2, 3)
    p.post(ManagerLost("a"))
    stage.run(1)
    stage.owner("q")
    stage.run(2)
    assert "old copy" in (again.gave_up or "it went on")
    assert stage.holders(KEY) == ["p"]


def test_10_an_owner_that_knows_a_later_leader_is_a_witness() -> None:
    """P19, P22: it does not follow, and says why; owners alone can show that a journal is old."""
    an_owner_has_seen_a_later_leader()
    ends_badly(an_owner_has_seen_a_later_leader, without="receipt-not-shown", promise="S1")


def a_number_was_given_to_another() -> None:
    """The copy is of before `p` joined: `q`, which joins on it, is numbered as `p` was. Then `p`,
    which has every key, speaks: were it only told that it is past, the leader would go on.
    """
    stage = Stage()
    stage.prefer((WHOLE, ("p",)))
    a = stage.manager("a")
    stage.owner("none").close()
    old = stage.journal.seat, a.leader.context.history.state(), stage.journal.lsn
    p = stage.owner("p")
    stage.run_until(lambda: stage.holders(KEY) == ["p"])
    a.kill()
    mend = stage.part("p", "a")
    stage.put_back(*old)
    again = stage.manager("a")
    q = stage.owner("q")
    stage.run_until(lambda: q.machine.belief.incarnation == p.machine.belief.incarnation)
    mend()
    stage.run_until(lambda: again.gave_up is not None, at_most=10)
    assert stage.holders(KEY) == ["p"]


def test_10_an_owner_whose_number_another_has_by_now_is_a_witness() -> None:
    """P9, P22: its receipt is of a time that the leader's journal does not hold."""
    a_number_was_given_to_another()
    ends_badly(a_number_was_given_to_another, without="old-copy-not-noticed")


def an_old_copy_goes_on(*, restored: bool) -> None:
    """The copy knows nothing of `p`, which has every key by now and hears of nothing for a while.

    The manager is told that there was none before it, which is not so.
    """
    stage, a, o = one_owner()
    lookup = stage.lookup("l")
    old = stage.journal.seat, a.leader.context.history.state(), stage.journal.lsn
    o.close()
    stage.prefer((WHOLE, ("o", "q", "p")))
    p = stage.owner("p")
    stage.run_until(lambda: stage.holders(KEY) == ["p"])
    number = p.number_of(KEY) or 0
    stage.run(1)
    a.kill()
    stage.put_back(*old)
    if restored:
        stage.restore()
    mend = stage.part("p", "a")
    stage.manager("a", first_start=True)
    begin = stage.now
    q = stage.owner("q")
    stage.run_until(lambda: stage.holders(KEY) == ["q"], at_most=80)
    assert stage.now - begin >= DEFAULT.longest_hold_ns
    assert (q.number_of(KEY) or 0) > number
    mend()
    stage.run(5)
    assert (stage.holders(KEY), p.machine.belief.journal) == (["q"], stage.journal.journal)
    assert (WHOLE, "another journal") in lookup.losses
    assert lookup.find(KEY) == "q"


def test_10_an_old_copy_that_is_restored_is_another_history() -> None:
    """P22: it waits, even if it is told that it need not, and numbers never go back."""
    an_old_copy_goes_on(restored=True)
    with pytest.raises(AssertionError):
        an_old_copy_goes_on(restored=False)


def a_doubting_leader(stage: Stage) -> tuple[ManagerActor, ManagerActor]:
    """Leadership was revoked early, b leads, and a, which cannot know yet, hears of it from l."""
    a, lookup = stage.managers["a"], stage.lookup("l")
    b = stage.manager("b")
    stage.run(1)
    stage.hold(sender="l", receiver="a")
    beats = stage.hold(Beat, sender="a")
    stage.journal.vacate()
    stage.run_until(lambda: b.leads, at_most=0.5)
    lookup.machine.manager = "b"
    lookup.ask()
    assert lookup.machine.leadership == 2
    lookup.machine.manager = "a"
    syncs = stage.holds[0]
    lookup.ask()
    syncs.last.deliver()
    assert "doubted: a peer has seen a later leadership or LSN" in a.notes
    beats.end_and_deliver()
    return a, b


def test_10_a_leader_that_was_overtaken_doubts_and_steps_down() -> None:
    """P19, P22: a lookup has seen a later leadership; not because the journal went back."""
    stage, *_ = one_owner()
    a, b = a_doubting_leader(stage)
    stage.run(3)
    assert (a.gave_up, a.leads, b.leads) == (None, False, True)
