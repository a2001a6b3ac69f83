"""Caches read what is pinned at its owner: its range ends right behind its hash."""

import pytest

from tenure import MISSING, KeyTypeError
from tenure.base.keys import hashed_key
from tenure.base.ranges import KeyRange
from tenure.cache.object_keys import ObjectKeys
from tenure.protocol.lease.steering_events import PinKey
from tests.unit.cache.test_owners_volume import ROOMS, stage


@pytest.mark.asyncio
async def test_a_key_that_is_pinned_is_read_and_written_at_its_owner() -> None:
    async with stage() as it:
        first, second = [await it.rooms() for _ in range(2)]
        room = next(room for room in ROOMS if first.owner.check(room))
        first.state[room] = "old"
        cache = await it.cache(patience=20)
        assert await it.turning(cache.get(room)) == "old"
        it.cluster.ask(PinKey(pool="rooms", key=hashed_key(room), owner=second.owner.name))
        while not second.owner.check(room):
            await it.cluster.turn(0.05)
        assert await it.turning(cache.get(room)) == "old"

        async def write() -> None:
            async with second.volume.write(room):
                assert cache.peek(room) is MISSING
                second.state[room] = "new"

        await it.turning(write())
        assert await it.turning(cache.get(room)) == "new"
        assert second.loads[-1] == room


@pytest.mark.parametrize("name", ["", "a", "room-42", "\U0010ffff" * 100])
def test_an_object_lies_in_the_ranges_in_which_its_key_lies(name: str) -> None:
    keys = ObjectKeys(str, "hashed")
    key = hashed_key(name)
    following = (int.from_bytes(key, "big") + 1).to_bytes(8, "big")
    for one in (KeyRange(key, key + b"\0"), KeyRange(key, following), KeyRange(key[:4], None)):
        assert keys.key(name) in keys.places(one)
    for other in (KeyRange(key + b"\0", following), KeyRange(following), KeyRange(b"", key)):
        assert keys.key(name) not in keys.places(other)
    assert ObjectKeys(str, "ordered").places(KeyRange(b"a", b"a\0")) == KeyRange(b"a", b"a\0")


def test_a_name_that_would_lie_elsewhere_is_none() -> None:
    with pytest.raises(KeyTypeError, match="64 bytes of ff"):
        ObjectKeys(bytes, "hashed").key(b"\xff" * 65)
