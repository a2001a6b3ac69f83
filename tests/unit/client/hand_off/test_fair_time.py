"""The time by which things end: late where somebody sets a clock, and never ahead."""

from tenure.base.instants import Instant, seconds
from tenure.client.hand_off.fair_time import FairTime
from tests.unit.client.hand_off.test_keyed_state import WHOLE, exported, imported, state_of

YEAR = 366 * 86_400.0


class Turned:
    """A clock that nobody sets."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> Instant:
        return Instant(seconds(self.at))


def test_time_goes_back_and_never_ahead_of_the_clock_that_nobody_sets() -> None:
    clock = Turned()
    fair = FairTime(clock)
    assert fair.now(1000.0) == 1000.0
    clock.at = 10.0
    assert [fair.now(1010.0), fair.now(YEAR)] == [1010.0, 1010.0]
    assert fair.now(900.0) == 900.0, "then things end late"
    clock.at = 20.0
    assert [fair.now(YEAR), fair.now(910.0)] == [910.0, 910.0]


def test_who_is_told_is_not_ahead_of_who_told_it() -> None:
    giver, clock = FairTime(Turned()), Turned()
    taker = FairTime(clock)
    assert giver.known() == 0.0, "nothing goes by it"
    giver.now(1000.0)
    assert giver.known() == 1000.0
    taker.told(giver.known())
    assert taker.now(YEAR) == 1000.0
    clock.at = 5.0
    assert [taker.now(YEAR), taker.now(990.0)] == [1005.0, 990.0]
    taker.told(1100.0)
    assert taker.known() == 990.0, "a giver that is ahead changes nothing"


def test_a_range_takes_the_fair_time_along_whatever_is_in_it() -> None:
    giver, clock = state_of(), Turned()
    giver._fair = FairTime(clock)
    assert exported(giver, WHOLE)[1] == [], "nothing goes by it, and there is nothing"
    giver.fair_now(1000.0)
    mark, chunks = exported(giver, WHOLE)
    taker = imported(chunks)
    assert 1000.0 <= taker.fair_now(YEAR) < YEAR
    giver["a"] = 1
    giver.fair_now(500.0)  # somebody has set a clock back, before the rest is handed over
    taker = imported(exported(giver, WHOLE, mark)[1], taker)
    assert taker["a"] == 1
    assert 500.0 <= taker.fair_now(YEAR) < 1000.0
