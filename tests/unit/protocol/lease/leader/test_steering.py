"""Steering a pool: what an operator's commands do, say beforehand, and leave to a later leader."""

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from tenure.base.instants import Instant
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE
from tenure.protocol.balance.load import share_of
from tenure.protocol.balance.policy import NOBODY, Plan, Situation, Why, obeying, open_to_more
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.answers import Flow, Impossible, PlanRead, Steered
from tenure.protocol.lease.leader.explaining import explain, read_plan
from tenure.protocol.lease.leader.policies import chosen_policy
from tenure.protocol.lease.leader.steering import NAMED_AT_MOST, planning_to_steer, steer
from tenure.protocol.lease.messages import LeaseResponse, Refusal, ShortRequest
from tenure.protocol.lease.records import UNSTEERED, Changed, Steering
from tenure.protocol.lease.steering_events import (
    ChoosePolicy,
    Cordon,
    Drain,
    Evict,
    ExplainKey,
    Freeze,
    PinKey,
    SteeringCommand,
    Uncordon,
    Unfreeze,
    UnpinKey,
)
from tenure.protocol.lease.timing import DEFAULT
from tenure.wire.lease_records import LEASE_RECORDS
from tests.unit.protocol.lease.desk import HIGH, LOW, SEAL, T0, Desk, at, listed, marks

A, B = 101, 102  # nonces, and connections


@dataclass
class Halves:
    """A policy: the low half goes to the owner whose name is first, the high one to the last."""

    def __call__(self, situation: Situation) -> Plan:
        names = {each.name: each.incarnation for each in open_to_more(situation)}
        owners = RangeMap(NOBODY)
        if names:
            owners.assign(LOW, names[min(names)])
            owners.assign(HIGH, names[max(names)])
        return Plan(obeying(situation, owners), RangeMap(Why("halves", "by name")))


def two_owners() -> Desk:
    """`a` is incarnation 1 and has the low half, `b` is 2 and has the high one."""
    desk = Desk(Halves(), split_points=(b"m",))
    desk.owner(T0, "a", A)
    desk.owner(T0, "b", B)
    desk.advance(at(0.2))
    desk.settle(at(0.2), 1, A)
    desk.settle(at(0.2), 2, B)
    assert (desk.owner_of(b"a"), desk.owner_of(b"z")) == (1, 2)
    desk.said.clear()
    return desk


def steered(desk: Desk, now: Instant, command: SteeringCommand) -> Steered | Impossible | None:
    work = planning_to_steer(now, desk.pool, command, chosen_policy)
    if isinstance(work, Steered | Impossible):
        return work
    return steer(now, desk.pool, command, work, work.carry_out())


def read_plan_of(desk: Desk, now: Instant) -> PlanRead:
    read = read_plan(desk.pool, desk.pool.planner.planning(now).carry_out())
    assert isinstance(read, PlanRead)
    return read


def say(desk: Desk, command: SteeringCommand, now: Instant | None = None) -> Steered:
    answer = steered(desk, at(0.5) if now is None else now, command)
    desk.commit()
    assert isinstance(answer, Steered), answer
    return answer


def refused(desk: Desk, command: SteeringCommand) -> str:
    answer = steered(desk, at(0.5), command)
    assert isinstance(answer, Impossible), answer
    return answer.why


def give_up(desk: Desk, now: Instant, incarnation: int, nonce: int) -> None:
    """The owner is told of the recall, and asks without what is recalled."""
    held = desk.pool.table.held_by(incarnation)
    answer = desk.ask(now, incarnation, nonce, held)
    assert isinstance(answer, LeaseResponse)
    kept = tuple(
        h
        for h, lease in zip(listed(answer), answer.leases, strict=True)
        if lease.mark != "recalled"
    )
    desk.ask(now, incarnation, nonce, kept)


# --- what they do ---------------------------------------------------------------------------------


