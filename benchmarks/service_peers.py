"""The services beside the same operations by hand on Redis, and what a stopped subscriber loses
with each.

**Rates.** A queue is a stream with a consumer group there, pub/sub is pub/sub, and a document's
section is a field of a hash. One process of each service, one Redis, neither with a disk; the same
workers, in one process, ask both in turn, and each asks the next thing when the last is answered.
Their requests are HTTP here, and Redis's own protocol there.

**Losses.** A subscriber is *away* for ten seconds (it has ended, and nothing listens there), or
*stopped* (it lives, and reads nothing) while much is published. What it neither received nor was
told to have missed is lost silently. Nothing may be, of a topic.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import msgspec
from aiohttp import web

from benchmarks._quick import sized
from benchmarks._redis_connection import RedisConnection
from benchmarks._redis_readers import redis_binary
from benchmarks.peers.servers import running_redis
from lab.demo.mesh.service_processes import ServiceProcess
from tenure.cli.demo.ports import free_ports
from tenure.errors import OutcomeUnknown, ServiceRefusal
from tenure.services.documents.client import DocumentsClient
from tenure.services.pubsub.client import PubSubClient
from tenure.services.queues.client import QueuesClient

WORKERS = 16
FAN = 20
"""Queues into which one message goes."""
ROUNDS = sized(5, 1)
ROUND_SECONDS = sized(4, 1)
GONE_SECONDS = sized(10, 2)
RATE = 100
"""Messages a second while the subscriber is gone."""
SIZES = {"away": 100, "stopped": 65_000}
"""Bytes of a message. Of ten seconds, Redis keeps 32 MiB for a subscriber that reads nothing."""
PATIENCE_SECONDS = 60.0
Kind: TypeAlias = Literal["away", "stopped"]


class Inbox:
    """A URL to which messages are posted."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.runs = asyncio.Event()
        self._port = 0
        self._runner: web.AppRunner | None = None

    async def open(self) -> None:
        application = web.Application(client_max_size=1 << 20)
        application.router.add_post("/{name}", self._take)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self.runs.set()

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/inbox"

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        await self.runs.wait()
        self.got.append(msgspec.json.decode(body))
        return web.Response()


class OfTenure:
    """The services."""

    def __init__(
        self, documents: DocumentsClient, queues: QueuesClient, topics: PubSubClient
    ) -> None:
        self._documents = documents
        self._queues = queues
        self.topics = topics
        self._readers = [queues.reader(f"q{worker}") for worker in range(WORKERS)]

    async def begin(self, inbox: Inbox) -> None:
        for worker, reader in enumerate(self._readers):
            await self.topics.subscribe(f"t{worker}", inbox.url)
            await self._queues.begin(f"q{worker}")
            (first,) = await reader.next(wait=0)
            await reader.acknowledge(first.number)
        for name in (f"f{number}" for number in range(FAN)):
            await self._queues.begin(name)
            for worker in range(WORKERS):
                await self.topics.subscribe(f"f{worker}", f"queue:{name}")

    async def fan_out(self, worker: int) -> None:
        found = await self.topics.publish(f"f{worker}", "message")
        assert (found.subscribers, found.refusing) == (FAN, 0)

    async def queue(self, worker: int) -> None:
        await self._queues.enqueue(f"q{worker}", "message")
        (entry,) = await self._readers[worker].next(wait=0)
        await self._readers[worker].acknowledge(entry.number)

    async def publish(self, worker: int) -> None:
        assert (await self.topics.publish(f"t{worker}", "message")).subscribers == 1

    async def document(self, worker: int) -> None:
        await self._documents.write_section(f"d{worker}", "name", "message")
        assert await self._documents.read_section(f"d{worker}", "name") == "message"


class OfRedis:
    """The same by hand."""

    def __init__(self, connections: list[RedisConnection]) -> None:
        self._connections = connections

    async def begin(self) -> None:
        for worker, each in enumerate(self._connections):
            await each.ask(b"XGROUP", b"CREATE", b"q%d" % worker, b"g", b"$", b"MKSTREAM")

    async def fan_out(self, worker: int) -> None:
        await asyncio.gather(
            *(
                self._connections[worker].ask(
                    *(b"XADD", b"f%d" % number, b"MAXLEN", b"~", b"1000", b"*", b"m", b"message")
                )
                for number in range(FAN)
            )
        )

    async def queue(self, worker: int) -> None:
        redis, name = self._connections[worker], b"q%d" % worker
        await redis.ask(b"XADD", name, b"*", b"m", b"message")
        found = await redis.ask(b"XREADGROUP", b"GROUP", b"g", b"c", b"STREAMS", name, b">")
        ((id_, _),) = found[1]
        acknowledged = redis.ask(b"XACK", name, b"g", id_)
        await redis.ask(b"XDEL", name, id_)
        await acknowledged

    async def publish(self, worker: int) -> None:
        assert await self._connections[worker].ask(b"PUBLISH", b"t%d" % worker, b"message") == b"1"

    async def document(self, worker: int) -> None:
        redis, name = self._connections[worker], b"d%d" % worker
        await redis.ask(b"HSET", name, b"name", b"message")
        assert await redis.ask(b"HGET", name, b"name") == b"message"


