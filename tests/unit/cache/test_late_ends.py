"""An owner that is stopped between deciding that its term goes on and saying so."""

import pytest

from tenure.client.owner_engine import OwnerEngine
from tenure.protocol.lease.owner.events import Holdings
from tenure.testing.clock import TurnedClock
from tests.unit.cache.test_owners_volume import stage

pytestmark = pytest.mark.asyncio


async def test_caches_read_again_where_the_volumes_server_saw_the_end_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S3 for the server of a volume: what it has seen to end, it serves under a new lease only.

    Otherwise the owner holds its keys and no cache may read them, for as long as it is renewed.
    """
    async with stage() as it:
        rooms = await it.rooms()
        rooms.state["room-42"] = "old"
        cache = await it.cache(patience=20)
        assert await it.turning(cache.get("room-42")) == "old"
        lease = rooms.owner.check("room-42")
        assert lease is not None
        hold = OwnerEngine._hold
        stopped: list[int] = []

        def late(engine: OwnerEngine, holdings: Holdings) -> None:
            if not stopped and holdings.leases:
                clock = it.cluster.clock
                assert isinstance(clock, TurnedClock)
                ends = engine.board.current.expires_at
                clock.jump((ends - clock()) / 1e9)
                assert clock() < holdings.expires_at, "what the machine decided still holds"
                stopped.append(ends)
            hold(engine, holdings)

        monkeypatch.setattr(OwnerEngine, "_hold", late)
        await it.cluster.turn(5)
        assert stopped
        assert await it.turning(cache.get("room-42")) is None  # the state went with its lease
        again = rooms.owner.check("room-42")
        assert again is not None
        assert again.number > lease.number
        assert not rooms.owner.holds(lease)
        assert rooms.owner.stats()["lapsed before a reader"] == 1
