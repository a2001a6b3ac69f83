"""Consistent hashing with 64 virtual nodes (Centrifuge 2.1.2)."""

from statistics import mean

import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import SPACE, Loads, place
from tenure.protocol.balance.policy import NOBODY, Candidate, Plan, Situation
from tenure.protocol.balance.ring import MOST, VIRTUAL_NODES, Ring, RingMemory, points
from tests.unit.protocol.balance.tables import EMPTY, candidates, moved, plan_of, shares, table

NOTHING = RangeMap(NOBODY)


def test_without_members_nobody_has_anything() -> None:
    assert plan_of(Ring(), [], NOTHING) == NOTHING


def test_one_member_has_everything() -> None:
    assert plan_of(Ring(), candidates(7), NOTHING) == RangeMap(7)


def test_every_owner_stands_at_64_points() -> None:
    assert VIRTUAL_NODES == 64
    plan = plan_of(Ring(), candidates(*range(1, 11)), NOTHING)
    counts = [sum(owner == i for owner in plan.values()) for i in range(1, 11)]
    assert sum(counts) == len(plan) <= 10 * 64 + 1
    assert min(counts) > 48, "but for points that stand beside one's own"


def test_the_ring_closes() -> None:
    """Below the first point is after the last."""
    plan = plan_of(Ring(), candidates(1, 2, 3), NOTHING)
    assert plan[b""] == plan[b"\xff" * 8]


def test_each_key_belongs_to_the_last_point_before_it() -> None:
    names = {f"owner-{i}": i for i in (1, 2, 3)}
    standing = sorted((point, i) for name, i in names.items() for point in points(name))
    plan = plan_of(Ring(), candidates(1, 2, 3), NOTHING)
    for point, incarnation in standing:
        assert plan[point] == incarnation
        assert plan[point + b"\0"] == incarnation


@pytest.mark.parametrize("count", [2, 10, 100])
def test_shares_are_even_as_in_the_paper(count: int) -> None:
    """The papers' figure for 64 virtual nodes is a max/mean of about 1.3 with 100 owners."""
    found = shares(plan_of(Ring(), candidates(*range(1, count + 1)), NOTHING))
    assert len(found) == count
    assert max(found.values()) / mean(found.values()) < 1.5


def test_who_comes_takes_its_part_from_all_and_nothing_else_moves() -> None:
    before = plan_of(Ring(), candidates(*range(1, 11)), NOTHING)
    after = plan_of(Ring(), candidates(*range(1, 12)), before)
    assert moved(before, after) == pytest.approx(shares(after)[11])
    assert shares(after)[11] < 2 / 11


def test_who_goes_leaves_its_part_to_all_and_nothing_else_moves() -> None:
    before = plan_of(Ring(), candidates(*range(1, 12)), NOTHING)
    after = plan_of(Ring(), candidates(*range(1, 11)), before)
    assert moved(before, after) == pytest.approx(shares(before)[11])
    assert sum(shares(after)[i] > shares(before)[i] for i in range(1, 11)) >= 8


def test_the_same_names_make_the_same_ring_in_any_order() -> None:
    """A new leader plans as the old one did."""
    some = candidates(*range(1, 9))
    plan = plan_of(Ring(), some, NOTHING)
    assert plan_of(Ring(), some[::-1], RangeMap(3)) == plan


def test_a_restarted_owner_stands_where_it_stood() -> None:
    """Under the same name, with another number."""
    before = plan_of(Ring(), candidates(1, 2, 3), NOTHING)
    after = plan_of(Ring(), [*candidates(1, 2), Candidate(9, "owner-3")], NOTHING)
    assert [9 if owner == 3 else owner for owner in before.values()] == after.values()


def test_points_depend_on_the_name_alone() -> None:
    """Two versions of tenure in one deployment must draw the same ring."""
    assert [point.hex() for point in points("a", 2)] == ["6c9da71f2832f85e", "148be4e168a1bf8c"]


# --- following loads ------------------------------------------------------------------------------


def loaded(plan: Plan, *rates: float) -> Loads:
    """Return loads that give each owner its rate, spread evenly over what it has by the plan."""
    space = shares(plan.owners)
    starts = plan.owners.starts()
    lengths = [
        (place(key_range.end) - place(key_range.start)) / SPACE for key_range, _ in plan.owners
    ]
    found = [
        rates[owner - 1] * length / space[owner]
        for owner, length in zip(plan.owners.values(), lengths, strict=True)
    ]
    return Loads(Instant(0), starts, found)


