"""A cache reads from its own memory, and nothing that is older than the last completed write."""

import asyncio
from threading import Thread

import pytest

from tenure import errors
from tenure.base.keys import Key
from tenure.cache.hit import MISSING
from tenure.cache.volume_engine import VolumeEngine
from tenure.protocol.volume.client.events import TellReaders
from tenure.protocol.volume.messages import AsOf
from tests.patience import DEADLINE_SECONDS
from tests.unit.cache.stage import URL, stage

pytestmark = pytest.mark.asyncio


async def test_what_was_fetched_is_hit() -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        assert cache.peek("a") is MISSING
        assert await cache.get("a") == "old"
        assert cache.peek("a") == "old"
        assert await cache.get("a") == "old"
        assert it.loads == ["a"]


async def test_that_there_is_no_such_object_is_kept_too() -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        assert await cache.get("z") is None
        assert cache.peek("z") is None
        assert it.loads == ["z"]


async def test_while_a_body_runs_nobody_hits_the_old_value_and_afterwards_nobody_does() -> None:
    """C2."""
    async with stage() as it:
        volume = await it.serve()
        one, other = await it.enter(), await it.enter()
        assert [await one.get("a"), await other.get("a")] == ["old", "old"]
        async with volume.write("a") as write:
            assert write.waited == 0.0  # no time has passed: both have let go
            assert [one.peek("a"), other.peek("a")] == [MISSING, MISSING]
            it.rows["a"] = "new"
        assert [await one.get("a"), await other.get("a")] == ["new", "new"]


async def test_what_all_holders_are_told_is_encoded_once() -> None:
    async with stage() as it:
        volume = await it.serve()
        engine = volume.runs
        assert isinstance(engine, VolumeEngine)
        caches = [await it.enter() for _ in range(20)]
        for writes in (1, 2):
            for cache in caches:
                await cache.get("a")
            await volume.changed("a")
            assert [cache.peek("a") for cache in caches] == [MISSING] * 20
            assert engine.items.count == writes


async def test_a_write_waits_for_a_cache_that_is_gone_and_no_longer_than_its_lease() -> None:
    """C3: rho times t_v, 3.25 s."""
    async with stage() as it:
        volume = await it.serve()
        cache = await it.enter()
        await cache.get("a")
        it.cluster.crash(cache._client)  # type: ignore[arg-type]
        write = volume.write("a")
        entering = asyncio.ensure_future(write.__aenter__())
        await it.turn(3.2)
        assert not entering.done()
        await it.turn(0.1)
        assert entering.done()
        assert 3.2 < write.waited <= 3.25
        await write.__aexit__(None, None, None)


async def test_who_has_changed_something_elsewhere_tells_it() -> None:
    async with stage() as it:
        volume = await it.serve()
        cache = await it.enter()
        await cache.get("a")
        it.rows["a"] = "new"
        assert cache.peek("a") == "old"  # nobody could know
        await volume.changed("a", "b")
        assert cache.peek("a") is MISSING
        assert await cache.get("a") == "new"


async def test_a_cache_writes_by_the_servers_store() -> None:
    async with stage() as it:
        await it.serve()
        one, other = await it.enter(), await it.enter()
        assert [await one.get("a"), await other.get("a")] == ["old", "old"]
        await one.write("a", "new")
        assert one.peek("a") == "new"  # the answer has filled its entry
        assert other.peek("a") is MISSING
        assert await other.get("a") == "new"
        assert it.fences == [1]


async def test_a_cache_in_use_never_waits_for_a_renewal() -> None:
    """C7."""
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        await cache.get("a")
        for _ in range(100):
            await it.turn(0.3)
            assert cache.peek("a") == "old"
        assert it.loads == ["a"]


async def test_a_cache_that_was_not_used_asks_once_for_all_it_has() -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        await cache.get("a")
        await cache.get("b")
        await it.turn(20)
        assert cache.peek("a") is MISSING
        assert await cache.get("b") == "old b"
        assert cache.peek("a") == "old"
        assert it.loads == ["a", "b"]


async def test_all_who_want_the_same_object_share_one_load() -> None:
    """V10."""
    async with stage() as it:
        gate, loads = asyncio.Event(), []

        async def load(key: str) -> str:
            loads.append(key)
            await gate.wait()
            return "slow"

        await it.serve(it.volume(load=load))
        one, other = await it.enter(), await it.enter()
        reads = [asyncio.ensure_future(each.get("a")) for each in (one, one, other, one)]
        await it.turn(0.1)
        gate.set()
        assert await asyncio.gather(*reads) == ["slow"] * 4
        assert loads == ["a"]


