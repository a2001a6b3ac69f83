"""Clients of each service, while its processes restart or are killed, and what they notice.

Each client checks that what was acknowledged to it exists, or was reported as lost.
"""

import asyncio
from collections import Counter, deque
from contextlib import suppress
from itertools import count
from time import time
from typing import NamedTuple

import msgspec
from aiohttp import web

from tenure.errors import OutcomeUnknown, ServiceRefusal
from tenure.services.documents.client import DocumentsClient
from tenure.services.feeds.client import FeedsClient
from tenure.services.pubsub.client import PubSubClient
from tenure.services.pubsub.targets import TopicEvent
from tenure.services.queues.client import QueueReader, QueuesClient, ReceivedEntry

PAUSE = 0.02
NOT_FOUND = 404
GONE = (404, 410)
BAD = ("failed", "losses", "again", "out of order", "silently lost")


class Load:
    """Clients of one service, and what became of what they did."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.over = False

    async def run(self, key: str) -> None:
        """Be the client of one key, until it is over."""
        raise NotImplementedError

    def fail(self, error: Exception) -> None:
        self.counts["failed"] += 1
        print(f"  failed: {error!r:.300}", flush=True)


class DocumentLoad(Load):
    """Each key has one writer, which makes every update depend on the version that it knows."""

    def __init__(self, client: DocumentsClient, *, has_store: bool) -> None:
        super().__init__()
        self.client = client
        self.has_store = has_store

    async def run(self, key: str) -> None:
        sent, version = 0, ""
        while not self.over:
            try:
                if version:
                    found = await self.client.read(key)
                    if (found.sections, found.version) != ({"n": sent}, version):
                        self.counts["silently lost"] += 1
                        print(f"  {key} is {found}, and {sent} at {version} was acknowledged")
                sent += 1
                body = {"n": sent}
                version = (await self.client.write(key, body, if_version=version)).version
                self.counts["done"] += 1
            except OutcomeUnknown as error:
                self.fail(error)
                sent, version = 0, await self._begin_again(key)
            except ServiceRefusal as error:
                if error.status == NOT_FOUND and not self.has_store:
                    self.counts["losses"] += 1
                else:
                    self.fail(error)
                sent, version = 0, await self._begin_again(key)
            await asyncio.sleep(PAUSE)

    async def _begin_again(self, key: str) -> str:
        while True:
            try:
                await self.client.delete(key)
            except ServiceRefusal:
                return ""
            except OutcomeUnknown as error:
                self.fail(error)


class SentMessage(NamedTuple):
    """A message that was acknowledged to its writer."""

    number: int
    began_at: float
    """The time when it was first sent, by the clock that all processes here share."""


class QueueLoad(Load):
    """Each queue has one writer, which counts, and one reader, which looks for gaps."""

    def __init__(self, client: QueuesClient) -> None:
        super().__init__()
        self.client = client

    async def run(self, key: str) -> None:
        """Write and read, until all is read."""
        reader = self.client.reader(key)
        (first,) = await reader.next(wait=0)
        await reader.acknowledge(first.number)
        received = QueueReceived(self)
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(self._write(key, received))
            group.create_task(self._read(reader, writing, received))

    async def _write(self, key: str, received: "QueueReceived") -> None:
        for number in count(1):
            if self.over:
                return
            sent = SentMessage(number, time())
            try:
                await self.client.enqueue(key, number)
                received.expect(sent)
                self.counts["done"] += 1
            except ServiceRefusal as error:
                if error.status != NOT_FOUND:  # it was lost, and its reader begins it again
                    self.fail(error)
            except OutcomeUnknown as error:
                self.fail(error)
            await asyncio.sleep(PAUSE)

    async def _read(
        self, reader: QueueReader, writing: "asyncio.Task[None]", received: "QueueReceived"
    ) -> None:
        empty = 0
        while True:
            was_over = writing.done()
            try:
                entries = await reader.next(wait=1.0)
                for each in entries:
                    received.take(each)
                if entries:
                    await reader.acknowledge(entries[-1].number)
                    received.acknowledged = received.newest
                # A queue that is lost while it is drained answers nothing, and the next drain says
                # so. So nothing is over before there was nothing twice.
                empty = 0 if entries or not was_over else empty + 1
                if empty == 2:
                    received.end()
                    return
            except (ServiceRefusal, OutcomeUnknown) as error:
                self.fail(error)


class QueueReceived:
    """The entries that the reader of one queue has received, and those that it should have.

    A loss excuses what was sent before it was put into the queue, and nothing that was sent later:
    a queue that loses something again has to say so again.
    """

    def __init__(self, load: Load) -> None:
        self.newest = self.acknowledged = 0
        self._counts = load.counts
        self._told_at = 0.0
        self._pending = deque[SentMessage]()
        self._seen = set[int]()

    def expect(self, sent: SentMessage) -> None:
        """It was acknowledged to the writer. It may have come before that was answered."""
        if sent.number not in self._seen:
            self._pending.append(sent)

    def take(self, entry: ReceivedEntry) -> None:
        """An entry has come."""
        if entry.loss is not None:
            self._counts["losses"] += 1
            self._told_at = max(self._told_at, entry.at)
            return
        number: int = entry.message
        self._counts["again"] += number <= self.acknowledged
        self._counts["out of order"] += self.acknowledged < number < self.newest
        self.newest = max(self.newest, number)
        self._seen.add(number)
        while self._pending and self._pending[0].number <= number:
            sent = self._pending.popleft()
            if sent.number < number:
                self._missed(sent)

    def end(self) -> None:
        """Judge what is left: nothing comes any longer."""
        for each in self._pending:
            self._missed(each)

    def _missed(self, sent: SentMessage) -> None:
        if sent.began_at > self._told_at:
            self._counts["silently lost"] += 1
            print(f"  lost without a word: {sent}; told at {self._told_at}", flush=True)


class Inboxes:
    """URLs at which messages arrive, one for each topic."""

    def __init__(self) -> None:
        self.queues: dict[str, asyncio.Queue[TopicEvent]] = {}
        self.url = ""

    async def open(self) -> web.AppRunner:
        """Listen, until the runner is cleaned up."""
        application = web.Application()
        application.router.add_post("/{name}", self._take)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    async def _take(self, request: web.Request) -> web.Response:
        event = msgspec.json.decode(await request.read(), type=TopicEvent)
        self.queues[request.match_info["name"]].put_nowait(event)
        return web.Response()


class TopicLoad(Load):
    """Each topic has one publisher, which counts, and one subscriber at a URL.

    A subscriber is told that it has missed something by a gap, by a jump of the numbers, by another
    epoch, or by the answer to its refreshing.
    """

    def __init__(self, client: PubSubClient, inboxes: Inboxes) -> None:
        super().__init__()
        self.client = client
        self.inboxes = inboxes

    async def run(self, key: str) -> None:
        """Publish and receive, until all has arrived."""
        self.inboxes.queues[key] = asyncio.Queue()
        reader = TopicReader(self, key)
        await reader.subscribe()
        publishing = asyncio.create_task(self._publish(key, reader.pending))
        refreshing = asyncio.create_task(reader.refresh_often())
        await reader.receive(publishing)
        refreshing.cancel()
        with suppress(asyncio.CancelledError):
            await refreshing

    async def _publish(self, key: str, pending: deque[int]) -> None:
        for number in count(1):
            if self.over:
                return
            try:
                pending.append(number)  # it may arrive before it is acknowledged
                await self.client.publish(key, number)
                self.counts["done"] += 1
            except (OutcomeUnknown, ServiceRefusal) as error:
                with suppress(ValueError):
                    pending.remove(number)
                self.fail(error)
            await asyncio.sleep(PAUSE)


class TopicReader:
    """The knowledge of one subscriber."""

    def __init__(self, load: TopicLoad, key: str) -> None:
        self.pending: deque[int] = deque()
        """The messages that its publisher has sent, in order, and that have not arrived."""
        self._load = load
        self._key = key
        self._id = ""
        self._epoch = ""
        self._number = 0
        self._is_told = False
        self._received = 0

    async def subscribe(self) -> None:
        target = f"{self._load.inboxes.url}/{self._key}"
        made = await self._load.client.subscribe(self._key, target)
        self._id, self._epoch, self._number = made.id, made.epoch, made.number

    def _tell(self, epoch: str, number: int) -> None:
        """It has missed something, and knows it."""
        if not self._is_told:
            self._load.counts["losses"] += 1
        self._is_told, self._epoch, self._number = True, epoch, number

    async def refresh_often(self) -> None:
        while True:
            await asyncio.sleep(10 * PAUSE)
            await self.refresh()

    async def refresh(self) -> None:
        """Learn whether the subscription exists, and belongs to this epoch."""
        try:
            found = await self._load.client.refresh(self._key, self._id)
            if found.epoch != self._epoch:
                self._tell(found.epoch, 0)
        except ServiceRefusal as error:
            if error.status not in GONE:
                self._load.fail(error)
                return
            self._tell("", 0)
            await self.subscribe()
        except OutcomeUnknown as error:
            self._load.fail(error)

    async def receive(self, publishing: "asyncio.Task[None]") -> None:
        arriving = self._load.inboxes.queues[self._key]
        while True:
            was_over = publishing.done()
            try:
                async with asyncio.timeout(1.0):
                    self._on_event(await arriving.get())
            except TimeoutError:
                if was_over and (not self.pending or await self._is_over()):
                    return

    async def _is_over(self) -> bool:
        """Called when nothing came for a second: return False if what is missing is still on its
        way. Otherwise it was told, or is counted as lost.
        """
        await self.refresh()
        if self._is_told:
            return True
        shown = await self._load.client.show(self._key)
        if shown.waiting:
            return False
        if (shown.epoch, shown.number) == (self._epoch, self._number):
            self._load.counts["silently lost"] += len(self.pending)
        return True

    def _on_event(self, event: TopicEvent) -> None:
        counts = self._load.counts
        if event.epoch == self._epoch and event.number <= self._number:
            counts["twice"] += 1  # with the number that it had: a receiver ignores it
            return
        is_next = event.epoch == self._epoch and event.number == self._number + 1
        is_told = self._is_told and event.epoch == self._epoch
        if event.missed is not None or not (is_next or is_told):
            self._tell(event.epoch, event.number)
        self._number = event.number
        if event.missed is not None:
            return
        missed = 0
        while self.pending and self.pending[0] <= event.data:
            missed += self.pending.popleft() < event.data
        counts["silently lost"] += 0 if self._is_told else missed
        counts["out of order"] += event.data < self._received
        self._received, self._is_told = max(self._received, event.data), False


class FeedLoad(Load):
    """Gives each feed one writer, which pushes an item and looks whether the feed has it.

    Feeds are weakly consistent: an item that is missing is counted, and is not a fault.
    """

    def __init__(self, client: FeedsClient) -> None:
        super().__init__()
        self.client = client

    async def run(self, key: str) -> None:
        """Push and read, until it is over."""
        for number in count(1):
            if self.over:
                return
            item = f"<item><guid>{number}</guid><title>item {number}.</title></item>"
            document = f'<rss version="2.0"><channel>{item}</channel></rss>'
            try:
                await self.client.push(key, document.encode())
                self.counts["done"] += 1
                shown = await self.client.read(key)
                self.counts["missing"] += shown is None or b"item %d." % number not in shown.atom
            except ServiceRefusal as error:
                if error.status in GONE:
                    self.counts["missing"] += 1
                else:
                    self.fail(error)
            except OutcomeUnknown as error:
                self.fail(error)
            await asyncio.sleep(PAUSE)
