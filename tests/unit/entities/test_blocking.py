"""`with Entities`: plain methods, each call in a thread, for programs without an event loop."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from tenure import Entities, Entity, UsageError, reading
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

    @reading
    def count(self) -> int:
        return self.state.count


counters: list[Entities[Counter]] = []


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