async def test_a_slow_load_is_asked_for_less_and_less() -> None:
    """A client that asks again at the same rate makes a slow server slower, and throws away its
    answers.
    """
    async with stage() as it:
        gate = asyncio.Event()

        async def load(key: str) -> str:
            await gate.wait()
            return key

        await it.serve(it.volume(load=load))
        cache = await it.enter()
        reading = asyncio.ensure_future(cache.get("a"))
        await it.turn(4.5)
        assert cache.stats()["sent"] == 1 + 5  # at 0, 0.5, 1, 2 and 4 s
        gate.set()
        assert await reading == "a"


async def test_what_somebody_has_seen_nobody_reads_older() -> None:
    """C5, in the mode in which a cache may be behind."""
    async with stage() as it:
        volume = await it.serve(it.volume(mode="best effort"))
        one, other = await it.enter(), await it.enter()
        assert await other.get("a") == "old"
        it.cut_all()  # it hears of no write, and its leases run on
        async with volume.write("a"):
            it.rows["a"] = "new"
        assert await one.get("a") == "new"
        assert other.peek("a") == "old"
        seen = one.proof("a")
        assert seen is not None
        await other.saw("a", seen.as_of)
        assert other.peek("a") is MISSING
        assert await other.get("a") == "new"


async def test_a_proof_says_why_an_entry_may_be_read() -> None:
    async with stage() as it:
        volume = await it.serve()
        cache, other = await it.enter(), await it.enter()
        assert cache.proof("a") is None
        await cache.get("a")
        proof = cache.proof("a")
        assert proof is not None
        assert (proof.valid_for, proof.server) == (3.0, URL)
        await volume.changed("b")
        await other.get("a")
        seen = other.proof("a")
        assert seen is not None
        assert seen.as_of.covers(proof.as_of)
        await cache.saw("a", seen.as_of)
        assert cache.peek("a") is MISSING  # it may be older, for all that is known
        assert await cache.get("a") == "old"
        await it.turn(4)
        assert cache.proof("a") is None


async def test_the_last_known_value_has_an_age() -> None:
    async with stage() as it:
        volume = await it.serve()
        cache = await it.enter()
        assert cache.last_known("a") is None
        await cache.get("a")
        assert cache.last_known("a") == ("old", 0.0)
        await it.turn(13)
        assert cache.last_known("a") == ("old", 10.0)
        await cache.get("a")
        await volume.changed("a")
        assert cache.last_known("a") is None  # it is known to be old


async def test_what_a_reader_was_given_without_a_lease_is_known_last() -> None:
    """While a write runs, readers get a value that may be hit by nobody."""
    async with stage() as it:
        volume = await it.serve()
        cache = await it.enter(patience=1)
        await cache.get("a")
        async with volume.write("a", "none"):
            it.rows["a"] = "new"
            assert await cache.get("a") == "new"
            assert await cache.get("none") is None
        assert cache.peek("a") is MISSING
        assert cache.proof("a") is None
        assert cache.stats()["live"] == 0
        await it.turn(5)
        assert cache.last_known("a") == ("new", 5.0)
        assert cache.last_known("none") == (None, 5.0)


async def test_what_was_written_without_a_lease_is_known_last() -> None:
    """Another write of the same object follows, and its holders are told before it runs."""
    async with stage() as it:
        gate = asyncio.Event()

        async def store(key: str, value: str, fence: int) -> None:
            await gate.wait()

        volume = await it.serve(it.volume(store=store))
        cache = await it.enter()
        async with volume.write("a"):
            assert await cache.get("a") == "old"
        writing = asyncio.ensure_future(cache.write("a", "mine"))
        await it.turn(1)
        assert cache.last_known("a") is None  # it may be written by now

        async def follow() -> None:
            async with volume.write("a"):
                await it.turn(0)

        following = asyncio.ensure_future(follow())
        await it.turn(0)
        gate.set()
        await writing
        assert cache.peek("a") is MISSING
        known = cache.last_known("a")
        assert known is not None
        assert known.value == "mine"
        await following


async def test_entries_make_room_and_what_is_read_stays() -> None:
    async with stage() as it:
        it.rows = {f"k{i}": f"v{i}" for i in range(10)}
        await it.serve()
        cache = await it.enter(limit=4)
        for i in range(4):
            await cache.get(f"k{i}")
        assert cache.peek("k0") == "v0"
        for i in range(4, 7):
            await cache.get(f"k{i}")
        assert cache.peek("k0") == "v0"
        assert [cache.peek(f"k{i}") for i in range(1, 4)] == [MISSING] * 3
        assert cache.stats()["entries"] == 4
        assert cache.stats()["evicted"] == 3
        assert await cache.get("k1") == "v1"


