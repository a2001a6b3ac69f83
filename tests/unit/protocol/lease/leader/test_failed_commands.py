"""A command that breaks off costs the leadership, but neither the manager nor anybody's leases.

Nobody knows how far it came. So the leader is thrown away, nothing of the step is kept, and the
manager begins again from its journal. Each command is made to fail at the calls of functions that
it leads to.
"""

from collections import deque

import pytest

from tenure.protocol.lease.answers import CommandFailed, NotLeading, Pools
from tenure.protocol.lease.leader.events import (
    ClientSaid,
    CreatePool,
    DeletePool,
    ListPools,
    Question,
    QuestionAsked,
    StopRequested,
)
from tenure.protocol.lease.leader.leader import Leader
from tenure.protocol.lease.leader.manager import told_of_failure
from tenure.protocol.lease.messages import Hello, LeaseRequest, LeaseResponse, Standby
from tenure.protocol.lease.records import AnyRecord, TookOver
from tenure.protocol.lease.steering_events import ChoosePolicy, Cordon, Drain, Evict, Freeze, PinKey
from tenure.protocol.topology.questions import (
    CompareNow,
    CreateCluster,
    DeleteCluster,
    RemoveNode,
    SetBalance,
)
from tenure.protocol.topology.records import Placement
from tests.unit.protocol.lease.breaking import COMMANDED, Breaking, Broken
from tests.unit.protocol.lease.driven_manager import Driven, at
from tests.unit.protocol.lease.leader.test_failed_questions import machine_with_all

COMMANDS: tuple[Question, ...] = (
    CreatePool("new", "hashed"),
    DeletePool("q"),
    Drain(pool="p", owner="a"),
    Cordon(pool="p", owner="a"),
    PinKey(pool="p", key=b"kkkkkkkk", owner="b"),
    Freeze(pool="p"),
    Evict(pool="p", incarnation=1),
    Evict(pool="p", incarnation=1, confirmed_dead=True),
    ChoosePolicy(pool="p", policy="ring"),
    CreateCluster(cluster="b", id=8, placement=Placement.read("1"), first_nodes=1),
    DeleteCluster(cluster="chat"),
    RemoveNode(cluster="chat", node="n3"),
    SetBalance(cluster="chat", bytes_a_day=1_000_000),
    CompareNow(cluster="chat"),
)
PLACES = 10
"""Each command is made to fail at about this many calls."""


@pytest.mark.parametrize("kind", [ZeroDivisionError, AssertionError])
def test_what_contradicts_itself_or_nobody_asked_for_ends_the_manager(
    kind: type[Exception],
) -> None:
    """A leader that began again would come to it again."""
    with pytest.raises(kind) as raised:
        raise kind
    assert told_of_failure(StopRequested(), raised.value) is None
    told = told_of_failure(QuestionAsked(1, ListPools()), raised.value)
    assert (told is None) == (kind is AssertionError)


def ready() -> Driven:
    """All of it, with a manager that goes on."""
    driven = machine_with_all()
    driven.starts_over = True
    return driven


def records(driven: Driven) -> list[AnyRecord]:
    """Return the records of the journal, takeovers left out."""
    return [each for each in driven.journal.records if not isinstance(each, TookOver)]


def leases(driven: Driven, number: int) -> list[tuple[bytes, int]]:
    """Return the leases on which an owner may count, as the leader says when it asks again."""
    leader = driven.machine.leader
    assert leader is not None
    context = leader.context
    asked = LeaseRequest(
        pool="p",
        incarnation=number + 1,
        owner_nonce=number,
        manager_nonce=driven.nonce,
        sequence=3,
        journal=context.seal.journal,
        leadership=context.seal.leadership,
        held=context.history.tables["p"].held_by(number + 1),
    )
    answers = driven.hear(asked, number)
    [answer] = [each for each in answers if isinstance(each, LeaseResponse)]
    return [(lease.start, lease.number) for lease in answer.leases]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: type(each).__name__)
