"""The schedules that a naive version fails, 18: two managers on two journals (P25).

The worlds differ in who knows of whom: one owner that knows both managers, all that do, managers
that name each other, and nobody. The mutants of these rules are in `test_rules_left_out`.
"""

from collections.abc import Sequence

import msgspec
import pytest

from tenure.base.instants import seconds
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.answers import Impossible, JournalDecided
from tenure.protocol.lease.client_events import ManagerLost
from tenure.protocol.lease.leader.events import QuestionAsked, Resolve
from tenure.protocol.lease.leader.rivals import Rivals
from tenure.protocol.lease.messages import Hello, Introduction, LeaseRequest, Sync
from tenure.protocol.lease.rivalry import Rival, Succession
from tenure.protocol.lease.timing import DEFAULT
from tests.simulation.actors import POOL, ManagerActor, OwnerActor
from tests.simulation.stage import Stage
from tests.simulation.stories import HIGH, KEY, LOW, one_owner

RIVAL = "another journal has a living leader"
TWO = "two journals have living leaders"
TERM = DEFAULT.term_ns / 1e9


class Masters:
    """Managers `a` and `b`, each on a journal of its own, and three owners."""

    def __init__(
        self,
        *,
        lists: Sequence[str] = ("ab", "ab", "ab"),
        name: bool = False,
        waits: bool = False,
        grown: bool = False,
    ) -> None:
        self.stage = stage = Stage()
        stage.may_have_two_owners = True
        stage.prefer((WHOLE, ("o", "p", "q")))
        stage.begin_beside("b", waits=waits)
        if grown:
            self._grow()
        self.a = stage.manager("a", others="b" if name else "")
        if not waits:
            self.b = stage.manager("b", others="a" if name else "")
        self.owners = [
            stage.owner(slot, managers=each) for slot, each in zip("opq", lists, strict=True)
        ]

    def _grow(self) -> None:
        """Let each journal have granted everything once."""
        stage = self.stage
        for slot in "ab":
            manager, owner = stage.manager(slot), stage.owner("o", managers=slot)
            stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=5)
            manager.kill()
            owner.kill()

    def two_owners(self, duration: float) -> float:
        """For how many seconds of `duration` the key has two owners."""
        twice = 0
        for _ in range(round(duration / 0.05)):
            self.stage.run(0.05)
            twice += len(self.stage.holders(KEY)) > 1
        return twice * 0.05

    @property
    def managers(self) -> list[ManagerActor]:
        return [self.a, self.b]


def said(actors: Sequence[ManagerActor | OwnerActor], note: str) -> list[str]:
    return [each.slot for each in actors if note in each.notes]


@pytest.mark.parametrize("lists", [("ab", "ba", "ab"), ("a", "b", "ab")])
def test_18_owners_that_know_both_end_it(lists: Sequence[str]) -> None:
    """The managers do not know each other: only owners hear of both."""
    masters = Masters(lists=lists)
    masters.two_owners(30 + 3 + TERM)
    assert masters.two_owners(200) == 0
    assert said(masters.owners, TWO)
    told = [each.notes for each in masters.managers]
    assert all(RIVAL in each or "is told of another journal's leader" in each for each in told)
    assert said(masters.managers, RIVAL)


@pytest.mark.parametrize("lists", [("ab", "ab", "ab"), ("a", "b", "ab"), ("a", "b", "b")])
def test_18_managers_that_name_each_other_grant_nothing_twice(lists: Sequence[str]) -> None:
    masters = Masters(lists=lists, name=True)
    assert masters.two_owners(200) == 0
    assert said(masters.managers, RIVAL) == ["a", "b"]