def test_a_drained_owner_gives_everything_away_and_gets_nothing_until_it_is_uncordoned() -> None:
    desk = two_owners()
    answer = say(desk, Drain(pool="p", owner="a"))
    assert answer.changed
    assert answer.ranges == 1
    [flow] = answer.flows
    assert (flow.giver, flow.taker, flow.ranges, flow.with_state) == ("a", "b", 1, False)
    assert flow.share == pytest.approx(ord("m") / 256)
    assert desk.pokes(A) == 1
    give_up(desk, at(1), 1, A)
    desk.settle(at(1), 2, B)
    assert (desk.owner_of(b"a"), desk.pool.table.held_by(1)) == (2, ())
    say(desk, Uncordon(pool="p", owner="a"))
    assert desk.pool.planner.plan[b"a"] == 1


def test_a_drain_outlives_a_restart_of_its_owner() -> None:
    """It is of a name."""
    desk = two_owners()
    say(desk, Drain(pool="p", owner="a"))
    desk.ask(at(1), 1, A, (), leaving=True)
    assert desk.owner(at(2), "a", A + 10) == 3
    desk.advance(at(3))
    assert set(desk.pool.planner.plan.values()) == {2}


def test_the_last_owner_keeps_what_it_has_although_it_is_drained() -> None:
    desk = two_owners()
    say(desk, Drain(pool="p", owner="a"))
    say(desk, Drain(pool="p", owner="b"))
    answer = desk.ask(at(1), 1, A, desk.pool.table.held_by(1))
    assert marks(answer) == [(b"", b"m", "renewed")]


def test_a_cordoned_owner_keeps_what_it_has_and_gets_nothing_new() -> None:
    desk = two_owners()
    assert say(desk, Cordon(pool="p", owner="a")).flows == ()
    desk.ask(at(1), 2, B, (), leaving=True)
    desk.advance(at(1.1))
    assert (desk.pool.planner.plan[b"a"], desk.pool.planner.plan[b"z"]) == (1, NOBODY)
    say(desk, Uncordon(pool="p", owner="a"))
    assert set(desk.pool.planner.plan.values()) == {1}


def test_a_pinned_key_is_at_its_owner_while_that_one_is_a_candidate() -> None:
    desk = two_owners()
    answer = say(desk, PinKey(pool="p", key=b"k", owner="b"))
    assert [(flow.giver, flow.taker, flow.ranges) for flow in answer.flows] == [("a", "b", 1)]
    assert [desk.pool.planner.plan[key] for key in (b"j", b"k", b"k\0")] == [1, 2, 1]
    say(desk, Drain(pool="p", owner="b"))
    assert desk.pool.planner.plan[b"k"] == 1
    say(desk, UnpinKey(pool="p", key=b"k"))
    say(desk, Uncordon(pool="p", owner="b"))
    assert desk.pool.planner.plan[b"k"] == 1


def test_in_a_frozen_pool_only_what_has_no_owner_is_given_one() -> None:
    desk = two_owners()
    say(desk, Freeze(pool="p"))
    desk.owner(at(1), "c", 103)
    desk.advance(at(2))
    assert (desk.pool.planner.plan[b"a"], desk.pool.planner.plan[b"z"]) == (1, 2)
    desk.ask(at(2), 2, B, (), leaving=True)
    desk.advance(at(2.1))
    assert (desk.pool.planner.plan[b"a"], desk.pool.planner.plan[b"z"]) == (1, 3)
    say(desk, Unfreeze(pool="p"))
    assert not desk.pool.table.steering.frozen


def test_a_policy_is_chosen_while_the_pool_runs() -> None:
    desk = two_owners()
    say(desk, ChoosePolicy(pool="p", policy="deal"))
    assert type(desk.pool.planner.policy).__name__ == "Deal"
    assert read_plan_of(desk, at(1)).policy == "deal"


# --- eviction -------------------------------------------------------------------------------------


