"""An owner's volume keeps or drops knowledge about a range whose hand-off begins, and
then fails.
"""

from typing import NamedTuple

import pytest

from tenure import MISSING, Cache
from tenure.base.ranges import WHOLE
from tenure.cache.owners_volume import OwnersVolume
from tenure.protocol.lease.messages import HandOff, Leased
from tenure.protocol.lease.owner.events import Grant
from tests.unit.cache.test_owners_volume import Rooms, Stage, stage

pytestmark = pytest.mark.asyncio


class ServedRoom(NamedTuple):
    """A room, and the range around it that is served."""

    reads: OwnersVolume
    order: HandOff
    cache: Cache[str]


async def served_room(it: Stage, rooms: Rooms, room: str) -> ServedRoom:
    """A cache has read the room."""
    rooms.state[room] = "old"
    cache = await it.cache(patience=5)
    assert await it.turning(cache.get(room)) == "old"
    reads = rooms.owner._engine.reads
    assert isinstance(reads, OwnersVolume)
    key = rooms.volume.keys.key(room)
    found = reads._machine.context.served.within(WHOLE)
    ((piece, serving),) = ((piece, serving) for piece, serving in found if key in piece)
    order = HandOff(
        start=piece.start, end=piece.end, number=serving.number, taker=99, address="127.0.0.1:9"
    )
    return ServedRoom(reads, order, cache)


async def test_a_hand_over_that_was_stopped_hears_of_no_later_one() -> None:
    async with stage() as it:
        rooms = await it.rooms()
        reads, order, cache = await served_room(it, rooms, "room-42")
        it.cluster.crash(cache._client)  # type: ignore[arg-type]
        stopped: list[str] = []
        handed: list[tuple[bytes, ...]] = []
        reads.withdraw(order, lambda: stopped.append("withdrawn"))
        await it.cluster.turn(0)
        reads.keep_serving(order)
        await it.cluster.turn(1)
        rooms.owner._engine.shell.call(lambda: reads.hand_over(order, handed.append))
        await it.cluster.turn(1)
        assert len(handed) == 1
        assert stopped == []


async def test_what_comes_back_after_it_was_handed_over_is_known_here() -> None:
    """V15: the owner that was to have it has failed, and its state goes on where it was."""
    async with stage() as it:
        rooms = await it.rooms()
        reads, order, cache = await served_room(it, rooms, "room-42")
        handed: list[tuple[bytes, ...]] = []
        shell = rooms.owner._engine.shell
        shell.call(lambda: reads.hand_over(order, handed.append))
        await it.cluster.turn(0.1)
        assert len(handed) == 1
        assert cache.peek("room-42") is MISSING
        back = Leased(
            start=order.start,
            end=order.end,
            number=order.number + 1,
            since=1,
            mark="granted",
            handed=order.number,
        )
        shell.call(lambda: reads.perform(Grant((back,))))
        await it.cluster.turn(0)
        assert await it.turning(cache.get("room-42")) == "old"
        assert rooms.loads == ["room-42"]
