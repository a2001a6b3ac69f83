"""Topics that write into queues, over the queues' HTTP API.

A message goes to many queues at the same moment. Messages of one moment share a request, so a topic
with a thousand subscribers does not make a thousand requests.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from tenure import Credentials
from tenure.errors import ServiceRefusal, TenureError
from tenure.services.pubsub.targets import ASK_SECONDS, MOST_OUTSTANDING, TopicEvent
from tenure.services.queues.client import QueuesClient
from tenure.services.queues.entries import EntryPut, SourcePlace

TOGETHER_BYTES = 384 * 1024
"""The most bytes of messages in one request, before its last message: that one still fits, with the
places.
"""
_encode = msgspec.json.Encoder().encode


def place_of(event: TopicEvent, pool: str) -> SourcePlace:
    """The place of an event in its topic."""
    return SourcePlace(f"{pool}/{event.topic}", event.epoch, event.number)


class HttpQueueWriter(QueuesClient):
    """See `QueueWriter`. `pool` is that of the topics, in which queues watch them."""

    def __init__(
        self, urls: Sequence[str], pool: str, credentials: Credentials | None = None
    ) -> None:
        super().__init__(urls, deadline=ASK_SECONDS, credentials=credentials)
        self._pool = pool
        self._waiting: list[tuple[EntryPut, asyncio.Future[None]]] = []
        self._asking: set[asyncio.Task[None]] = set()

    def owner_of(self, queue: str) -> str:
        """The process that is asked: it knows the queue's owner, and passes the request on."""
        return self.url

    async def put(self, queue: str, event: TopicEvent) -> None:
        put = EntryPut(queue, msgspec.Raw(_encode(event)), place_of(event, self._pool))
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._ask_together)
        self._waiting.append((put, loop.create_future()))
        await self._waiting[-1][1]

    def _ask_together(self) -> None:
        while self._waiting:
            count, size = 0, 0
            while count < min(len(self._waiting), MOST_OUTSTANDING) and size < TOGETHER_BYTES:
                size += len(bytes(self._waiting[count][0].message))
                count += 1
            together, self._waiting = self._waiting[:count], self._waiting[count:]
            asking = asyncio.ensure_future(self._ask_for(together))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)

    async def _ask_for(self, together: list[tuple[EntryPut, asyncio.Future[None]]]) -> None:
        found: list[object]
        try:
            found = [*await self.enqueue_some([put for put, _ in together])]
        except TenureError as error:
            found = [error] * len(together)
        except (ValueError, RuntimeError) as error:  # it answers nonsense, or this process ends
            found = [ServiceRefusal(502, "answer", f"{self.url}: {error!r:.200}")] * len(together)
        for (_, come), each in zip(together, found, strict=True):
            if come.done():
                continue  # the caller has gone
            if isinstance(each, Exception):
                come.set_exception(each)
            else:
                come.set_result(None)

    async def rely(self, queue: str, topic: str) -> None:
        await self.watch(queue, {self._pool: [topic]})
