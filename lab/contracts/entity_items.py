"""What every store of entities must do with items of collections, as tests.

Subclass the suite beside that of `entity_store`, whose fixture it takes. A store may leave items in
the envelope that it returns, where they lie over those that it finds itself.
"""

import asyncio

import msgspec
import pytest

from lab.contracts.entity_store import OpenEntities, lease
from tenure.client.lease import Lease
from tenure.errors import Fenced
from tenure.fencing.fenced_rows import EmptyRow
from tenure.protocol.entity.envelope import Envelope, TurnChanges
from tenure.protocol.entity.items import GONE, Item, ItemSpan, merged
from tenure.stores.opening import EntityStore

_encode = msgspec.msgpack.encode
PAGE = 7
EVERYTHING = ItemSpan()
MOST_LOADED = 2_000
"""How many items are loaded with an entity, however many it has."""


def numbered(numbers: range, text: str = "item") -> dict[bytes, bytes]:
    """Items at these numbers."""
    return {each.to_bytes(8): f"{text} {each}".encode() for each in numbers}


def changed(
    stored: Envelope, by: Lease, items: dict[bytes, bytes], name: str = "history", state: int = 0
) -> Envelope:
    """The envelope after a turn that has changed these items of a collection."""
    changes = TurnChanges()
    changes.items[name], changes.numbers[name] = items, len(items)
    of = by.number, by.journal
    return stored.after(changes, _encode(state), of, 0.0, None, over_store=True)[0]


async def add(
    store: EntityStore,
    key: str,
    by: Lease,
    stored: Envelope,
    items: dict[bytes, bytes],
    name: str = "history",
) -> Envelope:
    """Keep these items of a collection."""
    return await store.save(key, by, stored, changed(stored, by, items, name))


async def found(
    store: EntityStore,
    key: str,
    kept: Envelope,
    span: ItemSpan = EVERYTHING,
    name: str = "history",
    page: int = PAGE,
) -> list[Item]:
    """All items of a collection in a span, read in pages."""
    below: list[Item] = []
    rest = span
    while not rest.is_empty:
        some = await store.page(key, name, rest, page)
        assert len(some.items) <= page
        below += some.items
        if some.is_last:
            break
        rest = rest.after(some.items[-1][0])
    assert [place for place, _ in below] == sorted({*dict(below)}, reverse=span.reverse)
    return [*merged([span.of(kept.items.get(name, {})), below], reverse=span.reverse)]


