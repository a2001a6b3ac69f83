"""Several metrics: the scarcest is balanced, and no move makes another one scarcer."""

from collections.abc import Sequence
from random import Random

import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import SPACE, Loads, key_of
from tenure.protocol.balance.metrics import Gauge, capacities_of, levels_of_all
from tenure.protocol.balance.pieces import carried
from tenure.protocol.balance.policy import Candidate, Pin, Policy, Situation, changes
from tenure.protocol.balance.ring import Ring
from tenure.protocol.balance.weighted import Weighted
from tests.unit.protocol.balance.tables import moved, table

HOT: Key = b"\x42" * 8
PARTS = 64
MEMORY, REQUESTS = 8e9, 1_000.0


def starts(count: int) -> list[Key]:
    return [b"", *(key_of(i * SPACE // count) for i in range(1, count))]


def loads(rates: Sequence[float], hot: dict[Key, float] | None = None) -> Loads:
    """The loads of equal parts of the key space; a hot key is in that of its part."""
    found = list(rates)
    for key, rate in (hot or {}).items():
        found[int.from_bytes(key, "big") * len(rates) // SPACE] += rate
    return Loads(Instant(0), starts(len(rates)), found, sorted((hot or {}).items()))


def candidates(count: int, *memories: float | None) -> list[Candidate]:
    """Owners with these capacities for memory, or all with the same."""
    told = memories or (MEMORY,) * count
    return [
        Candidate(
            i + 1,
            f"owner-{i + 1}",
            REQUESTS,
            {} if memory is None else {"tenure.capacity.memory": repr(memory)},
        )
        for i, memory in enumerate(told)
    ]


def situation(
    members: Sequence[Candidate], owners: RangeMap[int], requests: Loads, memory: Loads
) -> Situation:
    return Situation(members, table(owners), Instant(0), requests, levels={"memory": memory})


def quarters(*owners: int) -> RangeMap[int]:
    return RangeMap.at_starts(starts(len(owners)), list(owners))


def reasons(owners: RangeMap[int], policy: Policy, given: Situation) -> set[tuple[int, int, str]]:
    """Who gives to whom, and why."""
    plan = policy(given)
    found = set()
    for change in changes(table(owners), plan):
        assert change.why is not None
        found.add((change.giver, change.taker, change.why.reason))
    return found


def after(given: Situation, rounds: int) -> tuple[Situation, float]:
    """The situation after so many rounds, each of whose moves is done before the next; and how much
    of the key space moved.
    """
    churn = 0.0
    for _ in range(rounds):
        plan = Weighted()(given)
        churn += moved(RangeMap.at_starts(*_owners(given)), plan.owners)
        given = given._replace(
            now=Instant(given.now + seconds(3)), present=table(plan.owners), memory=plan.memory
        )
    return given, churn


def _owners(given: Situation) -> tuple[list[Key], list[int]]:
    return given.present.starts(), [right.owner for right in given.present.values()]


def fullness(given: Situation, metric: str) -> list[float]:
    """How full each owner is by a metric."""
    owners = RangeMap.at_starts(*_owners(given))
    told = given.loads if metric == "requests" else given.levels[metric]
    has = carried(owners, told)
    return [
        has.get(each.incarnation, 0.0)
        / (each.capacity if metric == "requests" else capacities_of(each.labels)[metric])
        for each in given.candidates
    ]


@pytest.mark.parametrize("value", ["", "x", "nan", "inf", "-1", "0", "1e300"])
def test_a_label_that_is_no_capacity_says_none(value: str) -> None:
    assert capacities_of({"tenure.capacity.memory": value, "zone": "1"}) == {}


def test_only_what_all_owners_have_a_capacity_for_is_known() -> None:
    one = {"tenure.capacity.memory": "8e9", "tenure.capacity.sockets": "100.0"}
    assert levels_of_all([one, {"tenure.capacity.memory": "1e9"}]) == {"memory"}
    assert levels_of_all([one, {}]) == levels_of_all([]) == set()
    assert capacities_of({"tenure.capacity.requests": "1", "tenure.capacity.": "1"}) == {}


def test_the_metric_by_which_an_owner_is_fullest_is_balanced() -> None:
    owners = quarters(1, 1, 2, 2)
    even = loads([400] * 4)
    given = situation(candidates(2), owners, even, loads([4e9, 3e9, 1e9, 1e9]))
    assert {each[:2] for each in reasons(owners, Weighted(), given)} == {(1, 2)}
    assert all("of its share of memory" in why for _, _, why in reasons(owners, Weighted(), given))


def test_what_there_is_enough_of_is_left_uneven() -> None:
    owners = quarters(1, 1, 2, 2)
    given = situation(candidates(2), owners, loads([400] * 4), loads([5e8, 5e8, 1e8, 1e8]))
    assert reasons(owners, Weighted(), given) == set()
    uneven = given._replace(loads=loads([100, 100, 400, 500]))
    assert all(
        each[:2] == (2, 1) and "of its share of requests" in each[2]
        for each in reasons(owners, Weighted(), uneven)
    )


def test_capacities_are_those_of_the_metric() -> None:
    owners = quarters(1, 1, 1, 2)
    given = situation(candidates(2, 6e9, 2e9), owners, loads([1] * 4), loads([1.5e9] * 4))
    assert reasons(owners, Weighted(), given) == set(), "each is three quarters full"


def test_nobody_is_given_what_it_has_no_memory_for() -> None:
    """Owner 3 has the fewest requests, and little memory left."""
    owners = quarters(1, 1, 2, 3)
    requests, memory = loads([480, 480, 300, 10]), loads([3e9, 3e9, 1e9, 6.9e9])
    given = situation(candidates(3), owners, requests, memory)
    for _ in range(200):
        given, _ = after(given, 1)
        assert max(fullness(given, "memory")) < 0.96, "which owner 1 was by requests"
    assert max(fullness(given, "requests")) < 0.8


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scarcer", [0.4, 1.0, 2.5])
def test_two_metrics_that_lie_at_different_keys_become_even_and_then_nothing_moves(
    seed: int, scarcer: float
) -> None:
    dice, count = Random(seed), 6
    members = candidates(count)
    owners = RangeMap.at_starts(starts(PARTS), [dice.randint(1, count) for _ in range(PARTS)])
    asked = [dice.paretovariate(1.5) for _ in range(PARTS)]
    kept = [dice.paretovariate(1.5) for _ in range(PARTS)]
    full = 0.5 * count
    requests = loads([each / sum(asked) * full * REQUESTS for each in asked])
    memory = loads([each / sum(kept) * full * min(scarcer, 1.5) * MEMORY for each in kept])
    given = situation(members, owners, requests, memory)
    given, _ = after(given, 200)
    even = 0.5 * max(1.0, min(scarcer, 1.5))
    most = max(*fullness(given, "requests"), *fullness(given, "memory"))
    assert most <= 1.12 * even
    given, churn = after(given, 50)
    assert churn < 0.01


def test_a_key_that_fills_an_owner_does_not_leave_the_rest_uneven() -> None:
    """Its memory cannot be parted; so requests are balanced, though less scarce."""
    owners = quarters(1, 2, 2, 2, 3, 3, 3, 3)
    memory = loads([0.0, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8], {b"\1" * 8: 7.9e9})
    requests = loads([10, 200, 200, 200, 20, 20, 20, 20])
    given = situation(candidates(3), owners, requests, memory)
    given, _ = after(given, 100)
    assert max(fullness(given, "requests")) < 0.5
    assert max(fullness(given, "memory")) < 1.0


def test_an_owner_without_that_capacity_leaves_requests_alone_to_count() -> None:
    owners = quarters(1, 1, 2, 2)
    memory = loads([4e9, 3e9, 1e9, 1e9])
    given = situation(candidates(2, MEMORY, None), owners, loads([400] * 4), memory)
    plan = Weighted()(given)
    assert list(changes(table(owners), plan)) == []
    assert ("balance by memory", "owner-2 says no capacity for it") in plan.held_back


def test_a_pin_holds_whatever_is_scarce() -> None:
    owners = quarters(1, 1, 2, 2)
    memory = loads([1e9] * 4, {HOT: 5e9})
    given = situation(candidates(2), owners, loads([100] * 4), memory)
    pinned, _ = after(given._replace(pins=[Pin(HOT, "owner-1")]), 100)
    assert pinned.present[HOT].owner == 1


def test_the_ring_follows_the_scarcest_metric_too() -> None:
    members = candidates(3)
    plan = Ring()(Situation(members, table(quarters(1))))
    shares = carried(plan.owners, loads([1.0] * PARTS))
    uneven = loads([2e8 if plan.owners[start] == 1 else 1e7 for start in starts(PARTS)])
    assert max(shares, key=shares.__getitem__) in {1, 2, 3}
    given = situation(members, plan.owners, loads([1.0] * PARTS), uneven)
    later = Ring()(given._replace(memory=plan.memory, now=Instant(seconds(60))))
    now = carried(later.owners, uneven)
    assert now[1] < carried(plan.owners, uneven)[1]


def test_a_gauge_adds_up_as_what_is_carried_does() -> None:
    dice = Random(1)
    told = loads([dice.random() for _ in range(PARTS)], {HOT: 3.0})
    owners = RangeMap.at_starts(starts(7), [1, 2, 3, 1, 2, 3, 1])
    gauge = Gauge("requests", told, dict.fromkeys((1, 2, 3), 1.0), owners)
    sums = dict.fromkeys((1, 2, 3), 0.0)
    for key_range, owner in owners:
        sums[owner] += gauge.amount(key_range.start, key_range.end)
    assert sums == pytest.approx(gauge.amounts)
