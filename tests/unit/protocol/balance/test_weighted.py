"""Balance by the weight of ranges: each phase by a small table."""

from collections import Counter

import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.load import Loads, share_of
from tenure.protocol.balance.pieces import carried
from tenure.protocol.balance.policy import (
    NOBODY,
    Candidate,
    HeldBack,
    Pin,
    Plan,
    Situation,
    changes,
    only,
)
from tenure.protocol.balance.ring import Ring
from tenure.protocol.balance.round_memory import RoundMemory
from tenure.protocol.balance.tuning import DEFAULT
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.table import Right, owners_of
from tests.unit.protocol.balance.tables import EMPTY, candidates, moved, shares, table

HOT: Key = b"\x42" * 8
EIGHTHS = [b"", *(bytes([i * 32]) + bytes(7) for i in range(1, 8))]


def at(value: float) -> Instant:
    return Instant(seconds(value))


def eighths(*owners: int) -> RangeMap[int]:
    return RangeMap.at_starts(EIGHTHS, list(owners))


def loads(*rates: float, hot: dict[Key, float] | None = None) -> Loads:
    """Return the loads of the eighths; hot keys come on top."""
    found = list(rates)
    for key, rate in (hot or {}).items():
        found[key[0] // 32] += rate
    return Loads(Instant(0), EIGHTHS, found, sorted((hot or {}).items()))


def even(rate: float, hot: dict[Key, float] | None = None) -> Loads:
    return loads(*[rate / 8] * 8, hot=hot)


def first(count: int) -> Plan:
    return Weighted()(Situation(candidates(*range(1, count + 1)), EMPTY))


def phases(present: RangeMap[int], plan: Plan) -> Counter[str]:
    found = Counter[str]()
    for change in changes(table(present), plan):
        assert change.why is not None
        found[change.why.phase] += 1
    return found


def has_alone(plan: Plan, key: Key) -> bool:
    """Return whether the owner of the key has nothing else."""
    owner = plan.owners[key]
    return [key_range for key_range, who in plan.owners if who == owner] == [only(key)]


# --- without load ---------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100])
def test_a_new_pool_is_dealt_evenly_in_at_most_64_ranges_each(count: int) -> None:
    plan = first(count)
    assert list(shares(plan.owners).values()) == [pytest.approx(1 / count)] * count
    assert max(Counter(plan.owners.values()).values()) <= DEFAULT.ranges


def test_shares_follow_capacity() -> None:
    members = [Candidate(1, "large", 3.0), Candidate(2, "small", 1.0)]
    found = shares(Weighted()(Situation(members, EMPTY)).owners)
    assert found == {1: pytest.approx(0.75, abs=0.01), 2: pytest.approx(0.25, abs=0.01)}


@pytest.mark.parametrize("count", [1, 2, 9, 50])
def test_who_comes_is_given_an_even_share_at_once(count: int) -> None:
    plan = first(count)
    members = candidates(*range(1, count + 2))
    after = Weighted()(Situation(members, table(plan.owners), memory=plan.memory))
    assert moved(plan.owners, after.owners) == pytest.approx(1 / (count + 1), rel=0.02)
    assert phases(plan.owners, after).keys() == {"welcome"}


@pytest.mark.parametrize("count", [2, 3, 10, 50])
def test_what_who_goes_leaves_is_given_to_all(count: int) -> None:
    plan = first(count)
    members = candidates(*range(2, count + 1))
    after = Weighted()(Situation(members, table(plan.owners), memory=plan.memory))
    assert moved(plan.owners, after.owners) == pytest.approx(1 / count)
    assert max(shares(after.owners).values()) <= 1.05 / (count - 1)
    assert phases(plan.owners, after).keys() == {"house"}


def test_who_comes_back_under_its_name_is_given_what_it_had() -> None:
    plan = first(4)
    members = [*candidates(1, 2, 3), Candidate(9, "owner-4")]
    after = Weighted()(Situation(members, table(plan.owners), memory=plan.memory))
    assert [9 if owner == 4 else owner for owner in plan.owners.values()] == after.owners.values()


# --- hot keys -------------------------------------------------------------------------------------


def test_a_key_that_fills_an_owner_has_one_for_itself() -> None:
    plan = first(12)
    for i in range(1, 4):
        hot = even(6000, {HOT: 3000.0})
        now = at(100 * i)
        plan = Weighted()(
            Situation(candidates(*range(1, 13)), table(plan.owners), now, hot, memory=plan.memory)
        )
    assert has_alone(plan, HOT)


def test_several_hot_keys_have_one_owner_each() -> None:
    hot = {bytes([i * 40]) * 8: 2000.0 for i in range(1, 5)}
    plan = first(40)
    members = candidates(*range(1, 41))
    for i in range(1, 7):
        given = Situation(members, table(plan.owners), at(300 * i), even(20_000, hot))
        plan = Weighted()(given._replace(memory=plan.memory))
    assert len({plan.owners[key] for key in hot}) == 4
    assert all(has_alone(plan, key) for key in hot)


def test_a_warm_key_goes_alone_to_whoever_has_room_for_it() -> None:
    present = eighths(1, 1, 1, 1, 2, 2, 2, 2)
    rates = loads(500, 500, 500, 500, 300, 300, 300, 300, hot={HOT: 800.0})
    plan = Weighted()(Situation(candidates(1, 2), table(present), at(0), rates))
    assert [(change.range, change.taker) for change in changes(table(present), plan)] == [
        (only(HOT), 2)
    ]
    assert moved(present, plan.owners) == 0


def later(situation: Situation, seconds_later: float) -> Plan:
    """The plan when all has been so for a while."""
    plan = Weighted()(situation)
    then = Instant(situation.now + seconds(seconds_later))
    return Weighted()(situation._replace(now=then, memory=plan.memory))


def test_a_key_that_stood_alone_goes_back_when_it_has_been_cold_for_a_while() -> None:
    """It does not go back at once: a key that is hot now and then would go to and fro."""
    present = eighths(1, 1, 1, 1, 2, 2, 2, 2)
    present.assign(only(HOT), 2)
    situation = Situation(candidates(1, 2), table(present), at(0), even(1000))
    assert later(situation, 299).owners == present
    plan = later(situation, 300)
    assert plan.owners == eighths(1, 1, 1, 1, 2, 2, 2, 2)
    assert phases(present, plan) == {"join": 1}


# --- levelling ------------------------------------------------------------------------------------


def test_who_carries_too_much_gives_to_who_carries_least() -> None:
    present = eighths(1, 1, 1, 2, 2, 3, 3, 3)
    rates = loads(200, 200, 200, 100, 100, 130, 130, 140)
    plan = Weighted()(Situation(candidates(1, 2, 3), table(present), at(0), rates))
    assert {(change.giver, change.taker) for change in changes(table(present), plan)} == {(1, 2)}


def test_what_is_even_enough_is_left_alone() -> None:
    present = eighths(1, 1, 1, 1, 2, 2, 2, 2)
    rates = loads(*[1020] * 4, *[980] * 4)
    plan = Weighted()(Situation(candidates(1, 2), table(present), at(0), rates))
    assert plan.owners == present


def test_few_counts_say_little() -> None:
    """The same proportions as those that would be levelled, at a thousandth of the rate."""
    present = eighths(1, 1, 1, 1, 2, 2, 2, 2)
    for factor, is_levelled in ((1.0, True), (0.001, False)):
        rates = loads(*[1200 * factor] * 4, *[1000 * factor] * 4)
        plan = Weighted()(Situation(candidates(1, 2), table(present), at(0), rates))
        assert (plan.owners != present) is is_levelled


def test_balance_keeps_within_its_budget_and_says_so() -> None:
    present = eighths(1, 1, 1, 1, 1, 1, 1, 2)
    plan = Weighted()(Situation(candidates(1, 2), table(present), at(0), even(8000)))
    assert moved(present, plan.owners) <= DEFAULT.budget
    assert any(each.why == "over the churn budget" for each in plan.held_back)


def test_the_budget_fills_up_with_time() -> None:
    present = eighths(1, 1, 1, 1, 1, 1, 1, 2)
    policy, members = Weighted(), candidates(1, 2)
    plan = policy(Situation(members, table(present), at(0), even(8000)))
    for after, part in ((1, 0.0), (150, 0.5), (400, 1.0)):
        given = Situation(members, table(plan.owners), at(after), even(8000), memory=plan.memory)
        more = moved(plan.owners, policy(given).owners)
        assert more <= part * DEFAULT.budget + 0.001
        assert more >= part * DEFAULT.budget - 0.02


def test_what_has_moved_cools_down() -> None:
    """The load of what has moved is turned around: that stays where it is until it has cooled."""
    present = eighths(1, 1, 1, 1, 2, 2, 2, 2)
    policy, members = Weighted(), candidates(1, 2)
    there = loads(500, 500, 500, 500, 300, 300, 300, 300, hot={HOT: 800.0})
    back = loads(300, 300, 300, 300, 500, 500, 500, 500, hot={HOT: 800.0})
    plan = policy(Situation(members, table(present), at(0), there))
    for after, owner in ((5, 2), (19, 2), (21, 1)):
        given = Situation(members, table(plan.owners), at(after), back, memory=plan.memory)
        assert policy(given).owners[HOT] == owner


def test_state_stays_in_its_zone_where_that_is_as_good() -> None:
    present = eighths(1, 1, 1, 1, 2, 2, 3, 3)
    zones = {1: "a", 2: "b", 3: "a"}
    members = [Candidate(i, f"owner-{i}", labels={"zone": zones[i]}) for i in zones]
    rates = loads(*[400] * 4, *[395] * 2, *[400] * 2)
    plan = Weighted()(Situation(members, table(present), at(0), rates))
    assert next(iter(changes(table(present), plan))).taker == 3


@pytest.mark.parametrize("comes", [(), (5,)], ids=["to the others", "to newcomers first"])
def test_what_is_left_behind_stays_in_its_zone_and_says_who_left_it(comes: tuple[int, ...]) -> None:
    present = eighths(1, 1, 2, 2, 3, 3, 4, 4)
    first, *others = [
        Candidate(i, f"owner-{i}", labels={"zone": "ab"[i % 2]}) for i in (1, 2, 3, 4, *comes)
    ]
    plan = Weighted()(Situation(others, table(present), at(0), leavers=[first]))
    takers = {change.taker for change in changes(table(present), plan)}
    assert takers == ({5} if comes else {2, 3, 4})
    given = Counter(change.taker for change in changes(table(present), plan))
    assert comes or given[3] > given[2]
    reasons = {change.why.reason for change in changes(table(present), plan) if change.why}
    how = "its owner came a moment ago" if comes else "its owner carries least"
    assert reasons == {f"owner-1 goes; {how}"}


def test_small_ranges_are_joined_where_there_are_too_many() -> None:
    starts = [b"", *(i.to_bytes(8, "big") for i in range(1 << 56, 1 << 64, 1 << 54))]
    present = RangeMap.at_starts(starts, [1 + i % 2 for i in range(len(starts))])
    plan = Weighted()(Situation(candidates(1, 2), table(present), at(0)))
    assert len(plan.owners) < len(present)
    assert 0 < moved(present, plan.owners) <= DEFAULT.joining


# --- what it is told to do ------------------------------------------------------------------------


def test_a_pinned_key_stays_however_hot_its_owner() -> None:
    present = eighths(1, 1, 1, 1, 2, 2, 2, 2)
    rates = loads(500, 500, 500, 500, 300, 300, 300, 300, hot={HOT: 800.0})
    pins = [Pin(HOT, "owner-1"), Pin(b"\x01", "nobody")]
    plan = Weighted()(Situation(candidates(1, 2), table(present), at(0), rates, pins))
    assert plan.owners[HOT] == 1
    assert HeldBack("the pin of b'\\x01' to nobody", "no candidate has that name") in plan.held_back


def test_keys_of_one_range_are_pinned_to_several_owners() -> None:
    keys = [bytes([i]) * 8 for i in (0, 1, 2, 0x1F)]
    beside = bytes([1]) * 8 + b"\0"
    pins = [Pin(key, f"owner-{1 + i % 2}") for i, key in enumerate([*keys, beside])]
    plan = Weighted()(Situation(candidates(1, 2), table(RangeMap(1)), at(0), pins=pins))
    assert [plan.owners[pin.key] for pin in pins] == [1, 2, 1, 2, 1]
    pinned = [key_range for key_range, why in plan.why if why and why.phase == "pin"]
    assert pinned == [only(keys[1]), only(keys[3])]


def test_in_a_frozen_pool_nothing_is_balanced_but_what_has_no_owner_is_housed() -> None:
    present = eighths(1, 1, 1, 1, 1, 1, NOBODY, 2)
    plan = Weighted()(Situation(candidates(1, 2), table(present), at(0), even(8000), frozen=True))
    assert plan.owners == eighths(1, 1, 1, 1, 1, 1, 2, 2)
    assert plan.held_back == (HeldBack("balance", "the pool is frozen"),)


def test_reasons_are_kept_while_what_they_are_for_is_on_its_way() -> None:
    plan = first(2)
    members = candidates(1, 2, 3)
    after = Weighted()(Situation(members, table(plan.owners), at(0), memory=plan.memory))
    later = Situation(members, table(plan.owners), at(100), memory=after.memory)
    assert phases(plan.owners, Weighted()(later)).keys() == {"welcome"}


@pytest.mark.parametrize("rate", [None, 100.0, 100_000.0])
def test_what_the_ring_has_dealt_out_stays_until_load_says_otherwise(rate: float | None) -> None:
    """The pool is planned by weight from now on: ranges that are even enough stay where
    they are.
    """
    members = candidates(*range(1, 11))
    ring = Ring()(Situation(members, EMPTY)).owners
    space = shares(ring)
    rates = [(rate or 0) * share_of(key_range) / space[owner] for key_range, owner in ring]
    told = None if rate is None else Loads(at(0), ring.starts(), rates)
    plan = Weighted()(Situation(members, table(ring), at(0), told))
    assert plan.owners == ring


def test_a_key_is_joined_to_the_neighbour_whose_state_is_as_old() -> None:
    present = RangeMap(Right(1, 5, 2))
    present.assign(KeyRange(HOT, None), Right(3, 5, 4))
    present.assign(KeyRange(EIGHTHS[5], None), Right(2, 7, 7))
    present.assign(only(HOT), Right(2, 6, 4))
    rates = loads(500, 500, *[333] * 6)
    plan = later(Situation(candidates(1, 2, 3), present, at(0), rates), 300)
    assert plan.owners[HOT] == 3


def test_a_leader_that_knows_no_loads_yet_undoes_nothing() -> None:
    """Ranges that were levelled by load are uneven in space, and a hot key alone looks cold."""
    owners = eighths(2, 2, 3, 3, 3, 3, 3, 3)
    owners.assign(only(HOT), 1)
    present = table(owners)
    plan = Weighted()(Situation(candidates(1, 2, 3), present))
    assert list(changes(present, plan)) == []


# --- owners of unequal capacity -------------------------------------------------------------------


def in_time_for(members: list[Candidate], present: RangeMap[int], loads: Loads) -> RangeMap[int]:
    """The plan after many rounds, each carried out, with loads that stay as they are."""
    policy, owners, memory = Weighted(), present, None
    for i in range(300):
        now = at(30 * i)
        plan = policy(Situation(members, table(owners), now, loads, memory=memory))
        owners, memory = plan.owners, plan.memory
    return owners


def uses(members: list[Candidate], owners: RangeMap[int], loads: Loads) -> list[float]:
    """Return what each owner carries for its capacity, as a part of an even share."""
    carries = carried(owners, loads)
    share = sum(carries.values()) / sum(each.capacity for each in members)
    return [carries.get(each.incarnation, 0.0) / each.capacity / share for each in members]


@pytest.mark.parametrize("capacities", [(1, 8, 8), (8, 1, 1, 1), (0.1, 1, 1), (1, 2, 4, 8)])
@pytest.mark.parametrize("part", [0.0, 0.1, 0.3])
def test_the_weakest_owner_is_relieved_of_all_that_is_too_much_for_it(
    capacities: tuple[float, ...], part: float
) -> None:
    """It is relieved of ranges, and of a key that fills it many times over and is little for a
    stronger owner.
    """
    members = [Candidate(i, f"owner-{i}", capacity) for i, capacity in enumerate(capacities, 1)]
    weakest = min(members, key=lambda each: each.capacity).incarnation
    total = 20_000.0
    asked = loads(*[total * (1 - part) / 8] * 8, hot={HOT: total * part} if part else None)
    owners = in_time_for(members, RangeMap(weakest), asked)
    assert max(uses(members, owners, asked)) <= DEFAULT.high + 0.02


def test_what_stands_in_the_way_of_relieving_an_owner_is_told() -> None:
    """A weak owner whose only key is pinned to it, beside strong ones with next to nothing."""
    members = [Candidate(1, "weak"), Candidate(2, "strong", 8.0)]
    asked = even(2000, {HOT: 5000.0})
    situation = Situation(members, table(eighths(*[2] * 8)), at(0), asked, [Pin(HOT, "weak")])
    plan = Weighted()(situation)
    assert plan.owners[HOT] == 1
    assert [each.what for each in plan.held_back if "weak" in each.what]


def test_a_policy_that_does_nothing_says_why() -> None:
    members, even_enough = candidates(1, 2), table(eighths(1, 1, 1, 1, 2, 2, 2, 2))
    for asked, why in (
        (None, "no load is known: not every owner has reported yet"),
        (
            loads(*[1020] * 4, *[980] * 4),
            "owner-1 carries most, 1.02 of its share; 1.05 is too much",
        ),
    ):
        plan = Weighted()(Situation(members, even_enough, at(0), asked))
        assert plan.held_back == (HeldBack("balance", why),)


# --- what comes and goes --------------------------------------------------------------------------


def test_moving_keys_alone_costs_budget() -> None:
    present = eighths(1, 1, 1, 1, 2, 2, 2, 2)
    rates = loads(500, 500, 500, 500, 300, 300, 300, 300, hot={HOT: 800.0})
    situation = Situation(candidates(1, 2), table(present), at(0), rates)
    before, after = Weighted()(situation._replace(loads=None)), Weighted()(situation)
    assert isinstance(before.memory, RoundMemory)
    assert isinstance(after.memory, RoundMemory)
    cost = DEFAULT.key_cost / (2 * DEFAULT.ranges)
    assert after.memory.budget == pytest.approx(before.memory.budget - cost)
    for memory in (before.memory._replace(budget=0.0), before.memory._replace(lasting=0.0)):
        plan = Weighted()(situation._replace(memory=memory))
        assert plan.owners == present
        assert "over the churn budget" in [each.why for each in plan.held_back]


def test_who_bears_what_was_an_even_share_a_moment_ago_is_left_alone() -> None:
    """The hottest key has cooled down: the others carry too much only of what is left."""
    members = candidates(1, 2, 3)
    owners = RangeMap.at_starts([b"", EIGHTHS[4]], [1, 2])
    owners.assign(only(HOT), 3)
    policy, memory = Weighted(), None
    for second in range(0, 30, 3):
        hot = Situation(members, table(owners), at(second), even(3000, {HOT: 5000.0}))
        memory = policy(hot._replace(memory=memory)).memory
    cold = Situation(members, table(owners), at(60), even(3000, {HOT: 1.0}), memory=memory)
    assert policy(cold).owners == owners
    assert policy(cold._replace(memory=None)).owners != owners


def test_who_carries_too_little_is_filled_up_when_that_has_lasted() -> None:
    """Others do not carry too much, so nobody is relieved by it."""
    starts = [b"", *(bytes([i * 25]) for i in range(1, 10))]
    present = table(RangeMap.at_starts(starts, list(range(1, 11))))
    told = Loads(at(0), starts, [1030.0] * 9 + [700.0])
    situation = Situation(candidates(*range(1, 11)), present, at(0), told)
    assert later(situation, 299).owners == owners_of(present)
    assert {change.taker for change in changes(present, later(situation, 300))} == {10}


@pytest.mark.parametrize("hands_over", [False, True])
def test_what_one_owner_has_in_many_entries_moves_as_a_whole_where_there_are_too_many(
    hands_over: bool,
) -> None:
    """Granted again, it is one entry; but what is handed over stays as old as it was."""
    many = KeyRange(bytes([1]), bytes([2]))
    present = table(eighths(2, 2, 2, 2, 1, 1, 1, 1))
    present.assign(many, Right(1, 1, 1))
    for i in range(40):
        present.assign(only(bytes([1, i]) + bytes(6)), Right(1, 2 + i, 2 + i))
    policy = Weighted(DEFAULT._replace(entries_at_most=8))
    members = [each._replace(hands_over=hands_over) for each in candidates(1, 2)]
    plan = policy(Situation(members, present, at(0)))
    assert plan.owners.has(many, 1 if hands_over else 2)
    assert moved(owners_of(present), plan.owners) <= DEFAULT.joining


def test_where_the_table_is_full_no_key_moves_alone() -> None:
    present = eighths(1, 2, 1, 2, 1, 2, 1, 2)
    rates = loads(500, 300, 500, 300, 500, 300, 500, 300, hot={HOT: 800.0})
    situation = Situation(candidates(1, 2), table(present), at(0), rates)
    assert only(HOT) in [each.range for each in changes(table(present), Weighted()(situation))]
    full = Weighted(DEFAULT._replace(entries_at_most=2))(situation)
    assert "the table is full" in [each.why for each in full.held_back]
    assert only(HOT) not in [each.range for each in changes(table(present), full)]
