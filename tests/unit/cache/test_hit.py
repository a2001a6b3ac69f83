"""The steps of a hit, which `peek` and `get` have written out, are in the order of rule V1."""

import pytest

from tenure.base.instants import Instant
from tenure.cache.board import CachedValue, CountedLease
from tenure.protocol.volume.client.entries import Entries
from tenure.protocol.volume.messages import AsOf
from tests.unit.cache.stage import stage

AS_OF = AsOf(history=1, number=1, count=1)
LATER = Instant(1 << 60)


class Steps(list[str]):
    """The steps of readers, one after another."""

    def lease(self) -> CountedLease:
        steps = self

        class Lease(CountedLease):
            @property
            def until(self) -> Instant:
                steps.append("end of the volume lease")
                return LATER

            @until.setter
            def until(self, value: Instant) -> None:
                pass

        return Lease()

    def entry(self) -> CachedValue:
        steps = self

        class Value(CachedValue):
            @property
            def is_live(self) -> bool:
                steps.append("live")
                return True

            @is_live.setter
            def is_live(self, value: bool) -> None:
                pass

        return Value(self.lease(), LATER, AS_OF, "old", 1)

    def clock(self) -> Instant:
        self.append("clock")
        return Instant(0)


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["peek", "get", "the protocol"])
async def test_the_lease_is_read_before_the_entry_is_seen_live_and_the_clock_last(how: str) -> None:
    steps = Steps()
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        entries = {"a": steps.entry()}
        cache._there, cache._clock = entries, steps.clock
        if how == "peek":
            assert cache.peek("a") == "old"
        elif how == "get":
            assert await cache.get("a") == "old"
        else:
            protocol = Entries()
            protocol.objects = {b"a": steps.entry()}
            assert protocol.hit(b"a", steps.clock) is not None
    assert steps == ["end of the volume lease", "live", "clock"]


DEAD = ("its volume lease ended", "its object lease ended", "it is suspect")


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["peek", "get", "proof", "the protocol"])
@pytest.mark.parametrize("why", DEAD)
async def test_nothing_is_hit_past_one_of_its_ends_or_in_doubt(how: str, why: str) -> None:
    lease = CountedLease()
    lease.until = Instant(5 if why == DEAD[0] else 20)
    entry = CachedValue(lease, Instant(5 if why == DEAD[1] else 20), AS_OF, "stale", 1)
    entry.is_live = why != DEAD[2]
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        cache._there, cache._clock = {"a": entry}, lambda: Instant(5)
        protocol = Entries()
        protocol.objects = {b"a": entry}
        if how == "get":
            assert await cache.get("a") == "old"
        elif how == "the protocol":
            assert protocol.hit(b"a", lambda: Instant(5)) is None
        else:
            assert not (cache.peek("a") if how == "peek" else cache.proof("a"))
    assert lease.hits == 0
    assert not entry.was_read


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["peek", "get"])
async def test_a_hit_is_counted_and_says_that_its_entry_was_read(how: str) -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        await cache.get("a")
        entry = cache._board.there["a"]
        hits, entry.was_read = entry.lease.hits, False
        assert (cache.peek("a") if how == "peek" else await cache.get("a")) == "old"
        assert entry.lease.hits == hits + 1
        assert entry.was_read
