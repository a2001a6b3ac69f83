"""A policy from outside: the operator's orders hold, and its moves have a budget."""

from collections.abc import Callable

import pytest

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.load import Loads, Position, share_of
from tenure.protocol.balance.outside import BUDGET, REFILL_NS, Outside
from tenure.protocol.balance.policy import (
    NOBODY,
    Candidate,
    Pin,
    Plan,
    PolicyFailed,
    Situation,
    Why,
    after_failure,
    changes,
    in_time,
)
from tenure.protocol.lease.table import Right
from tenure.testing.contracts.situations import EMPTY, carried_out

ANN, BOB, EVE = (Candidate(i, name) for i, name in enumerate(("ann", "bob", "eve"), 1))
SLOTS = 100


def at(slot: int) -> Key:
    return (slot * (1 << 64) // SLOTS).to_bytes(8, "big") if slot else b""


def slots(owner_of: Callable[[int], int]) -> RangeMap[int]:
    """A hundred slots of the key space, each with its owner."""
    return RangeMap.at_starts([at(i) for i in range(SLOTS)], [owner_of(i) for i in range(SLOTS)])


class Fixed:
    """Always has the same plan."""

    def __init__(self, owners: RangeMap[int]) -> None:
        self.owners = owners
        self.found: list[object] = []

    def __call__(self, situation: Situation) -> Plan:
        self.found.append(situation.memory)
        return Plan(self.owners, RangeMap(Why("fixed", "so it is")), memory=len(self.found))


def table(owners: RangeMap[int]) -> RangeMap[Right]:
    return carried_out(Plan(owners, RangeMap(None)))


def moved(present: RangeMap[Right], plan: Plan) -> float:
    return sum(share_of(change.range) for change in changes(present, plan))


ALL_ANN = slots(lambda _: 1)
HALVES = slots(lambda i: 1 if i < SLOTS // 2 else 2)
SWAPPED = slots(lambda i: 2 if i < SLOTS // 2 else 1)
INTERLEAVED = slots(lambda i: 1 + i % 2)


def test_the_first_plan_of_a_pool_is_followed() -> None:
    plan = Outside(Fixed(HALVES))(Situation([ANN, BOB], EMPTY))
    assert plan.owners == HALVES
    assert not plan.held_back


def test_without_candidates_it_is_not_asked() -> None:
    policy = Fixed(HALVES)
    assert Outside(policy)(Situation([], table(HALVES))).owners == RangeMap(NOBODY)
    assert not policy.found


def test_its_own_memory_comes_back_to_it() -> None:
    policy = Fixed(HALVES)
    outside = Outside(policy)
    plan = outside(Situation([ANN, BOB], EMPTY))
    outside(Situation([ANN, BOB], EMPTY, memory=plan.memory))
    assert policy.found == [None, 1]


def test_moves_stop_at_the_budget_and_go_on_as_it_fills_up() -> None:
    present, outside = table(HALVES), Outside(Fixed(INTERLEAVED))
    plan = outside(Situation([ANN, BOB], present))
    assert moved(present, plan) == pytest.approx(BUDGET)
    [held_back] = plan.held_back
    assert held_back == ("40 ranges (40.0%)", "over the budget for moves; more in 6 s")
    assert 0 < plan.again_at <= REFILL_NS // 50
    at_once = outside(Situation([ANN, BOB], present, memory=plan.memory))
    assert at_once.owners == plan.owners, "what is on its way is not taken back"
    later = Situation([ANN, BOB], present, Instant(REFILL_NS), memory=plan.memory)
    assert moved(present, outside(later)) == pytest.approx(2 * BUDGET)


def test_a_policy_that_swaps_owners_again_and_again_moves_no_more_than_the_budget() -> None:
    present, memory, total = table(HALVES), None, 0.0
    for second in range(0, 3600, 3):
        inner = Fixed(SWAPPED if second % 2 else HALVES)
        now = Instant(seconds(second))
        plan = Outside(inner)(Situation([ANN, BOB], present, now, memory=memory))
        total += moved(present, plan)
        present, memory = table(plan.owners), plan.memory
    assert total <= BUDGET * (1 + seconds(3600) / REFILL_NS) + 0.01


def test_an_ordered_range_moves_as_a_whole_and_the_next_one_waits_the_longer() -> None:
    halves = RangeMap.at_starts([b"", b"m"], [1, 2])
    situation = Situation([ANN, BOB], table(halves), kind="ordered", split_points=[b"m"])
    plan = Outside(Fixed(RangeMap.at_starts([b"", b"m"], [2, 1])))(situation)
    assert plan.owners == RangeMap(2), "the second half waits"
    assert plan.again_at > 4 * REFILL_NS
    now = Instant(seconds(60))
    later = situation._replace(present=table(plan.owners), now=now, memory=plan.memory)
    assert Outside(Fixed(RangeMap(1)))(later).owners == RangeMap(2)


def test_an_owner_that_came_is_filled_up_to_its_share_at_no_cost() -> None:
    present = table(ALL_ANN)
    plan = Outside(Fixed(HALVES))(Situation([ANN, BOB], present))
    assert plan.owners == HALVES
    again = Situation([ANN, BOB], table(HALVES), memory=plan.memory)
    assert moved(table(HALVES), Outside(Fixed(SWAPPED))(again)) == pytest.approx(BUDGET)


def test_a_new_leader_fills_no_owner_again() -> None:
    present = table(HALVES)
    assert moved(present, Outside(Fixed(SWAPPED))(Situation([ANN, BOB], present))) <= BUDGET + 0.01


def test_what_owners_leave_that_go_costs_nothing() -> None:
    present = table(HALVES)
    plan = Outside(Fixed(ALL_ANN))(Situation([ANN], present, leavers=[BOB]))
    assert plan.owners == ALL_ANN


def test_in_an_ordered_pool_the_budget_counts_what_was_asked_for() -> None:
    """All names begin alike: by their bytes, they are next to nothing of the key space."""
    keys = [b"user-%02d" % i for i in range(SLOTS)]
    owners = RangeMap.at_starts([b"", *keys[1:]], [1 + i % 2 for i in range(SLOTS)])
    positions = [Position(key, 1.0, 1.0) for key in keys]
    loads = Loads(Instant(0), [b""], [100.0], sample=positions)
    present = table(RangeMap.at_starts([b"", keys[50]], [1, 2]))
    situation = Situation([ANN, BOB], present, loads=loads, kind="ordered", split_points=keys)
    plan = Outside(Fixed(owners))(situation)
    changed = sum(plan.owners[key] != present[key].owner for key in keys)
    assert changed == pytest.approx(BUDGET * SLOTS, abs=2)


def test_pins_and_a_freeze_hold_whatever_it_plans() -> None:
    key = at(7)
    pinned = Outside(Fixed(ALL_ANN))(Situation([ANN, BOB], EMPTY, pins=[Pin(key, "bob")]))
    assert pinned.owners[key] == 2
    assert pinned.owners[at(8)] == 1
    frozen = Outside(Fixed(INTERLEAVED))(Situation([ANN, BOB], table(HALVES), frozen=True))
    assert frozen.owners == HALVES
    assert ("balance", "the pool is frozen") in frozen.held_back


@pytest.mark.parametrize(
    ("owners", "situation", "why"),
    [
        (HALVES, Situation([ANN], EMPTY), "it gives ranges to 2, which is not a candidate"),
        (
            slots(lambda i: i % 2),
            Situation([ANN], EMPTY),
            "it gives 50 ranges to nobody, and there are owners for them",
        ),
        (
            HALVES,
            Situation([ANN, BOB._replace(cordoned=True)], EMPTY),
            f"it gives {KeyRange(at(50), None)} to bob, which is cordoned",
        ),
        (
            HALVES,
            Situation([ANN, EVE], table(HALVES), leavers=[BOB]),
            "it gives ranges to 2, which is not a candidate",
        ),
    ],
)
def test_a_plan_that_is_not_allowed_is_refused(
    owners: RangeMap[int], situation: Situation, why: str
) -> None:
    with pytest.raises(PolicyFailed, match="it gives") as refused:
        Outside(Fixed(owners))(situation)
    assert str(refused.value) == why


def test_where_all_are_cordoned_nobody_is_allowed() -> None:
    cordoned = [ANN._replace(cordoned=True)]
    plan = Outside(Fixed(RangeMap(NOBODY)))(Situation(cordoned, EMPTY))
    assert plan.owners == RangeMap(NOBODY)
    assert in_time(Outside(Fixed(RangeMap(NOBODY))), Situation(cordoned, EMPTY)).again_at == (
        FAR_FUTURE
    )


def test_a_pin_to_a_cordoned_owner_gives_it_that_key_and_no_more() -> None:
    cordoned, key = BOB._replace(cordoned=True), at(50)
    situation = Situation([ANN, cordoned], EMPTY, pins=[Pin(key, "bob"), Pin(key + b"\0", "bob")])
    both = RangeMap(1)
    both.assign(KeyRange(key, key + b"\0\0"), 2)
    assert Outside(Fixed(both))(situation).owners == both
    with pytest.raises(PolicyFailed, match="to bob, which is cordoned"):
        Outside(Fixed(HALVES))(situation)


def test_cordoned_owners_keep_what_a_policy_gives_to_nobody() -> None:
    """So plans a policy that looks only at owners that may be given more."""
    cordoned = [ANN._replace(cordoned=True), BOB._replace(cordoned=True)]
    plan = Outside(Fixed(RangeMap(NOBODY)))(Situation(cordoned, table(HALVES)))
    assert plan.owners == HALVES
    assert not plan.held_back


def test_an_owner_that_was_filled_with_free_ranges_is_not_filled_again() -> None:
    alone = Outside(Fixed(ALL_ANN))(Situation([ANN], EMPTY))
    came = Situation([ANN, BOB], table(ALL_ANN), memory=alone.memory)
    filled = Outside(Fixed(HALVES))(came)
    again = Situation([ANN, BOB], table(HALVES), memory=filled.memory)
    assert moved(table(HALVES), Outside(Fixed(ALL_ANN))(again)) == pytest.approx(BUDGET)


def test_a_failure_fills_up_no_budget() -> None:
    present, policy = table(HALVES), Fixed(INTERLEAVED)
    outside = Outside(policy)
    plan = outside(Situation([ANN, BOB], present))
    kept = after_failure(outside, plan.memory)
    assert outside(Situation([ANN, BOB], present, memory=kept)).owners == plan.owners
    assert policy.found == [None, None], "its own memory may be what it failed at"
    assert after_failure(outside, "of another policy") is None


class Eager(Fixed):
    """Wants to be asked again a nanosecond later."""

    def __call__(self, situation: Situation) -> Plan:
        return super().__call__(situation)._replace(again_at=Instant(situation.now + 1))


def test_it_is_asked_again_after_a_second_at_the_earliest() -> None:
    now = Instant(seconds(100))
    plan = Outside(Eager(HALVES))(Situation([ANN, BOB], table(HALVES), now))
    assert plan.again_at == seconds(101)
