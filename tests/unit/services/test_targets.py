"""Messages go to targets in order, gaps are told first, and only so many go to one owner or host at
a time.
"""

import asyncio
from collections import Counter

import pytest

from tenure.errors import ServiceRefusal
from tenure.services.outward import Outward, OutwardAnswer
from tenure.services.pubsub import targets
from tenure.services.pubsub.sender import RETRY_SECONDS, Pump
from tenure.services.pubsub.targets import MessageTargets, TopicEvent
from tenure.services.pubsub.topic_state import Delivery, DeliveryOutcome, TopicMessage
from tenure.testing.clock import come_to_rest

pytestmark = pytest.mark.asyncio
MESSAGES = [TopicMessage(number, 0.0, b"1") for number in (5, 6)]


class SlowQueues:
    """Queues of two owners, which take nothing before they may."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.under_way = Counter[str]()
        self.most = Counter[str]()
        self.put_in: list[int] = []
        self.refused = 0
        """Messages from this number on are refused."""

    def owner_of(self, queue: str) -> str:
        return queue[0]

    async def put(self, queue: str, event: TopicEvent) -> None:
        owner = self.owner_of(queue)
        self.under_way[owner] += 1
        self.most[owner] = max(self.most[owner], self.under_way[owner])
        await self.may.wait()
        self.under_way[owner] -= 1
        if self.refused and event.number >= self.refused:
            raise ServiceRefusal(503, "no", "on purpose")
        self.put_in.append(event.number)

    async def rely(self, queue: str, topic: str) -> None: ...


def delivery(target: str, missed: tuple[int, int] | None = None) -> Delivery:
    return Delivery(target, target, "1.1.a", missed, MESSAGES)


async def test_one_owner_of_queues_has_so_many_deliveries_at_a_time_and_delays_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(targets, "MOST_OUTSTANDING", 3)
    queues = SlowQueues()
    there = MessageTargets(queues, None)
    names = [*(f"queue:a{n}" for n in range(10)), "queue:b"]
    sending = [asyncio.create_task(there.send("t", delivery(each))) for each in names]
    await come_to_rest()
    assert queues.under_way == {"a": 3, "b": 1}
    queues.may.set()
    assert [each.taken for each in await asyncio.gather(*sending)] == [6] * 11
    assert queues.most["a"] == 3


class SlowWeb(Outward):
    """URLs, of which none answers before it may."""

    def __init__(self) -> None:
        super().__init__(inward=True)
        self.may = asyncio.Event()
        self.under_way = Counter[str]()

    async def ask(
        self, method: str, url: str, most: int, *_: object, **__: object
    ) -> OutwardAnswer:
        del method, most
        self.under_way[self.checked(url).authority] += 1
        await self.may.wait()
        return OutwardAnswer(200, {}, b"")


async def test_one_host_has_so_many_deliveries_at_a_time_and_delays_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(targets, "MOST_OUTSTANDING", 3)
    web = SlowWeb()
    there = MessageTargets(None, web)
    urls = [*(f"http://a.test/{n}" for n in range(10)), "http://b.test/"]
    sending = [asyncio.create_task(there.send("t", delivery(each))) for each in urls]
    await come_to_rest()
    assert web.under_way == {"a.test:80": 3, "b.test:80": 1}
    web.may.set()
    await asyncio.gather(*sending)
    await web.close()


async def test_a_gap_that_was_taken_is_not_told_again_where_the_next_message_is_refused() -> None:
    queues = SlowQueues()
    queues.may.set()
    queues.refused = 5
    there = MessageTargets(queues, None)
    found = await there.send("t", delivery("queue:a", (1, 4)))
    assert (queues.put_in, found) == ([4], DeliveryOutcome("queue:a", 4, is_refused=True))


async def test_a_target_that_refuses_is_tried_again_after_longer_and_longer() -> None:
    pump = Pump("t", None, None, "p")  # type: ignore[arg-type]  # it is not run
    now, pauses = asyncio.get_running_loop().time(), []
    for _ in range(8):
        pump._rest(DeliveryOutcome("a", 0, is_refused=True))
        pauses.append(pump._at_rest()["a"] - now)
    assert [round(each) for each in pauses] == [1, 2, 4, 8, 16, 32, RETRY_SECONDS, RETRY_SECONDS]
    pump._rest(DeliveryOutcome("a", 1, is_refused=False))
    assert not pump._at_rest()
    pump._rest(DeliveryOutcome("a", 1, is_refused=True))
    assert round(pump._at_rest()["a"] - now) == 1


async def test_a_target_that_takes_some_and_refuses_one_is_tried_again_after_a_second() -> None:
    """Each time: with a hundred messages in each, one refusal in fifty ends every delivery."""
    pump = Pump("t", None, None, "p")  # type: ignore[arg-type]  # it is not run
    now = asyncio.get_running_loop().time()
    for taken in range(50, 400, 50):
        pump._rest(DeliveryOutcome("a", taken, is_refused=True))
        assert round(pump._at_rest()["a"] - now) == 1
    pump._rest(DeliveryOutcome("a", 0, is_refused=True))
    assert round(pump._at_rest()["a"] - now) == 2


async def test_of_a_target_that_is_tried_no_more_nothing_is_kept() -> None:
    """No subscription has it any more, while others of its topic rest again and again."""
    pump = Pump("t", None, None, "p")  # type: ignore[arg-type]  # it is not run
    now = asyncio.get_running_loop().time()
    long_ago = now - RETRY_SECONDS - 1
    pump._resting = {"gone": (3, long_ago), "due": (1, now - 1), "rests": (1, now + 9)}
    assert list(pump._at_rest()) == ["rests"]
    assert set(pump._resting) == {"due", "rests"}