def test_an_evicted_incarnation_is_past_and_its_ranges_come_free_when_its_hold_has_run_out() -> (
    None
):
    desk = two_owners()
    held = desk.pool.table.held_by(1)
    answer = say(desk, Evict(pool="p", incarnation=1))
    assert answer.hold_seconds == pytest.approx(0.2 + DEFAULT.hold_ns / 1e9 - 0.5)
    desk.commit()
    [told] = desk.told(A, Refusal)
    assert told.reason == "past"
    refusal = desk.ask(at(1), 1, A, held)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "past"
    again = desk.join(at(1), "a", A)
    assert isinstance(again, Refusal)
    assert again.reason == "past"
    other = desk.join(at(1), "a", A + 10)
    assert isinstance(other, Refusal)
    assert other.reason == "name_held"
    hold_ends = Instant(at(0.2) + DEFAULT.hold_ns)
    desk.ask(at(5), 2, B, desk.pool.table.held_by(2))
    desk.advance(Instant(hold_ends - 1))
    assert desk.owner_of(b"a") == 1
    desk.advance(hold_ends)
    assert desk.owner_of(b"a") == NOBODY
    assert desk.pool.table.steering.evicted == ()
    assert isinstance(desk.join(Instant(hold_ends + 1), "a", A + 10), LeaseResponse)


def test_what_a_dead_process_had_is_free_at_once() -> None:
    desk = two_owners()
    answer = say(desk, Evict(pool="p", incarnation=1, confirmed_dead=True))
    assert [(flow.giver, flow.taker, flow.with_state) for flow in answer.flows] == [
        ("a", "b", False)
    ]
    assert desk.owner_of(b"a") == NOBODY
    assert 1 not in desk.pool.table.members


def test_an_evicted_incarnation_is_not_renewed_by_a_short_request() -> None:
    desk = two_owners()
    session = desk.pool.sessions[1]
    session.take_fingerprint(desk.pool.table.held_by(1), SEAL.nonce)
    say(desk, Evict(pool="p", incarnation=1))
    request = ShortRequest(
        pool="p",
        incarnation=1,
        owner_nonce=A,
        manager_nonce=SEAL.nonce,
        sequence=1_000,
        journal=SEAL.journal,
        leadership=SEAL.leadership,
        fingerprint=session.fingerprint,
    )
    until = session.hold_until
    assert not desk.pool.on_short_request(at(1), A, request)
    assert session.hold_until == until


def test_an_evicted_incarnation_stays_so_under_a_later_leader() -> None:
    desk = two_owners()
    say(desk, Evict(pool="p", incarnation=1))
    later = Desk(Halves(), state=desk.context.history.state(), inherited_until=at(20))
    later.advance(at(1))
    assert set(later.pool.planner.plan.values()) == {2}
    assert isinstance(later.ask(at(1), 1, A, later.pool.table.held_by(1)), Refusal)
    later.advance(at(19))
    assert later.owner_of(b"a") == 1
    later.advance(at(21))
    assert later.pool.table.steering == UNSTEERED


# --- dry runs, and what cannot be -----------------------------------------------------------------

COMMANDS: list[SteeringCommand] = [
    Drain(pool="p", owner="a", dry_run=True),
    Cordon(pool="p", owner="a", dry_run=True),
    PinKey(pool="p", key=b"k", owner="b", dry_run=True),
    Freeze(pool="p", dry_run=True),
    Unfreeze(pool="p", dry_run=True),
    Uncordon(pool="p", owner="a", dry_run=True),
    UnpinKey(pool="p", key=b"k", dry_run=True),
    Evict(pool="p", incarnation=1, dry_run=True),
    Evict(pool="p", incarnation=1, confirmed_dead=True, dry_run=True),
    ChoosePolicy(pool="p", policy="deal", dry_run=True),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: type(each).__name__)
def test_a_dry_run_says_the_same_and_changes_nothing(command: SteeringCommand) -> None:
    desk = two_owners()
    before, records = desk.context.history.state(), list(desk.records)
    plan = list(desk.pool.planner.plan)
    dry = say(desk, command)
    assert (desk.context.history.state(), desk.records, list(desk.pool.planner.plan)) == (
        before,
        records,
        plan,
    )
    assert desk.pokes(A) == desk.pokes(B) == 0
    real = say(desk, replace(command, dry_run=False))
    assert dry.dry_run
    assert (dry.changed, dry.flows, dry.ranges, dry.hold_seconds) == (
        real.changed,
        real.flows,
        real.ranges,
        real.hold_seconds,
    )


