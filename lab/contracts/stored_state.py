"""What an OwnedState must do with every store, as tests.

Subclass the suite in a test module that runs asyncio, give it the fixture `store_url`, and say with
`is_shared` whether several processes can have the store at once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, ClassVar

import msgspec
import pytest

from tenure import (
    ConfigurationError,
    LeaseLost,
    NotOwner,
    OwnedState,
    StoreAway,
    StoreFailed,
    ValueTypeError,
)
from tenure.base.ranges import WHOLE
from tenure.client.guard import Guards
from tenure.client.hand_off.handler import result_of
from tenure.client.holdings import Board
from tenure.fencing.fenced_rows import Key
from tenure.owned_state.kept_values import VALUE_BYTES, KeptValues
from tenure.protocol.lease.messages import Leased
from tenure.protocol.lease.owner.events import Holdings
from tenure.stores.opening import EntityStore
from tenure.testing.clock import TurnedClock

POOL = "counters"
JOURNAL = 7
TERM = 1e6


class StateHolder:
    """An owner without a network that holds everything, and its state in a store."""

    def __init__(self, state: OwnedState[Any], journal: int) -> None:
        self.state = state
        self.clock = TurnedClock()
        self.journal = journal
        self.has_ended = False
        self.board = Board("hashed", self.clock)
        state.belong_to("an owner", "hashed", lambda: self.has_ended)
        state.guard_with(Guards(self.board, self.clock, "an owner", lambda _: None))
        self.board.open()

    @property
    def values(self) -> KeptValues:
        assert self.state.values is not None
        return self.state.values

    @property
    def store(self) -> EntityStore:
        return self.values.store

    def hold(self, number: int) -> None:
        """Hold everything under this number."""
        lease = Leased(start=b"", end=None, number=number, since=number, mark="renewed")
        assert self.board.publish(Holdings(self.journal, 1, (lease,), self.clock.after(TERM)))

    def lose(self) -> None:
        """Hold nothing any longer."""
        self.board.publish(Holdings(self.journal, 1, (), self.clock.after(TERM)))
        self.state.guards.keep((WHOLE,), ())

    async def put(self, key: Key, value: object, then: Callable[[], object] = lambda: None) -> None:
        """Store a value; `then` is done at the end of the body, and awaited where it can be."""
        async with self.state.at(key) as it:
            it.value = value
            await result_of(then())

    async def append(self, key: Key, item: object, then: Callable[[], object]) -> None:
        async with self.state.at(key) as it:
            assert it.value is not None
            it.value.append(item)
            then()

    async def get(self, key: Key) -> Any:  # whatever it is
        async with self.state.at(key) as it:
            return it.value


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask the store until it holds."""
    async with asyncio.timeout(60):
        while not await holds():
            pass