def with_load(*rates: float, now: float = 100, virtual_nodes: int = 8) -> Plan:
    """The plan of one round with these loads."""
    ring, members = Ring(virtual_nodes), candidates(*range(1, len(rates) + 1))
    plan = ring(Situation(members, EMPTY))
    given = Situation(members, table(plan.owners), Instant(seconds(now)), loaded(plan, *rates))
    return ring(given._replace(memory=plan.memory))


def after_load(*rates: float, now: float = 100, virtual_nodes: int = 8) -> dict[str, int]:
    """How many points everybody has then, where not as many as all."""
    memory = with_load(*rates, now=now, virtual_nodes=virtual_nodes).memory
    assert isinstance(memory, RingMemory)
    return dict(memory.counts)


@pytest.mark.parametrize(
    ("rates", "counts"),
    [
        ((100, 100, 100), {}),
        ((109, 100, 91), {}),
        ((115, 95, 90), {"owner-1": 7, "owner-3": 9}),
        ((115, 100, 85), {"owner-1": 7, "owner-3": 9}),
        ((100, 115, 115, 70), {"owner-2": 7, "owner-3": 7, "owner-4": 10}),
        ((140, 80, 80), {"owner-1": 7, "owner-2": 9, "owner-3": 9}),
        ((1.4, 0.8, 0.8), {}),  # few counts say little
    ],
)
def test_a_point_goes_from_who_is_a_tenth_above_the_mean_to_who_carries_least(
    rates: tuple[float, ...], counts: dict[str, int]
) -> None:
    """Centrifuge 2.1.2; an owner that is a tenth below gets one too (PRS 4.5)."""
    assert after_load(*rates) == counts


def test_the_next_point_waits_until_the_last_is_seen() -> None:
    assert after_load(140, 80, 80, now=5) == {}


def test_the_last_point_is_kept() -> None:
    assert after_load(140, 80, virtual_nodes=1) == {}


@pytest.mark.parametrize(
    ("rates", "now", "virtual_nodes", "told"),
    [
        ((0, 0, 0), 100, 8, []),
        ((100, 100, 100), 100, 8, []),
        ((109, 100, 91), 100, 8, [("relieving owner-1, at 1.09 of the mean", "nearer than 10 %")]),
        (
            (1.4, 0.8, 0.8),
            100,
            8,
            [("relieving owner-1, at 1.40 of the mean", "so few requests may be chance")],
        ),
        ((140, 80), 5, 8, [("following the load", "what the last change did is not seen yet")]),
        (
            (140, 80),
            100,
            1,
            [
                (
                    "relieving owner-1, at 1.27 of the mean",
                    "it has one point of the ring, and no more",
                )
            ],
        ),
        ((140, 80), 100, MOST, [("a point for owner-2", "it has 256, which is the most")]),
    ],
    ids=["idle", "even", "near", "chance", "early", "last point", "most points"],
)
def test_why_no_point_moves_is_told(
    rates: tuple[float, ...], now: float, virtual_nodes: int, told: list[tuple[str, str]]
) -> None:
    plan = with_load(*rates, now=now, virtual_nodes=virtual_nodes)
    assert [tuple(each) for each in plan.held_back] == told


def test_a_new_leader_sees_in_the_table_how_many_points_everybody_has() -> None:
    ring, members = Ring(), candidates(1, 2, 3)
    plan = ring(Situation(members, EMPTY))
    for i in range(1, 9):
        now = Instant(seconds(100 * i))
        given = Situation(members, table(plan.owners), now, loaded(plan, 140, 80, 80))
        plan = ring(given._replace(memory=plan.memory))
    assert moved(ring(Situation(members, EMPTY)).owners, plan.owners) > 0.05
    new = Situation(members, table(plan.owners))  # it knows no loads yet
    assert moved(plan.owners, ring(new).owners) < 0.01


def test_where_another_policy_has_dealt_everybody_stands_at_as_many_points() -> None:
    """Ranges that begin at points of a ring, after a restart by weight: each at another owner."""
    members = candidates(*range(1, 11))
    ring = plan_of(Ring(), members, NOTHING)
    elsewhere = [owner % 10 + 1 for owner in ring.values()]
    assert plan_of(Ring(), members, RangeMap.at_starts(ring.starts(), elsewhere)) == ring
