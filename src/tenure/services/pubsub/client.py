"""A client of pubsub: `async with PubSubClient(urls) as topics`."""

from typing import Any

import msgspec

from tenure.services.client import BlockingService, ServiceClient, blocking, segment
from tenure.services.pubsub.service import Published
from tenure.services.pubsub.topic import Subscribed, TopicFigures

_subscribed = msgspec.json.Decoder(Subscribed).decode
_published = msgspec.json.Decoder(Published).decode
_figures = msgspec.json.Decoder(TopicFigures).decode


class PubSubClient(ServiceClient):
    """Subscribes targets to topics, and publishes. A target is `queue:NAME`, or a URL to which
    messages are posted.
    """

    async def subscribe(
        self, topic: str, target: str, *, ttl: float = 0.0, deadline: float | None = None
    ) -> Subscribed:
        """Subscribe a target: it is sent everything that is published from here on. A repeat
        refreshes the subscription.
        """
        body = {"target": target, "ttl": ttl}
        path = f"{_path(topic)}/subscriptions"
        return _subscribed((await self.ask("POST", path, body, deadline=deadline)).data)

    async def refresh(
        self,
        topic: str,
        subscription: str,
        *,
        ttl: float = 0.0,
        deadline: float | None = None,
    ) -> Subscribed:
        """Keep a subscription for longer. Its number says how far the topic is: a subscriber that
        has received less has missed messages. Raises ServiceRefusal if the subscription is gone:
        subscribe again.
        """
        path = f"{_path(topic)}/subscriptions/{segment(subscription)}"
        return _subscribed((await self.ask("PUT", path, {"ttl": ttl}, deadline=deadline)).data)

    async def unsubscribe(
        self, topic: str, subscription: str, *, deadline: float | None = None
    ) -> None:
        """End a subscription. Messages on their way may still arrive."""
        await self.ask(
            "DELETE", f"{_path(topic)}/subscriptions/{segment(subscription)}", deadline=deadline
        )

    async def publish(
        self,
        topic: str,
        data: Any,  # noqa: ANN401  # whatever JSON has
        *,
        id: str | None = None,  # noqa: A002  # what it is
        deadline: float | None = None,
    ) -> Published:
        """Send a message to every subscriber. A repeat with the same `id` does not publish it
        twice.
        """
        path = f"{_path(topic)}/messages"
        body = {"data": data}
        return _published((await self.ask("POST", path, body, id=id, deadline=deadline)).data)

    async def show(self, topic: str, *, deadline: float | None = None) -> TopicFigures:
        """The figures of a topic."""
        return _figures((await self.ask("GET", _path(topic), deadline=deadline)).data)


class BlockingPubSub(BlockingService[PubSubClient]):
    """The same for programs without an event loop."""

    subscribe = blocking(PubSubClient.subscribe)
    refresh = blocking(PubSubClient.refresh)
    unsubscribe = blocking(PubSubClient.unsubscribe)
    publish = blocking(PubSubClient.publish)
    show = blocking(PubSubClient.show)


def _path(topic: str) -> str:
    return f"/topics/{segment(topic)}"
