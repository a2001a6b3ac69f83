"""`with Entities`: plain methods, each call in a thread, for programs without an event loop."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import msgspec
import pytest

from tenure import ClosedError, Entities, Entity, UsageError, reading
from tenure.entities.entity_readers import EntityReaders
from tenure.testing.clock import come_to_rest
from tests.unit.entities.stage import on_stage
from tests.unit.manager.serving import serving


class Hits(msgspec.Struct):
    count: int = 0


class Counter(Entity[Hits]):
    def add(self, by: int = 1) -> int:
        before = self.state.count
        time.sleep(0.001)
        self.state.count = before + by
        return self.state.count

    def add_and_fail(self) -> None:
        self.state.count += 1
        _ = self.commit()
        self.state.count += 100
        raise ValueError("on purpose")

    def add_to(self, other: str, by: int) -> int:
        self.state.count -= by
        return counters[0][other].add(by)

    async def added(self) -> int:
        return self.state.count

    async def add_there(self, other: str, by: int) -> int:
        return await counters[0][other].add(by)  # type: ignore[misc,no-any-return]  # in its loop

    def next_of_none(self) -> int:
        self.state.count += 100
        return next(iter(()))

    def stand(self) -> int:
        self.state.count += 1
        inside.set()
        go_on.wait()
        inside.clear()
        return self.state.count

    @reading
    def count(self) -> int:
        return self.state.count


counters: list[Entities[Counter]] = []
inside, go_on = Event(), Event()


def use(url: str) -> None:
    with Entities(Counter, "counters", url) as entered:
        counters[:] = [entered]
        with ThreadPoolExecutor(8) as threads:
            assert sorted(threads.map(lambda _: entered["hits"].add(), range(40))) == list(
                range(1, 41)
            )
        with pytest.raises(ValueError, match="on purpose"):
            entered["hits"].add_and_fail()
        assert entered["hits"].count() == 41
        assert entered["hits"].add_to("other", 5) == 5
        assert entered["hits"].count() == 36
        with pytest.raises(UsageError, match="circle"):
            entered["hits"].add_to("hits", 1)
    with pytest.raises(UsageError):
        entered["hits"].count()


@pytest.mark.asyncio
async def test_methods_run_in_threads_one_at_a_time_for_a_key() -> None:
    async with serving() as manager:
        await asyncio.to_thread(use, manager.service.url)


def use_oddly(url: str) -> None:
    with Entities(Counter, "counters", url, deadline=2.0) as entered:
        counters[:] = [entered]
        there: object = entered["hits"].add_there("other", 5)
        assert there == 5
        with pytest.raises(RuntimeError, match="StopIteration"):
            entered["hits"].next_of_none()
        with pytest.raises(UsageError, match="entered already"):
            entered.__enter__()
        with pytest.raises(UsageError, match="entered already"):
            asyncio.run(entered.__aenter__())
        assert entered["hits"].add() == 1
    asyncio.run(use_in_a_loop(entered))
    with entered:
        assert entered["hits"].add() == 1


async def use_in_a_loop(entered: Entities[Counter]) -> None:
    async with entered:
        assert await entered["hits"].added() == 0
        with pytest.raises(UsageError, match="async def add"):
            await entered["hits"].add()  # type: ignore[misc]  # which it refuses
        with pytest.raises(UsageError, match="entered already"):
            entered.__enter__()
        assert await entered["hits"].added() == 0


@pytest.mark.asyncio
async def test_whoever_enters_twice_or_raises_what_no_future_has_harms_nobody() -> None:
    async with serving() as manager, asyncio.timeout(30):
        await asyncio.to_thread(use_oddly, manager.service.url)


@pytest.mark.asyncio
async def test_a_turn_in_a_thread_lasts_as_long_as_the_thread_however_often_cancelled() -> None:
    inside.clear()
    go_on.clear()
    async with on_stage(1, kind=Counter) as stage:
        (entered,) = stage.members
        entered.in_threads = True
        standing = asyncio.create_task(entered["hits"].stand())
        await asyncio.to_thread(inside.wait)
        for _ in range(2):
            standing.cancel()
            await come_to_rest()
        adding = asyncio.create_task(entered["hits"].add())
        await come_to_rest()
        try:
            assert inside.is_set()
            assert not standing.done(), "no second call runs beside the thread"
            assert not adding.done()
        finally:
            go_on.set()
        assert await adding == 1
        with pytest.raises(asyncio.CancelledError):
            await standing


@pytest.mark.asyncio
async def test_another_event_loop_is_refused() -> None:
    """As that of a thread in which a `def` endpoint runs."""

    def elsewhere() -> None:
        with pytest.raises(UsageError, match="entered in another event loop"):
            asyncio.run(entered["hits"].added())
        with pytest.raises(UsageError, match="entered in another event loop"):
            asyncio.run(entered["hits"].attach(None))

    async with on_stage(1, kind=Counter) as stage:
        (entered,) = stage.members
        await asyncio.to_thread(elsewhere)
        assert await entered["hits"].added() == 0


class Board(Entity[Hits]):
    def add(self) -> int:
        self.state.count += 1
        return self.state.count

    @reading
    def count(self) -> int:
        return self.state.count

    @reading
    async def counted(self) -> int:
        return self.state.count

    @reading
    def fail(self) -> int:
        raise ValueError("on purpose")


def read_everywhere(url: str) -> None:
    with Entities(Board, "boards", url, reads="everywhere", deadline=5.0) as owner:
        readers = Entities(Board, "boards", url, reads="everywhere", deadline=5.0).readers()
        with readers as boards:
            assert boards["a"].add() == 1
            until_here = time.monotonic() + 30
            while not hits_of(boards):
                assert boards["a"].count() == 1
                assert time.monotonic() < until_here, "no copy is read in this process"
            with ThreadPoolExecutor(8) as threads:
                before = hits_of(boards)
                assert {*threads.map(lambda _: boards["a"].count(), range(40))} == {1}
                assert hits_of(boards) == before + 40
            there: object = boards["a"].counted()
            assert there == 1
            assert owner["a"].add() == 2
            assert boards["a"].count() == 2
            with pytest.raises(ValueError, match="on purpose"):
                boards["a"].fail()
            with pytest.raises(UsageError, match="these readers are entered already"):
                readers.__enter__()
        with pytest.raises(ClosedError, match="these readers are not entered"):
            boards["a"].count()
        with readers as again:
            assert again["a"].count() == 2


def hits_of(readers: EntityReaders[Board]) -> int:
    assert readers._place is not None
    return readers._place.copies.hits


@pytest.mark.asyncio
async def test_readers_of_a_program_without_an_event_loop_read_in_threads() -> None:
    async with serving() as manager, asyncio.timeout(60):
        await asyncio.to_thread(read_everywhere, manager.service.url)
