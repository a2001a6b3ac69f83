"""The weighted policy for ordered pools: it cuts where keys are known, and fronts roll on."""

from math import inf, nan

import pytest

from benchmarks._ordered import Append, OrderedWorld, Second, Workload, Zipf
from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import Loads, Position
from tenure.protocol.balance.policy import Situation, in_time
from tenure.protocol.balance.tuning import ORDERED
from tenure.protocol.balance.weighted import Weighted
from tests.unit.protocol.balance.tables import EMPTY, candidates, table

SOON = 60
EVEN = 1.15
POLICY = Weighted(ORDERED, [])


def pool(load: Workload, capacities: tuple[float, ...]) -> OrderedWorld:
    return OrderedWorld(POLICY, load, capacities)


def is_even(found: list[Second]) -> bool:
    windows = [found[i : i + 10] for i in range(SOON, len(found), 10)]
    return all(sum(each.most_to_floor for each in window) / 10 <= EVEN for window in windows)


@pytest.mark.parametrize("capacities", [(1.0,) * 4, (1.0, 2.0, 8.0)])
def test_a_pool_that_begins_as_one_range_is_even_within_a_minute(
    capacities: tuple[float, ...],
) -> None:
    world = pool(Zipf(0.8, sum(capacities) * 200, 1), capacities)
    found = list(world.run(SOON + 30))
    assert found[0].most_to_floor > 1.3
    assert is_even(found)
    assert sum(each.moved for each in found[SOON:]) <= ORDERED.budget


def test_an_append_only_key_does_not_pile_up_at_the_last_owner() -> None:
    """Half of all is new, and half is read: the tail goes from owner to owner, with no state."""
    world = pool(Append(800, 0.5), (1.0,) * 4)
    found = list(world.run(180))
    tails = [each.tail for each in found]
    assert all(len(set(tails[i : i + 60])) > 1 for i in range(20, 120))
    assert is_even(found)
    assert sum(each.moved for each in found[SOON:]) <= 0.01


def test_what_nobody_asks_for_stays_where_it_is() -> None:
    world = pool(Append(800, 0.0), (1.0,) * 4)
    found = list(world.run(120))
    assert len({each.tail for each in found}) == 4
    assert sum(each.moved for each in found) < 0.01, "what is written during a move goes along"


def test_ranges_are_first_cut_at_the_split_points() -> None:
    plan = Weighted(ORDERED, [b"g", b"n", b"t"])(Situation(candidates(1, 2, 3, 4), EMPTY))
    assert [owner for _, owner in plan.owners] != [1] * 4
    assert plan.owners.starts() == [b"", b"g", b"n", b"t"]
    assert sorted(plan.owners.values()) == [1, 2, 3, 4]


@pytest.mark.parametrize("points", [[b"t", b"g", b"n"], [b"g", b"g", b"n", b"t", b""]])
def test_split_points_out_of_order_and_twice_are_the_same(points: list[Key]) -> None:
    plan = Weighted(ORDERED, points)(Situation(candidates(1, 2, 3, 4), EMPTY))
    assert plan.owners.starts() == [b"", b"g", b"n", b"t"]


def test_without_load_and_split_points_a_pool_is_one_range() -> None:
    plan = POLICY(Situation(candidates(1, 2, 3), EMPTY))
    assert len(plan.owners) == 1


@pytest.mark.parametrize(("ranges", "count"), [(16, 8), (256, 20), (64, 34)])
def test_a_new_owner_has_whole_ranges_where_nothing_finer_is_known(ranges: int, count: int) -> None:
    """Its part of a range, a sixteenth of an even share, cannot be cut off."""
    policy = Weighted(ORDERED, [b"%03d" % i for i in range(1, ranges)])
    present = table(policy(Situation(candidates(*range(1, count + 1)), EMPTY)).owners)
    coming = Situation(candidates(*range(1, count + 2)), present)
    owners = in_time(policy, coming).owners
    assert count + 1 in owners.values()
    assert set(owners.values()) == set(range(1, count + 2)), "nobody lost its last range for it"


def test_a_hot_key_is_isolated() -> None:
    """As in hashed pools: it gets an owner to itself, which gives everything else away."""
    sample = [Position(b"%02d" % i, 1.0, 100.0) for i in range(100)]
    loads = Loads(Instant(0), [b""], [300.0], [(b"50", 200.0)], sample)
    members, present = candidates(1, 2, 3), table(RangeMap(1))
    plan = POLICY(Situation(members, present))
    for second in range(0, 90, 3):
        told = loads._replace(at=Instant(seconds(second)))
        plan = POLICY(Situation(members, present, told.at, told, memory=plan.memory))
        present = table(plan.owners)
    alone = plan.owners[b"50"]
    having = [key_range for key_range, owner in plan.owners if owner == alone]
    assert [(each.start, each.end) for each in having] == [(b"50", b"50\0")]


def test_cold_ranges_are_joined_if_there_are_many() -> None:
    starts = [b"", *(b"%03d" % i for i in range(1, 400))]
    owners = RangeMap.at_starts(starts, [1 + i % 2 for i in range(400)])
    hot = [Position(b"%03d" % i, 10.0, 1e6) for i in range(390, 400)]
    loads = Loads(Instant(0), starts, [0.0] * 390 + [10.0] * 10, (), hot)
    members, memory, present, ranges = candidates(1, 2), None, table(owners), len(owners)
    for minute in range(30):
        now = Instant(seconds(60 * minute))
        plan = POLICY(Situation(members, present, now, loads._replace(at=now), memory=memory))
        memory, present = plan.memory, table(plan.owners)
    assert len(present) < ranges / 2


@pytest.mark.parametrize("rate", [nan, inf, -1.0, 1e300])
def test_what_cannot_be_a_rate_counts_as_nothing(rate: float) -> None:
    sample = [Position(b"a", rate, 1.0), Position(b"c", 1.0, rate), Position(b"e", 1.0, 1.0)]
    loads = Loads(Instant(0), [b""], [10.0], (), sample, [(b"f", rate)])
    plan = POLICY(Situation(candidates(1, 2), table(RangeMap(1)), Instant(0), loads))
    assert set(plan.owners.values()) <= {1, 2}


def test_a_stronger_owner_has_the_front_that_the_others_cannot_bear() -> None:
    world = pool(Append(2_200, 0.0), (1.0, 2.0, 8.0))
    found = list(world.run(60))
    assert {each.tail for each in found[30:]} == {3}
