"""Caches read what owners own, wherever it moves, and nothing that is older than the last write."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tenure import (
    MISSING,
    Cache,
    ConfigurationError,
    KeyedState,
    LeaseLost,
    Lookup,
    NotOwner,
    Owner,
    Unreachable,
    Volume,
)
from tenure.protocol.lease.answers import Owners, OwnerSummary
from tenure.protocol.lease.leader.events import ListOwners
from tenure.protocol.lease.steering_events import Drain, Evict
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster

pytestmark = pytest.mark.asyncio
TERM = 0.3
ROOMS = [f"room-{i}" for i in range(20)]


class Rooms:
    """An owner of rooms, its state, and what caches read."""

    def __init__(self, cluster: InProcessCluster, **options: Any) -> None:  # noqa: ANN401
        self.state: KeyedState[str] = KeyedState(value_type=str)
        self.loads: list[str] = []
        self.storing = ""
        self.gate = asyncio.Event()
        """Stores wait for it."""
        self.gate.set()
        self.volume: Volume[str] = Volume(
            self.load, self.store, value_type=str, **{"term": TERM, **options}
        )
        self.owner: Owner = cluster.owner(volume=self.volume, hand_off=self.state)

    def load(self, key: str) -> str | None:
        self.loads.append(key)
        return self.state.get(key)

    async def store(self, key: str, value: str, fence: int) -> None:
        assert fence > 0
        self.storing = key
        try:
            await self.gate.wait()
            self.state[key] = value
        finally:
            self.storing = ""


class Stage:
    def __init__(self, cluster: InProcessCluster, stack: AsyncExitStack) -> None:
        self.cluster = cluster
        self.lookups: list[Lookup] = []
        """The lookups of the caches, in order."""
        self._stack = stack

    async def rooms(self, **options: Any) -> Rooms:  # noqa: ANN401
        rooms = Rooms(self.cluster, **options)
        await self.turning(self._stack.enter_async_context(rooms.owner))
        await self.cluster.turn(1)
        return rooms

    async def cache(self, **options: Any) -> Cache[str]:  # noqa: ANN401
        lookup = await self._stack.enter_async_context(self.cluster.lookup())
        self.lookups.append(lookup)
        environment = ClusterEnvironment(self.cluster)
        cache: Cache[str] = Cache(lookup, value_type=str, _environment=environment, **options)
        return await self._stack.enter_async_context(cache)

    async def turning(self, what: Any, seconds: float = 60) -> Any:  # noqa: ANN401
        """Turn the clock until it is done."""
        task = asyncio.ensure_future(what)
        for _ in range(int(seconds * 20)):
            await self.cluster.turn(0.05)
            if task.done():
                return task.result()
        raise AssertionError(f"not within {seconds} s")


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    clock = TurnedClock()
    async with InProcessCluster(["rooms"], clock=clock) as cluster:
        stack = AsyncExitStack()
        it = Stage(cluster, stack)
        try:
            yield it
        finally:
            closing = asyncio.ensure_future(stack.aclose())
            while not closing.done():  # an owner without a manager leaves by the real clock
                await cluster.turn(0.05)
            await closing


async def test_a_room_is_read_at_two_frontends_and_written_at_its_owner() -> None:
    async with stage() as it:
        rooms = await it.rooms()
        rooms.state["room-42"] = "old"
        one, other = await it.cache(), await it.cache()
        assert await it.turning(one.get("room-42")) == "old"
        assert await it.turning(other.get("room-42")) == "old"
        assert (one.peek("room-42"), rooms.loads) == ("old", ["room-42"] * 2)
        async with rooms.volume.write("room-42"):
            assert (one.peek("room-42"), other.peek("room-42")) == (MISSING, MISSING)
            rooms.state["room-42"] = "new"
        assert await it.turning(one.get("room-42")) == "new"
        await it.turning(one.write("room-42", "newer"))
        assert await it.turning(other.get("room-42")) == "newer"


async def test_a_cache_reads_what_moves_and_nobody_reads_an_old_value() -> None:
    """Drained while it is served, and moved with its state (V12)."""
    async with stage() as it:
        first = await it.rooms()
        for room in ROOMS:
            first.state[room] = "old"
        cache = await it.cache(patience=20)
        for room in ROOMS:
            assert await it.turning(cache.get(room)) == "old"
        second = await it.rooms()
        for _ in range(100):
            await it.cluster.turn(0.1)
            if len(second.state):
                break
        await it.cluster.turn(2)
        moved = [room for room in ROOMS if second.owner.check(room)]
        assert moved
        for room in moved:
            async with second.volume.write(room):
                second.state[room] = "new"
        for room in ROOMS:
            assert await it.turning(cache.get(room)) == ("new" if room in moved else "old")
        with pytest.raises(NotOwner):
            await it.turning(first.volume.changed(moved[0]))


async def test_what_is_known_of_writes_moves_along_and_only_what_was_written_is_fetched_anew() -> (
    None
):
    """V15: an entry that nobody has written since is current at the next owner too."""
    async with stage() as it:
        first = await it.rooms()
        for room in ROOMS:
            first.state[room] = "old"
        cache = await it.cache(patience=20)
        for room in ROOMS:
            assert await it.turning(cache.get(room)) == "old"
        async with first.volume.write(*ROOMS[::2]):
            for room in ROOMS[::2]:
                first.state[room] = "new"
        first.loads.clear()
        second = await it.rooms()
        for _ in range(100):
            await it.cluster.turn(0.1)
            if len(second.state):
                break
        await it.cluster.turn(2)
        moved = [room for room in ROOMS if second.owner.check(room)]
        for room in ROOMS:
            assert await it.turning(cache.get(room)) == ("new" if room in ROOMS[::2] else "old")
        assert {room in ROOMS[::2] for room in moved} == {True, False}
        assert second.loads == [room for room in moved if room in ROOMS[::2]]
        assert first.loads == [room for room in ROOMS[::2] if room not in moved]


async def test_what_an_owner_returns_is_withdrawn_first() -> None:
    """It closes while a cache may hit: no other owner gets the range before that is over (V12)."""
    async with stage() as it:
        first = await it.rooms()
        second = await it.rooms()
        room = next(room for room in ROOMS if first.owner.check(room))
        first.state[room] = "old"
        cache = await it.cache(patience=20)
        assert await it.turning(cache.get(room)) == "old"
        await it.turning(first.owner.close(drain=0))
        await it.cluster.turn(1)
        assert second.owner.check(room)
        assert cache.peek(room) is MISSING
        assert await it.turning(cache.get(room)) is None


async def test_no_read_lease_outlives_its_owners_term() -> None:
    """V11: the owner is cut off from its manager, and hits end before its term does."""
    async with stage() as it:
        rooms = await it.rooms()
        rooms.state["room-42"] = "old"
        cache = await it.cache(patience=1)
        assert await it.turning(cache.get("room-42")) == "old"
        it.cluster.kill_manager()
        hits = 0
        while rooms.owner.check("room-42"):
            hits += cache.peek("room-42") == "old"
            await it.cluster.turn(0.05)
        assert hits
        assert cache.peek("room-42") is MISSING
        with pytest.raises(Unreachable):
            await it.turning(cache.get("room-42"))


async def test_after_a_crash_nobody_writes_while_caches_may_hit() -> None:
    """The hold covers it: read leases ended before the owner's term did (V11)."""
    async with stage() as it:
        first = await it.rooms()
        second = await it.rooms()
        room = next(room for room in ROOMS if first.owner.check(room))
        first.state[room] = "old"
        cache = await it.cache(patience=20)
        assert await it.turning(cache.get(room)) == "old"
        it.cluster.crash(first.owner)
        while not second.owner.check(room):
            await it.cluster.turn(0.05)
        assert cache.peek(room) is MISSING
        assert await it.turning(cache.get(room)) is None


