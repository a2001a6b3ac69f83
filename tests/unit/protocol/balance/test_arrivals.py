"""A new owner waits a moment for what others leave, which shapes a rolling restart."""

import pytest

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import Loads, key_of
from tenure.protocol.balance.policy import Candidate, HeldBack, Pin, Plan, Situation
from tenure.protocol.balance.tuning import DEFAULT
from tenure.protocol.balance.weighted import Weighted
from tests.unit.protocol.balance.tables import EMPTY, candidates, moved, shares, table

LONG_AGO, NOW = Instant(0), Instant(seconds(100))
THEN = Instant(NOW + DEFAULT.settling_ns)
SIXTEENTHS: list[Key] = [b"", *(key_of(i << 60) for i in range(1, 16))]
EVEN = Loads(NOW, SIXTEENTHS, [1000.0] * 16, [])


class Pool:
    """A pool that carries out what is planned, and adds up what moves."""

    def __init__(self, *members: int) -> None:
        self.policy = Weighted()
        self.members = list(members)
        self.loads: Loads | None = None
        self.moves = 0.0
        self.memory: object = None
        self.plan = self.ask(LONG_AGO, EMPTY)
        self.moves = 0.0

    @property
    def owners(self) -> RangeMap[int]:
        return self.plan.owners

    def ask(self, now: Instant, present: object = None) -> Plan:
        rights = EMPTY if present is EMPTY else table(self.owners)
        situation = Situation(candidates(*self.members), rights, now, self.loads)
        plan = self.policy(situation._replace(memory=self.memory))
        if present is not EMPTY:
            self.moves += moved(self.owners, plan.owners)
        self.plan, self.memory = plan, plan.memory
        return plan

    def come(self, now: Instant, *members: int) -> Plan:
        self.members += members
        return self.ask(now)

    def go(self, now: Instant, *members: int) -> Plan:
        for member in members:  # each says so in a message of its own
            self.members.remove(member)
            self.ask(now)
        return self.plan


def shares_of(plan: Plan, *members: int) -> list[float]:
    found = shares(plan.owners)
    return [found.get(member, 0.0) for member in members]


def test_who_comes_has_nothing_for_a_moment_and_then_its_share() -> None:
    pool = Pool(1, 2, 3)
    waiting = pool.come(NOW, 4)
    assert shares_of(waiting, 4) == [0.0]
    assert pool.moves == 0.0
    assert waiting.again_at == THEN
    assert waiting.held_back == (HeldBack("an even share for owner-4", "it came a moment ago"),)
    filled = pool.ask(THEN)
    assert shares_of(filled, 4) == [pytest.approx(1 / 4, rel=0.02)]
    assert (filled.again_at, filled.held_back) == (FAR_FUTURE, ())


def test_in_a_pool_that_has_just_begun_nobody_waits() -> None:
    pool = Pool(1)
    soon = Instant(LONG_AGO + DEFAULT.settling_ns - 1)
    assert shares_of(pool.come(soon, 2), 2) == [pytest.approx(1 / 2, rel=0.02)]
    assert pool.plan.again_at == FAR_FUTURE


def test_what_who_goes_leaves_is_for_who_came() -> None:
    pool = Pool(1, 2, 3, 4)
    pool.come(NOW, 5, 6)
    left = pool.go(NOW, 1, 2)
    assert shares_of(left, 3, 4, 5, 6) == [pytest.approx(1 / 4, rel=0.02)] * 4
    assert pool.moves == pytest.approx(1 / 2)
    pool.ask(THEN)
    assert pool.moves == pytest.approx(1 / 2), "they have enough"


def test_who_took_less_than_its_share_is_given_the_rest_when_its_time_has_come() -> None:
    pool = Pool(*range(1, 11))
    pool.come(NOW, 11, 12)
    pool.go(NOW, 1)
    assert shares_of(pool.plan, 11, 12) == [pytest.approx(1 / 20, rel=0.05)] * 2
    pool.ask(THEN)
    assert shares_of(pool.plan, 11, 12) == [pytest.approx(1 / 11, rel=0.05)] * 2


