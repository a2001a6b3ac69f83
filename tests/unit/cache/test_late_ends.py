"""An owner that is stopped between deciding that its term goes on and saying so."""

from typing import Any

import pytest

from tenure.cache.owners_volume import OwnersVolume
from tenure.client.owner_engine import OwnerEngine
from tenure.protocol.lease.owner.events import Hold, Holdings
from tenure.testing.clock import TurnedClock
from tests.unit.cache.test_owners_volume import stage

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(
    "stopped_in",
    [
        pytest.param((OwnerEngine, "_hold"), id="before readers are shown"),
        pytest.param((OwnersVolume, "perform"), id="before the server of its volume is told"),
    ],
)
async def test_caches_read_again_where_the_volumes_server_saw_the_end_first(
    monkeypatch: pytest.MonkeyPatch, stopped_in: tuple[type, str]
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
        go_on = getattr(*stopped_in)
        ends = [it.cluster.clock()]
        stopped: list[int] = []

        def late(where: Any, said: Any) -> None:  # noqa: ANN401  # both are asked
            holdings = said.holdings if isinstance(said, Hold) else said
            if isinstance(holdings, Holdings) and holdings.leases:
                ends.append(holdings.expires_at)
                if not stopped and len(ends) > 2:
                    clock = it.cluster.clock
                    assert isinstance(clock, TurnedClock)
                    clock.jump((ends[-2] - clock()) / 1e9)
                    assert clock() < ends[-1], "what the machine decided still holds"
                    stopped.append(ends[-2])
            go_on(where, said)

        monkeypatch.setattr(*stopped_in, late)
        await it.cluster.turn(5)
        assert stopped
        assert await it.turning(cache.get("room-42")) is None  # the state went with its lease
        again = rooms.owner.check("room-42")
        assert again is not None
        assert again.number > lease.number
        assert not rooms.owner.holds(lease)
        assert rooms.owner.stats()["lapsed before a reader"] == 1