class Subscriber(RedisConnection):
    """Subscribes to channels, and keeps what it receives."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(reader, writer)
        self.got: list[bytes] = []

    def on_push(self, found: Any) -> None:  # noqa: ANN401
        if found[0] == b"message":
            self.got.append(found[2])
        elif found[0] == b"subscribe":  # its only answer
            self._asked.popleft()[0].set_result(None)

    async def pause(self, seconds: float) -> None:
        """Read nothing, as a process that is stopped."""
        transport = cast("asyncio.Transport", self._writer.transport)
        transport.pause_reading()
        await asyncio.sleep(seconds)
        transport.resume_reading()


@asynccontextmanager
async def services(stack: AsyncExitStack) -> AsyncIterator[OfTenure]:
    """One process of each, under a manager."""
    options = ("--port", "0", "--journal", "memory", "--first-start", "--log-level", "error")
    manager = ServiceProcess("manager", ("manager", *options))
    stack.push_async_callback(manager.end)
    url = await manager.start()
    processes, (port,) = list[ServiceProcess](), free_ports(1)
    own = {
        "documents": ("--listen", "127.0.0.1:0"),
        "queues": ("--listen", f"127.0.0.1:{port}", "--watch", "pubsub"),
        "pubsub": ("--listen", "127.0.0.1:0", "--inward", "--queues", f"http://127.0.0.1:{port}"),
    }
    for name, said in own.items():
        each = ServiceProcess(name, ("serve", name, "--manager", url, *said, *options[-2:]))
        processes.append(each)
        stack.push_async_callback(each.end)
    # All at once: queues wait until there is the pool that they watch.
    documents, queues, topics = await asyncio.gather(*(each.start() for each in processes))
    async with (
        DocumentsClient(documents) as of_documents,
        QueuesClient(queues) as of_queues,
        PubSubClient(topics) as of_topics,
    ):
        yield OfTenure(of_documents, of_queues, of_topics)


class Rate(NamedTuple):
    """The results of one round."""

    per_second: float
    median_ms: float


async def rate(operation: Callable[[int], Awaitable[None]]) -> Rate:
    """All workers, for a round."""
    times: list[float] = []
    began = perf_counter()

    async def work(worker: int) -> None:
        while (at := perf_counter()) < began + ROUND_SECONDS:
            await operation(worker)
            times.append(perf_counter() - at)

    await asyncio.gather(*map(work, range(WORKERS)))
    return Rate(len(times) / (perf_counter() - began), median(times) * 1e3)


OPERATIONS = {
    "queue": "enqueue, drain, acknowledge | XADD, XREADGROUP, XACK and XDEL",
    "publish": "publish to one subscriber | PUBLISH to one subscriber",
    "fan_out": f"publish into {FAN} queues | XADD to {FAN} streams, sent together",
    "document": "write and read a section | HSET, HGET",
}


async def rates(tenure: OfTenure, redis: OfRedis | None) -> None:
    """The table, of interleaved rounds: the best of each, which disturbed it least."""
    print("| tenure | Redis | tenure /s | Redis /s | ratio | median ms | Redis' |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, title in OPERATIONS.items():
        ours, theirs = list[Rate](), list[Rate]()
        for _ in range(ROUNDS):
            ours.append(await rate(getattr(tenure, name)))
            if redis is not None:
                theirs.append(await rate(getattr(redis, name)))
        best, other = max(ours), max(theirs, default=None)
        figures = f"| {title} | {best.per_second:,.0f} |"
        if other is None:
            print(f"{figures} no Redis | | {best.median_ms:.1f} | |", flush=True)
            continue
        ratio = other.per_second / best.per_second
        print(
            f"{figures} {other.per_second:,.0f} | {ratio:.1f} | {best.median_ms:.1f} | "
            f"{other.median_ms:.1f} |",
            flush=True,
        )


# --- what a subscriber that is gone for a while misses ---


class Missed(NamedTuple):
    """The outcome of messages."""

    accepted: int
    refused: int
    """Their publishers were told."""
    received: int
    told: int
    """Missed, and the subscriber was told of it."""

    def row(self, who: str, kind: Kind) -> str:
        silent = self.silent
        return (
            f"| {who} | {kind} | {self.accepted} | {self.refused} | {self.received} | {self.told} "
            f"| {silent} |"
        )

    @property
    def silent(self) -> int:
        """Lost, and nobody was told."""
        return self.accepted - self.received - self.told


async def published(publish: Callable[[int], Awaitable[None]], seconds: float) -> None:
    """Publish at a steady rate, whether answers come or not."""
    began, under_way = perf_counter(), list[asyncio.Task[None]]()
    for number in range(round(seconds * RATE)):
        await asyncio.sleep(max(began + number / RATE - perf_counter(), 0.0))
        under_way.append(asyncio.ensure_future(publish(number)))
    await asyncio.gather(*under_way)


async def missed_of_a_topic(topics: PubSubClient, kind: Kind) -> Missed:
    """Measure it with tenure."""
    inbox, numbers, refused = Inbox(), set[int](), 0
    await inbox.open()
    topic, text = f"missed-{kind}", "x" * SIZES[kind]
    await topics.subscribe(topic, inbox.url)

    async def publish(_: int) -> None:
        nonlocal refused
        try:
            numbers.add((await topics.publish(topic, text)).number)
        except (ServiceRefusal, OutcomeUnknown):
            refused += 1

    sending = asyncio.create_task(published(publish, GONE_SECONDS + 2.0))
    await asyncio.sleep(1.0)
    if kind == "away":
        await inbox.close()
    else:
        inbox.runs.clear()
    await asyncio.sleep(GONE_SECONDS)
    if kind == "away":
        await inbox.open()
    inbox.runs.set()
    await sending

    def told_and_received() -> tuple[set[int], set[int]]:
        gaps = [each["missed"] for each in inbox.got if "missed" in each]
        told = {number for first, last in gaps for number in range(first, last + 1)}
        return told, {each["number"] for each in inbox.got if "missed" not in each}

    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not numbers <= set.union(*told_and_received()):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    await inbox.close()
    told, received = told_and_received()
    return Missed(len(numbers), refused, len(numbers & received), len(numbers & told - received))


async def missed_of_a_channel(url: str, kind: Kind) -> Missed:
    """Measure it with Redis. A subscriber whose connection has ended connects again, as its clients
    do.
    """
    channel, text, got = b"missed", b"x" * SIZES[kind], set[bytes]()
    publisher = await connected(url, RedisConnection)
    subscriber = await subscribed(url, channel)

    async def publish(number: int) -> None:
        await publisher.ask(b"PUBLISH", channel, b"%d %s" % (number, text))

    seconds = GONE_SECONDS + 2.0
    sending = asyncio.create_task(published(publish, seconds))
    await asyncio.sleep(1.0)
    if kind == "away":
        subscriber.close()
        await asyncio.sleep(GONE_SECONDS)
    else:
        await subscriber.pause(GONE_SECONDS)
    await asyncio.wait({subscriber.listening}, timeout=0.5)
    subscribers = [subscriber]
    if subscriber.listening.done():
        subscribers.append(await subscribed(url, channel))
    await sending
    await asyncio.sleep(1.0)
    for each in subscribers:
        got.update(message.partition(b" ")[0] for message in each.got)
        each.close()
        with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            await each.listening
    publisher.close()
    return Missed(round(seconds * RATE), 0, len(got), 0)


async def connected(url: str, kind: type[Any]) -> Any:  # noqa: ANN401  # of that kind
    host, _, port = url.rpartition(":")
    found = kind(*await asyncio.open_connection(host, int(port)))
    await found.ask(b"HELLO", b"3")
    return found


async def subscribed(url: str, *channels: bytes) -> Subscriber:
    found: Subscriber = await connected(url, Subscriber)
    for each in channels:
        await found.ask(b"SUBSCRIBE", each)
    return found


async def compared(redis_url: str | None) -> bool:
    """Everything; whether nothing was lost silently here."""
    is_kept = True
    async with AsyncExitStack() as stack, services(stack) as tenure:
        inbox = Inbox()
        await inbox.open()
        stack.push_async_callback(inbox.close)
        await tenure.begin(inbox)
        redis = None
        if redis_url is not None:
            redis = OfRedis([await connected(redis_url, RedisConnection) for _ in range(WORKERS)])
            await redis.begin()
            listening = await subscribed(redis_url, *(b"t%d" % worker for worker in range(WORKERS)))
            stack.callback(listening.close)
        await rates(tenure, redis)
        print(f"\na subscriber that is gone for {GONE_SECONDS} s, {RATE} messages a second")
        print("| | subscriber | accepted | refused | received | told | lost silently |")
        print("|---|---|---:|---:|---:|---:|---:|")
        kinds: tuple[Kind, ...] = ("away", "stopped")
        for kind in kinds:
            found = await missed_of_a_topic(tenure.topics, kind)
            is_kept = is_kept and found.silent == 0
            print(found.row("tenure, a URL", kind), flush=True)
            if redis_url is not None:
                theirs = await missed_of_a_channel(redis_url, kind)
                print(theirs.row("Redis pub/sub", kind), flush=True)
    return is_kept


def main() -> int:
    """Run it, without Redis if there is none."""
    if redis_binary() is None:
        print("no redis-server here, so only the services are measured: `.ci/redis` fetches one")
        return 0 if asyncio.run(compared(None)) else 1
    with TemporaryDirectory() as place, running_redis(Path(place)) as redis:
        return 0 if asyncio.run(compared(redis.url)) else 1


if __name__ == "__main__":
    sys.exit(main())
