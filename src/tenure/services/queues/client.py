"""A client of queues: `async with QueuesClient(urls) as queues`, and a reader of each queue."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from tenure.errors import ServiceRefusal
from tenure.services.client import BlockingService, ServiceClient, blocking, segment
from tenure.services.queues.entries import EntryPut, QueueLoss, SourcePlace
from tenure.services.queues.queue import BEGAN_ANEW, UNNAMED, Enqueued, PutAnswered, QueueShown

WAIT_SECONDS = 20.0


class ReceivedEntry(msgspec.Struct):
    """An entry that was read: a message or a loss."""

    number: int
    at: float
    message: Any = None
    loss: QueueLoss | None = None


class ReceivedEntries(msgspec.Struct):
    """The result of a drain."""

    reader: str
    entries: list[ReceivedEntry]


_shown = msgspec.json.Decoder(QueueShown).decode
_enqueued = msgspec.json.Decoder(Enqueued).decode
_answered = msgspec.json.Decoder(list[PutAnswered]).decode
_drained = msgspec.json.Decoder(ReceivedEntries).decode


class QueuesClient(ServiceClient):
    """Puts messages into queues, and reads from them."""

    async def begin(
        self,
        key: str,
        *,
        watch: Mapping[str, Sequence[str]] | None = None,
        ttl: float = 0.0,
        deadline: float | None = None,
    ) -> QueueShown:
        """Begin a queue, or keep it for longer; `watch` names keys of other pools, by pool."""
        body = {"ttl": ttl, "watch": watch}
        return _shown((await self.ask("PUT", _path(key), body, deadline=deadline)).data)

    async def watch(
        self, key: str, watch: Mapping[str, Sequence[str]], *, deadline: float | None = None
    ) -> QueueShown:
        """Watch these keys of other pools too."""
        path = _path(key) + "/watch"
        return _shown((await self.ask("POST", path, watch, deadline=deadline)).data)

    async def look(self, key: str, *, deadline: float | None = None) -> QueueShown:
        """How long a queue is."""
        return _shown((await self.ask("GET", _path(key), deadline=deadline)).data)

    async def delete(self, key: str, *, deadline: float | None = None) -> None:
        """Delete a queue."""
        await self.ask("DELETE", _path(key), deadline=deadline)

    async def enqueue(
        self,
        key: str,
        message: Any,  # noqa: ANN401  # whatever JSON has
        *,
        id: str | None = None,  # noqa: A002  # what it is
        place: SourcePlace | None = None,
        deadline: float | None = None,
    ) -> Enqueued:
        """Put a message in: once this returns, the reader will get it, or a loss in its place.
        Messages with a `place` come in the order of their source, however late an attempt arrives.
        """
        path, body = _path(key) + "/entries", {"message": message, "place": place}
        return _enqueued((await self.ask("POST", path, body, id=id, deadline=deadline)).data)

    async def enqueue_some(
        self, puts: Sequence[EntryPut], *, deadline: float | None = None
    ) -> list[Enqueued | ServiceRefusal]:
        """Put messages of sources into several queues, with one request; returns the result of
        each.
        """
        reply = await self.ask("POST", "/entries", list(puts), deadline=deadline)
        answers = zip(puts, _answered(reply.data), strict=True)
        return [answer.outcome() for _, answer in answers]

    def reader(self, key: str) -> "QueueReader":
        """A reader of the queue. With its first question it takes over from any other."""
        return QueueReader(self, key)


class QueueReader:
    """Reads one queue, by long polls. Raises ServiceRefusal, `taken_over`, if another does."""

    def __init__(self, client: QueuesClient, key: str) -> None:
        self._client = client
        self._path = _path(key)
        self._name = UNNAMED

    async def next(
        self, *, wait: float = WAIT_SECONDS, most: int = 100, deadline: float | None = None
    ) -> list[ReceivedEntry]:
        """The entries that are not acknowledged yet; empty if nothing has come for `wait`
        seconds.
        """
        while True:
            body = {"reader": self._name, "wait": wait, "most": most}
            reply = await self._client.ask(
                "POST", self._path + "/drain", body, deadline=deadline, patience=wait
            )
            found, before = _drained(reply.data), self._name
            self._name = found.reader
            if found.entries or found.reader == before:
                return found.entries

    async def acknowledge(self, number: int, *, deadline: float | None = None) -> None:
        """Everything up to this number was received, and is not delivered again."""
        body = {"reader": self._name, "number": number}
        try:
            await self._client.ask("POST", self._path + "/acknowledge", body, deadline=deadline)
        except ServiceRefusal as error:  # lost messages are not delivered again either
            if error.error not in (BEGAN_ANEW, "unknown", "gone"):
                raise

    async def __aiter__(self) -> AsyncIterator[ReceivedEntry]:
        """Entries for ever; each is acknowledged when the next is asked for."""
        while True:
            for each in await self.next():
                yield each
                await self.acknowledge(each.number)


class BlockingQueues(BlockingService[QueuesClient]):
    """The same for programs without an event loop."""

    begin = blocking(QueuesClient.begin)
    watch = blocking(QueuesClient.watch)
    look = blocking(QueuesClient.look)
    delete = blocking(QueuesClient.delete)
    enqueue = blocking(QueuesClient.enqueue)
    enqueue_some = blocking(QueuesClient.enqueue_some)

    def reader(self, key: str) -> "BlockingReader":
        return BlockingReader(self, self._client.reader(key))


class BlockingReader:
    """Reads one queue; see `QueueReader`."""

    def __init__(self, queues: BlockingQueues, reader: QueueReader) -> None:
        self._queues = queues
        self._reader = reader

    def next(self, *, wait: float = WAIT_SECONDS, most: int = 100) -> list[ReceivedEntry]:
        return self._queues.wait(self._reader.next(wait=wait, most=most))

    def acknowledge(self, number: int) -> None:
        self._queues.wait(self._reader.acknowledge(number))


def _path(key: str) -> str:
    return f"/queues/{segment(key)}"
