"""The driver: what acts for any machine."""

from typing import TypeAlias

import pytest

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.machine import Output
from tenure.runtime.driver import Driver
from tenure.testing.clock import TurnedClock, come_to_rest

pytestmark = pytest.mark.asyncio

Step: TypeAlias = tuple[str, Instant]


class Echo:
    """A machine that says what it was told, and wakes a second after each event."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.wake_at = FAR_FUTURE

    def handle(self, now: Instant, event: str) -> Output[str]:
        self.steps.append((event, now))
        self.wake_at = Instant(now + seconds(1))
        if event == "break":
            raise AssertionError("a contradiction")
        return Output([f"{event} 1", f"{event} 2"], self.wake_at)

    def advance(self, now: Instant) -> Output[str]:
        self.steps.append(("time", now))
        due, self.wake_at = now >= self.wake_at, max(self.wake_at, now)
        if due:
            self.wake_at = FAR_FUTURE
        return Output(["woke"] if due else [], self.wake_at)

    def invariants(self) -> None: ...


class Stage:
    """A driver of it, and what was performed."""

    def __init__(self) -> None:
        self.clock = TurnedClock()
        self.machine = Echo()
        self.done: list[str] = []
        self.failures: list[Exception] = []
        self.driver: Driver[str, str] = Driver(
            self.machine,
            self.clock,
            self.perform,
            timers=self.clock.alarm,
            fail=self.failures.append,
        )

    def perform(self, action: str) -> None:
        self.done.append(action)
        if action == "nest 1":
            self.driver.post("inner")
        if action == "stop 1":
            self.driver.stop()
        if action == "fail 1":
            raise ValueError("cannot be carried out")


async def test_actions_are_carried_out_in_order_and_the_machine_is_woken() -> None:
    stage = Stage()
    stage.driver.start()
    stage.driver.post("a")
    assert stage.done == ["a 1", "a 2"]
    await stage.clock.turn(0.9)
    assert stage.done == ["a 1", "a 2"]
    await stage.clock.turn(0.1)
    assert stage.done == ["a 1", "a 2", "woke"]


async def test_an_event_posted_while_another_is_handled_waits_its_turn() -> None:
    stage = Stage()
    stage.driver.start()
    stage.driver.post("nest")
    assert stage.done == ["nest 1", "nest 2", "inner 1", "inner 2"]


async def test_the_clock_is_read_when_the_event_is_in_hand() -> None:
    stage = Stage()
    stage.driver.start()
    stage.clock.jump(5)
    stage.driver.post("a")
    assert stage.machine.steps[-1] == ("a", stage.clock())


async def test_what_is_posted_before_the_start_is_handled_at_the_start() -> None:
    stage = Stage()
    stage.driver.post("early")
    assert stage.machine.steps == []
    stage.driver.start()
    assert [event for event, _ in stage.machine.steps] == ["time", "early"]


async def test_a_machine_that_contradicts_itself_is_run_no_further() -> None:
    stage = Stage()
    stage.driver.start()
    stage.driver.post("a")
    stage.driver.post("break")
    assert [str(each) for each in stage.failures] == ["a contradiction"]
    stage.driver.post("b")
    await stage.clock.turn(5)
    assert [event for event, _ in stage.machine.steps] == ["time", "a", "break"]


async def test_a_machine_that_raises_is_told_something_else_where_there_is_something() -> None:
    stage = Stage()
    stage.driver.instead = lambda event, error: f"not {event}" if str(error) else None
    stage.driver.start()
    stage.driver.post("break")
    assert stage.done == ["not break 1", "not break 2"]
    assert stage.failures == []
    await stage.clock.turn(1)
    assert stage.done[-1] == "woke"
    stage.driver.instead = lambda _event, _error: "break"
    stage.driver.post("break")
    assert [str(each) for each in stage.failures] == ["a contradiction"]


async def test_an_action_that_cannot_be_carried_out_stops_it_too() -> None:
    stage = Stage()
    stage.driver.start()
    stage.driver.post("fail")
    assert [str(each) for each in stage.failures] == ["cannot be carried out"]
    assert stage.done == ["fail 1"]


async def test_without_anybody_to_tell_a_failure_is_raised() -> None:
    driver: Driver[str, str] = Driver(Echo(), TurnedClock(), lambda _: None)
    driver.start()
    with pytest.raises(AssertionError, match="a contradiction"):
        driver.post("break")


async def test_a_driver_that_is_stopped_in_an_action_finishes_that_step_only() -> None:
    stage = Stage()
    stage.driver.start()
    stage.driver.post("stop")
    stage.driver.post("more")
    await stage.clock.turn(5)
    assert stage.done == ["stop 1", "stop 2"]


async def test_a_machine_that_is_due_at_once_is_advanced_without_the_clock_being_turned() -> None:
    stage = Stage()
    stage.driver.start()
    stage.driver.post("a")
    stage.clock.jump(3)
    stage.driver.post("b")  # its wake-up is set again, from now
    stage.machine.wake_at = stage.clock()
    await come_to_rest()
    assert "woke" not in stage.done
    await stage.clock.turn(1)
    assert stage.done[-1] == "woke"
