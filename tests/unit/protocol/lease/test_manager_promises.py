"""The manager machine: what it promised and waits for, and what it answers to questions."""

from random import Random

from tenure.base.instants import Instant
from tenure.protocol.lease.answers import (
    Impossible,
    Location,
    Owners,
    PoolMade,
    Pools,
    SpelledKey,
    TableAnswer,
)
from tenure.protocol.lease.leader.events import (
    CreatePool,
    ListOwners,
    ListPools,
    Locate,
    Question,
    QuestionAsked,
    ReadTable,
)
from tenure.protocol.lease.records import PromiseLowered, State, WaitedOut
from tenure.protocol.lease.timing import DEFAULT, PAPER
from tenure.protocol.log.journal import Append, Seat, SeatRead
from tenure.sim.journal import LeaseContents
from tests.unit.protocol.lease.driven_manager import Driven, at

# --- waiting and promising ------------------------------------------------------------------------


def test_a_new_history_waits_before_it_grants() -> None:
    """P22."""
    driven = Driven(journal=LeaseContents(Random(1), State()))
    driven.join()
    driven.run(Instant(DEFAULT.longest_hold_ns - 1))
    assert WaitedOut() not in driven.journal.records
    driven.run(Instant(DEFAULT.longest_hold_ns))
    assert driven.journal.records[-1] == WaitedOut()


def test_a_wait_that_was_cut_short_is_waited_again() -> None:
    """P22: its leader died; how long it had waited nobody knows."""
    first = Driven(journal=LeaseContents(Random(1), State()))
    first.run(at(60))
    first.journal.vacate()
    second = Driven(journal=first.journal)
    second.run(at(64))
    assert WaitedOut() not in first.journal.records
    second.run(at(70))
    assert WaitedOut() in first.journal.records


def test_a_history_that_was_waited_out_is_not_waited_for_again() -> None:
    first = Driven()
    first.journal.vacate()
    second = Driven(journal=first.journal)
    second.run(at(1))
    assert second.machine.leader is not None
    assert second.machine.leader.context.may_grant


def test_a_longer_promise_is_lowered_when_it_has_run_out() -> None:
    """P7."""
    first = Driven(timing=PAPER)
    first.journal.vacate()
    second = Driven(journal=first.journal)
    assert second.machine.leader is not None
    until = second.machine.leader.context.inherited_until
    assert until == PAPER.hold_ns + PAPER.on_any_clock(PAPER.leadership_ns)
    second.run(Instant(until - 1))
    assert not any(isinstance(record, PromiseLowered) for record in first.journal.records)
    second.run(until)
    assert first.journal.records[-1] == PromiseLowered(promise_ns=second.machine.leader.promise_ns)


# --- questions ------------------------------------------------------------------------------------


def test_questions_are_answered_by_the_leader() -> None:
    driven = Driven()
    assert driven.ask(CreatePool("p", "ordered", (b"m",))) == PoolMade("p", "ordered", created=True)
    assert driven.ask(CreatePool("p", "ordered", (b"m",))) == PoolMade(
        "p", "ordered", created=False
    )
    pools, owners = driven.ask(ListPools()), driven.ask(ListOwners("p"))
    assert isinstance(pools, Pools)
    assert isinstance(owners, Owners)
    assert ([pool.name for pool in pools.pools], owners.owners) == (["p"], ())
    table, location = driven.ask(ReadTable("p")), driven.ask(Locate("p", b"k"))
    assert isinstance(table, TableAnswer)
    assert isinstance(location, Location)
    assert (table.snapshot, location.owner) == (True, None)
    assert (location.start, location.end) == (SpelledKey("", ""), None)


def test_a_pool_that_is_there_otherwise_is_not_made_again() -> None:
    driven = Driven()
    driven.ask(CreatePool("p", "ordered", (b"m",)))
    for other in (CreatePool("p", "ordered", (b"n",)), CreatePool("p", "hashed")):
        answer = driven.ask(other)
        assert isinstance(answer, Impossible)
        assert (answer.missing, "exists already" in answer.why) == (False, True)


def test_a_question_about_a_pool_that_is_not_there_names_those_that_are() -> None:
    driven = Driven()
    driven.ask(CreatePool("p", "hashed"))
    questions: tuple[Question, ...] = (ListOwners("q"), ReadTable("q"), Locate("q", b""))
    for question in questions:
        answer = driven.ask(question)
        assert isinstance(answer, Impossible)
        assert (answer.missing, answer.why) == (True, "there is no pool 'q'")
        assert answer.there == "there are: p"


def test_what_a_question_changed_is_durable_before_it_is_answered() -> None:
    """P18."""
    driven = Driven()
    driven.held = (Append,)
    driven.take(QuestionAsked(1, CreatePool("p", "hashed")))
    assert driven.replies == []
    driven.release()
    assert driven.replies == [PoolMade("p", "hashed", created=True)]


def test_a_late_seat_read_is_harmless() -> None:
    """It was read before this manager won, or twice."""
    driven = Driven()
    driven.take(SeatRead(Seat(0, 0, "other", 0)))
    assert driven.machine.leadership.phase == "leading"
