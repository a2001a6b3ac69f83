"""Coroutines in simulated processes: an event loop that the world drives, stops and kills."""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tenure.base.instants import MILLISECOND_NS, SECOND_NS
from tenure.errors import NotSimulated, UsageError
from tenure.sim.kernel.clocks import MILLION, SimClock
from tenure.sim.kernel.loop_process import LoopProcess
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.world import AnyTrial
from tests.unit.sim.kernel.toy import NAMES, ToyWorld

HOUR_NS = 3600 * SECOND_NS


class Code(LoopProcess):
    """A process that runs one coroutine."""

    main: "asyncio.Task[Any]"

    def on_message(self, sender: SimProcess, message: object) -> None:
        """Is never called: nobody sends it a message."""

    def on_disconnected(self, peer: tuple[str, int]) -> None:
        """It has no connections."""


MADE: list[Code] = []
THREADS = ThreadPoolExecutor(1)  # never used, so it has none


@pytest.fixture(autouse=True)
def _abandoned() -> Iterator[None]:
    yield
    while MADE:
        MADE.pop().loop.abandon()


def world_with(
    main: Callable[[], Coroutine[Any, Any, object]],
    *,
    rate: int = MILLION,
    chosen: tuple[str, ...] = (),
) -> tuple[ToyWorld, Code]:
    world = ToyWorld(AnyTrial(seed=1, faults=chosen))
    process = Code(world, "code", SimClock(5 * SECOND_NS, rate))
    world.put(process)
    process.main = process.loop.create_task(main())
    MADE.append(process)
    return world, process


def test_to_sleep_for_an_hour_is_to_be_called_later() -> None:
    woken: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(3600)
        woken.append(loop.time() - began)

    world, _ = world_with(main)
    world.run_until(HOUR_NS - 1)
    assert woken == []
    world.run_until(HOUR_NS)
    assert woken == [3600.0]


