"""What every store of entities must do, as tests.

Subclass the suite in a test module that runs asyncio, and give it the fixture `open_entities`:
a coroutine function that opens the store of a pool, by its name and kind, as a process does. All
stores that it returns have the same rows.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec
import pytest

from tenure.base.keys import PoolKind
from tenure.base.ranges import WHOLE, KeyRange
from tenure.client.lease import Lease
from tenure.errors import ConfigurationError, Fenced
from tenure.fencing.fenced_rows import EmptyRow, Key
from tenure.protocol.entity.envelope import Answers, Envelope, KeptAnswer, SetAlarm, with_answer
from tenure.protocol.entity.socket_entry import SocketEntry
from tenure.protocol.entity.socket_table import PART_SOCKETS, SocketTable
from tenure.stores.opening import EntityStore

OpenEntities: TypeAlias = Callable[[str, PoolKind], Awaitable[EntityStore]]
KEYS = [f"key-{i}" for i in range(64)]
_encode = msgspec.msgpack.encode


def lease(number: int, journal: int = 7) -> Lease:
    """A lease of that number."""
    return Lease(b"", number, journal, "counters")


def answers(count: int) -> tuple[Answers, int]:
    """So many answers as they are kept, and their size."""
    found: Answers = ()
    size = 0
    for i in range(count):
        found, size = with_answer(found, size, b"%d" % i, KeptAnswer(float(i), b"answer"))
    return found, size


def alarmed(number: int, *, at: float | None, journal: int = 7) -> Envelope:
    """An envelope with one alarm, or with none."""
    alarms = {} if at is None else {"run": SetAlarm(at, at)}
    return Envelope(number, journal, _encode({"value": 1}), alarms=alarms)


async def put(store: EntityStore, key: str | int, by: Lease, new: Envelope) -> Envelope:
    """Load the key and keep `new`."""
    return await store.save(key, by, await store.load(key, by), new)


def same(one: Envelope, other: Envelope) -> bool:
    """Whether the store would keep the same of both."""
    return msgspec.structs.replace(one, step=0) == msgspec.structs.replace(other, step=0)


async def outcome(work: Awaitable[object]) -> object:
    """What it returns, or Fenced."""
    try:
        return await work
    except Fenced as error:
        return error


class EntityStoreContract:
    """The suite."""

    # --- what is kept ---

    async def test_it_keeps_all_that_was_saved(self, open_entities: OpenEntities) -> None:
        store = await open_entities("counters", "hashed")
        empty = await store.load("a", lease(3))
        assert same(empty, Envelope())
        kept, size = answers(20)
        sockets = {b"s": SocketEntry("http://edge", b"who", 1, 2, ("one", b"two"), 0)}
        alarms = {"run": SetAlarm(9.0, 9.5, 1), "ö": SetAlarm(8.0, 8.0)}
        state = _encode({"b": 1, "a": [1, 2], "ö": None})
        new = Envelope(3, 7, state, 1.5, kept, alarms, sockets, size)
        assert same(await store.save("a", lease(3), empty, new), new)
        assert same(await store.load("a", lease(5)), new)
        await store.close()

    @pytest.mark.parametrize(
        "state",
        [
            _encode(7),
            _encode([]),
            _encode({}),
            _encode({"": 1, "a": 2}),
            _encode({1: 2}),
            _encode({f"field-{i}": i for i in range(2000)}),
            _encode({"x" * 70_000: 1}),
            _encode({"text": "x" * (1 << 20)}),
        ],
        ids=lambda state: f"{len(state)} bytes",
    )
    async def test_a_state_is_read_as_it_was_byte_for_byte(
        self, open_entities: OpenEntities, state: bytes
    ) -> None:
        store = await open_entities("counters", "hashed")
        await put(store, "a", lease(3), Envelope(3, 7, _encode({"other": 1})))
        await put(store, "a", lease(3), Envelope(3, 7, state))
        assert (await store.load("a", lease(3))).state == state
        await store.close()

    async def test_what_a_commit_leaves_out_is_gone(self, open_entities: OpenEntities) -> None:
        store = await open_entities("counters", "hashed")
        many, size = answers(30)
        entries = {b"%d" % i: SocketEntry("http://edge", b"") for i in range(2 * PART_SOCKETS)}
        sockets = SocketTable.of(entries)
        alarms = {"one": SetAlarm(1.0, 1.0), "two": SetAlarm(2.0, 2.0)}
        full = Envelope(3, 7, _encode({"a": 1, "b": 2}), 1.0, many, alarms, sockets, size)
        await put(store, "a", lease(3), full)
        stored = await store.load("a", lease(3))
        assert same(stored, full)
        few, size = answers(2)
        less = Envelope(3, 7, _encode({"b": 3}), 2.0, few, {"two": alarms["two"]}, {}, size)
        stored = await store.save("a", lease(3), stored, less)
        assert same(await store.load("a", lease(3)), less)
        await store.close()

    async def test_keys_are_apart(self, open_entities: OpenEntities) -> None:
        """A number is not its digits, and no character means anything to a store."""
        store = await open_entities("counters", "hashed")
        keys: list[str | int] = [1, "1", "", "\0", "a\0", "a", "A", "ä", "x" * 500, (1 << 64) - 1]
        for place, key in enumerate(keys):
            await put(store, key, lease(1), Envelope(1, 7, _encode(place)))
        found = [(await store.load(key, lease(2))).state for key in keys]
        assert found == [_encode(place) for place in range(len(keys))]
        await store.close()

    async def test_many_keys_are_saved_at_once(self, open_entities: OpenEntities) -> None:
        store = await open_entities("counters", "hashed")
        loaded = await asyncio.gather(*(store.load(key, lease(3)) for key in KEYS))
        saves: list[Any] = [
            store.save(key, lease(3), found, Envelope(3, 7, _encode(key)))
            for key, found in zip(KEYS, loaded, strict=True)
        ]
        await asyncio.gather(*saves)
        found = await asyncio.gather(*(store.load(key, lease(4)) for key in KEYS))
        assert [each.state for each in found] == [_encode(key) for key in KEYS]
        assert not store.is_away
        await store.look("key-1")
        await store.close()

    # --- fences ---

    async def test_an_older_lease_changes_nothing(self, open_entities: OpenEntities) -> None:
        one = await open_entities("counters", "hashed")
        two = await open_entities("counters", "hashed")
        stored = await put(one, "a", lease(3), Envelope(3, 7, _encode("first")))
        found = await two.load("a", lease(5))
        with pytest.raises(Fenced):
            await one.save("a", lease(3), stored, Envelope(3, 7, _encode("late")))
        with pytest.raises(Fenced):
            await one.load("a", lease(4))
        assert same(await two.load("a", lease(5)), found)
        await two.save("a", lease(5), await two.load("a", lease(5)), Envelope(5, 7, b"\1"))
        for each in (one, two):
            await each.close()

    async def test_an_older_lease_keeps_nothing_where_nothing_was_kept(
        self, open_entities: OpenEntities
    ) -> None:
        store = await open_entities("counters", "hashed")
        early = await store.load("a", lease(3))
        await store.load("a", lease(5))
        with pytest.raises(Fenced):
            await store.save("a", lease(3), early, Envelope(3, 7, _encode("late")))
        assert same(await store.load("a", lease(5)), Envelope())
        await store.close()

    async def test_a_later_journal_ends_the_leases_of_the_one_before(
        self, open_entities: OpenEntities
    ) -> None:
        store = await open_entities("counters", "hashed")
        stored = await put(store, "a", lease(30), Envelope(30, 7, _encode("first")))
        found = await store.load("a", lease(31, journal=8))
        assert found.state == _encode("first")
        for late in (lease(30), lease(31)):
            with pytest.raises(Fenced):
                await store.save("a", late, stored, Envelope(late.number, 7, _encode("late")))
            with pytest.raises(Fenced):
                await store.load("a", late)
        new = Envelope(31, 8, _encode("new"))
        await store.save("a", lease(31, journal=8), found, new)
        assert same(await store.load("a", lease(32, journal=8)), new)
        await store.close()

    async def test_one_that_is_fenced_does_not_keep_the_others_back(
        self, open_entities: OpenEntities
    ) -> None:
        store = await open_entities("counters", "hashed")
        loaded = await asyncio.gather(*(store.load(key, lease(3)) for key in KEYS))
        await store.load(KEYS[10], lease(5))
        new = Envelope(3, 7, _encode("new"))
        told = await asyncio.gather(
            *(
                outcome(store.save(key, lease(3), found, new))
                for key, found in zip(KEYS, loaded, strict=True)
            )
        )
        refused = [key for key, it in zip(KEYS, told, strict=True) if isinstance(it, Fenced)]
        assert refused == [KEYS[10]]
        found = await asyncio.gather(*(store.load(key, lease(6)) for key in KEYS))
        assert [KEYS[i] for i, each in enumerate(found) if each.state != new.state] == [KEYS[10]]
        await store.close()

    async def test_of_two_that_load_at_once_the_later_lease_wins(
        self, open_entities: OpenEntities
    ) -> None:
        one = await open_entities("counters", "hashed")
        two = await open_entities("counters", "hashed")
        came = await asyncio.gather(
            outcome(one.load("a", lease(1))), outcome(two.load("a", lease(2)))
        )
        assert isinstance(came[1], Envelope)
        kept = Envelope(2, 7, _encode("kept"))
        await two.save("a", lease(2), came[1], kept)
        if isinstance(came[0], Envelope):
            with pytest.raises(Fenced):
                await one.save("a", lease(1), came[0], Envelope(1, 7, _encode("late")))
        assert same(await two.load("a", lease(2)), kept)
        for each in (one, two):
            await each.close()

    # --- what nobody waits for any more ---

    async def test_a_save_that_was_cancelled_counts_or_does_not_from_the_next_load_on(
        self, open_entities: OpenEntities
    ) -> None:
        store = await open_entities("counters", "hashed")
        old, new = Envelope(3, 7, _encode({"a": 1})), Envelope(3, 7, _encode({"a": 2, "b": 3}))
        for steps in range(6):
            key = f"key-{steps}"
            stored = await put(store, key, lease(3), old)
            saving = asyncio.create_task(store.save(key, lease(3), stored, new))
            for _ in range(steps):
                await asyncio.sleep(0)
            saving.cancel()
            await asyncio.wait({saving})
            found = await store.load(key, lease(3))
            assert same(found, old) or same(found, new)
            again = await store.load(key, lease(4))
            assert again.state == found.state
            after = Envelope(4, 7, _encode({"c": steps}))
            await store.save(key, lease(4), again, after)
            assert same(await store.load(key, lease(5)), after)
        await store.close()

    # --- alarms ---

    async def test_alarms_are_found_by_range(self, open_entities: OpenEntities) -> None:
        store = await open_entities("counters", "hashed")
        for i in range(20):
            new = alarmed(1, at=float(i) if i % 2 else None)
            await put(store, i << 56, lease(1), new)
        everything = await store.due_within([WHOLE])
        assert sorted(everything) == [(i << 56, float(i)) for i in range(1, 20, 2)]
        part = KeyRange(bytes([4]), bytes([8]))
        assert sorted(await store.due_within([part])) == [(5 << 56, 5.0), (7 << 56, 7.0)]
        several = [KeyRange(b"", bytes([2])), KeyRange(bytes([19]), None)]
        assert sorted(await store.due_within(several)) == [(1 << 56, 1.0), (19 << 56, 19.0)]
        await store.close()

    async def test_alarms_are_found_by_ranges_of_ordered_keys(
        self, open_entities: OpenEntities
    ) -> None:
        store = await open_entities("names", "ordered")
        keys = ["", "a", "a\0", "ab", "b", "ö"]
        for at, key in enumerate(keys):
            await put(store, key, lease(1), alarmed(1, at=float(at)))
        assert sorted(await store.due_within([WHOLE])) == [
            (k, float(i)) for i, k in enumerate(keys)
        ]
        part = KeyRange(b"a", b"ab")
        assert sorted(await store.due_within([part])) == [("a", 1.0), ("a\0", 2.0)]
        await store.close()

    async def test_the_first_alarm_of_a_key_is_found_whoever_has_set_it(
        self, open_entities: OpenEntities
    ) -> None:
        """Or an earlier time, at which the key is looked up in vain."""
        store = await open_entities("counters", "hashed")
        stored, number = await store.load("a", lease(1)), 1
        for at, owner in [(50.0, 1), (20.0, 1), (90.0, 1), (90.0, 4), (70.0, 4), (95.0, 6)]:
            if owner != number:
                stored, number = await store.load("a", lease(owner)), owner
            new = alarmed(owner, at=at)
            stored = await store.save("a", lease(owner), stored, new)
            ((key, found),) = await store.due_within([WHOLE])
            assert key == "a"
            assert found <= at
        await store.save("a", lease(6), stored, alarmed(6, at=None))
        await self.until_none_is_due(store)
        await store.close()

    async def test_a_fenced_commit_hides_no_alarm(self, open_entities: OpenEntities) -> None:
        """A former owner that wakes up late clears the alarm, and is refused."""
        one = await open_entities("counters", "hashed")
        two = await open_entities("counters", "hashed")
        stored = await put(one, "a", lease(3), alarmed(3, at=9.0))
        found = await two.load("a", lease(5))
        with pytest.raises(Fenced):
            await one.save("a", lease(3), stored, alarmed(3, at=None))
        with pytest.raises(Fenced):
            await one.save("a", lease(3), stored, alarmed(3, at=99.0))
        assert await two.due_within([WHOLE]) == [("a", 9.0)]
        await two.save("a", lease(5), found, alarmed(5, at=None))
        await self.until_none_is_due(two)
        for each in (one, two):
            await each.close()

    async def until_none_is_due(self, store: EntityStore) -> None:
        """An entry too many goes when its key is loaded, and nobody waits for that."""
        async with asyncio.timeout(30):
            while found := await store.due_within([WHOLE]):
                for key, _ in found:
                    await store.load(key, lease(1000))

    # --- forgetting, and pools ---

    async def test_a_key_is_forgotten_and_its_fence_holds_as_long_as_it_is_needed(
        self, open_entities: OpenEntities
    ) -> None:
        store = await open_entities("counters", "hashed")
        stored = await put(store, "a", lease(3), alarmed(3, at=9.0))
        present = await store.load("a", lease(5))
        gone = await store.save("a", lease(5), present, Envelope(5, 7))
        await store.forget([EmptyRow("a", 5, gone.step)])
        with pytest.raises(Fenced):
            await store.save("a", lease(3), stored, alarmed(3, at=9.0))
        assert same(await store.load("a", lease(5)), Envelope())
        await self.until_none_is_due(store)
        await store.close()

    @pytest.mark.parametrize("most", [1, 7, 1000])
    async def test_every_key_of_which_something_is_kept_is_listed_once(
        self, open_entities: OpenEntities, most: int
    ) -> None:
        store = await open_entities("counters", "hashed")
        kept: list[str | int] = [*KEYS[:20], "", "ö" * 500, "a/\x00", 7, (1 << 64) - 1]
        for each in kept:
            await put(store, each, lease(3), Envelope(3, 7, _encode("x" * 3000)))
        await put(
            store, "only an alarm", lease(3), Envelope(3, 7, alarms={"a": SetAlarm(9.0, 9.0)})
        )
        await store.load("asked for", lease(3))
        await put(store, "forgotten", lease(3), Envelope(3, 7, _encode("x")))
        await put(store, "forgotten", lease(3), Envelope(3, 7))
        found: list[Key] = []
        after: bytes | None = b""
        while after is not None:
            part = await store.keys(after, most)
            assert len(part.keys) <= most
            found += part.keys
            after = part.next
        assert sorted(map(repr, found)) == sorted(map(repr, [*kept, "only an alarm"]))
        await store.close()

    async def test_a_row_that_was_used_since_is_not_forgotten(
        self, open_entities: OpenEntities
    ) -> None:
        store = await open_entities("counters", "hashed")
        empty = await store.load("a", lease(3))
        kept = await put(store, "a", lease(5), Envelope(5, 7, _encode("kept")))
        await store.forget([EmptyRow("a", 3, empty.step), EmptyRow("a", 5, kept.step - 1)])
        assert (await store.load("a", lease(5))).state == _encode("kept")
        await store.close()

    async def test_another_kind_of_pool_is_refused(self, open_entities: OpenEntities) -> None:
        await (await open_entities("counters", "hashed")).close()
        with pytest.raises(ConfigurationError, match="hashed"):
            await open_entities("counters", "ordered")

    async def test_another_pool_is_refused_or_kept_apart(self, open_entities: OpenEntities) -> None:
        store = await open_entities("counters", "hashed")
        await put(store, "a", lease(3), Envelope(3, 7, _encode("counter")))
        try:
            other = await open_entities("rooms", "hashed")
        except ConfigurationError as error:
            assert "of its own" in str(error) or "several processes" in str(error)  # noqa: PT017  # either way
        else:
            assert same(await other.load("a", lease(1)), Envelope())
            await other.close()
        await store.close()

    async def test_several_open_it_at_once(self, open_entities: OpenEntities) -> None:
        opening = (open_entities("counters", "hashed") for _ in range(4))
        for each in await asyncio.gather(*opening):
            await each.close()