def test_nobody_to_take_what_is_drained_is_no_change() -> None:
    desk = two_owners()
    say(desk, Cordon(pool="p", owner="b"))
    for dry_run in (True, False):
        answer = say(desk, Drain(pool="p", owner="a", dry_run=dry_run))
        assert (answer.changed, answer.flows, answer.ranges) == (True, (), 1)
    assert not read_plan_of(desk, at(1)).flows
    desk.settle(at(1), 1, A)
    assert desk.owner_of(b"a") == 1


def test_a_plan_says_of_what_nobody_can_be_given_that_it_stays_free() -> None:
    nobody = Desk(Halves(), split_points=(b"m",))
    [held_back] = read_plan_of(nobody, T0).held_back
    assert held_back.what.endswith("without an owner")
    assert held_back.why == "there is no owner that may be given anything"
    assert not read_plan_of(two_owners(), at(1)).held_back


def test_what_an_eviction_leaves_to_nobody_is_a_change() -> None:
    desk = two_owners()
    say(desk, Cordon(pool="p", owner="b"))
    [flow] = say(desk, Evict(pool="p", incarnation=1, dry_run=True)).flows
    assert (flow.giver, flow.taker) == ("a", None)


def test_what_a_command_does_a_moment_later_is_said_too() -> None:
    """An owner that is like any other again is given its share when it has waited for leavers."""
    desk = Desk(Weighted(), kind="hashed")
    desk.owner(T0, "a", A)
    desk.owner(T0, "b", B)
    desk.advance(at(10))
    desk.settle(at(10), 1, A)
    desk.settle(at(10), 2, B)
    say(desk, Drain(pool="p", owner="a"), at(16))
    give_up(desk, at(17), 1, A)
    desk.settle(at(17), 2, B)
    assert not desk.pool.table.held_by(1)
    [flow] = say(desk, Uncordon(pool="p", owner="a"), at(18)).flows
    assert (flow.giver, flow.taker) == ("b", "a")
    assert flow.share == pytest.approx(0.5, abs=0.05)
    assert set(desk.pool.planner.plan.values()) == {2}
    desk.advance(at(24))
    given = sum(share_of(each) for each, owner in desk.pool.planner.plan if owner == 1)
    assert given == pytest.approx(flow.share)


def test_what_is_so_already_is_not_written_again() -> None:
    desk = two_owners()
    say(desk, Drain(pool="p", owner="a"))
    records = list(desk.records)
    assert not say(desk, Drain(pool="p", owner="a")).changed
    assert not say(desk, UnpinKey(pool="p", key=b"k")).changed
    assert not say(desk, Unfreeze(pool="p")).changed
    assert desk.records == records


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (Drain(pool="p", owner="x"), "no owner 'x' in the pool 'p'; there are: a, b"),
        (Cordon(pool="p", owner="x"), "no owner 'x' in the pool 'p'; there are: a, b"),
        (Uncordon(pool="p", owner="x"), "no owner 'x' in the pool 'p'; there are: a, b"),
        (PinKey(pool="p", key=b"", owner="x"), "no owner 'x' in the pool 'p'; there are: a, b"),
        (
            Evict(pool="p", incarnation=7),
            "no incarnation 7 in the pool 'p'; there are: a (1), b (2)",
        ),
        (
            ChoosePolicy(pool="p", policy="ring"),
            "no policy 'ring' for ordered pools; there are: weighted, deal",
        ),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(
    command: SteeringCommand, complaint: str
) -> None:
    assert complaint in refused(two_owners(), command)


def test_who_is_gone_can_be_uncordoned() -> None:
    desk = two_owners()
    say(desk, Cordon(pool="p", owner="a"))
    desk.ask(at(1), 1, A, (), leaving=True)
    say(desk, Uncordon(pool="p", owner="a"))
    assert desk.pool.table.steering == UNSTEERED


NAMES = tuple(f"gone-{i:04}" for i in range(NAMED_AT_MOST))
PINS = tuple((name.encode(), "a") for name in NAMES)