def test_a_command_that_breaks_off_anywhere_is_not_done_and_leases_go_on(command: Question) -> None:
    driven = ready()
    with Breaking(answering=COMMANDED) as counting:
        done = driven.ask(command)
    assert not isinstance(done, CommandFailed)
    failures = 0
    for place in range(1, counting.calls + 1, counting.calls // PLACES + 1):
        driven = ready()
        kept = records(driven)
        assert driven.machine.leader
        before = driven.machine.leader.context
        tables = {name: table.entries() for name, table in before.history.tables.items()}
        with Breaking(place, answering=COMMANDED):
            answer = driven.ask(command)
        driven.run(at(driven.now / 1e9 + 0.001))
        leader = driven.machine.leader
        assert leader is not None, "it leads again, at once"
        if not isinstance(answer, CommandFailed):  # it only read, and goes on as it was
            assert leader.context is before
            continue
        failures += 1
        assert answer.why.endswith("Broken: ")
        assert driven.notes.count("started over: what was asked broke off") == 1
        assert leader.context.seal.leadership == before.seal.leadership + 1
        assert records(driven) == kept
        after = leader.context.history.tables
        assert {name: table.entries() for name, table in after.items()} == tables
        assert leases(driven, 0)
        assert leases(driven, 1)
        assert not isinstance(driven.ask(command), CommandFailed), "asked once more, it is done"
    assert failures


def test_a_command_whose_plan_was_made_beside_the_machine_fails_alike() -> None:
    driven = machine_with_all(plans_at_once=0)
    driven.starts_over = True
    driven.plan()
    driven.replies = []
    for ticket in (1, 2):
        driven.take(QuestionAsked(ticket, Drain(pool="p", owner="a")))
    driven.asked = deque(list(driven.asked)[-2:])  # the pool is planned beside them
    with Breaking(5, answering=COMMANDED):
        driven.plan()
    assert [type(each) for each in driven.replies] == [CommandFailed, NotLeading], "ask again"
    driven.run(at(driven.now / 1e9 + 0.001))
    leader = driven.machine.leader
    assert leader
    assert not leader.context.history.tables["p"].steering.drained


def test_what_clients_say_ends_no_manager_either() -> None:
    driven = ready()
    leader = driven.machine.leader
    driven.hear(Hello(pool="p", token=1), 0)
    with Breaking(1, answering=(Leader.on_message.__code__,)):
        assert driven.hear(Hello(pool="p", token=1), 0) == [Standby(leader=None)] * 4
    driven.run(at(driven.now / 1e9 + 0.001))
    assert driven.machine.leader not in (None, leader)


def test_a_contradiction_and_a_failure_that_nobody_asked_for_end_the_manager() -> None:
    """Time alone brings them, so they would come again under each leader."""
    driven = ready()
    with (
        Breaking(3, AssertionError("two owners"), answering=COMMANDED),
        pytest.raises(AssertionError, match="two owners"),
    ):
        driven.ask(Freeze(pool="p"))
    driven = ready()
    with Breaking(1, answering=(Leader.advance.__code__,)), pytest.raises(Broken):
        driven.run(at(60))
    driven = ready()
    driven.now = at(60)
    with (
        Breaking(1, answering=(Leader.advance.__code__,)),
        pytest.raises(AssertionError, match="what only time brought"),
    ):
        driven.take(ClientSaid(0, Hello(pool="p", token=1)))


def test_a_standby_may_be_quicker_than_the_manager_that_failed() -> None:
    driven = ready()
    other = Driven(journal=driven.journal, url="other")
    driven.held = (type(other.calls[0]),)  # it reads the seat, but later
    with Breaking(3, answering=COMMANDED):
        assert isinstance(driven.ask(Freeze(pool="p")), CommandFailed)
    other.run(at(other.now / 1e9 + 2))
    assert isinstance(other.ask(ListPools()), Pools)
    driven.release()
    driven.run(at(driven.now / 1e9 + 1))
    assert driven.machine.leader is None
    assert driven.machine.leadership.leader == "other"