async def test_large_values_make_room_by_their_bytes() -> None:
    async with stage() as it:
        it.rows = {f"k{i}": "x" * 10_000 for i in range(10)}
        await it.serve()
        cache = await it.enter(limit_bytes=50_000)
        for i in range(10):
            assert await cache.get(f"k{i}") == "x" * 10_000
        assert cache.stats()["entries"] == 4
        assert cache.stats()["bytes"] < 50_000


async def test_a_server_that_is_not_there_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async with stage() as it:
        cache = await it.enter(patience=2)
        reading = asyncio.ensure_future(cache.get("a"))
        writing = asyncio.ensure_future(cache.write("a", "x"))
        await it.turn(2.1)
        with pytest.raises(errors.Unreachable, match=URL):
            await reading
        await it.turn(30)
        with pytest.raises(errors.Unreachable, match=r"was not sent.*7500"):
            await writing
    assert f"cache of {URL} notes: server unreachable: {URL}" in caplog.messages


async def test_a_cache_that_was_told_another_value_type() -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter(value_type=int)
        for _ in range(2):
            with pytest.raises(errors.ValueTypeError, match="not of this cache's value_type"):
                await asyncio.wait_for(cache.get("a"), DEADLINE_SECONDS)
            assert cache.peek("a") is MISSING
        assert it.loads == ["a", "a"]


async def test_threads_read_the_same_cache() -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        found: list[str | None] = []

        def read() -> None:
            found.append(cache.in_threads.get("a"))
            cache.in_threads.write("b", "from a thread")

        thread = Thread(target=read)
        thread.start()
        while thread.is_alive():
            await it.turn(0)
        thread.join()
        assert found == ["old"]
        assert cache.peek("b") == "from a thread"


async def test_whoever_is_left_reads_nothing() -> None:
    async with stage() as it:
        await it.serve()
        cache = it.cache()
        with pytest.raises(errors.ClosedError, match="not entered"):
            cache.peek("a")
        async with cache:
            await cache.get("a")
        with pytest.raises(errors.ClosedError, match="left"):
            cache.peek("a")
        with pytest.raises(errors.ClosedError, match="left"):
            await cache.get("a")
        with pytest.raises(errors.ClosedError, match="left"):  # it left while this one looked
            cache._client._engine.want(Key(b"a")).result(0)


async def test_whoever_waits_when_a_cache_ends_is_told() -> None:
    async with stage() as it:
        gate = asyncio.Event()

        async def load(key: str) -> str:
            await gate.wait()
            return key

        async def store(key: str, value: str, fence: int) -> None:
            await gate.wait()

        await it.serve(it.volume(load=load, store=store))
        cache = await it.enter()
        waiting = [asyncio.ensure_future(each) for each in (cache.get("a"), cache.write("b", "x"))]
        await it.turn(0.1)
        it.cluster.crash(cache._client)  # type: ignore[arg-type]
        await it.turn(0)
        gate.set()
        for each in waiting:
            assert each.done()
            with pytest.raises(errors.ClosedError, match="left"):
                await each


async def test_what_ends_in_a_forked_child_still_says_that_it_was_forked() -> None:
    async with stage() as it:
        cache = await it.enter()
        engine = cache._client._engine
        engine.board.on_fork()
        engine.end()
        with pytest.raises(errors.ForkedError):
            cache.peek("a")
        engine.board.is_forked = False


async def test_what_was_evicted_before_its_readers_were_told_is_asked_for_again() -> None:
    """Its server has said that the entry is current, and the entry is gone by then."""
    async with stage() as it:
        gates = [asyncio.Event(), asyncio.Event()]
        loads = iter(gates)

        async def load(key: str) -> str:
            await next(loads).wait()
            return "old"

        await it.serve(it.volume(load=load))
        cache = await it.enter(patience=10)
        engine = cache._client._engine
        reading = asyncio.ensure_future(cache.get("a"))
        await it.turn(0)
        (ticket,) = engine._reading
        as_of = AsOf(history=1, number=1, count=0)
        current = TellReaders((ticket,), Key(b"a"), "unchanged", as_of=as_of)
        engine.shell.call(lambda: engine.perform(current))
        await it.turn(0)
        assert not reading.done()
        for gate in gates:
            gate.set()
        assert await it.after(1, reading) == "old"


async def test_who_leaves_holds_no_write_up() -> None:
    async with stage() as it:
        volume = await it.serve()
        async with it.cache() as cache:
            await cache.get("a")
        await it.turn(0)
        async with volume.write("a") as write:
            assert write.waited == 0.0
