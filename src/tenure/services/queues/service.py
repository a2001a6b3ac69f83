"""Queues over HTTP: enqueue, drain by long poll or by WebSocket, acknowledge."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import ceil
from typing import Annotated, Any, ClassVar, TypeAlias
from uuid import uuid4

import msgspec
from aiohttp import web

from tenure.errors import ServiceRefusal, TenureError
from tenure.services.client import ID_HEADER
from tenure.services.expiring import of_this_process
from tenure.services.limits import (
    ID_BYTES,
    KEY_BYTES,
    OF_ENTITIES,
    OF_PARTS,
    TOO_LARGE,
    ServiceLimit,
    ShortText,
)
from tenure.services.operations import ServiceAnswer, ServiceRequest, operation
from tenure.services.problems import ServiceProblem, problem_of
from tenure.services.queues.entries import ENTRIES, EntryPut, EntryShown, SourcePlace
from tenure.services.queues.queue import (
    BEGAN_ANEW,
    LIMITS,
    Enqueued,
    PutAnswered,
    Queue,
    QueueShown,
)
from tenure.services.queues.watched_pools import WatchedPools
from tenure.services.service import MakePort, Service, ServiceSettings, SocketHandler, Ttl, id_in

QUEUE = "/queues/{key}"
WAIT_SECONDS = ServiceLimit(
    "wait_seconds", 25, TOO_LARGE, "proxies give a silent request up after about half a minute"
)


PUTS = ServiceLimit(
    "puts", 100, TOO_LARGE, "a client that puts messages into several queues waits for all of them"
)
PUT_SECONDS = 2.0
"""How long to wait for one of several queues; then it counts as refusing, and delays no other."""


Watch: TypeAlias = Annotated[dict[ShortText, Annotated[list[ShortText], OF_PARTS]], OF_PARTS]
"""Keys by their pools."""


class QueueBody(msgspec.Struct, forbid_unknown_fields=True):
    """The settings of a queue."""

    ttl: Ttl = 0.0
    """Seconds; 0 for the default, or to leave the time of an existing queue."""
    watch: Watch | None = None
    """The keys of each pool on which the reader relies; they replace those that were named before.
    """


class MessageBody(msgspec.Struct, forbid_unknown_fields=True):
    message: msgspec.Raw
    id: ShortText = ""
    """Names the message, so that a repeat is not put in again; or the header Idempotency-Key."""
    place: SourcePlace | None = None
    """Instead of an id: its place among the messages of its source, which come in this order."""


class DrainBody(msgspec.Struct, forbid_unknown_fields=True):
    """The wishes of a reader."""

    reader: ShortText = ""
    """The reader as the last answer named it; without it, this reader takes over at once. One that
    another life of the queue has named gets a new name, no entries, and reads when it asks again.
    """
    acknowledge: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)] = 0
    """Up to this number everything was received."""
    wait: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """How many seconds to wait if there is nothing; 25 at most."""
    most: Annotated[int, msgspec.Meta(ge=1, le=ENTRIES.most)] = 100
    """How many entries at most."""


class DrainedEntries(msgspec.Struct):
    """The entries to read."""

    reader: str
    entries: list[EntryShown]


class AcknowledgeBody(msgspec.Struct, forbid_unknown_fields=True):
    """Up to this number everything was received."""

    reader: ShortText
    number: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class Queues(Service[Queue]):
    """See the module."""

    name: ClassVar[str] = "queues"
    port: ClassVar[int] = 8103
    entity = Queue
    limits: ClassVar[tuple[ServiceLimit, ...]] = (*LIMITS, WAIT_SECONDS, PUTS, *OF_ENTITIES)
    takes: ClassVar[frozenset[str]] = frozenset({"store", "watch"})

    def __init__(self, settings: ServiceSettings, **of_entities: Any) -> None:  # noqa: ANN401
        self.pools = WatchedPools(settings.managers, settings.watch, self._look_for_losses)
        self._ending = asyncio.Event()
        super().__init__(settings, **of_entities)

    def entity_type(self) -> type[Queue]:
        """The class of its entities, which knows the pools that this process watches."""
        return of_this_process(Queue, pools=self.pools, usual_ttl=self.settings.ttl)

    async def _look_for_losses(self, key: str) -> None:
        await self.entities[key].look_for_losses()

    @asynccontextmanager
    async def running(self, make_port: MakePort) -> AsyncIterator[None]:
        async with self.pools.entered(), super().running(make_port):
            yield

    def end_waiting(self) -> None:
        self._ending.set()
        self.entities.close_sockets()

    def sockets(self) -> dict[str, SocketHandler]:
        return {QUEUE + "/socket": self._attach}

    async def _attach(
        self, request: web.Request, key: str, until: asyncio.Future[int]
    ) -> web.StreamResponse:
        found: web.StreamResponse = await self.entities[key].attach(request, until=until)
        return found

    @operation(
        "PUT",
        QUEUE,
        "Begin a queue, or keep it for longer",
        {200: QueueShown, 201: QueueShown},
        body=QueueBody,
        is_optional=True,
    )
    async def begin(self, asked: ServiceRequest) -> ServiceAnswer:
        """Begin a queue. Its first entry is a loss: of what may have been in an earlier one."""
        body: QueueBody = asked.body or QueueBody()
        ttl = self.checked_ttl(body.ttl, usual=0.0)
        found = await self.entities[asked.key].begin(ttl, body.watch)
        return ServiceAnswer(201 if found.is_new else 200, found)

    @operation(
        "POST",
        QUEUE + "/watch",
        "Watch keys of other pools, beside those that are watched",
        {200: QueueShown},
        body=Watch,
        refusals=(404, 410),
    )
    async def watch(self, asked: ServiceRequest) -> ServiceAnswer:
        """Watch keys by pool, as in {"pubsub": ["news"]}: pubsub does it for each queue that
        subscribes.
        """
        return ServiceAnswer(200, await self.entities[asked.key].watch(asked.body))

    @operation("GET", QUEUE, "Look at a queue", {200: QueueShown}, refusals=(404, 410))
    async def look(self, asked: ServiceRequest) -> ServiceAnswer:
        """How long it is."""
        return ServiceAnswer(200, await self.entities[asked.key].look())

    @operation("DELETE", QUEUE, "Delete a queue", {204: None}, refusals=(404, 410))
    async def delete(self, asked: ServiceRequest) -> ServiceAnswer:
        """Delete the queue. For a day answers tell when it went."""
        await self.repeatable(asked).delete()
        return ServiceAnswer(204)

    @operation(
        "POST",
        QUEUE + "/entries",
        "Enqueue a message",
        {200: Enqueued, 201: Enqueued},
        body=MessageBody,
        headers={ID_HEADER: "Names the message, so that a repeat is not put in again"},
        refusals=(404, 409, 410),
    )
    async def enqueue(self, asked: ServiceRequest) -> ServiceAnswer:
        """Answered when the reader will get it, or a loss in its place."""
        body: MessageBody = asked.body
        id_ = body.id or id_in(asked.headers) or uuid4().hex
        ID_BYTES.check(len(id_.encode()))
        found = await self.entities[asked.key].enqueue(bytes(body.message), id_, body.place)
        return ServiceAnswer(200 if found.is_repeat else 201, found)

    @operation(
        "POST",
        "/entries",
        "Enqueue messages of sources in several queues",
        {200: list[PutAnswered]},
        body=Annotated[list[EntryPut], OF_PARTS],
    )
    async def enqueue_some(self, asked: ServiceRequest) -> ServiceAnswer:
        """Each gets its own answer, in the order in which they were given."""
        PUTS.check(len(asked.body))
        return ServiceAnswer(200, await asyncio.gather(*map(self._put, asked.body)))

    async def _put(self, given: EntryPut) -> PutAnswered:
        try:
            KEY_BYTES.check(len(given.queue.encode()))
            async with asyncio.timeout(PUT_SECONDS):
                queue = self.entities[given.queue]
                return PutAnswered(await queue.enqueue(bytes(given.message), "", given.place))
        except TimeoutError:
            return PutAnswered(problem=ServiceProblem(503, "waiting", "its owner does not answer"))
        except TenureError as error:
            found = problem_of(error)
            if found is None:
                raise
            return PutAnswered(problem=found[0])

    @operation(
        "POST",
        QUEUE + "/drain",
        "Read what is not acknowledged yet",
        {200: DrainedEntries},
        body=DrainBody,
        refusals=(409,),
        is_optional=True,
    )
    async def drain(self, asked: ServiceRequest) -> ServiceAnswer:
        """A queue that is not there begins, with a loss as its first entry."""
        body: DrainBody = asked.body or DrainBody()
        WAIT_SECONDS.check(ceil(body.wait))
        queue = self.entities[asked.key]
        most = body.most
        signed = await queue.sign_on(body.reader, body.acknowledge, most)
        if not signed.is_named_anew and not signed.upto and body.wait > 0:
            await self._until_some(queue, signed.reader, body.wait)
            asked.check_again()
            signed = await queue.sign_on(signed.reader, 0, most)
        try:
            entries = await queue.entries_to(signed.reader, signed.upto) if signed.upto else []
        except ServiceRefusal as error:
            if error.error != BEGAN_ANEW:
                raise
            entries = []  # the queue was lost at this very moment: the next drain says so
        shown = [EntryShown.of(each) for each in entries]
        return ServiceAnswer(200, DrainedEntries(signed.reader, shown))

    async def _until_some(self, queue: Queue, reader: str, seconds: float) -> None:
        """Wait for entries, but not to the end if this process is about to end."""
        waiting = asyncio.ensure_future(queue.wait(reader, seconds))
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait({waiting, ending}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()
        except ServiceRefusal as error:
            if error.error != BEGAN_ANEW:  # which the reader finds in the queue
                raise
        finally:
            waiting.cancel()
            ending.cancel()

    @operation(
        "POST",
        QUEUE + "/acknowledge",
        "Say what was received",
        {200: QueueShown},
        body=AcknowledgeBody,
        refusals=(404, 409, 410),
    )
    async def acknowledge(self, asked: ServiceRequest) -> ServiceAnswer:
        """Acknowledge entries, which are not delivered again."""
        body: AcknowledgeBody = asked.body
        found = await self.entities[asked.key].acknowledge(body.reader, body.number)
        return ServiceAnswer(200, found)
