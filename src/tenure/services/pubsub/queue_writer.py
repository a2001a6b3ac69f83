"""Topics that write into queues, over the queues' HTTP API."""

from collections.abc import Sequence

import msgspec

from tenure import Credentials
from tenure.services.pubsub.targets import ASK_SECONDS, TopicEvent
from tenure.services.queues.client import QueuesClient

_encode = msgspec.json.Encoder().encode


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

    async def put(self, queue: str, event: TopicEvent, id: str) -> None:  # noqa: A002  # what it is
        """See `QueueWriter`."""
        await self.enqueue(queue, msgspec.Raw(_encode(event)), id=id)

    async def rely(self, queue: str, topic: str) -> None:
        """See `QueueWriter`."""
        await self.watch(queue, {self._pool: [topic]})