def is_confirmed_dead(it: Stage, owner: Owner) -> None:
    """It crashes, and an operator says so: what it had is free at once (P14)."""
    it.cluster.crash(owner)
    incarnation = listed(it, owner).incarnation
    it.cluster.ask(Evict(pool="rooms", incarnation=incarnation, confirmed_dead=True))


def listed(it: Stage, owner: Owner) -> OwnerSummary:
    """Return what the managers say about it."""
    found = it.cluster.ask(ListOwners("rooms"))
    assert isinstance(found, Owners)
    (summary,) = (each for each in found.owners if each.address == owner.address)
    return summary


@pytest.mark.parametrize("durable", [False, True])
async def test_after_a_confirmed_death_nobody_writes_while_caches_may_hit(*, durable: bool) -> None:
    """V13: the dead withdraw nothing. Where state died too its loss is a write, and reads wait."""
    async with stage() as it:
        first, second = [await it.rooms(durable=durable, term=1.0) for _ in range(2)]
        room = next(room for room in ROOMS if first.owner.check(room))
        first.state[room] = "old"
        holder, other = await it.cache(), await it.cache(patience=20)
        assert await it.turning(holder.get(room)) == "old"
        it.cluster.crash(it.lookups[0])  # the holder hears of nothing
        is_confirmed_dead(it, first.owner)
        while not second.owner.check(room):
            await it.cluster.turn(0.01)
        reading = asyncio.ensure_future(other.get(room))
        writing = asyncio.ensure_future(second.volume.changed(room))
        await it.cluster.turn(0.1)
        hits = 0
        while holder.peek(room) is not MISSING:
            hits += 1
            assert reading.done() == durable
            assert not writing.done()
            await it.cluster.turn(0.05)
        assert hits
        assert await it.turning(reading) is None
        await it.turning(writing)


