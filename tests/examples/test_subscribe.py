"""The example `subscribe.py`: what its four steps are for."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from examples.subscribe import TOPICS, Subscriber, Topics
from tenure import KeyRange
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
    async with InProcessCluster(["topics"], clock=clock) as cluster:
        yield cluster


async def test_step_1_a_topic_of_somebody_else_is_refused(cluster: InProcessCluster) -> None:
    async with cluster.owner() as one, cluster.owner() as two:
        await cluster.turn(SOON)
        here, there = Topics(one), Topics(two)
        for topic in TOPICS:
            done = [await here.subscribe(topic, "ann"), await there.subscribe(topic, "ann")]
            assert sorted(done) == [False, True]
            assert topic not in (here.lists if done[1] else there.lists)


async def test_step_2_a_stale_list_is_discarded(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        topics = Topics(owner)
        assert await topics.subscribe("news", "ann")
        clock.jump(PAST_TERM)  # the lease is lost,
        await cluster.turn(SOON)  # and given to the same process again
        assert owner.check("news")
        assert topics.lists["news"][1] == ["ann"]  # still in its memory
        assert topics.subscribers("news") == []
        assert await topics.subscribe("news", "bob")
        assert topics.subscribers("news") == ["bob"]


async def test_step_3_a_list_grows_while_the_lease_is_held(cluster: InProcessCluster) -> None:
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        topics = Topics(owner)
        for name in ("ann", "bob", "ann"):
            assert await topics.subscribe("news", name)
            await cluster.turn(SOON)  # many renewals
        assert topics.subscribers("news") == ["ann", "bob"]


async def test_step_4_an_operation_fails_when_the_lease_is_lost_in_between(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    async def slowly(_: str) -> None:
        clock.jump(PAST_TERM)

    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        topics = Topics(owner, slowly)
        assert not await topics.subscribe("news", "ann")
        await cluster.turn(SOON)
        assert topics.subscribers("news") == []  # though nothing was cleaned up
        assert topics.lists["news"][1] == ["ann"]


async def test_a_failed_operation_is_tried_again_where_the_topic_is_now(
    cluster: InProcessCluster,
) -> None:
    ann = Subscriber("ann")
    async with cluster.owner() as one, cluster.owner() as two:
        await cluster.turn(SOON)
        async with cluster.lookup(on_loss=ann.on_loss) as ann.lookup:
            ann.servers = {one.address: Topics(one), two.address: Topics(two)}
            assert [await ann.subscribe(topic) for topic in TOPICS] == [1] * len(TOPICS)


async def test_a_loss_is_told_of_the_topics_in_the_ranges(cluster: InProcessCluster) -> None:
    ann = Subscriber("ann")
    async with cluster.owner(), cluster.lookup() as ann.lookup:
        await cluster.turn(SOON)
        middle = sorted(ann.lookup.key(topic) for topic in TOPICS)[15]
        ann.on_loss((KeyRange(b"", middle),))
        assert len(ann.lost) == 15
