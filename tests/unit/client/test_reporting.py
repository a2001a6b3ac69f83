"""An owner reports its load: from the board's counts to the report on a request."""

from math import inf, nan
from random import Random

import pytest

from tenure.base.instants import Instant
from tenure.client.holdings import Board
from tenure.errors import UsageError
from tenure.protocol.balance.picture import RangeRate
from tenure.protocol.lease.limits import RANGES_PER_REPORT
from tenure.protocol.lease.messages import Leased, LeaseRequest, LoadReport, RangeLoad
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.owner.meter import Meter, most_loaded
from tenure.testing.clock import TurnedClock

RENEW = 3_000_000_000
REQUEST = LeaseRequest(
    pool="p",
    incarnation=1,
    owner_nonce=2,
    manager_nonce=3,
    sequence=4,
    journal=5,
    leadership=6,
    held=(),
)
LOW = Leased(start=b"", end=b"m", number=1, since=1, mark="renewed")
HIGH = Leased(start=b"m", end=None, number=2, since=2, mark="renewed")


class Stage:
    """An ordered pool, so that keys can be read; both halves are held for ever."""

    def __init__(self) -> None:
        self.clock = TurnedClock()
        self.board = Board("ordered", self.clock)
        self.meter = Meter(Random(1), self.clock())
        self.board.sample(self.meter.sampler)
        self.meter.every_ns = RENEW
        self.board.open()
        self.hold(LOW, HIGH)

    def hold(self, *leases: Leased) -> None:
        self.board.publish(Holdings(7, 1, leases, Instant(1 << 62)))

    def turn(self, seconds: float) -> None:
        self.clock.step(self.clock.after(seconds))

    def report(self) -> LoadReport | None:
        return self.meter.add_to(REQUEST, self.clock(), self.board.tallies()).load

    def ranges(self, after: float = 3) -> tuple[RangeLoad, ...]:
        self.turn(after)
        load = self.report()
        assert load is not None
        return load.ranges


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.turn(3)
    assert stage.report() is None, "nothing was held long enough"
    return stage


def test_checks_are_load_by_default(stage: Stage) -> None:
    for _ in range(30):
        stage.board.check("a")
    stage.board.check("x")
    low, high = stage.ranges()
    assert (low.start, low.end, low.rate) == (b"", b"m", 10.0)
    assert high.rate == pytest.approx(1 / 3)
    assert [each.rate for each in stage.ranges()] == [0.0, 0.0]


def test_hot_keys_are_told(stage: Stage) -> None:
    for i in range(3_000):
        stage.board.check("hot")
        stage.board.check(f"cold-{i}")
    stage.turn(3)
    load = stage.report()
    assert load is not None
    assert [each.key for each in load.hottest] == [b"hot"]
    assert load.hottest[0].rate == pytest.approx(1_000, rel=0.4)


def test_a_report_goes_with_one_request_of_a_renewals_time(stage: Stage) -> None:
    stage.turn(1)
    assert stage.report() is None
    stage.turn(1.9)
    assert stage.report() is not None
    assert stage.report() is None


def test_recorded_load_takes_the_place_of_checks(stage: Stage) -> None:
    stage.board.record_load("a", 60)
    stage.board.record_load("a", 30.0)
    for _ in range(1_000):
        stage.board.check("x")
    assert [each.rate for each in stage.ranges()] == [30.0, 0.0]
    assert dict(stage.board.loads())[HIGH.range] == 1_000, "checks are counted all the same"


def test_recorded_keys_are_as_hot_as_what_they_cost(stage: Stage) -> None:
    for i in range(200):
        stage.board.record_load(f"cold-{i}", 10)
        stage.board.record_load("dear", 500)
    stage.turn(3)
    load = stage.report()
    assert load is not None
    assert load.hottest[0].key == b"dear"
    assert load.hottest[0].rate == pytest.approx(200 * 500 / 3, rel=0.2)


def test_what_was_recorded_stays_with_its_range_when_others_change(stage: Stage) -> None:
    stage.board.record_load("a", 30)
    stage.hold(LOW)
    assert [each.rate for each in stage.ranges()] == [10.0]


def test_load_of_what_is_not_held_is_not_counted(stage: Stage) -> None:
    stage.hold(LOW)
    stage.board.record_load("x", 30)
    assert [each.rate for each in stage.ranges()] == [0.0]


@pytest.mark.parametrize("amount", [-1, nan, inf, 1e300])
def test_an_amount_is_a_number_that_is_not_negative(stage: Stage, amount: float) -> None:
    with pytest.raises(UsageError, match="from 0 to 1e"):
        stage.board.record_load("a", amount)


def test_of_too_many_ranges_the_most_loaded_are_told() -> None:
    many = [RangeRate(i.to_bytes(3, "big"), None, float(i)) for i in range(RANGES_PER_REPORT + 5)]
    assert most_loaded(many) == many[5:]
    assert most_loaded(many[:7]) == many[:7]
