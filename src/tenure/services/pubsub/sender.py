"""Sends the messages of the topics that this process owns, to each target in order.

For each topic there is at most one task, and for each target at most one delivery under way, so a
slow target delays no other. The outcomes of deliveries are reported to the topic, many at a time:
until then they count as not made, and the next owner of the topic makes them again. So a target may
be sent a message twice, with the same id, but never the next message before it.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any, Protocol

from tenure import Entities, TenureError
from tenure.services.pubsub.topic import Topic
from tenure.services.pubsub.topic_state import Delivery, DeliveryOutcome

RETRY_SECONDS = 60.0
"""The longest pause between two attempts at a target that refuses."""
TOGETHER_SECONDS = 0.005
"""How long outcomes are gathered, to be reported in one turn."""
logger = logging.getLogger("tenure.services")


class Targets(Protocol):
    """The targets to which messages go."""

    async def send(self, topic: str, delivery: Delivery) -> DeliveryOutcome:
        """Send messages in order, up to the first that the target does not take. Raises only errors
        of tenure, which count as refusals.
        """
        ...


class FanOut:
    """The sender of one process: see `Sender`."""

    topics: Entities[Topic]
    targets: Targets

    def __init__(self, name: str) -> None:
        self.name = name
        self._pumps: dict[str, Pump] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    def kick(self, topic: str) -> None:
        self._pump(topic)

    def _pump(self, topic: str) -> "Pump":
        pump = self._pumps.get(topic)
        if pump is None:
            pump = self._pumps[topic] = Pump(topic, self.topics, self.targets, self.name)
            # Whatever kicks it, it does not run on behalf of a turn.
            task = asyncio.get_running_loop().create_task(self._run(pump), context=Context())
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop)
        pump.again.set()
        return pump

    async def _run(self, pump: "Pump") -> None:
        try:
            await pump.run()
        except TenureError as error:
            logger.info("the messages of %.100r are sent later: %s", pump.topic, error)
        except Exception:
            logger.exception("the messages of %.100r are sent later", pump.topic)
        finally:
            del self._pumps[pump.topic]
            pump.end()

    async def settle(self, topic: str, number: int, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._pump(topic).reached(number)

    async def close(self) -> None:
        """Stop sending."""
        for each in list(self._tasks):
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Pump:
    """Sends what one topic has to send, until nothing is left."""

    def __init__(self, topic: str, topics: Entities[Topic], targets: Targets, name: str) -> None:
        self.topic = topic
        self.again = asyncio.Event()
        """Something may have come."""
        self._topics = topics
        self._targets = targets
        self._name = name
        self._under_way: dict[asyncio.Task[DeliveryOutcome], Delivery] = {}
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._resting: dict[str, tuple[int, float]] = {}
        """How often targets have refused, and when they are tried again, by the loop's clock."""

    async def run(self) -> None:
        """Send. Raises TenureError if the topic cannot be asked."""
        try:
            while True:
                self.again.clear()
                busy = [*(each.id for each in self._under_way.values()), *self._at_rest()]
                due = await self._topics[self.topic].due(self._name, busy)
                if due is None:
                    return  # another process owns the topic now, and sends
                for each in due:
                    self._begin(each)
                if not self._under_way:
                    self._reach(None)  # every target that takes messages has everything
                    if not (self.again.is_set() or self._at_rest()):
                        return
                await self._report()
        finally:
            for task in self._under_way:
                task.cancel()

    def _at_rest(self) -> dict[str, float]:
        """The targets that are not tried yet, and when they are."""
        now = asyncio.get_running_loop().time()
        for id_ in [it for it, (_, until) in self._resting.items() if until + RETRY_SECONDS < now]:
            del self._resting[id_]  # it would have been tried: its subscription is gone
        return {id_: until for id_, (_, until) in self._resting.items() if until > now}

    def _rest(self, outcome: DeliveryOutcome) -> None:
        refusals, _ = self._resting.pop(outcome.id, (0, 0.0))
        if outcome.taken:
            refusals = 0  # of many messages a target may refuse one now and then
        if outcome.is_refused:
            pause = min(2.0**refusals, RETRY_SECONDS)
            self._resting[outcome.id] = refusals + 1, asyncio.get_running_loop().time() + pause

    def _begin(self, delivery: Delivery) -> None:
        sending: Coroutine[Any, Any, DeliveryOutcome] = self._send(delivery)
        self._under_way[asyncio.ensure_future(sending)] = delivery

    async def _send(self, delivery: Delivery) -> DeliveryOutcome:
        try:
            return await self._targets.send(self.topic, delivery)
        except TenureError as error:
            logger.info("%.100s takes nothing of %.100r: %s", delivery.target, self.topic, error)
            return DeliveryOutcome(delivery.id, 0, is_refused=True)

    async def _report(self) -> None:
        """Wait until a message was taken or refused, or has come; report outcomes."""
        come = asyncio.ensure_future(self.again.wait())
        now, wakes_at = (
            asyncio.get_running_loop().time(),
            min(self._at_rest().values(), default=None),
        )
        pause = None if wakes_at is None else max(wakes_at - now, 0.0)
        try:
            await asyncio.wait(
                [*self._under_way, come], timeout=pause, return_when=asyncio.FIRST_COMPLETED
            )
            if self._under_way and not all(each.done() for each in self._under_way):
                await asyncio.wait(self._under_way, timeout=TOGETHER_SECONDS)
        finally:
            come.cancel()
        done = {task: it for task, it in self._under_way.items() if task.done()}
        outcomes: dict[str, list[DeliveryOutcome]] = {}
        for task, it in done.items():
            del self._under_way[task]
            self._rest(task.result())
            outcomes.setdefault(it.epoch, []).append(task.result())
        for epoch, those in outcomes.items():
            self._reach(await self._topics[self.topic].report(epoch, those))

    # --- publishers that wait ---

    async def reached(self, number: int) -> None:
        """Return when all targets that take messages have taken this one, or when the pump ends."""
        come: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[come] = number
        try:
            await come
        finally:
            del self._waiting[come]

    def _reach(self, number: int | None) -> None:
        for come, wanted in self._waiting.items():
            if not come.done() and (number is None or wanted <= number):
                come.set_result(None)

    def end(self) -> None:
        """Stop sending."""
        self._reach(None)