class Rows:
    """A database that many owners use, which refuses numbers below the highest that it has seen."""

    def __init__(self) -> None:
        self.rows = dict.fromkeys(ROOMS, "old")
        self.fences = dict.fromkeys(ROOMS, 0)

    def load(self, key: str, fence: int) -> str | None:
        self.fences[key] = max(self.fences[key], fence)
        return self.rows[key]

    def store(self, key: str, value: str, fence: int) -> None:
        if fence < self.fences[key]:
            raise ValueError(f"{fence} is past: {self.fences[key]} writes here")
        self.rows[key] = value


async def test_what_a_dead_owner_writes_late_is_refused_from_before_its_row_is_read() -> None:
    """V14: `load` takes the number below which the store must refuse."""
    async with stage() as it:
        rows = Rows()
        owners = []
        for _ in range(2):
            volume: Volume[str] = Volume(
                rows.load, rows.store, value_type=str, term=TERM, durable=True
            )
            owners.append(it.cluster.owner(volume=volume))
            await it.turning(owners[-1].__aenter__())
        await it.cluster.turn(1)
        first, second = owners
        room = next(room for room in ROOMS if first.check(room))
        cache = await it.cache(patience=20)
        assert await it.turning(cache.get(room)) == "old"
        dead = rows.fences[room]
        lease = first.check(room)
        assert lease is not None
        assert dead == lease.number
        it.cluster.crash(first)
        while not second.check(room):
            await it.cluster.turn(0.05)
        assert await it.turning(cache.get(room)) == "old"
        assert rows.fences[room] > dead
        with pytest.raises(ValueError, match="is past"):
            rows.store(room, "late", dead)
        await it.turning(cache.write(room, "new"))
        assert await it.turning(cache.get(room)) == "new"
        await it.turning(second.close())


async def test_a_load_with_a_default_is_not_given_the_fence() -> None:
    """`dict.get(key, default)` would return it for a room that is not there."""
    async with stage() as it:
        volume: Volume[str] = Volume({"room-1": "one"}.get, value_type=str, term=TERM)
        owner = it.cluster.owner(volume=volume)
        await it.turning(owner.__aenter__())
        await it.cluster.turn(1)
        cache = await it.cache(patience=20)
        assert await it.turning(cache.get("room-1")) == "one"
        assert await it.turning(cache.get("room-42")) is None
        await it.turning(owner.close())


async def test_state_that_is_handed_over_may_be_read_while_its_range_is_quiet() -> None:
    """A new leader does not know which owners have died, and calls all ranges quiet (V13): writes
    wait.
    """
    async with stage() as it:
        first, second = await it.rooms(term=1.0), await it.rooms(term=1.0)
        room = next(room for room in ROOMS if first.owner.check(room))
        first.state[room] = "here"
        cache = await it.cache(patience=20)
        it.cluster.start_manager(it.cluster.kill_manager())
        while not it.cluster.leader:
            await it.cluster.turn(0.01)
        await it.cluster.turn(0.3)  # both have asked it
        it.cluster.ask(Drain(pool="rooms", owner=listed(it, first.owner).name))
        while not second.owner.check(room):
            await it.cluster.turn(0.01)
        writing = asyncio.ensure_future(second.volume.changed(room))
        reading = asyncio.ensure_future(cache.get(room))
        await it.cluster.turn(0.1)
        assert not writing.done()
        assert reading.done()
        assert await reading == "here"
        await it.turning(writing)


async def test_a_body_that_outlives_its_lease_is_told() -> None:
    async with stage() as it:
        rooms = await it.rooms()

        async def body() -> None:
            async with rooms.volume.write("room-42"):
                await asyncio.sleep(1000)

        running = asyncio.ensure_future(body())
        await it.cluster.turn(0.1)
        it.cluster.kill_manager()
        await it.cluster.turn(3)
        with pytest.raises(LeaseLost):
            await running


