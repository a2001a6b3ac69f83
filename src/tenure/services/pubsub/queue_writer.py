"""Topics that write into queues, over the queues' HTTP API."""

from collections.abc import Sequence

import msgspec

from tenure import Credentials
from tenure.services.pubsub.targets import ASK_SECONDS, TopicEvent
from tenure.services.queues.client import QueuesClient
from tenure.services.queues.entries import SourcePlace

_encode = msgspec.json.Encoder().encode


def place_of(event: TopicEvent, pool: str) -> SourcePlace:
    """Where an event stands in its topic."""
    return SourcePlace(f"{pool}/{event.topic}", event.epoch, event.number)


class HttpQueueWriter(QueuesClient):
    """See `QueueWriter`. `pool` is that of the topics, in which queues watch them."""

    def __init__(
        self, urls: Sequence[str], pool: str, credentials: Credentials | None = None
    ) -> None:
        super().__init__(urls, deadline=ASK_SECONDS, credentials=credentials)
        self._pool = pool

    def owner_of(self, queue: str) -> str:
        """The process that is asked: it knows the queue's owner, and asks that one."""
        del queue
        return self.url

    async def put(self, queue: str, event: TopicEvent) -> None:
        """See `QueueWriter`."""
        place = place_of(event, self._pool)
        await self.enqueue(queue, msgspec.Raw(_encode(event)), place=place)

    async def rely(self, queue: str, topic: str) -> None:
        """See `QueueWriter`."""
        await self.watch(queue, {self._pool: [topic]})
