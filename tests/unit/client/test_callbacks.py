"""Callbacks: in order, one at a time, where the application lives, whatever becomes of them."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.client.callbacks import Callback, Callbacks, Job
from tenure.testing.clock import TurnedClock, come_to_rest
from tests.patience import DEADLINE_SECONDS

logger = logging.getLogger("tenure.owner")


class Stage:
    def __init__(self) -> None:
        self.clock = TurnedClock()
        self.told: list[str] = []
        self.callbacks = Callbacks("owner 'a'", logger, self.clock)

    def put(self, what: str, callback: Callback | None, deadline: Instant = FAR_FUTURE) -> None:
        def then() -> None:
            self.told.append(f"after {what}")

        job = Job("on_revoke", callback, what, f"[{what})", then, deadline)
        self.callbacks.put(job)


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    stage.callbacks.start_here()
    yield stage
    stage.callbacks.stop()
    await come_to_rest()


@pytest.mark.asyncio
async def test_functions_and_coroutine_functions_are_called_in_order_one_at_a_time(
    stage: Stage,
) -> None:
    go_on = asyncio.Event()

    async def slow(what: str) -> None:
        stage.told.append(f"{what} begins")
        await go_on.wait()
        stage.told.append(f"{what} ends")

    stage.put("a", slow)
    stage.put("b", stage.told.append)
    stage.put("c", None)
    await come_to_rest()
    assert stage.told == ["a begins"]
    go_on.set()
    await come_to_rest()
    assert stage.told == ["a begins", "a ends", "after a", "b", "after b", "after c"]


@pytest.mark.asyncio
async def test_one_that_raises_is_logged_with_its_range_and_the_next_is_called(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(what: str) -> None:
        raise ValueError("no such room")

    async def cancelled(what: str) -> None:
        raise asyncio.CancelledError

    stage.put("a", broken)
    stage.put("b", cancelled)
    stage.put("c", stage.told.append)
    await come_to_rest()
    assert stage.told == ["after a", "after b", "c", "after c"]
    assert "owner 'a': on_revoke failed for [a)" in caplog.text
    assert "no such room" in caplog.text
    assert "on_revoke was cancelled for [b)" in caplog.text


@pytest.mark.asyncio
async def test_one_that_is_done_after_the_term_is_logged(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.put("in time", stage.told.append, stage.clock.after(1))
    await come_to_rest()
    assert caplog.text == ""
    stage.put("slow", lambda _: stage.clock.jump(3.5), stage.clock.after(1))
    await come_to_rest()
    assert "on_revoke was done only 2.500 s after the term had run out for [slow)" in caplog.text
    caplog.clear()
    stage.put("late", stage.told.append, stage.clock.after(-1))
    await come_to_rest()
    assert "on_revoke could begin only 1.000 s after the term had run out for [late)" in caplog.text
    assert len(caplog.records) == 1


@pytest.mark.asyncio
async def test_stopping_makes_the_calls_that_were_put_before(stage: Stage) -> None:
    stage.put("a", stage.told.append)
    stage.put("b", stage.told.append)
    stage.callbacks.stop()
    await come_to_rest()
    assert stage.told == ["a", "after a", "b", "after b"]


def test_without_a_loop_of_the_applications_they_are_called_in_a_thread() -> None:
    stage = Stage()
    done = threading.Event()
    threads: list[str] = []

    async def coroutine(what: str) -> None:
        await asyncio.sleep(0)
        threads.append(threading.current_thread().name)

    stage.callbacks.start_thread()
    stage.put("a", coroutine)
    stage.put("b", lambda _: threads.append(threading.current_thread().name))
    stage.callbacks.put(Job("", None, None, "", then=done.set))
    assert done.wait(DEADLINE_SECONDS)
    stage.callbacks.stop()
    assert threads == ["owner 'a' calls"] * 2


def test_when_the_applications_loop_is_gone_what_was_to_follow_follows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Otherwise the range would never be returned."""
    stage = Stage()

    async def application() -> None:
        stage.callbacks.start_here()
        await come_to_rest()
        stage.put("a", lambda _: asyncio.sleep(3600))
        await come_to_rest()
        stage.put("b", stage.told.append)

    asyncio.run(application())
    stage.put("c", stage.told.append)
    stage.put("d", None)
    assert stage.told == ["after a", "after b", "after c", "after d"]
    assert "on_revoke was not called for [b): the event loop" in caplog.text
    assert "[d)" not in caplog.text


def test_a_callback_that_ends_its_thread_is_the_last_and_what_follows_follows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage, over = Stage(), threading.Event()

    def leave(what: str) -> None:
        raise SystemExit(3)

    stage.put("a", leave)
    stage.put("b", stage.told.append)
    stage.callbacks.put(Job("", None, None, "", then=over.set))
    stage.callbacks.start_thread()
    assert over.wait(DEADLINE_SECONDS)
    assert stage.told == ["after a", "after b"]
    assert "on_revoke was not called for [b)" in caplog.text