class StoredStateContract:
    """The suite."""

    is_shared: ClassVar[bool] = True
    """Whether several may have the store open at once."""
    knows_later_journals: ClassVar[bool] = True
    """Whether it takes the lower numbers of a later journal by itself."""

    @asynccontextmanager
    async def holding(
        self,
        url: str,
        number: int,
        *,
        journal: int = JOURNAL,
        name: str = "",
        **options: Any,  # those of OwnedState
    ) -> AsyncIterator[StateHolder]:
        holder = StateHolder(OwnedState(store=url, **options), journal)
        holder.hold(number)
        try:
            await holder.state.open_store(POOL, name)
            yield holder
        finally:
            await holder.state.close_store()
            holder.has_ended = True

    # --- what is kept ---

    async def test_what_was_kept_is_there_for_the_next_owner(self, store_url: str) -> None:
        keys: list[Key] = ["ann", b"ann", 7, "7", "", "ä" * 200]
        async with self.holding(store_url, 3, value_type=list[str]) as one:
            for key in keys:
                await one.put(key, [repr(key)])
                assert await one.get(key) == [repr(key)]
            assert len(one.state) == len(keys)
            assert one.state.size_bytes > 0
        async with self.holding(store_url, 4, value_type=list[str]) as two:
            assert [await two.get(key) for key in keys] == [[repr(key)] for key in keys]
            assert await two.get("bob") is None

    async def test_it_is_kept_before_the_turn_is_over(self, store_url: str) -> None:
        async with self.holding(store_url, 3) as one:
            await one.put("ann", {"a": 1})
            assert msgspec.msgpack.decode(await self.row(one, "ann")) == {"a": 1}
            async with one.state.at("ann") as it:
                assert it.value is not None
                it.value["b"] = 2
            assert msgspec.msgpack.decode(await self.row(one, "ann")) == {"a": 1, "b": 2}

    async def row(self, holder: StateHolder, key: Key) -> bytes:
        """What the store has of the key, read beside the turns as nobody else may."""
        lease = holder.board.check(key)
        assert lease is not None
        holder.values.take(key, lease)  # what is in memory is outdated by this
        found = await asyncio.wrap_future(holder.values.load(key, lease))
        holder.values.put(key, found)
        return found.envelope.state

    async def test_none_removes_it(self, store_url: str) -> None:
        async with self.holding(store_url, 3) as one:
            await one.put("ann", 1)
            await one.put("ann", None)
            assert await one.get("ann") is None
            assert len(one.state) == 0
        async with self.holding(store_url, 4) as two:
            assert await two.get("ann") is None
            await two.put("ann", 2)
            assert await two.get("ann") == 2

    async def test_a_body_that_raises_keeps_nothing(self, store_url: str) -> None:
        async with self.holding(store_url, 3) as one:
            await one.put("ann", ["tea"])
            with pytest.raises(ZeroDivisionError):
                await one.append("ann", "cake", lambda: 1 // 0)
            assert await one.get("ann") == ["tea"]
            assert msgspec.msgpack.decode(await self.row(one, "ann")) == ["tea"]

    async def test_tasks_and_threads_take_turns(self, store_url: str) -> None:
        async with self.holding(store_url, 3, value_type=int) as one:
            state: OwnedState[int] = one.state

            async def in_task() -> None:
                for _ in range(5):
                    async with state.at("a") as it:
                        it.value = (it.value or 0) + 1

            def in_thread() -> None:
                for _ in range(5):
                    with state.at("a") as it:
                        it.value = (it.value or 0) + 1

            threads = (asyncio.to_thread(in_thread) for _ in range(3))
            await asyncio.gather(*threads, *(in_task() for _ in range(3)))
            assert await one.get("a") == 30
        async with self.holding(store_url, 4, value_type=int) as two:
            assert await two.get("a") == 30

    async def test_many_keys_are_kept_at_once(self, store_url: str) -> None:
        async with self.holding(store_url, 3, limit=10) as one:
            await asyncio.gather(*(one.put(i, str(i)) for i in range(30)))
            assert len(one.state) <= 10
            found = await asyncio.gather(*(one.get(i) for i in range(30)))
            assert found == [str(i) for i in range(30)]

    async def test_memory_is_bounded_by_bytes(self, store_url: str) -> None:
        async with self.holding(store_url, 3, limit_bytes=5000) as one:
            for i in range(20):
                await one.put(i, "x" * 1000)
            assert one.state.size_bytes <= 5000
            await one.put("large", "x" * 10_000)
            assert one.state.size_bytes <= 5000
            assert len(await one.get("large")) == 10_000

    # --- leases ---

    async def test_a_former_owner_keeps_nothing_late(self, store_url: str) -> None:
        self.needs_a_shared_store()
        async with self.holding(store_url, 3) as one, self.holding(store_url, 5) as two:
            await one.put("ann", "first")
            with pytest.raises(LeaseLost):
                await one.put("ann", "late", partial(two.get, "ann"))
            assert await two.get("ann") == "first"
            await two.put("ann", "second")
            one.lose()
            with pytest.raises(NotOwner):
                await one.get("ann")
            assert await self.row(two, "ann") == msgspec.msgpack.encode("second")

    async def test_what_is_in_memory_is_outdated_when_the_key_comes_back(
        self, store_url: str
    ) -> None:
        self.needs_a_shared_store()
        async with self.holding(store_url, 3) as one, self.holding(store_url, 5) as two:
            await one.put("ann", "first")
            await two.put("ann", "second")
            one.hold(7)
            assert await one.get("ann") == "second"
            await one.put("ann", "third")
            two.hold(9)
            assert await two.get("ann") == "third"

    async def test_a_lease_that_is_lost_in_the_body_keeps_nothing(self, store_url: str) -> None:
        async with self.holding(store_url, 3) as one:
            await one.put("ann", "first")
            with pytest.raises(LeaseLost):
                await one.put("ann", "lost", one.lose)
            one.hold(5)
            assert await one.get("ann") == "first"

    async def test_a_later_journal_may_begin_with_lower_numbers(self, store_url: str) -> None:
        if not self.knows_later_journals:
            pytest.skip("it refuses them, and says what to do")
        async with self.holding(store_url, 30) as one:
            await one.put("ann", "first")
        async with self.holding(store_url, 1, journal=8) as two:
            assert await two.get("ann") == "first"
            await two.put("ann", "second")
            assert await two.get("ann") == "second"

    async def test_a_store_that_refuses_a_later_journal_names_the_way_out_which_works(
        self, store_url: str
    ) -> None:
        if self.knows_later_journals:
            pytest.skip("it takes them")
        async with self.holding(store_url, 30) as one:
            await one.put("ann", "first")
        async with self.holding(store_url, 1, journal=8) as two:
            with pytest.raises(StoreAway, match=r"number 30 of .*: tenure columns refence c"):
                await two.put("ann", "late")
        async with self.holding(store_url, 1_000_031, journal=8) as three:
            assert await three.get("ann") == "first"
            await three.put("ann", "second")
            assert await three.get("ann") == "second"

    def needs_a_shared_store(self) -> None:
        if not self.is_shared:
            pytest.skip("one process has this store at a time")

    # --- whoever has gone ---

    async def test_who_was_cancelled_has_kept_it_or_not_and_the_next_turn_knows(
        self, store_url: str
    ) -> None:
        async with self.holding(store_url, 3) as one:
            for steps in range(12):
                key = f"key-{steps}"
                await one.put(key, "old")
                putting = asyncio.create_task(one.put(key, "new"))
                for _ in range(steps):
                    await asyncio.sleep(0)
                putting.cancel()
                with suppress(asyncio.CancelledError):
                    await putting
                found = await one.get(key)
                assert found in {"old", "new"}
                assert msgspec.msgpack.decode(await self.row(one, key)) == found
                await one.put(key, "last")
                assert await one.get(key) == "last"

    # --- ends ---

    async def test_what_has_ended_is_gone_from_memory_and_store(self, store_url: str) -> None:
        async with self.holding(store_url, 3, ttl=3600.0) as one:
            await one.put("ann", "tea")
            async with one.state.at("ann") as it:
                it.ttl = 0.05
            assert msgspec.msgpack.decode(await self.row(one, "ann")) == "tea"
            await until(partial(self.is_gone, one, "ann"))
            assert await one.get("ann") is None
            await one.put("ann", "cake")
            assert await one.get("ann") == "cake"

    async def test_the_next_owner_removes_what_ends(self, store_url: str) -> None:
        async with self.holding(store_url, 3) as one:
            async with one.state.at("ann") as it:
                it.value, it.ttl = "tea", 0.2
            async with one.state.at("bob") as it:
                it.value, it.ttl = "tea", 3600.0
        async with self.holding(store_url, 5) as two:
            await until(partial(self.is_gone, two, "ann"))
            async with two.state.at("bob") as it:
                assert it.value == "tea"
                assert it.ttl is not None
                assert 3500 < it.ttl <= 3600

    async def is_gone(self, holder: StateHolder, key: Key) -> bool:
        """Whether the store has nothing of the key."""
        due = await asyncio.wrap_future(holder.values.submit(holder.store.due_within([WHOLE])))
        return key not in [each for each, _ in due]

    async def test_a_value_that_has_ended_reads_as_none_at_once(self, store_url: str) -> None:
        async with self.holding(store_url, 3, ttl=3600.0) as one:
            await one.put("ann", "tea")
            real = one.values.wall
            one.values.wall = lambda: real() + 3601
            assert await one.get("ann") is None

    # --- bad input ---

    async def test_another_kind_and_another_state_are_refused_or_kept_apart(
        self, store_url: str
    ) -> None:
        async with self.holding(store_url, 3) as one:
            await one.put("ann", "tea")
        other: OwnedState[Any] = OwnedState(store=store_url)
        other.belong_to("an owner", "ordered", lambda: False)
        with pytest.raises(ConfigurationError, match="hashed"):
            await other.open_store(POOL)
        await other.close_store()
        try:
            async with self.holding(store_url, 3, name="users") as named:
                assert await named.get("ann") is None
        except ConfigurationError as error:
            assert "the OwnedState 'users'" in str(error)  # noqa: PT017  # either way
            assert "of its own" in str(error)  # noqa: PT017

    async def test_a_value_that_is_too_large_is_not_stored(self, store_url: str) -> None:
        async with self.holding(store_url, 3) as one:
            await one.put("ann", "tea")
            with pytest.raises(ValueTypeError, match="was not stored"):
                await one.put("ann", "x" * (VALUE_BYTES + 1))
            assert await one.get("ann") == "tea"
            await one.put("ann", "x" * (VALUE_BYTES - 8))
            assert len(await one.get("ann")) == VALUE_BYTES - 8

    async def test_what_cannot_be_read_is_untouched_and_no_body_begins(
        self, store_url: str
    ) -> None:
        async with self.holding(store_url, 3) as one:
            await one.put("ann", "tea")
        async with self.holding(store_url, 4, value_type=int) as two:
            with pytest.raises(StoreFailed, match="untouched"):
                await two.put("ann", 1)
        async with self.holding(store_url, 5) as three:
            assert await three.get("ann") == "tea"
