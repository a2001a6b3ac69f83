"""Load moves keys: from what owners check to what the manager's policy does with it."""

from contextlib import AsyncExitStack

import pytest

from tenure import Owner
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.answers import Owners
from tenure.protocol.lease.leader.events import ListOwners
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster

pytestmark = pytest.mark.asyncio

HOT = "room-hot"
COLD = [f"room-{i}" for i in range(100)]
TICK = 0.3
"""A renewal's time of the preset."""
OWNERS = 10
"""So many that one of them can give all its ranges away without waiting long for the
churn budget.
"""


async def serve(cluster: InProcessCluster, owners: list[Owner], seconds: float, hot: int) -> None:
    """Serve for this long: each cold key is asked for once in a tick, the hot one `hot` times."""
    for _ in range(round(seconds / TICK)):
        for key in COLD:
            holder(owners, key)
        if at := holder(owners, HOT):
            for _ in range(hot - 1):
                at.check(HOT)
        await cluster.turn(TICK)


def holder(owners: list[Owner], key: str) -> Owner | None:
    return next((owner for owner in owners if owner.check(key)), None)


async def loads(cluster: InProcessCluster) -> dict[str, float]:
    """Return the load of each owner, by name, as the manager reports it."""
    answer = cluster.ask(ListOwners("rooms"))
    assert isinstance(answer, Owners)
    return {each.name: each.load for each in answer.owners}


async def test_a_hot_key_ends_up_alone_at_an_owner() -> None:
    async with (
        InProcessCluster(["rooms"], clock=TurnedClock()) as cluster,
        AsyncExitStack() as stack,
    ):
        owners = [await stack.enter_async_context(cluster.owner()) for _ in range(OWNERS)]
        await cluster.turn(2)
        before = [owner.ranges for owner in owners]
        await serve(cluster, owners, 6, hot=200)
        assert [owner.ranges for owner in owners] == before, "too little is known yet"
        await serve(cluster, owners, 80, hot=200)
        alone = holder(owners, HOT)
        assert alone is not None
        key = alone.key(HOT)
        assert alone.ranges == (KeyRange(key, key + b"\0"),)
        rates = await loads(cluster)
        assert rates[alone.name] == pytest.approx(200 / TICK, rel=0.05)
        assert sum(rates.values()) == pytest.approx(300 / TICK, rel=0.05)


async def test_without_load_nothing_changes() -> None:
    async with (
        InProcessCluster(["rooms"], clock=TurnedClock()) as cluster,
        cluster.owner() as one,
        cluster.owner() as two,
    ):
        await cluster.turn(2)
        before = one.ranges, two.ranges
        await cluster.turn(60)
        assert (one.ranges, two.ranges) == before
        assert set((await loads(cluster)).values()) == {0.0}