@pytest.mark.parametrize("loads", [None, EVEN])
def test_a_rolling_restart_moves_each_key_four_times_in_three(loads: Loads | None) -> None:
    """Twelve owners, two at a time: the first two's go to the ten others, the last are filled."""
    pool = Pool(*range(1, 13))
    pool.loads = loads
    now = NOW
    for first in range(1, 13, 2):
        pool.go(now, first, first + 1)
        now = Instant(now + seconds(3))
        pool.come(now, first + 100, first + 101)
        now = Instant(now + seconds(1))
    pool.ask(Instant(now + DEFAULT.settling_ns))
    assert pool.moves == pytest.approx(1 / 6 + 5 * 0.2 + 1 / 6, rel=0.05)
    assert max(shares(pool.owners).values()) * 12 <= DEFAULT.high + 0.03
    assert pool.plan.again_at == FAR_FUTURE


@pytest.mark.parametrize("loads", [None, EVEN])
def test_where_successors_come_first_a_rolling_restart_moves_each_key_once(
    loads: Loads | None,
) -> None:
    pool = Pool(*range(1, 13))
    pool.loads = loads
    now = NOW
    for first in range(1, 13, 2):
        pool.come(now, first + 100, first + 101)
        pool.go(Instant(now + seconds(1)), first, first + 1)
        now = Instant(now + seconds(4))
    pool.ask(Instant(now + DEFAULT.settling_ns))
    assert pool.moves == pytest.approx(1.0, rel=0.05)
    assert max(shares(pool.owners).values()) * 12 <= DEFAULT.high + 0.03


def test_who_waits_is_no_taker_where_another_carries_too_much() -> None:
    """Otherwise it would be filled up after all, because it carries least."""
    present = RangeMap.at_starts(SIXTEENTHS, [1] * 8 + [2] * 4 + [3] * 4)
    plan = Weighted()(Situation(candidates(1, 2, 3, 4), table(present), NOW, EVEN))
    assert 0 < moved(present, plan.owners) <= DEFAULT.budget
    assert shares_of(plan, 4) == [0.0]


def test_a_pin_is_not_what_it_came_for() -> None:
    pool = Pool(1, 2)
    pins = [Pin(b"\x42" * 8, "owner-3")]
    situation = Situation(candidates(1, 2, 3), table(pool.owners), NOW, pins=pins)
    plan = Weighted()(situation._replace(memory=pool.memory))
    assert plan.again_at == THEN
    then = situation._replace(now=THEN, memory=plan.memory, present=table(plan.owners))
    assert shares_of(Weighted()(then), 3) == [pytest.approx(1 / 3, rel=0.02)]


def test_who_is_filled_up_later_because_it_was_cordoned_or_all_frozen_waits_no_more() -> None:
    pool = Pool(1, 2)
    present = table(pool.owners)
    cordoned = [*candidates(1, 2), Candidate(3, "owner-3", cordoned=True)]
    for situation in (
        Situation(cordoned, present, NOW, memory=pool.memory),
        Situation(candidates(1, 2, 3), present, NOW, frozen=True, memory=pool.memory),
    ):
        plan = Weighted()(situation)
        assert shares_of(plan, 3) == [0.0]
        again = Situation(candidates(1, 2, 3), present, THEN, memory=plan.memory)
        assert shares_of(Weighted()(again), 3) == [pytest.approx(1 / 3, rel=0.02)]


def test_where_all_but_the_cordoned_came_a_moment_ago_nobody_waits() -> None:
    """No owner could fill them up, and what was left was dealt to all of them."""
    pool = Pool(1, 2, 3)
    members = [Candidate(1, "owner-1", cordoned=True), *candidates(4, 5)]
    plan = Weighted()(Situation(members, table(pool.owners), NOW, EVEN, memory=pool.memory))
    assert shares_of(plan, 1, 4, 5) == [pytest.approx(1 / 3, rel=0.05)] * 3
    assert plan.again_at == FAR_FUTURE
