"""Plans that are made beside the machine: when they count, and what a policy that fails costs."""

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, Self

import pytest

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE
from tenure.protocol.balance.planning import Planned, Planning
from tenure.protocol.balance.policy import NOBODY, Plan, Policy, Situation
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.answers import PlanRead, PoolMade, Steered
from tenure.protocol.lease.leader.context import PLANS_AT_ONCE
from tenure.protocol.lease.leader.events import (
    CreatePool,
    MakePlan,
    ManagerAction,
    Question,
    QuestionAsked,
    StopRequested,
)
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.messages import LeaseResponse
from tenure.protocol.lease.records import Steering
from tenure.protocol.lease.steering_events import ChoosePolicy, Freeze, ReadPlan
from tenure.protocol.lease.timing import DEFAULT
from tenure.protocol.log.journal import Seat
from tests.unit.protocol.lease.desk import HIGH, LOW, T0, ByName, Desk, at
from tests.unit.protocol.lease.driven_manager import Driven

A, B, C = 101, 102, 103  # nonces, and connections
BY_A, BY_B = ByName((WHOLE, "a b c")), ByName((WHOLE, "b a c"))
HALVES = ByName((LOW, "a b c"), (HIGH, "b a c"))


class Beside(Desk):
    """A desk whose policies are asked beside it: what is asked waits until the test lets it."""

    def __init__(self, policy: Policy, split_points: tuple[Key, ...] = ()) -> None:
        self.asked: list[Planning] = []
        super().__init__(policy, split_points=split_points)
        self.context.plans_at_once = 0

    def _take(self, action: ManagerAction) -> None:
        if isinstance(action, MakePlan):
            self.asked.append(action.work)
        super()._take(action)

    def made(self, now: Instant) -> None:
        """Answer the question that was asked first."""
        work = self.asked.pop(0)
        assert self.pool.planner.on_made(now, work, work.carry_out())
        self.commit()

    def planned(self) -> set[int]:
        """The owners that are to have something, by the plan; NOBODY where it names one that has
        gone, or goes.
        """
        there = self.pool.sessions
        stay = {NOBODY, *(each for each in there if not there[each].leaving)}
        return {each if each in stay else NOBODY for each in self.pool.planner.plan.values()}


def one_owner(policy: Policy) -> Beside:
    """`a` is incarnation 1, and is planned for everything that the policy gives it."""
    desk = Beside(policy)
    desk.owner(T0, "a", A)
    desk.advance(at(0.2))
    desk.made(at(0.3))
    return desk


@pytest.mark.parametrize(("owners", "asked"), [(15, 0), (16, 1)])
def test_a_pool_of_one_range_with_many_owners_is_planned_beside_the_machine(
    owners: int, asked: int
) -> None:
    """800 owners that came to a new pool held up every other pool's leases for ten seconds."""
    desk = Beside(Weighted())
    desk.context.plans_at_once = PLANS_AT_ONCE
    for number in range(owners):
        desk.owner(T0, f"owner-{number}", 200 + number)
    desk.advance(at(0.2))
    assert len(desk.asked) == asked


def test_the_last_plan_holds_until_the_next_is_made() -> None:
    desk = one_owner(BY_B)
    desk.settle(at(0.4), 1, A)
    desk.owner(at(1), "b", B)
    desk.advance(at(1.2))
    assert desk.planned() == {1}
    assert desk.pool.wake_at > at(1.2), "nothing is due while the plan is made"
    desk.made(at(2))
    assert desk.planned() == {2}


def test_one_plan_is_made_at_a_time_and_the_next_follows() -> None:
    desk = one_owner(HALVES)
    desk.owner(at(1), "b", B)
    desk.advance(at(1.2))
    desk.owner(at(1.3), "c", C)
    desk.advance(at(1.6))
    assert len(desk.asked) == 1
    desk.made(at(2))
    assert desk.planned() == {1, 2}
    desk.advance(at(2))
    assert len(desk.asked) == 1
    assert len(desk.asked[0].situation.candidates) == 3


def test_what_a_late_plan_gives_to_who_has_gone_is_given_to_nobody_until_the_next() -> None:
    desk = one_owner(HALVES)
    desk.owner(at(1), "b", B)
    desk.advance(at(1.2))
    desk.pool.on_death(at(1.3), desk.pool.sessions[2], LeaderKind.EXPIRED)
    desk.commit()
    desk.made(at(1.5))
    assert desk.planned() == {1, NOBODY}
    held = desk.pool.table.held_by(1)
    renewed = desk.ask(at(1.5), 1, A, held)
    assert isinstance(renewed, LeaseResponse)
    assert {lease.mark for lease in renewed.leases} <= {"renewed", "granted"}, (
        "nobody is to have it"
    )
    desk.advance(at(1.5))
    desk.made(at(2))
    assert desk.planned() == {1}


def test_a_plan_that_comes_after_other_steering_is_thrown_away() -> None:
    desk = one_owner(HALVES)
    desk.owner(at(1), "b", B)
    desk.advance(at(1.2))
    work = desk.pool.planner.planning(at(1.3), BY_A, Steering(frozen=True))
    desk.pool.steer(at(1.3), work, work.carry_out())
    desk.commit()
    assert desk.planned() == {1}
    desk.made(at(1.5))
    assert desk.planned() == {1}
    desk.advance(at(1.5))
    assert [each.situation.frozen for each in desk.asked] == [True]


