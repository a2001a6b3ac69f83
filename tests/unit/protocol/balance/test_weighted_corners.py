"""The weighted policy makes no mistakes when several things come together."""

import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import SPACE, Loads, key_of
from tenure.protocol.balance.placing import TO_NOBODY
from tenure.protocol.balance.policy import Candidate, Situation, Why, only
from tenure.protocol.balance.round_memory import RoundMemory
from tenure.protocol.balance.tuning import DEFAULT
from tenure.protocol.balance.weighted import Weighted
from tests.unit.protocol.balance.tables import candidates, shares, table

NOW = Instant(seconds(100))


def at(part: float) -> Key:
    return key_of(int(part * SPACE))


def memory_of(found: object) -> RoundMemory:
    assert isinstance(found, RoundMemory)
    return found


def test_a_hot_key_of_who_has_just_come_costs_nothing() -> None:
    """The use of that owner is settled when it has its share; until then it gets no hot key."""
    starts = [b"", at(1 / 3), at(2 / 3)]
    present = table(RangeMap.at_starts(starts, [1, 2, 9]))
    policy = Weighted()
    before = policy(Situation(candidates(1, 2, 9), present, NOW))
    loads = Loads(NOW, starts, [100.0, 100.0, 1100.0], [(at(0.9), 1000.0)])
    then = Instant(NOW + seconds(3))
    plan = policy(Situation(candidates(1, 2, 3), present, then, loads, memory=before.memory))
    assert plan.owners[at(0.9)] == 3
    assert plan.why[at(0.9)] == Why("house", "nobody had it; its owner came a moment ago")
    assert {why.phase for _, why in plan.why if why is not None} == {"house"}
    assert memory_of(plan.memory).budget == DEFAULT.budget


@pytest.mark.parametrize("first", [at(0.25), at(0.26)])
def test_two_hot_keys_of_one_range_have_an_owner_each_wherever_they_are_in_it(first: Key) -> None:
    starts, second = [b"", at(0.25), at(0.5), at(0.95)], at(0.4)
    present = table(RangeMap.at_starts(starts, [1, 2, 3, 4]))
    loads = Loads(NOW, starts, [10.0, 1000.0, 10.0, 1.0], [(first, 500.0), (second, 480.0)])
    plan = Weighted()(Situation(candidates(1, 2, 3, 4), present, NOW, loads))
    hosts = [plan.owners[first], plan.owners[second]]
    assert len(set(hosts)) == 2
    for key in (first, second):
        [piece] = [piece for piece, _ in plan.owners.within(only(key))]
        assert piece == only(key)


def test_what_nobody_can_have_is_remembered_once() -> None:
    starts = [b"", *(at(i / 12) for i in range(1, 12))]
    present = table(RangeMap.at_starts(starts, [1, 2, 3] * 4))
    closed = [Candidate(i, f"owner-{i}", cordoned=True) for i in (2, 3)]  # and 1 is drained
    policy, memory, counts, reasons = Weighted(), None, [], []
    for i in range(5):
        now = Instant(NOW + seconds(3 * i))
        plan = policy(Situation(closed, present, now, memory=memory))
        memory = plan.memory
        counts.append(len(memory_of(memory).moves))
        reasons.append(plan.why[b""])
    assert len(set(counts)) == 1, counts
    assert reasons == [TO_NOBODY] * 5


def test_an_owner_that_cannot_give_spends_no_budget() -> None:
    """Two owners, of which the other's load has just begun to change."""
    starts, hot = [b"", at(0.5)], at(0.75)
    present = table(RangeMap.at_starts(starts, [1, 2]))
    policy, memory, budgets = Weighted(), None, []
    for i, rate in enumerate((3000.0, 1000.0)):
        now = Instant(NOW + seconds(3 * i))
        loads = Loads(now, starts, [1000.0, 1000.0 + rate], [(hot, rate)])
        memory = policy(Situation(candidates(1, 2), present, now, loads, memory=memory)).memory
        budgets.append(memory_of(memory).budget)
    assert budgets[1] >= budgets[0]


def test_who_can_take_next_to_nothing_does_not_come_again_and_again() -> None:
    members = [*candidates(1, 2, 3), Candidate(4, "owner-4", capacity=0.005)]
    starts = [b"", at(1 / 3), at(2 / 3)]
    present = table(RangeMap.at_starts(starts, [1, 2, 3]))
    policy, memory, told = Weighted(), None, []
    for i in range(6):
        now = Instant(NOW + seconds(4 * i))
        loads = Loads(now, starts, [1000.0] * 3, [])
        plan = policy(Situation(members, present, now, loads, memory=memory))
        memory = plan.memory
        told.append(any("owner-4" in each.what for each in plan.held_back))
    assert told == [True, True, False, False, False, False]


def test_many_that_come_as_many_go_are_planned_for_in_one_go() -> None:
    starts = [b"", *(at(i / 64) for i in range(1, 64))]
    present = table(RangeMap.at_starts(starts, [1 + i % 4 for i in range(64)]))
    policy = Weighted()
    before = policy(Situation(candidates(1, 2, 3, 4), present, NOW))
    plan = policy(Situation(candidates(3, 4, 5, 6), present, NOW, memory=before.memory))
    assert shares(plan.owners) == {each: pytest.approx(0.25) for each in (3, 4, 5, 6)}


def test_what_is_left_of_the_budget_is_not_spent_on_slivers() -> None:
    """Each would be one range more, and help nobody."""
    starts = [b"", at(0.5)]
    present = table(RangeMap.at_starts(starts, [1, 2]))
    policy, members = Weighted(), candidates(1, 2)
    loads = Loads(NOW, starts, [3000.0, 1000.0], [])
    before = policy(Situation(members, present, NOW))
    spent = memory_of(before.memory)._replace(budget=0.25 / (2 * DEFAULT.ranges))
    plan = policy(Situation(members, present, NOW, loads, memory=spent))
    assert plan.owners == before.owners
    assert [each.why for each in plan.held_back] == ["over the churn budget"]


@pytest.mark.parametrize("rate", [0.3, 1_000.0])
def test_owners_that_are_cordoned_may_have_all_the_load(rate: float) -> None:
    """As when every old owner is cordoned before a new one comes: that one has no load to even out,
    and what is left for it, of sums that are rounded, may be nothing, or less.
    """
    starts = [b"", *(at(i / 7) for i in range(1, 7))]
    present = table(RangeMap.at_starts(starts, [1, 2, 1, 2, 1, 2, 1]))
    old = [Candidate(i, f"owner-{i}", cordoned=True) for i in (1, 2)]
    loads = Loads(NOW, starts, [rate / 3 * i for i in range(1, 8)])
    policy = Weighted()
    plan = policy(Situation([*old, *candidates(3)], present, NOW, loads))
    for i in range(1, 5):
        then = Instant(NOW + seconds(10 * i))
        there = Situation([*old, *candidates(3)], present, then, loads, memory=plan.memory)
        plan = policy(there)
        assert set(plan.owners.values()) == {1, 2}