@pytest.mark.parametrize(
    ("full", "more"),
    [
        (Steering(pins=PINS), PinKey(pool="p", key=b"k", owner="a")),
        (Steering(cordoned=NAMES), Cordon(pool="p", owner="a")),
        (Steering(drained=NAMES), Drain(pool="p", owner="a")),
    ],
)
def test_pins_cordons_and_drains_are_not_without_number(
    full: Steering, more: SteeringCommand
) -> None:
    """Owners that have gone stay cordoned: each record that steers has all of their names."""
    desk = two_owners()
    desk.context.write(Changed(pool="p", entries=(), steering=full))
    assert "at most 1000 of each are allowed" in refused(desk, more)


# --- what is journaled ----------------------------------------------------------------------------


def test_steering_is_a_record_that_reads_back_and_a_part_of_the_snapshot() -> None:
    """P21."""
    desk = two_owners()
    say(desk, Drain(pool="p", owner="a"))
    say(desk, PinKey(pool="p", key=b"k", owner="b"))
    steering = Steering(drained=("a",), pins=((b"k", "b"),))
    record = desk.records[-1]
    assert record == Changed(pool="p", entries=(), steering=steering)
    assert LEASE_RECORDS.decode_record(LEASE_RECORDS.encode_record(record), "here") == record
    [pool] = desk.context.history.state().pools
    assert pool.steering == steering
    later = Desk(Halves(), state=desk.context.history.state())
    assert later.pool.table.steering == steering


def test_a_change_that_says_nothing_of_steering_leaves_it() -> None:
    desk = two_owners()
    say(desk, Freeze(pool="p"))
    desk.context.write(Changed(pool="p", entries=()))
    assert desk.pool.table.steering.frozen


# --- why, and the plan ----------------------------------------------------------------------------


def test_why_a_key_is_where_it_is() -> None:
    desk = two_owners()
    say(desk, Drain(pool="p", owner="a"))
    give_up(desk, at(1), 1, A)
    desk.settle(at(2), 2, B)
    told = explain(at(12), desk.pool, ExplainKey("p", b"a"))
    assert told.owner is not None
    assert (told.owner.name, told.planned, told.pinned_to) == ("b", "b", None)
    assert [(m.how, m.giver, m.taker, round(m.seconds_ago, 1)) for m in told.moves] == [
        ("granted", None, "b", 10.0),
        ("recalled", "a", None, 11.0),
        ("granted", None, "a", 11.8),
    ]
    assert {(m.phase, m.reason) for m in told.moves} == {("halves", "by name")}
    assert told.number == told.moves[0].number
    assert told.joined_seconds_ago == pytest.approx(12)
    assert told.remembered_seconds == pytest.approx(12)


def test_a_later_leader_says_from_when_on_it_knows() -> None:
    desk = two_owners()
    later = Desk(Halves(), state=desk.context.history.state(), inherited_until=at(20))
    later.advance(at(5))
    told = explain(at(8), later.pool, ExplainKey("p", b"a"))
    assert (told.moves, told.joined_seconds_ago) == ((), None)
    assert told.remembered_seconds == pytest.approx(3)


def test_the_log_of_moves_forgets_the_oldest_and_says_so() -> None:
    desk = two_owners()
    log = desk.pool.move_log
    log.at_most = 2
    desk.ask(at(3), 1, A, (), leaving=True)
    assert len(list(log.of(b"a"))) + len(list(log.of(b"z"))) == 2
    assert log.begins_at == at(0.2)


def test_the_plan_has_what_moves_and_why() -> None:
    desk = two_owners()
    desk.owner(at(1), "c", 103)
    told = read_plan_of(desk, at(1))
    share = 1 - ord("m") / 256
    assert told.flows == (
        Flow("b", "c", 1, share, with_state=False, phase="halves", reason="by name"),
    )


def test_whole_space_is_planned_for_somebody_who_is_there() -> None:
    desk = two_owners()
    say(desk, Cordon(pool="p", owner="a"))
    say(desk, Drain(pool="p", owner="b"))
    assert {owner for _, owner in desk.pool.planner.plan.within(WHOLE)} == {1, NOBODY}