def test_what_a_late_command_gives_to_who_has_gone_is_planned_anew() -> None:
    """Otherwise nobody has those keys until somebody comes or goes."""
    desk = one_owner(BY_B)
    desk.owner(at(1), "b", B)
    desk.advance(at(1.2))
    desk.made(at(1.3))
    work = desk.pool.planner.planning(at(2), steering=Steering(cordoned=("c",)))
    desk.pool.on_death(at(2.1), desk.pool.sessions[2], LeaderKind.EXPIRED)
    desk.advance(at(2.1))
    desk.made(at(2.2))
    assert desk.planned() == {1}
    desk.pool.steer(at(2.3), work, work.carry_out())
    desk.commit()
    assert desk.planned() == {NOBODY}
    desk.advance(at(2.3))
    desk.made(at(2.4))
    assert desk.planned() == {1}


def test_who_came_while_a_command_was_planned_is_in_the_next_plan() -> None:
    desk = one_owner(HALVES)
    work = desk.pool.planner.planning(at(1), steering=Steering(cordoned=("c",)))
    desk.owner(at(1.1), "b", B)
    desk.advance(at(1.5))
    desk.made(at(1.6))
    assert desk.planned() == {1, 2}
    desk.pool.steer(at(2), work, work.carry_out())
    desk.commit()
    desk.advance(at(2))
    desk.made(at(2.1))
    assert desk.planned() == {1, 2}


def test_what_has_come_free_meanwhile_is_offered_to_whom_the_late_plan_gives_it() -> None:
    """`a` returns what the plan before recalled, while a plan is made that leaves it with `a`."""
    desk = one_owner(BY_B)
    desk.settle(at(0.4), 1, A)
    desk.owner(at(1), "b", B)
    desk.advance(at(1.2))
    desk.made(at(1.3))
    desk.ask(at(1.4), 1, A, desk.pool.table.held_by(1))
    desk.pool.planner.policy = BY_A
    desk.pool.planner.replan(at(1.5))
    desk.commit()
    desk.ask(at(1.6), 1, A, ())
    assert desk.owner_of(b"a") == NOBODY
    desk.pokes(A)
    desk.made(at(2))
    assert desk.planned() == {1}
    assert desk.pokes(A) == 1


def test_who_begins_to_leave_while_a_plan_is_made_is_planned_for_again() -> None:
    desk = one_owner(HALVES)
    desk.settle(at(0.4), 1, A)
    desk.owner(at(1), "b", B)
    desk.advance(at(1.2))
    held = desk.pool.table.held_by(1)
    desk.ask(at(1.3), 1, A, held, leaving=True)
    desk.made(at(1.5))
    assert desk.planned() == {2, NOBODY}
    desk.advance(at(1.5))
    desk.made(at(1.6))
    assert desk.planned() == {2}


MANY = tuple(number.to_bytes(4, "big") for number in range(1, 51_000))


class Lines:
    """Counts the lines of Python that are executed."""

    def __init__(self) -> None:
        self.count = 0
        self._before: object = None

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)  # type: ignore[arg-type]  # what gettrace gave

    def _on_event(self, _: FrameType, event: str, __: object) -> Any:  # noqa: ANN401  # itself
        self.count += event == "line"
        return self._on_event


def in_turns(situation: Situation) -> Plan:
    """Every range goes to another owner than the one beside it."""
    there = [each.incarnation for each in situation.candidates]
    starts = [b"", *MANY]
    takers = [there[number % len(there)] for number in range(len(starts))]
    return Plan(RangeMap.at_starts(starts, takers), RangeMap(None))


@pytest.mark.parametrize("meanwhile", ["nothing", "one comes", "one goes", "one returns all"])
def test_a_late_plan_of_many_ranges_takes_its_step_next_to_nothing(meanwhile: str) -> None:
    """A step that compared them all held up every lease."""
    desk = Beside(in_turns, MANY)
    for number, name in ((A, "a"), (B, "b"), (C, "c")):
        desk.owner(T0, name, number)
    desk.advance(at(0.2))
    desk.made(at(0.3))
    desk.ask(at(0.4), 1, A, desk.pool.table.held_by(1))
    desk.pool.planner.replan(at(1))
    desk.commit()
    if meanwhile == "one comes":
        desk.owner(at(1.1), "d", 104)
    elif meanwhile == "one goes":
        desk.pool.on_death(at(1.1), desk.pool.sessions[3], LeaderKind.EXPIRED)
    elif meanwhile == "one returns all":
        desk.ask(at(1.1), 1, A, ())
    desk.commit()
    work = desk.asked.pop(0)
    made = work.carry_out()
    assert isinstance(made, Planned)
    assert len(made.plan.owners) == len(MANY) + 1
    with Lines() as lines:
        assert desk.pool.planner.on_made(at(2), work, made)
    desk.commit()
    assert lines.count < 2_000
    if meanwhile == "one returns all":
        assert desk.pokes(B), "all are poked, where too much has changed"


