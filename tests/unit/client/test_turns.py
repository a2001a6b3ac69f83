"""Turns: one at a time with each key, in the order in which they were asked for."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from tenure import Busy, UsageError
from tenure.client.turns import InLine, Turns
from tenure.testing.clock import come_to_rest
from tests.patience import DEADLINE_SECONDS

LONG = 30.0
SHORT = 0.01


async def in_line(turns: Turns, key: str, told: list[str], name: str, wait: float = LONG) -> None:
    place = await turns.take(key, wait)
    told.append(name)
    await asyncio.sleep(0)
    turns.end(place)


@pytest.mark.asyncio
async def test_tasks_come_in_the_order_in_which_they_asked() -> None:
    turns, told = Turns(100), list[str]()
    async with asyncio.TaskGroup() as tasks:
        for i in range(20):
            tasks.create_task(in_line(turns, "a", told, str(i)))
    assert told == [str(i) for i in range(20)]
    assert len(turns) == 0


@pytest.mark.asyncio
async def test_other_keys_do_not_wait() -> None:
    turns = Turns(100)
    place = await turns.take("a", LONG)
    turns.end(await turns.take("b", 0))
    turns.end(place)


def test_threads_and_tasks_of_several_loops_stand_in_one_line() -> None:
    turns, told = Turns(100), list[str]()
    place = turns.take_blocking("a", LONG)

    def in_thread(name: str) -> None:
        place = turns.take_blocking("a", LONG)
        told.append(name)
        turns.end(place)

    def in_loop(name: str) -> None:
        asyncio.run(in_line(turns, "a", told, name))

    threads = []
    for i in range(8):
        target: Callable[[str], None] = in_loop if i % 2 else in_thread
        threads.append(threading.Thread(target=target, args=(str(i),)))
        threads[-1].start()
        wait_until(lambda n=i + 1: len(turns._lines["a"]) == n + 1)  # type: ignore[misc]
    turns.end(place)
    for each in threads:
        each.join()
    assert told == [str(i) for i in range(8)]
    assert len(turns) == 0


def wait_until(condition: Callable[[], bool]) -> None:
    tick, gives_up_at = threading.Event(), time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < gives_up_at:
        if condition():
            return
        tick.wait(0.001)
    raise AssertionError("it never came to that")


@pytest.mark.asyncio
async def test_who_is_cancelled_while_waiting_leaves_the_line() -> None:
    turns, told = Turns(100), list[str]()
    place = await turns.take("a", LONG)
    waiting = [asyncio.create_task(in_line(turns, "a", told, str(i))) for i in range(3)]
    await come_to_rest()
    waiting[1].cancel()
    await come_to_rest()
    turns.end(place)
    await asyncio.gather(waiting[0], waiting[2])
    assert told == ["0", "2"]
    assert len(turns) == 0
    assert not turns._waits


@pytest.mark.asyncio
async def test_a_turn_that_comes_to_somebody_who_is_cancelled_goes_on_to_the_next() -> None:
    turns, told = Turns(100), list[str]()
    place = await turns.take("a", LONG)
    first, second = (asyncio.create_task(in_line(turns, "a", told, str(i))) for i in range(2))
    await come_to_rest()
    turns.end(place)  # it belongs to the first one, which does not know it yet
    first.cancel()
    await second
    assert told == ["1"]
    assert len(turns) == 0


@pytest.mark.asyncio
async def test_who_waits_for_too_long_is_told_for_whom() -> None:
    turns = Turns(100)
    task = asyncio.current_task()
    assert task is not None
    task.set_name("the slow one")
    place = await turns.take("a", LONG)
    with pytest.raises(Busy, match=r"within 0\.01 s with 'a', which the task 'the slow one' has"):
        await asyncio.create_task(turns.take("a", SHORT))
    with pytest.raises(Busy, match="0 wait for their turn with 'a', which the task 'the slow one'"):
        await asyncio.create_task(turns.take("a", 0))
    turns.end(place)
    assert len(turns) == 0


def test_a_thread_that_waits_for_too_long_leaves_the_line() -> None:
    turns = Turns(100)
    taken: list[InLine] = []
    other = threading.Thread(target=lambda: taken.append(turns.take_blocking("a", LONG)))
    other.start()
    other.join()
    with pytest.raises(Busy, match=r"within 0\.01 s"):
        turns.take_blocking("a", SHORT)
    turns.end(taken[0])
    assert len(turns) == 0
    assert not turns._waits


@pytest.mark.asyncio
async def test_no_more_wait_than_may() -> None:
    turns, told = Turns(2), list[str]()
    place = await turns.take("a", LONG)
    waiting = [asyncio.create_task(in_line(turns, "a", told, str(i))) for i in range(2)]
    await come_to_rest()
    with pytest.raises(Busy, match="2 wait for their turn"):
        await asyncio.create_task(turns.take("a", LONG))
    turns.end(place)
    await asyncio.gather(*waiting)


@pytest.mark.asyncio
async def test_a_second_turn_inside_of_the_first_is_refused_at_once() -> None:
    turns = Turns(100)
    place = await turns.take("a", LONG)
    with pytest.raises(UsageError, match="has the turn with 'a' already"):
        await turns.take("a", LONG)
    turns.end(place)


def test_a_second_turn_inside_of_the_first_is_refused_in_threads_too() -> None:
    turns = Turns(100)
    place = turns.take_blocking("a", LONG)
    with pytest.raises(UsageError, match="has the turn with 'a' already"):
        turns.take_blocking("a", LONG)
    turns.end(place)


@pytest.mark.asyncio
async def test_tasks_that_would_wait_for_each_other_are_refused_at_once() -> None:
    turns, begun = Turns(100), [asyncio.Event() for _ in range(3)]

    async def take_two(mine: int, following: int) -> None:
        place = await turns.take(f"key-{mine}", LONG)
        begun[mine].set()
        try:
            await asyncio.gather(*(each.wait() for each in begun))
            turns.end(await turns.take(f"key-{following}", LONG))
        finally:
            turns.end(place)

    circle = [asyncio.create_task(take_two(i, (i + 1) % 3)) for i in range(3)]
    results = await asyncio.gather(*circle, return_exceptions=True)
    [refused] = [each for each in results if each is not None]
    assert isinstance(refused, UsageError)
    assert "in one order" in str(refused)
    assert len(turns) == 0


def test_a_turn_that_comes_to_a_closed_loop_goes_on_to_the_next() -> None:
    """The turn does not end once more when what waited in the closed loop is destroyed."""
    turns, told = Turns(100), list[str]()
    place = turns.take_blocking("a", LONG)
    loop = asyncio.new_event_loop()
    left = loop.create_task(in_line(turns, "a", told, "gone"))
    loop.run_until_complete(come_to_rest())
    loop.close()
    taken: list[InLine] = []
    thread = threading.Thread(target=lambda: taken.append(turns.take_blocking("a", LONG)))
    thread.start()
    wait_until(lambda: len(turns._lines["a"]) == 3)
    turns.end(place)
    thread.join()
    setattr(left, "_log_destroy_pending", False)  # noqa: B010  # the stubs do not have it
    left.get_coro().close()
    assert len(turns) == 1
    turns.end(taken[0])
    assert len(turns) == 0
