"""Clocks of simulated processes: there and back, at any rate."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.sim.kernel.clocks import MILLION, SimClock

CLOCKS = st.builds(SimClock, st.integers(1, 10**15), st.integers(MILLION // 2, 2 * MILLION))
REAL = st.integers(0, 10**16)


@given(CLOCKS, REAL)
def test_the_first_instant_that_shows_a_time_shows_it_and_none_before_does(
    clock: SimClock, real: int
) -> None:
    local = clock.local(real)
    first = clock.real(local)
    assert first <= real
    assert clock.local(first) >= local
    assert clock.local(first - 1) < local


@given(CLOCKS, REAL, st.integers(0, 10**13))
def test_a_clock_goes_on_at_its_rate(clock: SimClock, real: int, passed: int) -> None:
    went = clock.local(real + passed) - clock.local(real)
    assert abs(went - passed * clock.rate // MILLION) <= 1


def test_what_never_comes_never_comes() -> None:
    assert SimClock(5).real(FAR_FUTURE) == FAR_FUTURE


def test_a_clock_that_stopped_is_behind() -> None:
    clock = SimClock(1_000)
    clock.stop_for(300)
    assert clock.local(500) == Instant(1_200)
    assert clock.real(Instant(1_200)) == 500