class Failing:
    """A policy that raises for some situations."""

    def __init__(self, then: Policy, fails: Sequence[bool]) -> None:
        self.then = then
        self.fails = list(fails)
        self.memories: list[object] = []

    def __call__(self, situation: Situation) -> Plan:
        self.memories.append(situation.memory)
        if self.fails and self.fails.pop(0):
            raise ZeroDivisionError("float division by zero")
        return self.then(situation)._replace(memory="kept")


@pytest.mark.parametrize("plans_at_once", [0, 1_000])
def test_a_policy_that_raises_costs_a_round_and_never_a_leader(plans_at_once: int) -> None:
    policy = Failing(HALVES, [False, True, False])
    desk = Beside(policy)
    desk.context.plans_at_once = plans_at_once
    now = T0
    for name, nonce in (("a", A), ("b", B)):
        desk.owner(now, name, nonce)
        now = Instant(now + DEFAULT.gather_ns)
        desk.advance(now)
        if desk.asked:
            desk.made(now)
    assert desk.planned() == {1}, "the last plan stays"
    assert desk.notes.count("policy failed") == 1
    assert desk.pool.planner.wake_at == now + DEFAULT.renew_ns < FAR_FUTURE
    desk.advance(Instant(now + DEFAULT.renew_ns))
    if desk.asked:
        desk.made(now)
    assert desk.planned() == {1, 2}
    assert policy.memories == [None, "kept", None], "its memory may be what it failed at"


NONSENSE: list[object] = [
    None,
    "all to a",
    Plan(None, None),  # type: ignore[arg-type]
    Plan(RangeMap(999), RangeMap(None)),
    Plan(RangeMap("a"), RangeMap(None)),  # type: ignore[arg-type]
    Plan(RangeMap(1), RangeMap(None), again_at=T0),
]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=range(len(NONSENSE)))
@pytest.mark.parametrize("plans_at_once", [0, 1_000])
def test_a_plan_that_makes_no_sense_costs_a_round_too(plans_at_once: int, nonsense: object) -> None:
    desk = Beside(HALVES)
    desk.context.plans_at_once = plans_at_once
    desk.owner(T0, "a", A)
    now = Instant(T0 + DEFAULT.gather_ns)
    desk.advance(now)
    if desk.asked:
        desk.made(now)
    desk.pool.planner.policy = lambda _: nonsense  # type: ignore[assignment]
    desk.pool.planner.replan(now)
    desk.commit()
    if desk.asked:
        desk.made(now)
    assert desk.planned() == {1}, "the last plan stays"
    assert desk.notes.count("policy failed") == 1
    assert desk.pool.planner.wake_at == now + DEFAULT.renew_ns


def test_a_policy_that_raises_is_replaced_by_a_command_all_the_same() -> None:
    """Nobody can tell what would move without the command, but what moves with it can be told."""
    desk = Beside(Failing(HALVES, [True] * 10))
    desk.owner(T0, "a", A)
    work = desk.pool.planner.planning(at(1), BY_A, Steering(policy="ring"))
    desk.pool.steer(at(1), work, work.carry_out())
    desk.commit()
    assert desk.planned() == {1}


# --- what people ask ------------------------------------------------------------------------------


def beside() -> Driven:
    """A manager that leads, and asks all policies beside the machine."""
    driven = Driven(plans_at_once=0)
    driven.ask(CreatePool("p", "hashed"))
    return driven


def test_a_question_to_the_policy_is_answered_when_the_policy_has_been_asked() -> None:
    driven = beside()
    questions: list[Question] = [ReadPlan("p"), Freeze(pool="p", dry_run=True)]
    for ticket, question in enumerate(questions):
        driven.take(QuestionAsked(ticket, question))
    assert driven.replies == [PoolMade("p", "hashed", created=True)]
    driven.plan()
    read, dry = driven.replies[1:]
    assert isinstance(read, PlanRead)
    assert isinstance(dry, Steered)
    assert dry.dry_run


def test_a_command_is_planned_anew_where_another_was_carried_out_meanwhile() -> None:
    driven = beside()
    driven.take(QuestionAsked(2, Freeze(pool="p")))
    driven.take(QuestionAsked(3, ChoosePolicy(pool="p", policy="ring")))
    driven.plan()
    answers = [each for each in driven.replies if isinstance(each, Steered)]
    assert [(each.steering.frozen, each.steering.policy) for each in answers] == [
        (True, ""),
        (True, "ring"),
    ]


@pytest.mark.parametrize("leads_again", [False, True])
def test_what_comes_of_a_plan_that_a_deposed_leader_wanted_is_nothing(leads_again: bool) -> None:
    driven = beside()
    driven.take(QuestionAsked(2, Freeze(pool="p")))
    if leads_again:
        driven.journal.seat = Seat(2, 0, "other", seconds(9))
        driven.run(at(200))
        assert driven.notes.count("leading") == 2
    else:
        driven.take(StopRequested())
    driven.plan()
    assert driven.replies == [PoolMade("p", "hashed", created=True)]
