"""Clocks, and alarms that look at them."""

import asyncio
import time
from runpy import run_path

import pytest

from tenure.base.instants import MILLISECOND_NS, SECOND_NS, Instant
from tenure.runtime import clock as clock_module
from tenure.runtime.clock import LoopTimers, boot_clock


def test_the_clock_goes_on_while_the_machine_sleeps() -> None:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("this system has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC counts sleep")
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    now = boot_clock()
    assert before <= now <= time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert now <= boot_clock()


def test_a_machine_that_has_slept_shows_which_clock_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as no machine has slept all clocks agree, and any of them would pass."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("this system has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC counts sleep")
    slept = {time.CLOCK_BOOTTIME: 9 * SECOND_NS, time.CLOCK_MONOTONIC: SECOND_NS}
    monkeypatch.setattr(time, "clock_gettime_ns", slept.__getitem__)
    monkeypatch.setattr(time, "monotonic_ns", lambda: SECOND_NS)
    as_imported_there = run_path(clock_module.__file__)["boot_clock"]
    assert as_imported_there() == 9 * SECOND_NS


class ByHand:
    def __init__(self) -> None:
        self.now = Instant(0)
        self.read = asyncio.Event()

    def __call__(self) -> Instant:
        self.read.set()
        return self.now


@pytest.mark.asyncio
async def test_an_alarm_that_rings_too_early_for_the_clock_sleeps_again() -> None:
    """The loop's clock went on by a millisecond, ours did not: as when ours runs slower."""
    clock, rung = ByHand(), asyncio.Event()
    LoopTimers(clock)(Instant(MILLISECOND_NS), rung.set)
    for _ in range(3):
        clock.read.clear()
        await clock.read.wait()
        assert not rung.is_set()
    clock.now = Instant(MILLISECOND_NS)
    await rung.wait()


@pytest.mark.asyncio
async def test_an_alarm_looks_at_the_clock_again_before_a_long_sleep_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This is as if the machine was suspended: our clock jumped by an hour, the loop's
    stood still.
    """
    monkeypatch.setattr("tenure.runtime.clock.LONGEST_SLEEP_NS", MILLISECOND_NS)
    clock, rung = ByHand(), asyncio.Event()
    LoopTimers(clock)(Instant(3600 * SECOND_NS), rung.set)
    clock.now = Instant(3600 * SECOND_NS)
    await rung.wait()


@pytest.mark.asyncio
async def test_a_cancelled_alarm_does_not_ring() -> None:
    clock, rung = ByHand(), asyncio.Event()
    alarm = LoopTimers(clock)(Instant(0), rung.set)
    alarm.cancel()
    other = asyncio.Event()
    LoopTimers(clock)(Instant(0), other.set)
    await other.wait()
    assert not rung.is_set()
    alarm.cancel()
