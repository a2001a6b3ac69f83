"""The sender of one process: what it asks a topic, what it reports, and how it ends."""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from tenure.errors import ServiceRefusal
from tenure.services.pubsub import sender
from tenure.services.pubsub.sender import FanOut
from tenure.services.pubsub.topic_state import Delivery, DeliveryOutcome
from tenure.testing.clock import come_to_rest
from tests.patience import until

pytestmark = pytest.mark.asyncio
WHOSE: ContextVar[str] = ContextVar("WHOSE", default="nobody's")


def to(target: str, epoch: str = "1.1.a") -> Delivery:
    return Delivery(target, target, epoch, None, [])


class OneTopic:
    """A topic whose messages are due at each look, unless its target is busy."""

    def __init__(self, *due: list[Delivery]) -> None:
        self.due_at = list(due)
        self.busy: list[list[str]] = []
        """The targets that are busy, for each look."""
        self.looked: Callable[[], None] = lambda: None
        self.reported: list[tuple[str, list[str]]] = []
        self.settled = 0
        self.error: Exception | None = None

    def __getitem__(self, key: str) -> "OneTopic":
        return self

    async def due(self, name: str, busy: list[str]) -> list[Delivery]:
        del name
        self.busy.append(busy)
        self.looked()
        if self.error is not None:
            raise self.error
        return [each for each in (self.due_at or [[]]).pop(0) if each.id not in busy]

    async def report(self, epoch: str, outcomes: list[DeliveryOutcome]) -> int:
        self.reported.append((epoch, sorted(each.id for each in outcomes)))
        self.settled += 1
        return self.settled


class HeldTargets:
    """Takes what it is sent; under some names when it may, or not at first."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.under_way: set[str] = set()
        self.held: dict[str, asyncio.Event] = {}
        self.refuses = 0
        self.whose = ""

    async def send(self, topic: str, delivery: Delivery) -> DeliveryOutcome:
        self.whose = WHOSE.get()
        self.sent.append(delivery.id)
        self.under_way.add(delivery.id)
        try:
            if delivery.id in self.held:
                await self.held[delivery.id].wait()
        finally:
            self.under_way.discard(delivery.id)
        self.refuses -= 1
        return DeliveryOutcome(delivery.id, 1, is_refused=self.refuses >= 0)


def sending(topic: OneTopic, there: HeldTargets) -> FanOut:
    fan_out = FanOut("p")
    fan_out.topics, fan_out.targets = topic, there  # type: ignore[assignment]
    return fan_out


async def test_what_is_under_way_ends_with_its_process() -> None:
    there = HeldTargets()
    there.held["a"] = asyncio.Event()
    fan_out = sending(OneTopic([to("a")]), there)
    fan_out.kick("t")
    await come_to_rest(rounds=100)
    assert there.under_way == {"a"}
    async with asyncio.timeout(20):
        await fan_out.close()
    await come_to_rest(rounds=100)
    assert not there.under_way


@pytest.mark.parametrize(
    "error", [ServiceRefusal(503, "no", "on purpose"), ArithmeticError("ours")]
)
async def test_nobody_waits_for_a_topic_that_cannot_be_asked_and_it_is_asked_again(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    topic = OneTopic([to("a")])
    topic.error = error
    fan_out = sending(topic, HeldTargets())
    async with asyncio.timeout(20):
        await fan_out.settle("t", 1, 1000.0)
        logged = [each.levelname for each in caplog.records if "are sent later" in each.message]
        assert logged == (["ERROR"] if isinstance(error, ArithmeticError) else [])
        assert "never retrieved" not in caplog.text
        topic.error = None
        await fan_out.settle("t", 1, 1000.0)
    assert topic.reported == [("1.1.a", ["a"])]


async def test_nobody_waits_longer_than_he_says() -> None:
    there = HeldTargets()
    there.held["a"] = asyncio.Event()
    fan_out = sending(OneTopic([to("a")]), there)
    async with asyncio.timeout(20):
        await fan_out.settle("t", 1, 0.01)
    await fan_out.close()


async def test_whoever_waits_for_a_message_waits_until_it_is_taken() -> None:
    """It does not wait for the message before it."""
    there = HeldTargets()
    there.held["b"] = asyncio.Event()
    topic = OneTopic([to("a")], [to("b")])
    fan_out = sending(topic, there)
    waiting = asyncio.create_task(fan_out.settle("t", 2, 1000.0))
    await come_to_rest(rounds=100)
    assert (topic.settled, there.under_way, waiting.done()) == (1, {"b"}, False)
    there.held["b"].set()
    async with asyncio.timeout(20):
        await waiting


async def test_what_comes_during_a_look_is_looked_for_again() -> None:
    topic = OneTopic([], [to("a")])
    fan_out = sending(topic, HeldTargets())
    topic.looked = lambda: fan_out.kick("t") if len(topic.busy) == 1 else None
    fan_out.kick("t")
    await come_to_rest(rounds=100)
    assert topic.reported == [("1.1.a", ["a"])]


async def test_sending_is_not_on_behalf_of_the_turn_that_began_it() -> None:
    there = HeldTargets()
    WHOSE.set("a turn's")
    sending(OneTopic([to("a")]), there).kick("t")
    await come_to_rest(rounds=100)
    assert there.whose == "nobody's"


async def test_what_comes_of_deliveries_at_one_moment_is_one_report_of_each_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "TOGETHER_SECONDS", 20.0)
    there = HeldTargets()
    there.held["c"] = asyncio.Event()
    topic = OneTopic([to("a"), to("b", "2.1.a"), to("c")])
    sending(topic, there).kick("t")
    await come_to_rest(rounds=100)
    assert not topic.reported
    there.held["c"].set()
    await come_to_rest(rounds=100)
    assert topic.reported == [("1.1.a", ["a", "c"]), ("2.1.a", ["b"])]


async def test_a_target_that_refused_is_tried_when_its_pause_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This needs nobody to publish, or to look for it, in the meantime."""
    monkeypatch.setattr(sender, "RETRY_SECONDS", 0.05)
    there = HeldTargets()
    there.refuses = 1
    topic = OneTopic([to("a")], [to("a")], [to("a")])
    sending(topic, there).kick("t")
    await until(lambda: len(there.sent) >= 2)
    assert topic.busy[:3] == [[], ["a"], []]


async def test_a_target_with_a_delivery_under_way_is_sent_no_other() -> None:
    there = HeldTargets()
    there.held["a"] = asyncio.Event()
    topic = OneTopic([to("a")], [to("a"), to("b")])
    fan_out = sending(topic, there)
    fan_out.kick("t")
    await until(lambda: len(topic.busy) >= 1)
    fan_out.kick("t")
    await until(lambda: len(topic.busy) >= 2)
    await come_to_rest(rounds=100)
    assert topic.busy[1] == ["a"]
    assert there.sent == ["a", "b"]
    await fan_out.close()