def managers_that_know_no_rivals() -> None:
    """Older managers: all owners know both, and protect themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rivals, "on_told", lambda *_: None)
        masters = Masters(lists=("ab", "ba", "ab"))
        masters.two_owners(30 + 3 + TERM)
        assert masters.two_owners(200) == 0


def one_owner_that_knows_both() -> None:
    masters = Masters(lists=("a", "b", "ab"))
    masters.two_owners(30 + 3 + TERM)
    assert masters.two_owners(200) == 0


def managers_that_name_each_other() -> None:
    masters = Masters(lists=("a", "b", "b"), name=True, grown=True)
    assert masters.two_owners(100) == 0


def test_18_older_managers_of_owners_that_know_both() -> None:
    managers_that_know_no_rivals()


def test_18_nobody_that_knows_both_cannot_see_it() -> None:
    """This is not promised."""
    masters = Masters(lists=("a", "b", "b"))
    masters.two_owners(5)
    assert masters.two_owners(20) == pytest.approx(20)


def test_18_a_lookup_that_knows_both_says_so() -> None:
    masters = Masters(lists=("a", "b", "b"))
    lookup = masters.stage.lookup("l")
    masters.two_owners(70)
    assert TWO in lookup.notes
    assert said(masters.managers, "is told of another journal's leader") == ["a", "b"]
    assert not said(masters.managers, RIVAL), "a lookup need not be believed"


# --- the operator's decision ----------------------------------------------------------------------


def decide(masters: Masters, manager: ManagerActor, over: str, **said: bool) -> object:
    """Tell a manager that the journal of the one at `over` is over."""
    journal = masters.stage.journal_of(over).journal
    ticket = len(manager.replies) + 1
    manager.post(QuestionAsked(ticket, Resolve(journal, **said)))
    masters.stage.settle()
    return manager.replies[ticket]


def test_18_an_operator_decides_and_what_two_may_have_granted_runs_out_first() -> None:
    masters = Masters(name=True, grown=True)
    stage = masters.stage
    masters.two_owners(30)
    assert isinstance(decide(masters, masters.b, over="a"), Impossible), "a still leads"
    assert isinstance(decide(masters, masters.a, over="a"), JournalDecided)
    masters.two_owners(4)
    assert isinstance(decide(masters, masters.b, over="a"), JournalDecided)
    begin = stage.now
    stage.run_until(lambda: len(stage.holders(KEY)) == 1, at_most=80)
    assert stage.now - begin >= DEFAULT.longest_hold_ns
    assert masters.two_owners(60) == 0
    holder = next(each for each in masters.owners if each.number_of(KEY) is not None)
    assert holder.holdings.journal == stage.journals["b"].journal


def test_18_a_rival_that_granted_nothing_costs_no_lease_and_no_wait() -> None:
    """Somebody starts a second manager with --first-start, and forgets the journal."""
    masters = Masters(name=True, waits=True)
    stage = masters.stage
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=20)
    lost = len(masters.owners[0].revoked)
    masters.b = stage.manager("b", others="a", first_start=True)
    assert masters.two_owners(60) == 0
    assert said(masters.managers, RIVAL) == ["a", "b"]
    assert (stage.holders(KEY), len(masters.owners[0].revoked)) == (["o"], lost)
    decide(masters, masters.b, over="b")
    stage.run(4)
    decide(masters, masters.a, over="b")
    masters.owners[0].close()
    stage.run_until(lambda: stage.holders(KEY) == ["p"], at_most=5)


def test_18_what_becomes_free_beside_a_rival_is_granted_to_nobody() -> None:
    """It has granted nothing and has stopped, so leases are renewed; but grants must wait."""
    masters = Masters(name=True, waits=True)
    stage = masters.stage
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=20)
    masters.b = stage.manager("b", others="a", first_start=True)
    stage.run_until(lambda: said(masters.managers, RIVAL) == ["a", "b"], at_most=10)
    stage.run(4)
    assert stage.holders(KEY) == ["o"]
    masters.owners[0].close()
    stage.run(30)
    assert stage.holders(KEY) == []


def test_18_the_next_leader_knows_that_its_journal_has_a_rival() -> None:
    """The rival is unreachable by then, and the leader's successor was not told to ask it."""
    masters = Masters(name=True, grown=True)
    masters.two_owners(30)
    masters.b.kill()
    masters.a.kill()
    masters.a = masters.stage.manager("a")
    masters.stage.run(100)
    assert masters.stage.holders(KEY) == []
    refused = decide(masters, masters.a, over="b")
    assert isinstance(refused, Impossible), "nobody knows whether it has stopped"
    decide(masters, masters.a, over="b", confirmed_stopped=True)
    masters.stage.run_until(lambda: masters.stage.holders(KEY) != [], at_most=80)


def test_18_a_journal_that_is_over_stays_over() -> None:
    """Its manager was stopped when the operator decided, and goes on."""
    masters = Masters(name=True, grown=True)
    masters.two_owners(30)
    masters.a.stop()
    masters.stage.run(4)
    assert isinstance(decide(masters, masters.b, over="a", confirmed_stopped=True), JournalDecided)
    masters.stage.run_until(lambda: masters.stage.holders(KEY) != [], at_most=80)
    masters.a.go_on()
    assert masters.two_owners(60) == 0
    assert masters.a.machine.view(masters.a.now).rivals.is_over
    assert masters.stage.holders(KEY) != []


