"""The pubsub service over HTTP."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar
from uuid import uuid4

import msgspec

from tenure import Credentials
from tenure.errors import ServiceRefusal
from tenure.services.client import ID_HEADER
from tenure.services.expiring import of_this_process
from tenure.services.limits import OF_ENTITIES, ServiceLimit, ShortText
from tenure.services.operations import ServiceAnswer, ServiceRequest, check_readable, operation
from tenure.services.outward import Outward
from tenure.services.pubsub.queue_writer import HttpQueueWriter
from tenure.services.pubsub.sender import FanOut
from tenure.services.pubsub.targets import MessageTargets
from tenure.services.pubsub.topic import RememberedTopics, Subscribed, Topic, TopicFigures
from tenure.services.pubsub.topic_state import LIMITS, MESSAGE_BYTES, TARGET_BYTES
from tenure.services.service import MakePort, Service, ServiceSettings, TimeToLive, Ttl, id_in

PATIENCE_SECONDS = 5.0
"""How long a publisher waits for targets to take its message."""
AROUND = 3
"""Levels around a published message in a queue: it is in an event, which is in a put, which is in a
list.
"""
_encode = msgspec.json.Encoder().encode


class Subscribing(msgspec.Struct, forbid_unknown_fields=True):
    """A target, and for how long."""

    target: ShortText
    """`queue:NAME`, or a URL to which messages are posted."""
    ttl: Ttl = 0.0
    """Seconds; 0 for the usual ones."""


class Publishing(msgspec.Struct, forbid_unknown_fields=True):
    """A message."""

    data: Any


class Published(msgspec.Struct):
    """A message that a topic has accepted."""

    epoch: str
    number: int
    """0 if the topic has no subscription, so that nobody misses the message."""
    subscribers: int
    waiting: int
    """Subscribers whose targets have not taken it yet."""
    refusing: int
    """Subscribers whose targets refuse: they get it later, or learn of a gap."""


def bound_topic(fan_out: FanOut, remembered: RememberedTopics) -> type[Topic]:
    """The class of the topics of one process."""
    return of_this_process(Topic, sender=fan_out, remembered=remembered)


class PubSub(Service[Topic]):
    """One process of it."""

    name: ClassVar[str] = "pubsub"
    port: ClassVar[int] = 8102
    limits: ClassVar[tuple[ServiceLimit, ...]] = (*LIMITS, *OF_ENTITIES)
    takes: ClassVar[frozenset[str]] = frozenset({"store", "queues", "queues_token", "inward"})

    def __init__(
        self,
        settings: ServiceSettings,
        **of_entities: Any,  # noqa: ANN401  # see Entities
    ) -> None:
        self.fan_out = FanOut(uuid4().hex)
        super().__init__(settings, **of_entities)
        self.fan_out.topics = self.entities

    def entity_type(self) -> type[Topic]:
        return bound_topic(self.fan_out, RememberedTopics())

    def _queue_writer(self) -> HttpQueueWriter:
        settings = self.settings
        if settings.queues_token is None:
            return HttpQueueWriter(settings.queues, settings.pool)
        own = Credentials.from_environment()
        shown = replace(own, token=None, token_file=settings.queues_token)
        return HttpQueueWriter(settings.queues, settings.pool, shown)

    @asynccontextmanager
    async def running(self, make_port: MakePort) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            outward = Outward(inward=self.settings.inward)
            stack.push_async_callback(outward.close)
            queues = None
            if self.settings.queues:
                queues = await stack.enter_async_context(self._queue_writer())
            self.targets = self.fan_out.targets = MessageTargets(queues, outward)
            await stack.enter_async_context(self.entities)
            stack.push_async_callback(self.fan_out.close)
            yield

    @operation(
        "POST",
        "/topics/{key}/subscriptions",
        "Subscribe a target: what is published from now on is sent to it",
        {201: Subscribed},
        body=Subscribing,
        refusals=(404, 410),
    )
    async def subscribe(self, asked: ServiceRequest) -> ServiceAnswer:
        """A target subscribes once: doing it again refreshes the subscription."""
        given: Subscribing = asked.body
        TARGET_BYTES.check(len(given.target.encode()))
        seconds = self.checked_ttl(given.ttl)
        await self.targets.accept(given.target, asked.key)
        return ServiceAnswer(201, await self.entities[asked.key].subscribe(given.target, seconds))

    @operation(
        "PUT",
        "/topics/{key}/subscriptions/{id}",
        "Refresh a subscription, and learn how far its topic is",
        {200: Subscribed},
        body=TimeToLive,
        is_optional=True,
        refusals=(404, 410),
    )
    async def refresh(self, asked: ServiceRequest) -> ServiceAnswer:
        """Renew a subscription. A subscriber learns what it has missed from the answer."""
        id_, seconds = asked.path["id"], self.checked_ttl(asked.body.ttl if asked.body else 0.0)
        return ServiceAnswer(200, await self.entities[asked.key].refresh(id_, seconds))

    @operation(
        "DELETE",
        "/topics/{key}/subscriptions/{id}",
        "Unsubscribe; what is on its way may still arrive",
        {204: None},
        refusals=(404, 410),
    )
    async def unsubscribe(self, asked: ServiceRequest) -> ServiceAnswer:
        """End it."""
        await self.repeatable(asked).unsubscribe(asked.path["id"])
        return ServiceAnswer(204)

    @operation(
        "POST",
        "/topics/{key}/messages",
        "Publish a message",
        {200: Published, 202: Published},
        body=Publishing,
        headers={ID_HEADER: "A name for this message: a repeat is not published again"},
    )
    async def publish(self, asked: ServiceRequest) -> ServiceAnswer:
        """200 when every target has taken it or refuses, 202 where some have not answered yet."""
        data = _encode(asked.body.data)
        MESSAGE_BYTES.check(len(data))
        check_readable(data, AROUND)
        accepted = await self.repeatable(asked).publish(data, id_in(asked.headers) or "")
        waiting = refusing = 0
        if accepted.number:
            settled = await self.entities[asked.key].settled(accepted.number, PATIENCE_SECONDS)
            if settled.epoch != accepted.epoch:
                raise ServiceRefusal(
                    503, "lost", "the topic was lost before all had the message: publish it again"
                )
            waiting, refusing = settled.waiting, settled.refusing
        return ServiceAnswer(
            202 if waiting else 200,
            Published(accepted.epoch, accepted.number, accepted.subscribers, waiting, refusing),
        )

    @operation("GET", "/topics/{key}", "Show what a topic has", {200: TopicFigures})
    async def show(self, asked: ServiceRequest) -> ServiceAnswer:
        """Show the topic's figures."""
        return ServiceAnswer(200, await self.entities[asked.key].figures())