class EntityItemsContract:
    """The suite."""

    async def test_items_are_found_in_pages_both_ways(self, open_entities: OpenEntities) -> None:
        store = await open_entities("counters", "hashed")
        kept = await store.load("a", lease(3))
        for i in range(0, 90, 10):
            kept = await add(store, "a", lease(3), kept, numbered(range(i, i + 10)))
        expected = [*numbered(range(90)).items()]
        for envelope in (kept, await store.load("a", lease(4))):
            assert envelope.collections == {"history": 10}
            assert await found(store, "a", envelope) == expected
            assert await found(store, "a", envelope, ItemSpan(reverse=True)) == expected[::-1]
            part = ItemSpan((20).to_bytes(8), (50).to_bytes(8))
            assert await found(store, "a", envelope, part) == expected[20:50]
            back = part._replace(reverse=True)
            assert await found(store, "a", envelope, back) == expected[20:50][::-1]
        await store.close()

    async def test_of_many_items_few_are_loaded(self, open_entities: OpenEntities) -> None:
        store = await open_entities("counters", "hashed")
        kept = await store.load("a", lease(3))
        for i in range(0, 5_000, 1_000):
            kept = await add(store, "a", lease(3), kept, numbered(range(i, i + 1_000)))
        kept = await add(store, "a", lease(3), kept, numbered(range(5_000, 5_001)))
        loaded = await store.load("a", lease(4))
        assert len(loaded.items.get("history", {})) <= MOST_LOADED
        assert await found(store, "a", loaded, page=900) == [*numbered(range(5_001)).items()]
        await store.close()

    async def test_items_are_changed_and_removed_wherever_they_are(
        self, open_entities: OpenEntities
    ) -> None:
        store = await open_entities("counters", "hashed")
        kept = await store.load("a", lease(3))
        kept = await add(store, "a", lease(3), kept, numbered(range(700)))
        kept = await add(store, "a", lease(3), kept, {b"none": GONE, **numbered(range(5), "new")})
        gone = dict.fromkeys(numbered(range(5, 700, 2)), GONE)
        kept = await add(store, "a", lease(3), kept, gone)
        left = {**numbered(range(5), "new"), **numbered(range(6, 700, 2))}
        assert await found(store, "a", kept) == sorted(left.items())
        loaded = await store.load("a", lease(5))
        assert await found(store, "a", loaded) == sorted(left.items())
        again = await add(store, "a", lease(5), loaded, numbered(range(5, 9), "again"))
        left |= numbered(range(5, 9), "again")
        assert await found(store, "a", again) == sorted(left.items())
        await store.close()

    async def test_collections_and_keys_are_apart(self, open_entities: OpenEntities) -> None:
        store = await open_entities("counters", "hashed")
        names, items = ("a", "ab", "b"), {b"\0": b"1", b"b\0": b"2", b"\xff": b"3"}
        for key in names:
            kept = await store.load(key, lease(3))
            for name in names:
                mine = {place: data + f"{key} {name}".encode() for place, data in items.items()}
                kept = await add(store, key, lease(3), kept, mine, name)
        for key in names:
            kept = await store.load(key, lease(4))
            for name in names:
                mine = {place: data + f"{key} {name}".encode() for place, data in items.items()}
                assert await found(store, key, kept, name=name) == [*mine.items()]
        await store.close()

    async def test_large_items_are_found(self, open_entities: OpenEntities) -> None:
        store = await open_entities("counters", "hashed")
        kept = await store.load("a", lease(3))
        items = {bytes([i]): bytes([i]) * 65_000 for i in range(15)}
        for _ in range(2):
            kept = await add(store, "a", lease(3), kept, items)
        assert await found(store, "a", await store.load("a", lease(4))) == [*items.items()]
        await store.close()

    async def test_a_late_owner_changes_no_item(self, open_entities: OpenEntities) -> None:
        one = await open_entities("counters", "hashed")
        two = await open_entities("counters", "hashed")
        kept = await add(one, "a", lease(3), await one.load("a", lease(3)), numbered(range(300)))
        later = await two.load("a", lease(5))
        late = changed(kept, lease(3), numbered(range(400), "late"))
        with pytest.raises(Fenced):
            await one.save("a", lease(3), kept, late)
        later = await add(two, "a", lease(5), later, numbered(range(1), "new"))
        expected = {**numbered(range(300)), **numbered(range(1), "new")}
        assert await found(two, "a", later) == [*expected.items()]
        assert await found(two, "a", await two.load("a", lease(6))) == [*expected.items()]
        for each in (one, two):
            await each.close()

    async def test_an_item_is_put_back_to_what_it_was_under_an_earlier_lease(
        self, open_entities: OpenEntities
    ) -> None:
        one = await open_entities("counters", "hashed")
        two = await open_entities("counters", "hashed")
        await add(one, "a", lease(3), await one.load("a", lease(3)), numbered(range(300)))
        later = await two.load("a", lease(5))
        for i in (0, 1):
            later = await add(two, "a", lease(5), later, numbered(range(i, i + 1), "new"))
        back = await one.load("a", lease(7))
        back = await add(one, "a", lease(7), back, numbered(range(1)))
        expected = {**numbered(range(300)), **numbered(range(1, 2), "new")}
        assert await found(one, "a", back) == [*expected.items()]
        assert await found(two, "a", await two.load("a", lease(8))) == [*expected.items()]
        for each in (one, two):
            await each.close()

    @pytest.mark.parametrize("count", [3, 600])
    async def test_a_save_that_was_cancelled_keeps_state_and_items_or_neither(
        self, open_entities: OpenEntities, count: int
    ) -> None:
        store = await open_entities("counters", "hashed")
        for steps in range(8):
            key = f"key-{steps}"
            old, new = numbered(range(count)), numbered(range(count), "new")
            kept = await add(store, key, lease(3), await store.load(key, lease(3)), old)
            after = changed(kept, lease(3), new, state=1)
            saving: asyncio.Task[Envelope] = asyncio.create_task(
                store.save(key, lease(3), kept, after)
            )
            for _ in range(steps):
                await asyncio.sleep(0)
            saving.cancel()
            await asyncio.wait({saving})
            loaded = await store.load(key, lease(3))
            expected = new if loaded.state == _encode(1) else old
            assert await found(store, key, loaded, page=100) == [*expected.items()]
            loaded = await add(store, key, lease(3), loaded, numbered(range(count, count + 1)))
            expected = {**expected, **numbered(range(count, count + 1))}
            loaded = await store.load(key, lease(4))
            assert await found(store, key, loaded, page=100) == [*expected.items()]
        await store.close()

    @pytest.mark.parametrize("count", [3, 600])
    async def test_what_is_forgotten_does_not_come_back(
        self, open_entities: OpenEntities, count: int
    ) -> None:
        store = await open_entities("counters", "hashed")
        kept = await add(
            store, "a", lease(3), await store.load("a", lease(3)), numbered(range(count))
        )
        kept = await add(store, "a", lease(3), kept, numbered(range(count)), "other")
        gone = await store.save("a", lease(3), kept, Envelope(3, 7))
        await store.forget([EmptyRow("a", 3, gone.step)])
        loaded = await store.load("a", lease(4))
        assert loaded.is_empty
        for name in ("history", "other"):
            assert await found(store, "a", loaded, name=name) == []
        again = await add(store, "a", lease(4), loaded, numbered(range(1), "new"))
        assert await found(store, "a", again) == [*numbered(range(1), "new").items()]
        for number in (5, 6):
            loaded = await store.load("a", lease(number))
            assert await found(store, "a", loaded) == [*numbered(range(1), "new").items()]
        await store.close()

    async def test_forgetting_that_was_cancelled_forgets_all_or_nothing(
        self, open_entities: OpenEntities
    ) -> None:
        store = await open_entities("counters", "hashed")
        for steps in range(8):
            key, items = f"key-{steps}", numbered(range(300))
            kept = await add(store, key, lease(3), await store.load(key, lease(3)), items)
            saving: asyncio.Task[Envelope] = asyncio.create_task(
                store.save(key, lease(3), kept, Envelope(3, 7))
            )
            for _ in range(steps):
                await asyncio.sleep(0)
            saving.cancel()
            await asyncio.wait({saving})
            loaded = await store.load(key, lease(3))
            expected = [] if loaded.is_empty else [*items.items()]
            assert await found(store, key, loaded, page=100) == expected
            await add(store, key, lease(3), loaded, numbered(range(1), "new"))
            expected = [*{**dict(expected), **numbered(range(1), "new")}.items()]
            loaded = await store.load(key, lease(4))
            assert await found(store, key, loaded, page=100) == expected
        await store.close()
