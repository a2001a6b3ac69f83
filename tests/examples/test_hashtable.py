"""The example `hashtable.py`: no value but the last is ever read."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from examples.hashtable import NAMES, Found, Shard, Table, nothing
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster

pytestmark = pytest.mark.asyncio

SOON = 0.5
PAST_TERM = 2.0


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest_asyncio.fixture
async def cluster(clock: TurnedClock) -> AsyncIterator[InProcessCluster]:
    async with InProcessCluster(["table"], clock=clock) as cluster:
        yield cluster


async def test_what_was_put_is_got(cluster: InProcessCluster) -> None:
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        shard = Shard(owner)
        assert await shard.get("ann") == Found(None)  # it is ours, and there is nothing
        assert await shard.put("ann", "here")
        assert await shard.put("ann", "away")
        await cluster.turn(5)
        assert await shard.get("ann") == Found("away")


async def test_a_key_of_somebody_else_is_refused(cluster: InProcessCluster) -> None:
    async with cluster.owner() as one, cluster.owner() as two:
        await cluster.turn(SOON)
        for name in NAMES:
            assert await Shard(one).put(name, "x") is not await Shard(two).put(name, "x")
            assert (await Shard(one).get(name) is None) is not (await Shard(two).get(name) is None)


async def test_a_stale_value_is_never_got(cluster: InProcessCluster, clock: TurnedClock) -> None:
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        shard = Shard(owner)
        assert await shard.put("ann", "here")
        clock.jump(PAST_TERM)
        await cluster.turn(SOON)
        assert "ann" in shard.stored
        assert await shard.get("ann") == Found(None)
        assert "ann" not in shard.stored


async def test_a_lease_that_is_lost_in_between_makes_the_operation_fail(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    async def lose() -> None:
        clock.jump(PAST_TERM)

    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        shard = Shard(owner)
        assert await shard.put("ann", "here")
        shard.meanwhile = lose
        assert await shard.get("ann") is None
        await cluster.turn(SOON)
        assert not await shard.put("ann", "away")
        await cluster.turn(SOON)
        shard.meanwhile = nothing
        assert await shard.get("ann") == Found(None)


async def test_the_table_finds_its_shards(cluster: InProcessCluster) -> None:
    table = Table()
    async with cluster.owner() as one, cluster.owner() as two:
        await cluster.turn(SOON)
        async with cluster.lookup(on_loss=table.on_loss) as table.lookup:
            table.shards = {one.address: Shard(one), two.address: Shard(two)}
            for name in NAMES:
                await table.put(name, name.upper())
            assert [await table.get(name) for name in NAMES] == [name.upper() for name in NAMES]
            assert all(shard.stored for shard in table.shards.values())
            await two.close()
            await cluster.turn(SOON)
            assert table.lost == set(table.shards[two.address].stored)
