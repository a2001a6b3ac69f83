"""Topics as entities in several processes: what is checked, what is not, and who is told."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tenure import Entities
from tenure.base.instants import Instant, seconds
from tenure.client.hand_off.fair_time import FairTime
from tenure.errors import ServiceRefusal
from tenure.services.pubsub.sender import FanOut
from tenure.services.pubsub.service import bound_topic
from tenure.services.pubsub.topic import RememberedTopics, Topic
from tenure.services.pubsub.topic_state import Delivery, DeliveryOutcome
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import InProcessCluster
from tests.unit.entities.stage import Stage

pytestmark = pytest.mark.asyncio
TTL = 1e6


class Inboxes:
    """Targets in memory: what each was sent, some of which refuse."""

    def __init__(self) -> None:
        self.got: dict[str, list[tuple[str, int, bytes]]] = defaultdict(list)
        self.missed: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.refusing: set[str] = set()
        self.slow: dict[str, asyncio.Event] = {}

    async def send(self, topic: str, delivery: Delivery) -> DeliveryOutcome:
        if delivery.target in self.slow:
            await self.slow[delivery.target].wait()
        if delivery.target in self.refusing:
            raise ServiceRefusal(503, "refused", "on purpose")
        taken = 0
        if delivery.missed:
            self.missed[delivery.target].append(delivery.missed)
            taken = delivery.missed[1]
        for each in delivery.messages:
            self.got[delivery.target].append((delivery.epoch, each.number, each.data))
            taken = each.number
        return DeliveryOutcome(delivery.id, taken, is_refused=False)

    def data(self, target: str) -> list[bytes]:
        return [data for _, _, data in self.got[target]]


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    async with InProcessCluster(["counters"], clock=TurnedClock()) as cluster:
        stage = Stage(cluster)
        try:
            yield stage
        finally:
            for each in list(stage.members):
                await stage.leave(each)
            await come_to_rest()


async def enter(stage: Stage, inboxes: Inboxes) -> Entities[Topic]:
    fan_out = FanOut(f"p{len(stage.members)}")
    fan_out.targets = inboxes
    member = await stage.enter(bound_topic(fan_out, RememberedTopics()))
    fan_out.topics = member
    return member


async def publish(stage: Stage, member: Entities[Topic], topic: str, data: bytes) -> int:
    async def both() -> int:
        number = (await member[topic].publish(data)).number
        await member[topic].settled(number, 5.0)
        return number

    return await stage.done(both())


async def two(stage: Stage, inboxes: Inboxes) -> tuple[Entities[Topic], Entities[Topic]]:
    first, second = await enter(stage, inboxes), await enter(stage, inboxes)
    await stage.spread()
    return first, second


async def test_a_published_message_is_with_every_target_when_it_is_settled() -> None:
    inboxes = Inboxes()
    async with staged() as stage:
        first, second = await two(stage, inboxes)
        topic = stage.key_of(first, "topic")
        for name in ("a", "b", "c"):
            await stage.done(second[topic].subscribe(name, TTL))
        assert await publish(stage, second, topic, b"hello") == 1
        assert {each: inboxes.data(each) for each in "abc"} == {each: [b"hello"] for each in "abc"}
        figures = await stage.done(first[topic].figures())
        assert (figures.subscribers, figures.number, figures.waiting) == (3, 1, 0)


async def test_a_slow_target_delays_no_other_and_gets_everything_in_order() -> None:
    inboxes = Inboxes()
    async with staged() as stage:
        (member,) = (await enter(stage, inboxes),)
        await stage.spread()
        inboxes.slow["slow"] = asyncio.Event()
        for name in ("slow", "fast"):
            await stage.done(member["t"].subscribe(name, TTL))
        for number in range(3):
            await stage.done(member["t"].publish(b"%d" % number))
        asking = asyncio.ensure_future(stage.done(member["t"].settled(3, 5.0)))
        await stage.until(lambda: inboxes.data("fast") == [b"0", b"1", b"2"])
        settled = await asking
        assert (settled.waiting, settled.refusing) == (1, 0)
        inboxes.slow["slow"].set()
        await stage.until(lambda: inboxes.data("slow") == [b"0", b"1", b"2"])


async def test_a_target_that_refuses_is_told_and_sent_later_even_if_nobody_publishes() -> None:
    inboxes = Inboxes()
    async with staged() as stage:
        member = await enter(stage, inboxes)
        await stage.spread()
        await stage.done(member["t"].subscribe("bob", TTL))
        inboxes.refusing.add("bob")
        await publish(stage, member, "t", b"1")
        settled = await stage.done(member["t"].settled(1, 5.0))
        assert (settled.waiting, settled.refusing) == (0, 1)
        inboxes.refusing.clear()
        await stage.until(lambda: inboxes.data("bob") == [b"1"])
        await stage.until(lambda: not member.station.host._live["t"].envelope.alarms.get("deliver"))


async def test_what_waits_for_a_target_moves_with_its_topic() -> None:
    inboxes = Inboxes()
    async with staged() as stage:
        first = await enter(stage, inboxes)
        await stage.spread()
        await stage.done(first["t"].subscribe("bob", TTL))
        inboxes.refusing.add("bob")
        number = await publish(stage, first, "t", b"1")
        second = await enter(stage, inboxes)
        await stage.leave(first)
        inboxes.refusing.clear()
        await stage.until(lambda: inboxes.data("bob") == [b"1"])
        assert await publish(stage, second, "t", b"2") == number + 1
        epochs = {epoch for epoch, _, _ in inboxes.got["bob"]}
        assert len(epochs) == 1  # nothing was lost, so nobody is told that something was


async def test_a_topic_whose_owner_crashed_begins_another_epoch_without_subscriptions() -> None:
    inboxes = Inboxes()
    async with staged() as stage:
        first, second = await two(stage, inboxes)
        topic = stage.key_of(first, "topic")
        before = await stage.done(second[topic].subscribe("bob", TTL))
        await stage.crash(first)
        await stage.until(lambda: second.station.owner.check(topic))
        with pytest.raises(ServiceRefusal) as unknown:
            await stage.done(second[topic].refresh(before.id, TTL))
        assert unknown.value.status == 404
        again = await stage.done(second[topic].subscribe("bob", TTL))
        assert again.epoch != before.epoch
        assert again.id == before.id


async def test_a_topic_with_an_interrupted_lease_is_sent_to_those_whom_it_remembers() -> None:
    inboxes = Inboxes()
    async with staged() as stage:
        member = await enter(stage, inboxes)
        await stage.spread()
        before = await stage.done(member["t"].subscribe("bob", TTL))
        await publish(stage, member, "t", b"1")
        url = stage.cluster.kill_manager()
        await stage.until(lambda: member.station.owner.check("t") is None)
        stage.cluster.start_manager(url)
        await stage.until(lambda: member.station.owner.check("t"))
        assert await publish(stage, member, "t", b"2") == 1
        assert inboxes.data("bob") == [b"1", b"2"]
        epochs = [epoch for epoch, _, _ in inboxes.got["bob"]]
        assert epochs[0] == before.epoch != epochs[1]  # which tells that something may be missing


async def test_a_topic_that_nobody_subscribes_to_any_more_is_forgotten() -> None:
    inboxes = Inboxes()
    async with staged() as stage:
        member = await enter(stage, inboxes)
        await stage.spread()
        there = await stage.done(member["t"].subscribe("bob", TTL))
        assert "t" in member.station.host.gate.envelopes
        await stage.done(member["t"].unsubscribe(there.id))
        assert "t" not in member.station.host.gate.envelopes
        await stage.done(member["nobody"].figures())
        assert await publish(stage, member, "nobody", b"1") == 0


async def test_subscriptions_go_when_their_time_is_over_and_not_before() -> None:
    inboxes = Inboxes()
    async with staged() as stage:
        member = await enter(stage, inboxes)
        await stage.spread()
        there = await stage.done(member["t"].subscribe("bob", 30.0))
        await stage.cluster.turn(25.0)
        assert (await stage.done(member["t"].figures())).subscribers == 1
        await stage.cluster.turn(10.0)
        assert (await stage.done(member["t"].figures())).subscribers == 0
        with pytest.raises(ServiceRefusal) as gone:
            await stage.done(member["t"].refresh(there.id, TTL))
        assert gone.value.status == 410


async def test_a_clock_on_the_wall_that_jumps_ends_no_subscription_early() -> None:
    inboxes, steady = Inboxes(), [0.0]
    async with staged() as stage:
        member = await enter(stage, inboxes)
        fair = FairTime(lambda: Instant(seconds(steady[0])))
        member.station.host.gate.envelopes._fair = fair
        await stage.spread()
        await stage.done(member["t"].subscribe("bob", 30.0))
        await stage.cluster.turn(40.0)  # which the other clock does not know of
        assert (await stage.done(member["t"].figures())).subscribers == 1
        steady[0] = 30.0
        await stage.cluster.turn(31.0)
        assert (await stage.done(member["t"].figures())).subscribers == 0


async def test_one_id_publishes_once() -> None:
    inboxes = Inboxes()
    async with staged() as stage:
        member = await enter(stage, inboxes)
        await stage.spread()
        await stage.done(member["t"].subscribe("bob", TTL))
        first = await stage.done(member.once("x")["t"].publish(b"1"))
        again = await stage.done(member.once("x")["t"].publish(b"1"))
        assert first == again
        await publish(stage, member, "t", b"2")
        assert inboxes.data("bob") == [b"1", b"2"]
