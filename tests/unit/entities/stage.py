"""Processes of one pool of entities, in one process, by a turned clock."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from tenure import Entities, Entity, reading
from tenure.base.keys import hashed_key
from tenure.client.environment import Environment
from tenure.protocol.lease.steering_events import PinKey
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster
from tests.patience import DEADLINE_SECONDS

STEP = 0.02
LEAST_STEPS = 1_000
T = TypeVar("T")


class Count(msgspec.Struct):
    value: int = 0
    log: list[str] = []


class Counter(Entity[Count]):
    """The entity that most tests use."""

    async def on_activate(self) -> None:
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def add(self, by: int = 1) -> int:
        before = self.state.value
        await self.go_on.wait()
        self.state.value = before + by
        return self.state.value

    async def fail(self, by: int) -> None:
        self.state.value += by
        raise ValueError("on purpose", by)

    async def commit_and_fail(self, by: int) -> None:
        self.state.value += by
        await self.commit()
        self.state.value += 100
        raise LookupError("after the commit")

    @reading
    async def hold(self) -> None:
        self.go_on.clear()

    @reading
    async def release(self) -> None:
        self.go_on.set()

    @reading
    async def value(self) -> int:
        found = self.state.value
        self.state.value = -1
        return found


class Stage:
    """Several `Entities` of one pool."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self.cluster = cluster
        self.members: list[Entities[Any]] = []
        self.has_store = False

    def environment(self) -> Environment:
        return ClusterEnvironment(self.cluster)

    async def until(self, condition: Callable[[], object]) -> None:
        """Turn the clock, a thousand times at least: a store's thread has a time of its own."""
        steps, gives_up_at = 0, time.monotonic() + DEADLINE_SECONDS
        while steps < LEAST_STEPS or time.monotonic() < gives_up_at:
            if condition():
                return
            steps += 1
            await self.cluster.turn(STEP)
            if self.has_store:
                await asyncio.sleep(STEP / 4)  # its thread has a time of its own
        raise AssertionError("it never came to that")

    async def done(self, what: Awaitable[T]) -> T:
        doing = asyncio.ensure_future(what)
        await self.until(doing.done)
        return await doing

    async def enter(self, kind: type[Entity[Any]] = Counter, **options: Any) -> Entities[Any]:  # noqa: ANN401
        options.setdefault("watchdog", None)
        self.has_store = "store" in options
        member = Entities(
            kind, "counters", self.cluster.urls, _environment=self.environment(), **options
        )
        await self.done(member.__aenter__())
        self.members.append(member)
        return member

    async def leave(self, member: Entities[Any]) -> None:
        self.members.remove(member)
        await self.done(member.__aexit__(None, None, None))

    async def crash(self, member: Entities[Any]) -> None:
        """Crash it as kill -9 does; the others are told nothing."""
        self.members.remove(member)
        station = member.station
        self.cluster.crash(station.owner)
        self.cluster.crash(station.lookup)
        if station.copies is not None:
            self.cluster.crash(station.copies.client)  # type: ignore[arg-type]
        await station._end()
        store = station.host.gate.store
        if store is not None:
            await store.close()  # a process leaves no directory locked

    async def spread(self) -> None:
        """Wait until every member has some of the keys."""
        await self.until(lambda: all(each.station.owner.ranges for each in self.members))
        await self.until(lambda: all(self.owner_of(f"key-{i}") for i in range(64)))

    def owner_of(self, key: str) -> Entities[Any] | None:
        return next((each for each in self.members if each.station.owner.check(key)), None)

    async def move(self, key: str, to: Entities[Any]) -> None:
        """Have the key handed over."""
        pin = PinKey(pool="counters", key=hashed_key(key), owner=to.station.owner.name)
        self.cluster.ask(pin)
        await self.until(lambda: self.owner_of(key) is to)

    def key_of(self, member: Entities[Any], prefix: str = "key") -> str:
        """One that this member has."""
        keys = (f"{prefix}-{i}" for i in range(1000))
        return next(key for key in keys if member.station.owner.check(key))


@asynccontextmanager
async def on_stage(members: int = 1, **options: Any) -> AsyncIterator[Stage]:  # noqa: ANN401
    async with InProcessCluster(["counters"], clock=TurnedClock()) as cluster:
        stage = Stage(cluster)
        for _ in range(members):
            await stage.enter(**options)
        await stage.spread()
        try:
            yield stage
        finally:
            for each in list(stage.members):
                await stage.leave(each)
            await come_to_rest()


class Client:
    """A WebSocket as Starlette has it, and its other end."""

    def __init__(self) -> None:
        self.is_accepted = False
        self.received: list[Any] = []
        self.code: int | None = None
        self.reads = asyncio.Event()
        self.reads.set()
        self._first: list[dict[str, Any]] = []
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    # --- for the client ---

    def send(self, frame: str | bytes) -> None:
        kind = "text" if isinstance(frame, str) else "bytes"
        self._sent.put_nowait({"type": "websocket.receive", kind: frame})

    def send_first(self, frame: str | bytes) -> None:
        """Send it before all that was not read yet."""
        kind = "text" if isinstance(frame, str) else "bytes"
        self._first.append({"type": "websocket.receive", kind: frame})

    def leave(self) -> None:
        self._sent.put_nowait({"type": "websocket.disconnect", "code": 1000})

    # --- for the edge ---

    async def accept(self) -> None:
        self.is_accepted = True

    async def receive(self) -> dict[str, Any]:
        return self._first.pop() if self._first else await self._sent.get()


class ServerEnd:
    """The end of a socket that the application is given."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def accept(self) -> None:
        await self._client.accept()

    async def receive(self) -> dict[str, Any]:
        return await self._client.receive()

    async def send(self, message: dict[str, Any]) -> None:
        await self._client.reads.wait()
        text = message.get("text")
        self._client.received.append(message["bytes"] if text is None else text)

    async def close(self, code: int = 1000) -> None:
        await self._client.reads.wait()
        self._client.code = code
        self._client.leave()


def attached(
    member: Entities[Any], key: str, attachment: object = None
) -> tuple[Client, "asyncio.Task[None]"]:
    """A client of this member."""
    client = Client()
    end = ServerEnd(client)
    return client, asyncio.create_task(member[key].attach(end, attachment))