async def test_a_store_that_outlives_its_lease_is_stopped() -> None:
    """A cache's write runs under the owner's lease, as every body does (V5)."""
    async with stage() as it:
        rooms = await it.rooms()
        cache = await it.cache()
        rooms.gate.clear()
        writing = asyncio.ensure_future(cache.write("room-42", "late"))
        await it.cluster.turn(0.2)
        assert rooms.storing == "room-42"
        it.cluster.kill_manager()
        await it.cluster.turn(3)
        assert rooms.storing == ""
        writing.cancel()


@pytest.mark.parametrize("by_a_cache", [True, False])
async def test_a_key_does_not_move_while_a_body_writes_it(*, by_a_cache: bool) -> None:
    """V5: an owner that leaves lets running bodies finish, and its keys go when they are done."""
    async with stage() as it:
        first, second = await it.rooms(), await it.rooms()
        room = next(room for room in ROOMS if first.owner.check(room))
        cache = await it.cache()
        first.gate.clear()

        async def write() -> None:
            async with first.volume.write(room) as write:
                await first.store(room, "new", write.fence)

        writing = asyncio.ensure_future(cache.write(room, "new") if by_a_cache else write())
        await it.cluster.turn(0.2)
        closing = asyncio.ensure_future(first.owner.close())
        await it.cluster.turn(2)
        assert first.storing == room
        assert not second.owner.check(room)
        first.gate.set()
        await it.turning(closing)
        assert first.storing == ""
        await it.cluster.turn(1)
        assert second.owner.check(room)
        if not by_a_cache:
            await writing
        writing.cancel()


async def test_who_does_not_hold_a_key_does_not_write_it() -> None:
    async with stage() as it:
        first, second = await it.rooms(), await it.rooms()
        room = next(room for room in ROOMS if first.owner.check(room))
        with pytest.raises(NotOwner):
            await it.turning(second.volume.changed(room))


async def test_a_term_that_owners_cannot_bear_is_refused() -> None:
    """The preset test has a term of 1.2 s."""
    async with stage() as it:
        volume: Volume[str] = Volume(dict[str, str]().get, value_type=str, term=3)
        owner = it.cluster.owner(volume=volume)
        with pytest.raises(ConfigurationError, match=r"term=3, .* for 1\.2 s: .* shorter term"):
            await it.turning(owner.__aenter__())


async def test_a_pool_whose_owners_take_no_caches() -> None:
    async with stage() as it:
        owner = it.cluster.owner()
        await it.turning(owner.__aenter__())
        await it.cluster.turn(1)
        cache = await it.cache(patience=1)
        with pytest.raises(Unreachable, match="no server is known"):
            await it.turning(cache.get("room-42"))
        await it.turning(owner.close())


async def test_owners_and_volumes_that_cannot_be() -> None:
    options: dict[str, Any] = {"pool": "rooms", "address": "http://a.test"}
    load = dict[str, str]().get
    with pytest.raises(ConfigurationError, match="volume is a Volume, not 7"):
        Owner("http://m.test:7400", **{**options, "volume": 7})
    with pytest.raises(ConfigurationError, match='listen is "HOST:PORT"'):
        Volume(load, listen="x")
    with pytest.raises(ConfigurationError, match="insecure=True"):
        Volume(load, listen="10.0.0.7:0")
    with pytest.raises(ConfigurationError, match="address is the URL"):
        Volume(load, address="10.0.0.7")


async def test_state_that_died_is_not_read_as_lost_at_the_owner_after_the_next() -> None:
    """V13: handed over while its range is quiet, it is as lost as before."""
    async with stage() as it:
        first, second, third = [await it.rooms(term=1.0) for _ in range(3)]
        room = next(room for room in ROOMS if first.owner.check(room))
        first.state[room] = "old"
        holder, other = await it.cache(), await it.cache(patience=20)
        assert await it.turning(holder.get(room)) == "old"
        it.cluster.crash(it.lookups[0])  # the holder hears of nothing
        is_confirmed_dead(it, first.owner)
        while not (second.owner.check(room) or third.owner.check(room)):
            await it.cluster.turn(0.01)
        now, then = (second, third) if second.owner.check(room) else (third, second)
        it.cluster.ask(Drain(pool="rooms", owner=listed(it, now.owner).name))
        while not then.owner.check(room):
            await it.cluster.turn(0.01)
        assert holder.peek(room) == "old"
        reading = asyncio.ensure_future(other.get(room))
        while holder.peek(room) is not MISSING:
            assert not reading.done(), (reading.result(), holder.peek(room))
            await it.cluster.turn(0.05)
        assert await it.turning(reading) is None
