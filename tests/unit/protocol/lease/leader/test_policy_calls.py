"""A policy that does not return: it is given up, the pool goes on without it, and that is shown."""

import pytest

from tenure.base.instants import Instant
from tenure.protocol.balance.planning import Planning
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.answers import Impossible, KeyExplained, PlanRead, Steered
from tenure.protocol.lease.leader.events import CreatePool, PlanMade, QuestionAsked
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.policies import chosen_policy
from tenure.protocol.lease.leader.policy_calls import ROUNDS
from tenure.protocol.lease.messages import Join, LeaseRequest, LeaseResponse
from tenure.protocol.lease.steering_events import ChoosePolicy, ExplainKey, Freeze, ReadPlan
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.driven_manager import Driven

LONGEST_NS = ROUNDS * DEFAULT.renew_ns
A, B = 11, 12  # nonces, and connections


def beside() -> Driven:
    """A manager that leads, and asks all policies beside the machine."""
    driven = Driven(plans_at_once=0)
    driven.ask(CreatePool("p", "hashed"))
    return driven


def later(driven: Driven, ns: int) -> None:
    driven.run(Instant(driven.now + ns))


def enter(driven: Driven, name: str, nonce: int) -> int:
    """An owner joins, and speaks under its number: which one."""
    message = Join(
        pool="p",
        kind="hashed",
        name=name,
        address=f"http://{name}",
        owner_nonce=nonce,
        manager_nonce=driven.nonce,
        sequence=1,
    )
    [answer] = driven.hear(message, nonce)
    assert isinstance(answer, LeaseResponse)
    renew(driven, answer.incarnation, nonce, 2)
    return answer.incarnation


def renew(driven: Driven, incarnation: int, nonce: int, sequence: int) -> LeaseResponse:
    leader = driven.machine.leader
    assert leader is not None
    message = LeaseRequest(
        pool="p",
        incarnation=incarnation,
        owner_nonce=nonce,
        manager_nonce=driven.nonce,
        sequence=sequence,
        journal=leader.context.seal.journal,
        leadership=leader.context.seal.leadership,
        held=(),
    )
    [answer] = [each for each in driven.hear(message, nonce) if isinstance(each, LeaseResponse)]
    return answer


def hanging(driven: Driven) -> Planning:
    """The policy is asked for an owner's sake, and does not return."""
    enter(driven, "a", A)
    later(driven, DEFAULT.gather_ns)
    [work] = driven.asked
    for sequence in range(3, 3 + ROUNDS):
        later(driven, DEFAULT.renew_ns)
        renew(driven, 1, A, sequence)
    return work


def test_the_pool_goes_on_by_the_simplest_rule_and_everybody_is_told() -> None:
    driven = beside()
    hanging(driven)
    assert driven.notes.count("policy hangs") == 1
    assert LeaderKind.POLICY_HANGS.level.name == "WARNING"
    [everything] = renew(driven, 1, A, 90).leases
    assert (everything.start, everything.end, everything.mark) == (b"", None, "granted")
    trouble = f"the policy weighted has not returned after {ROUNDS * 3} s"
    why = driven.ask(ExplainKey("p", bytes(8)))
    assert isinstance(why, KeyExplained)
    assert (why.trouble, why.planned) == (trouble, "a")
    assert driven.machine.view(driven.now).troubles == {"p": trouble}


@pytest.mark.parametrize("is_ours", [True, False])
def test_in_a_small_pool_too_a_policy_of_somebody_else_is_given_up(is_ours: bool) -> None:
    """Within the machine's step nothing could give it up. Our own return."""
    made = chosen_policy if is_ours else lambda *_: Weighted()
    driven = Driven(make_policy=made)
    driven.ask(CreatePool("p", "hashed"))
    if is_ours:
        enter(driven, "a", A)
        later(driven, DEFAULT.gather_ns)
        assert not driven.asked
    else:
        hanging(driven)
        assert driven.notes.count("policy hangs") == 1
    [everything] = renew(driven, 1, A, 90).leases
    assert (everything.start, everything.end) == (b"", None)


