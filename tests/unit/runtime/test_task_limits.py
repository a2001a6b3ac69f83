"""Tasks that take too long are ended, the oldest first, by one timer for all of them."""

import asyncio

import pytest

from tenure.runtime.task_limits import EqualLimits

pytestmark = pytest.mark.asyncio

SOON = 0.02


async def limited(
    limits: EqualLimits[str], key: str, ended: list[str], come: asyncio.Event
) -> None:
    limit = limits.begin(key)
    try:
        with limit:
            await come.wait()
    except TimeoutError:
        ended.append(key)
    finally:
        limits.end(limit)


async def test_the_oldest_is_ended_first_and_each_in_its_time() -> None:
    limits, ended, never = (
        EqualLimits[str](asyncio.get_running_loop(), SOON),
        list[str](),
        asyncio.Event(),
    )
    first = asyncio.create_task(limited(limits, "first", ended, never))
    await asyncio.sleep(SOON / 2)
    second = asyncio.create_task(limited(limits, "second", ended, never))
    await asyncio.gather(first, second)
    assert ended == ["first", "second"]
    assert limits.oldest is None


async def test_what_ends_by_itself_is_left_alone_and_the_next_has_a_limit_too() -> None:
    ended: list[str] = []
    limits, come = EqualLimits[str](asyncio.get_running_loop(), SOON), asyncio.Event()
    come.set()
    await limited(limits, "quick", ended, come)
    await limited(limits, "slow", ended, asyncio.Event())
    await limited(limits, "after the timer had nothing to do", ended, asyncio.Event())
    assert ended == ["slow", "after the timer had nothing to do"]


async def test_who_is_cancelled_by_somebody_else_stays_cancelled() -> None:
    ended: list[str] = []
    limits, never = EqualLimits[str](asyncio.get_running_loop(), 60), asyncio.Event()
    task = asyncio.create_task(limited(limits, "a", ended, never))
    await asyncio.sleep(0)
    oldest = limits.oldest
    assert oldest is not None
    oldest.end_it()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == []


async def test_what_is_kept_after_its_body_is_not_ended_any_more() -> None:
    limits = EqualLimits[str](asyncio.get_running_loop(), SOON)
    limit = limits.begin("a")
    with limit:
        pass
    await asyncio.sleep(2 * SOON)
    assert not limit.has_ended_it
    assert len(limits) == 1
    limits.end(limit)