def test_time_is_that_of_the_process_own_clock() -> None:
    async def main() -> float:
        await asyncio.sleep(100)
        return asyncio.get_running_loop().time()

    world, process = world_with(main, rate=MILLION // 2)
    world.run_until(199 * SECOND_NS)
    assert not process.main.done()
    world.run_until(200 * SECOND_NS)
    assert process.main.result() == pytest.approx(105)


def test_a_stopped_process_runs_nothing_and_goes_on_where_it_was() -> None:
    seen: list[int] = []

    async def main() -> None:
        while True:
            await asyncio.sleep(1)
            seen.append(world.now // SECOND_NS)

    world, process = world_with(main)
    world.run_until(2 * SECOND_NS + 1)
    process.freeze(10 * SECOND_NS)
    process.loop.call_soon(seen.append, -1)  # what arrives waits
    world.run_until(12 * SECOND_NS)
    assert seen == [1, 2]
    world.run_until(13 * SECOND_NS + 2)
    assert seen == [1, 2, -1, 12, 13]


def test_a_killed_process_runs_nothing_any_more_not_even_its_finally() -> None:
    seen: list[str] = []

    async def main() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            seen.append("finally")

    world, process = world_with(main)
    world.run_until(SECOND_NS // 2)
    process.kill()
    process.loop.call_soon(seen.append, "called")
    world.run_until(HOUR_NS)
    assert seen == []


def test_it_may_be_stopped_wherever_it_awaits() -> None:
    apart: set[int] = set()

    async def main() -> None:
        while True:
            before = world.now
            await asyncio.sleep(0)
            apart.add((world.now - before) // MILLISECOND_NS)
            await asyncio.sleep(0.01)

    world, _ = world_with(main, chosen=("stopped at a point",))
    world.mix.rates["stopped at a point"] = 0.01
    world.faults._stop = 0.01
    world.faults.is_on = True
    world.run_until(HOUR_NS)
    assert 0 in apart
    assert len(apart) > 5


def test_a_process_that_exits_is_gone() -> None:
    async def main() -> None:
        raise SystemExit(3)

    world, process = world_with(main)
    world.run_until(SECOND_NS // 100)
    assert not process.alive


def test_what_asyncio_offers_works() -> None:
    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(1)
            yield number

    async def main() -> list[Any]:
        found: list[Any] = [number async for number in numbers()]
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(1))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.Event().wait()
        queue: asyncio.Queue[int] = asyncio.Queue()
        asyncio.get_running_loop().call_later(1, queue.put_nowait, 7)
        found += [await queue.get(), await asyncio.to_thread(sum, [1, 2])]
        cancelled = asyncio.ensure_future(asyncio.sleep(100))
        cancelled.cancel()
        await asyncio.wait({cancelled})
        async for number in numbers():
            found.append(number)
            break
        return found

    world, process = world_with(main)
    world.run_until(10 * SECOND_NS)
    assert process.main.result() == [0, 1, 2, 7, 3, 0]


@pytest.mark.asyncio
async def test_it_runs_beside_a_loop_that_runs_already() -> None:
    async def main() -> None:
        await asyncio.sleep(1)

    here = asyncio.current_task()
    world, process = world_with(main)
    world.run_until(2 * SECOND_NS)
    assert process.main.done()
    assert asyncio.current_task() is here
    assert asyncio.get_running_loop() is not process.loop


def test_a_task_has_the_context_that_it_was_given_to_its_end() -> None:
    who = contextvars.ContextVar("who", default="nobody")

    async def named() -> None:
        token = who.set("code")
        await asyncio.sleep(1)
        assert who.get() == "code"
        who.reset(token)

    async def main() -> None:
        await asyncio.get_running_loop().create_task(named(), context=contextvars.Context())

    world, process = world_with(main)
    world.run_until(2 * SECOND_NS)
    assert process.main.result() is None


def test_what_comes_from_outside_sees_the_context_of_the_process() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    seen: list[str] = []

    async def main() -> None:
        await asyncio.sleep(0)

    world, process = world_with(main)
    process.loop.context.run(who.set, "code")
    process.loop.call_soon(lambda: seen.append(who.get()))
    world.run_until(1)
    assert seen == ["code"]
    assert who.get() == "nobody"


@pytest.mark.parametrize(
    ("reach", "instead"),
    [
        (lambda: asyncio.open_connection("127.0.0.1", 1), "loop.create_connection .* a fake"),
        (lambda: asyncio.start_server(lambda *_: None, "127.0.0.1", 0), "fake|test kit"),
        (lambda: asyncio.create_subprocess_exec("true"), "loop.subprocess_exec .* a fake"),
        (lambda: asyncio.get_running_loop().run_in_executor(THREADS, print), "an executor"),
    ],
)
def test_the_world_outside_is_not_there(
    reach: Callable[[], Coroutine[Any, Any, object]], instead: str
) -> None:
    async def main() -> None:
        with pytest.raises(NotSimulated, match=instead):
            await reach()

    world, process = world_with(main)
    world.run_until(SECOND_NS)
    process.main.result()
    assert "reaches for the world outside" in "\n".join(world.story.lines(50))


def test_a_loop_is_neither_run_nor_stopped_nor_closed_by_its_code() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        for call in (loop.run_forever, loop.stop, loop.close):
            with pytest.raises(UsageError):
                call()
        assert not loop.is_closed()

    world, process = world_with(main)
    world.run_until(SECOND_NS)
    process.main.result()


def test_an_exception_that_nobody_awaits_is_not_lost() -> None:
    unhandled: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)

    world, process = world_with(main)
    process.loop.unhandled = unhandled.append
    world.run_until(SECOND_NS)
    assert isinstance(unhandled[0]["exception"], ZeroDivisionError)


def test_an_abandoned_loop_says_nothing_of_its_tasks() -> None:
    async def main() -> None:
        await asyncio.sleep(100)

    world, process = world_with(main)
    world.run_until(SECOND_NS)
    process.kill()
    process.loop.abandon()
    assert not process.main.done()
    with pytest.raises(RuntimeError, match="the event loop of code is closed"):
        process.loop.call_soon(print)


def test_what_code_sets_as_it_is_abandoned_is_not_set_for_whoever_drives_it() -> None:
    """The driver of loops would keep what belongs to one of them, and with it coroutines that end
    when that loop is closed.
    """
    turn: contextvars.ContextVar[object] = contextvars.ContextVar("turn", default=None)
    seen: list[object] = []

    async def main() -> None:
        turn.set("its own")
        try:
            await asyncio.sleep(100)
        finally:
            seen.append(where.get())
            turn.set("the one before")

    where: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="outside")
    world, process = world_with(main)
    process.loop.context.run(where.set, "inside")
    world.run_until(SECOND_NS)
    process.kill()
    process.loop.abandon()
    assert seen == ["inside"]
    assert turn.get() is None


def test_many_cancelled_timers_are_forgotten() -> None:
    async def main() -> None:
        for _ in range(10_000):
            asyncio.get_running_loop().call_later(1000, print).cancel()

    world, process = world_with(main)
    world.run_until(SECOND_NS)
    assert len(process.loop._timers) < 300


def test_with_every_fault_the_same_seed_is_the_same_story() -> None:
    def story() -> int:
        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(5):
                    group.create_task(tick(number))

        async def tick(number: int) -> None:
            while True:
                await asyncio.sleep(0.3 * (number + 1))
                world.tell("code", f"tick {number}")

        world, _ = world_with(main, chosen=NAMES)
        world.faults.is_on = True
        world.run_until(600 * SECOND_NS)
        return world.story.fingerprint

    assert story() == story()
