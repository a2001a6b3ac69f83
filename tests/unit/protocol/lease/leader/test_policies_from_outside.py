"""Pools whose policies run in processes of their own: one that fails holds up nobody else."""

from tenure.base.instants import Instant, seconds
from tenure.protocol.balance.policy import Plan, Policy, PolicyFailed, Situation
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.answers import Impossible, Steered
from tenure.protocol.lease.leader.events import CreatePool, QuestionAsked
from tenure.protocol.lease.leader.policies import chosen_policy
from tenure.protocol.lease.leader.policy_calls import OUTSIDE_NS, ROUNDS
from tenure.protocol.lease.steering_events import ChoosePolicy, Freeze, ReadPlan, Unfreeze
from tenure.protocol.lease.table import LeaseTable
from tenure.protocol.lease.timing import DEFAULT, TEST, Timing
from tests.unit.protocol.lease.driven_manager import Driven

OURS = Weighted()
LONGEST_NS = ROUNDS * DEFAULT.renew_ns


class Failing:
    """Raises as long as it `fails`."""

    is_outside = True
    follows_load = False

    def __init__(self) -> None:
        self.fails = True
        self.asked = 0

    def __call__(self, situation: Situation) -> Plan:
        self.asked += 1
        if self.fails:
            raise PolicyFailed("not today")
        return OURS(situation)


def with_policy(policy: Policy, timing: Timing = DEFAULT) -> Driven:
    """A manager that leads; the pool `p` has the policy, and others have ours."""

    def make(table: LeaseTable, chosen: str) -> Policy:
        return policy if table.pool == "p" else chosen_policy(table, chosen)

    driven = Driven(make_policy=make, plans_at_once=1_000, timing=timing)
    for pool in ("p", "q"):
        driven.ask(CreatePool(pool, "hashed"))
    return driven


def freeze(driven: Driven) -> None:
    """The first plan of the pool, for the sake of a command."""
    driven.take(QuestionAsked(7, Freeze(pool="p")))


def asked_at(driven: Driven, policy: Failing, renewals: int) -> list[int]:
    """The times, in renewals from now on, at which the policy is asked."""
    found = []
    for i in range(1, renewals + 1):
        before = policy.asked
        driven.run(Instant(driven.now + DEFAULT.renew_ns))
        driven.plan()
        if policy.asked > before:
            found.append(i)
    return found


def test_a_policy_that_fails_is_asked_ever_less_often_until_it_plans() -> None:
    policy = Failing()
    driven = with_policy(policy)
    freeze(driven)
    driven.plan()
    assert asked_at(driven, policy, 50) == [1, 3, 7, 15, 31, 47]
    assert driven.machine.view(driven.now).troubles == {"p": "not today"}
    policy.fails = False
    assert asked_at(driven, policy, 50) == [13]
    assert driven.machine.view(driven.now).troubles == {}


def test_who_reads_the_plan_of_a_policy_that_fails_asks_it_nothing() -> None:
    policy = Failing()
    driven = with_policy(policy)
    freeze(driven)
    driven.plan()
    asked = policy.asked
    answer = driven.ask(ReadPlan("p"))
    assert isinstance(answer, Impossible)
    assert answer.why == "the policy weighted of the pool 'p' failed: not today"
    assert policy.asked == asked
    assert not driven.asked


def test_a_policy_that_does_not_return_holds_up_no_other_pool() -> None:
    driven = with_policy(Failing())
    freeze(driven)
    [work] = driven.asked
    assert work.line == "p"
    driven.run(Instant(driven.now + LONGEST_NS))
    answer = driven.ask(ChoosePolicy(pool="q", policy="ring"))
    assert isinstance(answer, Steered)
    assert driven.machine.view(driven.now).troubles.keys() == {"p"}


def test_with_short_leases_too_it_may_take_the_time_that_its_process_has() -> None:
    driven = with_policy(Failing(), TEST)
    freeze(driven)
    driven.run(Instant(driven.now + seconds(15 + 8)))
    assert driven.machine.view(driven.now).troubles == {}
    driven.run(Instant(driven.now + OUTSIDE_NS))
    troubles = {"p": "the policy weighted has not returned after 30 s"}
    assert driven.machine.view(driven.now).troubles == troubles


def test_a_policy_from_outside_that_cannot_plan_is_not_chosen() -> None:
    policy = Failing()
    driven = Driven(policies={"own:Policy": lambda _: policy})
    driven.ask(CreatePool("p", "hashed"))
    choose = QuestionAsked(7, ChoosePolicy(pool="p", policy="own:Policy"))
    driven.take(choose)
    driven.plan()
    refused = driven.replies[-1]
    assert isinstance(refused, Impossible)
    assert refused.why == "the policy own:Policy for the pool 'p' failed: not today"
    policy.fails = False
    driven.take(choose)
    driven.plan()
    chosen = driven.replies[-1]
    assert isinstance(chosen, Steered)
    assert chosen.steering.policy == "own:Policy"


def test_the_way_out_of_a_policy_that_fails_does_not_ask_it() -> None:
    policy = Failing()
    policy.fails = False
    driven = Driven(policies={"own:Policy": lambda _: policy})
    driven.ask(CreatePool("p", "hashed"))
    driven.take(QuestionAsked(7, ChoosePolicy(pool="p", policy="own:Policy")))
    driven.plan()
    policy.fails = True
    freeze(driven)
    driven.plan()
    assert driven.machine.view(driven.now).troubles == {"p": "not today"}
    asked = policy.asked
    answer = driven.ask(ChoosePolicy(pool="p", policy="weighted"))
    assert isinstance(answer, Steered)
    assert policy.asked == asked


def test_a_leader_that_does_not_know_the_policy_leaves_all_as_it_was_and_says_so() -> None:
    policy = Failing()
    policy.fails = False
    first = Driven(policies={"own:Policy": lambda _: policy})
    first.ask(CreatePool("p", "hashed"))
    first.take(QuestionAsked(7, ChoosePolicy(pool="p", policy="own:Policy")))
    first.plan()
    second = Driven(journal=first.journal, seed=3)
    second.run(Instant(second.now + 10 * DEFAULT.hold_ns))
    answer = second.ask(ReadPlan("p"))
    assert isinstance(answer, Impossible)
    assert "this manager does not know own:Policy" in answer.why


class Remembering(Failing):
    """Keeps of its memory, after it has failed, that it was once there."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[object] = []

    def __call__(self, situation: Situation) -> Plan:
        self.found.append(situation.memory)
        return super().__call__(situation)._replace(memory="all")

    def after_failure(self, memory: object) -> object:
        return f"of {memory}"


def test_a_policy_that_fails_keeps_what_it_says_of_its_memory() -> None:
    policy = Remembering()
    policy.fails = False
    driven = with_policy(policy)
    freeze(driven)
    driven.plan()
    policy.fails = True
    driven.take(QuestionAsked(8, Unfreeze(pool="p")))
    driven.plan()
    asked_at(driven, policy, 1)
    assert policy.found[-1] == "of all"
