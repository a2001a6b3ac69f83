"""An owner reports its load: from the board's counts to the report on a request."""

from math import inf, nan
from random import Random

import pytest

from tenure.base.instants import Instant
from tenure.client.holdings import Board
from tenure.errors import UsageError
from tenure.protocol.balance.picture import RangeRate
from tenure.protocol.lease.limits import RANGES_PER_REPORT
from tenure.protocol.lease.load_report import LevelLoad, LoadReport, RangeLoad
from tenure.protocol.lease.messages import Leased, LeaseRequest
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.owner.meter import POSITIONS, Meter, most_loaded
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
        self.board = Board("ordered", self.clock, metrics=["memory"])
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
        told = self.board.told_levels
        return self.meter.add_to(REQUEST, self.clock(), self.board.tallies(), levels=told).load

    def memory(self) -> LevelLoad:
        """What the next report says of memory."""
        self.turn(3)
        load = self.report()
        assert load is not None
        [level] = load.levels
        assert level.metric == "memory"
        return level

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


def test_what_keys_take_up_is_told_until_it_changes(stage: Stage) -> None:
    stage.board.record_load("a", 3e6, "memory")
    stage.board.record_load("b", 1e6, "memory")
    stage.board.record_load("x", 5, metric="memory")
    for _ in range(2):
        told = stage.memory()
        assert [each.rate for each in told.ranges] == [4e6, 5.0]
        assert [(each.key, each.rate) for each in told.hottest] == [
            (b"a", 3e6),
            (b"b", 1e6),
            (b"x", 5.0),
        ]
    stage.board.record_load("a", 1e6, "memory")
    stage.board.record_load("b", 0, "memory")
    assert [each.rate for each in stage.memory().ranges] == [1e6, 5.0]
    assert not stage.board.is_load_given, "checks are still load"


def test_what_a_lost_key_took_up_is_forgotten(stage: Stage) -> None:
    stage.board.record_load("a", 7, "memory")
    stage.board.record_load("x", 5, "memory")
    stage.hold(LOW)
    assert [each.rate for each in stage.memory().ranges] == [7.0]
    again = Leased(start=b"m", end=None, number=3, since=3, mark="renewed")
    stage.hold(LOW, again)
    stage.board.record_load("y", 1, "memory")
    assert [each.rate for each in stage.memory().ranges] == [7.0, 1.0]
    stage.hold(LOW)
    stage.board.record_load("y", 1, "memory")
    assert [each.rate for each in stage.memory().ranges] == [7.0], "of what is not held, nothing"


def test_a_sample_has_equal_amounts_between_its_keys(stage: Stage) -> None:
    for i in range(1_000):
        stage.board.record_load(f"a{i:03}", 10, "memory")
    for i in range(32):
        stage.board.record_load(f"b{i:02}", 1_000, "memory")
    told = stage.memory()
    assert {each.rate for each in told.hottest} == {1_000}
    assert len(told.sample) == POSITIONS
    assert told.sample[POSITIONS // 2] == b"a507"


def test_a_metric_is_one_that_the_owner_has_a_capacity_for(stage: Stage) -> None:
    with pytest.raises(
        UsageError, match="no metric is called 'disk' here, but 'requests', 'memory'"
    ):
        stage.board.record_load("a", 1, "disk")
    with pytest.raises(UsageError, match="from 0 to 1e"):
        stage.board.record_load("a", nan, "memory")
    with pytest.raises(UsageError, match="no metric is called None"):
        stage.board.record_load("a", 1, None)  # type: ignore[arg-type]


def test_of_too_many_ranges_the_most_loaded_are_told() -> None:
    many = [RangeRate(i.to_bytes(3, "big"), None, float(i)) for i in range(RANGES_PER_REPORT + 5)]
    assert most_loaded(many) == many[5:]
    assert most_loaded(many[:7]) == many[:7]