# --- what goes on without an operator -------------------------------------------------------------


def test_18_a_leader_that_was_stopped_for_a_minute_looks_before_it_grants() -> None:
    """Meanwhile a manager was started on another journal, and has granted everything."""
    a_leader_was_stopped_for_a_minute()


def a_leader_was_stopped_for_a_minute() -> None:
    masters = Masters(lists=("a", "b", "b"), name=True, waits=True)
    stage = masters.stage
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=20)
    masters.a.stop()
    stage.run(14)
    masters.b = stage.manager("b", others="a", first_start=True)
    stage.run_until(lambda: stage.holders(KEY) == ["p"], at_most=10)
    stage.run(40)
    stage.latency_ns["b"] = seconds(0.5)
    masters.a.go_on()
    assert masters.two_owners(60) == 0
    assert said(masters.managers, RIVAL) == ["a", "b"]


def test_18_a_memory_journal_that_begins_anew_needs_no_operator() -> None:
    stage = Stage()
    a = stage.manager("a", others="b")
    owner = stage.owner("o")
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=5)
    a.kill()
    stage.begin_history(waits=False)
    a = stage.manager("a", others="b")
    owner.post(ManagerLost("a"))
    stage.run_until(lambda: owner.holdings.journal == stage.journal.journal, at_most=20)
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=20)
    assert RIVAL not in a.notes
    assert TWO not in owner.notes


def a_manager_ends_after_its_answer() -> None:
    """Its answer arrives when the owner follows the manager of a new journal."""
    stage = Stage()
    a = stage.manager("a")
    o = stage.owner("o")
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=5)
    answer, question = stage.hold(Introduction, sender="a"), stage.hold(Hello, receiver="b")
    o.post(ManagerLost("a"))
    stage.settle()
    a.kill()
    stage.begin_history(waits=False)
    stage.manager("b")
    question.end_and_deliver()
    assert o.machine.manager == "b"
    answer.end_and_deliver()
    stage.run(20)
    assert stage.holders(KEY) == ["o"]
    assert TWO not in o.notes


def test_18_a_manager_that_ends_after_its_answer_is_no_rival() -> None:
    a_manager_ends_after_its_answer()


def restored_elsewhere(others: str) -> tuple[Stage, ManagerActor, ManagerActor, OwnerActor]:
    """The journal of `a` is restored from a copy while `a` is stopped; `b` leads the new one."""
    stage = Stage()
    a = stage.manager("a", others=others)
    owner = stage.owner("o")
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=5)
    stage.journals["a"] = stage.journal
    a.stop()
    stage.run(20)
    stage.restore()
    b = stage.manager("b", others="a")
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=80)
    assert owner.holdings.journal == stage.journal.journal
    return stage, a, b, owner


@pytest.mark.parametrize("others", ["", "b"])
def test_18_a_leader_gives_way_to_the_restored_successor_of_its_journal(others: str) -> None:
    """Whether it asks, or an owner shows it the proof."""
    stage, a, b, _ = restored_elsewhere(others)
    stage.may_have_two_owners = not others
    late = stage.owner("p", managers="a")
    a.go_on()
    stage.run(60)
    assert RIVAL not in (*a.notes, *b.notes)
    assert stage.holders(KEY) == ["o"]
    assert a.gave_up is not None
    assert "was restored" in a.gave_up
    assert bool(late.granted) is not bool(others)


def test_18_a_restored_journal_grants_nothing_while_its_predecessor_is_led() -> None:
    """The operator forgot to stop the manager of the journal that was copied."""
    stage = Stage()
    a = stage.manager("a")
    stage.owner("o", managers="a")
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=5)
    stage.journals["a"] = stage.journal
    stage.restore()
    b = stage.manager("b", others="a")
    stage.owner("p", managers="b")
    stage.run(100)
    assert stage.holders(KEY) == ["o"]
    assert "a journal that is over has a living leader" in b.notes
    a.kill()
    begin = stage.now
    stage.run_until(lambda: stage.holders(KEY) == ["p"], at_most=80)
    assert stage.now - begin >= DEFAULT.longest_hold_ns - seconds(4)


