"""The clock that is turned by hand."""

import pytest

from tenure.base.instants import seconds
from tenure.testing.clock import TurnedClock, come_to_rest

pytestmark = pytest.mark.asyncio


async def test_alarms_ring_in_their_order_each_at_its_time() -> None:
    clock = TurnedClock()
    start, rung = clock(), list[tuple[str, float]]()

    def ring(name: str) -> None:
        rung.append((name, (clock() - start) / seconds(1)))

    clock.alarm(clock.after(2), lambda: ring("b"))
    clock.alarm(clock.after(1), lambda: ring("a"))
    clock.alarm(clock.after(2), lambda: ring("c"))
    clock.alarm(clock.after(5), lambda: ring("late"))
    await clock.turn(3)
    assert rung == [("a", 1), ("b", 2), ("c", 2)]
    assert clock() == start + seconds(3)


async def test_an_alarm_set_by_an_alarm_rings_in_the_same_turn() -> None:
    clock, rung = TurnedClock(), list[str]()

    def first() -> None:
        clock.alarm(clock.after(1), lambda: rung.append("x"))

    clock.alarm(clock.after(1), first)
    await clock.turn(2)
    assert rung == ["x"]


async def test_cancelled_alarms_do_not_ring_and_those_of_now_ring_by_themselves() -> None:
    clock, rung = TurnedClock(), list[str]()
    clock.alarm(clock.after(1), lambda: rung.append("cancelled")).cancel()
    clock.alarm(clock(), lambda: rung.append("now"))
    clock.alarm(clock(), lambda: rung.append("cancelled too")).cancel()
    await come_to_rest()
    assert rung == ["now"]
    await clock.turn(2)
    assert rung == ["now"]


async def test_a_jump_rings_nothing_until_the_clock_is_turned() -> None:
    clock, rung = TurnedClock(), list[int]()
    clock.alarm(clock.after(1), lambda: rung.append(clock()))
    clock.jump(10)
    await come_to_rest()
    assert rung == []
    late = clock()
    await clock.turn(0)
    assert rung == [late]
