"""Targets, to which messages are sent: queues, or URLs."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from tenure.errors import ServiceRefusal, TenureError
from tenure.services.address_slots import AddressSlots
from tenure.services.outward import Outward
from tenure.services.pubsub.topic_state import Delivery, DeliveryOutcome, TopicMessage

QUEUE = "queue:"
ASK_SECONDS = 10.0
"""How long a target has to take a message."""
ANSWER_BYTES = 1 << 16
"""How much is read of a URL's answer: nothing in it matters."""
MOST_OUTSTANDING = 64
"""The most deliveries to one owner of queues, or one host, at a time."""
_encode = msgspec.json.Encoder().encode


class TopicEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """The event as a target gets it."""

    topic: str
    epoch: str
    number: int
    """The number of the message; of a gap, the last number that is missing."""
    at: float = 0.0
    """When it was published, in seconds since 1970."""
    data: Any = None
    missed: tuple[int, int] | None = None
    """The first and the last number of the messages that the target misses."""


class QueueWriter(Protocol):
    """The queues into which a topic writes."""

    def owner_of(self, queue: str) -> str:
        """The owner of the queue, as far as is known."""
        ...

    async def put(self, queue: str, event: TopicEvent) -> None:
        """Put an event into a queue, once for each number. Raises TenureError if that fails."""
        ...

    async def rely(self, queue: str, topic: str) -> None:
        """Have the queue told when the topic is lost. Raises TenureError if there is no such
        queue.
        """
        ...


class MessageTargets:
    def __init__(self, queues: QueueWriter | None, outward: Outward | None) -> None:
        self._queues = queues
        self._outward = outward
        self._outstanding = AddressSlots(MOST_OUTSTANDING)

    async def accept(self, target: str, topic: str) -> None:
        """Check that messages can be sent to a target. Raises ServiceRefusal."""
        if target == QUEUE:
            raise ServiceRefusal(422, "target", f"{QUEUE} does not name a queue: write {QUEUE}NAME")
        if target.startswith(QUEUE):
            await self._queue_writer().rely(target.removeprefix(QUEUE), topic)
        else:
            self._web().checked(target)

    async def send(self, topic: str, delivery: Delivery) -> DeliveryOutcome:
        """See `Targets`."""
        taken = 0
        try:
            async with self._slot(delivery.target):
                if delivery.missed is not None:
                    last = delivery.missed[1]
                    await self._put(
                        delivery,
                        TopicEvent(topic, delivery.epoch, last, missed=delivery.missed),
                        f"missed-{delivery.missed[0]}",
                    )
                    taken = last
                for each in delivery.messages:
                    event = _event(topic, delivery.epoch, each)
                    await self._put(delivery, event, str(each.number))
                    taken = each.number
        except TenureError:
            if not taken:
                raise
            return DeliveryOutcome(delivery.id, taken, is_refused=True)
        return DeliveryOutcome(delivery.id, taken, is_refused=False)

    def _slot(self, target: str) -> AbstractAsyncContextManager[None]:
        if self._queues is not None and target.startswith(QUEUE):
            return self._outstanding.slot(self._queues.owner_of(target.removeprefix(QUEUE)))
        if self._outward is None:
            return nullcontext()
        return self._outstanding.slot(self._outward.checked(target).authority)

    async def _put(self, delivery: Delivery, event: TopicEvent, name: str) -> None:
        if delivery.target.startswith(QUEUE):
            await self._queue_writer().put(delivery.target.removeprefix(QUEUE), event)
            return
        id_ = f"{quote(event.topic)} {delivery.epoch} {name}"  # a header does not take every name
        answer = await self._web().ask(
            "POST",
            delivery.target,
            ANSWER_BYTES,
            ASK_SECONDS,
            data=_encode(event),
            headers={"Content-Type": "application/json", "Idempotency-Key": id_},
        )
        if answer.status >= 300:  # noqa: PLR2004  # as HTTP has it
            raise ServiceRefusal(502, "refused", f"it answers {answer.status}")

    def _queue_writer(self) -> QueueWriter:
        if self._queues is None:
            raise ServiceRefusal(422, "queues", "this service knows no queues: see --queues")
        return self._queues

    def _web(self) -> Outward:
        if self._outward is None:
            raise ServiceRefusal(422, "urls", "this service sends to queues only")
        return self._outward


def _event(topic: str, epoch: str, message: TopicMessage) -> TopicEvent:
    data = msgspec.json.decode(message.data)
    return TopicEvent(topic, epoch, message.number, message.at, data)