def test_18_what_becomes_free_is_granted_to_nobody_while_a_journal_that_is_over_is_led() -> None:
    """Somebody starts its manager again, long after the restored journal began to grant."""
    stage = Stage()
    stage.manager("a").kill()
    stage.journals["a"] = stage.journal
    stage.restore()
    b = stage.manager("b", others="a")
    o = stage.owner("o", managers="b")
    stage.owner("p", managers="b")
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=80)
    a = stage.manager("a")
    stage.run(4)
    assert "a journal that is over has a living leader" in b.notes
    o.close()
    stage.run(30)
    assert stage.holders(KEY) == []
    late = stage.owner("q", managers="a")
    stage.run_until(lambda: stage.holders(KEY) == ["q"], at_most=80)
    a.kill()
    begin = stage.now
    stage.run_until(lambda: stage.holders(KEY) == ["p"], at_most=80)
    assert stage.now - begin >= DEFAULT.longest_hold_ns - seconds(4)
    assert late.holdings.leases == ()


# --- lies -----------------------------------------------------------------------------------------

LIE = Rival(manager="x", journal=77)


def test_18_what_strangers_and_lookups_say_stops_nothing() -> None:
    stage, a, o = one_owner()
    lookup = stage.lookup("l")
    for _ in range(20):
        stage.send_to_manager(o, "a", Hello(pool=POOL, token=5, rival=LIE))
        stage.send_to_manager(
            lookup,
            "a",
            Sync(pool=POOL, sequence=1, journal=0, leadership=0, lsn=0, nonce=3, rival=LIE),
        )
        stage.run(2)
    assert stage.holders(KEY) == ["o"]
    assert a.notes.count("is told of another journal's leader") == 1


def lie_of(owner: OwnerActor) -> LeaseRequest:
    machine = owner.machine
    return LeaseRequest(
        pool=machine.config.pool,
        incarnation=machine.belief.incarnation,
        owner_nonce=machine.owner_nonce,
        manager_nonce=machine.manager_nonce,
        sequence=machine.sequence + 1,
        journal=machine.belief.journal,
        leadership=machine.leadership,
        held=machine.belief.held(),
        rival=LIE,
    )


def test_18_an_owner_that_lies_stops_its_own_pool_only() -> None:
    stage = Stage()
    stage.prefer((LOW, ("o",)), (HIGH, ("q",)))
    a, o, other = stage.manager("a"), stage.owner("o"), stage.owner("q", pool="another")
    stage.run(1)
    assert (o.number_of(KEY) is None, other.number_of(b"z") is None) == (False, False)
    stage.send_to_manager(o, "a", lie_of(o))
    stage.run(40)
    assert (o.number_of(KEY), RIVAL in a.notes) == (None, True)
    assert other.number_of(b"z") is not None


def test_18_where_a_leader_has_asked_itself_no_owner_is_believed() -> None:
    stage, a, o = one_owner(others="x")
    stage.manager("x")
    stage.run(4)
    stage.send_to_manager(o, "a", lie_of(o))
    stage.run(40)
    assert (o.number_of(KEY) is not None, RIVAL in a.notes) == (True, False)


def test_18_a_proof_of_another_journal_is_none() -> None:
    stage, a, o = one_owner()
    forged = Rival(
        manager="x", journal=77, succeeds=(Succession(stage.journal.journal, b"y" * 16),)
    )
    stage.send_to_manager(o, "a", msgspec.structs.replace(lie_of(o), rival=forged))
    stage.run(2)
    assert a.gave_up is None


# --- realms ---------------------------------------------------------------------------------------


def test_18_a_client_does_not_follow_a_manager_of_another_realm() -> None:
    stage = Stage()
    a = stage.manager("a", realm="shop")
    ours, theirs = stage.owner("o", realm="shop"), stage.owner("p", realm="bank")
    stage.run(5)
    assert stage.holders(KEY) == ["o"]
    assert ("another realm" in theirs.notes, "another realm" in ours.notes) == (True, False)
    a.kill()
    stage.manager("a")
    stage.run(5)
    assert theirs.machine.phase == "joining", "the journal keeps the realm"


def test_18_a_manager_of_one_realm_does_not_lead_the_journal_of_another() -> None:
    stage = Stage()
    stage.manager("a", realm="shop").kill()
    b = stage.manager("b", realm="bank")
    stage.run(5)
    assert b.gave_up is not None
    assert "realm 'shop'" in b.gave_up