def test_until_it_returns_no_second_is_asked_beside_it() -> None:
    driven = beside()
    hanging(driven)
    enter(driven, "b", B)
    later(driven, DEFAULT.gather_ns)
    for question in (ReadPlan("p"), Freeze(pool="p", dry_run=True)):
        answer = driven.ask(question)
        assert isinstance(answer, Impossible)
        assert "the policy weighted has not returned" in answer.why
        assert "restart this manager" in answer.way_out
    assert len(driven.asked) == 1


def test_who_asked_while_it_hung_is_answered_when_it_is_given_up() -> None:
    driven = beside()
    driven.take(QuestionAsked(2, ReadPlan("p")))
    later(driven, LONGEST_NS - 1)
    assert not any(isinstance(each, Impossible) for each in driven.replies)
    later(driven, 1)
    assert isinstance(driven.replies[-1], Impossible)


def test_however_many_read_a_plan_at_once_the_policy_is_asked_once() -> None:
    """Whoever may read a pool may ask without end, and the plans of all pools wait in one line."""
    driven = beside()
    driven.ask(CreatePool("q", "hashed"))
    for ticket in range(100):
        driven.take(QuestionAsked(1_000 + ticket, ReadPlan("p")))
    driven.take(QuestionAsked(2_000, ReadPlan("q")))
    assert [work.pool for work in driven.asked] == ["p", "q"]
    driven.replies.clear()
    driven.plan()
    assert len([each for each in driven.replies if isinstance(each, PlanRead)]) == 101
    driven.take(QuestionAsked(3_000, ReadPlan("p")))
    assert len(driven.asked) == 1, "the next one is answered as of then"


def test_a_command_is_carried_out_all_the_same() -> None:
    driven = beside()
    hanging(driven)
    answer = driven.ask(ChoosePolicy(pool="p", policy="ring"))
    assert isinstance(answer, Steered)
    assert answer.steering.policy == "ring"


def test_the_pool_of_another_policy_names_the_one_at_fault() -> None:
    driven = beside()
    hanging(driven)
    driven.ask(CreatePool("q", "hashed"))
    answer = driven.ask(ReadPlan("q"))
    assert isinstance(answer, Impossible)
    assert "the policy weighted of the pool 'p' has not returned" in answer.why


@pytest.mark.parametrize("asked_late", [False, True])
def test_when_it_returns_after_all_it_is_asked_again(asked_late: bool) -> None:
    """The plan that it returns so late is thrown away."""
    driven = beside()
    work = hanging(driven)
    driven.asked.clear()
    if asked_late:
        later(driven, DEFAULT.hold_ns // 2)
    driven.take(PlanMade(work, work.carry_out()))
    assert driven.notes.count("policy returned after all") == 1
    driven.run(driven.now)
    assert len(driven.asked) == 1
    driven.plan()
    assert driven.machine.view(driven.now).troubles == {}
    driven.take(QuestionAsked(3, ReadPlan("p")))
    driven.plan()
    assert isinstance(driven.replies[-1], PlanRead)


def test_one_that_waits_behind_a_slow_one_has_its_own_time() -> None:
    driven = beside()
    driven.ask(CreatePool("q", "hashed"))
    for pool in ("p", "q"):
        driven.take(QuestionAsked(2, ReadPlan(pool)))
    first, second = driven.asked
    later(driven, LONGEST_NS - 1)
    driven.take(PlanMade(first, first.carry_out()))
    later(driven, LONGEST_NS - 1)
    driven.take(PlanMade(second, second.carry_out()))
    assert [isinstance(each, PlanRead) for each in driven.replies[-2:]] == [True, True]


def test_a_policy_that_raises_is_shown_until_it_plans_again() -> None:
    driven = Driven()
    driven.ask(CreatePool("p", "hashed"))
    leader = driven.machine.leader
    assert leader is not None
    planner = leader.pools["p"].planner
    good = planner.policy
    planner.policy = None  # type: ignore[assignment]
    enter(driven, "a", A)
    later(driven, DEFAULT.gather_ns)
    assert "TypeError" in driven.machine.view(driven.now).troubles["p"]
    assert set(planner.plan.values()) == {1}, "what nobody has finds an owner all the same"
    planner.policy = good
    later(driven, DEFAULT.renew_ns)
    assert driven.machine.view(driven.now).troubles == {}
