"""A small world of entities under trouble, by a seed, and an oracle that judges the outcome.

Members join and leave, channels break, calls are repeated and some raise, while clients talk over
sockets and alarms are due. No process crashes without its word, so nothing may be lost at all: each
call that was answered counts once and at the place that its answer said; every open client has
heard every line since it came, once and in order; every alarm has rung, and none early.
"""

import asyncio
import time
from collections import defaultdict
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from tenure import Alarm, Entities, Entity, Socket, UsageError, reading
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import InProcessCluster
from tenure.transport.channels import ChannelLost
from tests.unit.entities.stage import Client, Stage, attached

KEYS = [f"key-{i}" for i in range(5)]
STEPS = 40
ALARM_SECONDS = 0.3
LOST = 0.04
"""The share of messages that are lost, with their channel."""
LIMIT_SECONDS = 20.0
"""A limit in real time: far more than a run takes."""
SETTLING_SECONDS = 5.0
"""Members and edges try again after pauses in real time, which a quick machine turns past: up to a
second where several messages in a row are lost.
"""


class Log(msgspec.Struct):
    ops: list[str] = []
    rung: list[tuple[str, float, float]] = []


class Wrong(AssertionError):
    """Raised by the oracle when it finds a fault."""


class World:
    """The world that all entities of one run share."""

    def __init__(self) -> None:
        self.inside: defaultdict[str | int, int] = defaultdict(int)
        self.members: list[Entities[Any]] = []
        self.wrong: list[str] = []


WORLD = World()


class Ledger(Entity[Log]):
    async def add(self, op: str) -> int:
        await self._write(op)
        return len(self.state.ops)

    async def _write(self, op: str) -> None:
        WORLD.inside[self.key] += 1
        if WORLD.inside[self.key] > 1:
            WORLD.wrong.append(f"two turns of {self.key} at once")
        try:
            self.state.ops.append(op)
            for _ in range(3):
                await asyncio.sleep(0)
            self.broadcast(op)
            self.set_alarm(op, self.now() + ALARM_SECONDS)
        finally:
            WORLD.inside[self.key] -= 1

    async def fail(self, op: str) -> None:
        await self._write(f"fail {op}")
        raise LookupError(op)

    async def circle(self) -> None:
        await WORLD.members[0][self.key].circle()

    async def on_connect(self, socket: Socket[str]) -> None:
        socket.send(f"since {len(self.state.ops)}")

    async def on_message(self, socket: Socket[str], text: str) -> None:
        await self._write(text)

    async def on_alarm(self, alarm: Alarm) -> None:
        self.state.rung.append((alarm.name, alarm.due.timestamp(), self.now()))

    @reading
    async def log(self) -> Log:
        return self.state


ROUNDED = 1e-6
"""Seconds: an alarm says when it was due as a datetime, which has whole microseconds. What rings at
the very moment may be told half of one later."""


class Hunt:
    """One run."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._calls: list[tuple[str, str, bytes, asyncio.Future[Any]]] = []
        self._clients: list[tuple[str, Client, asyncio.Task[None]]] = []
        self._said: defaultdict[str, list[str]] = defaultdict(list)
        self._count = 0
        self._stage: Stage

    async def run(self) -> None:
        """Raises Wrong."""
        WORLD.__init__()  # type: ignore[misc]
        async with InProcessCluster(["counters"], clock=TurnedClock()) as cluster:
            self._stage = stage = Stage(cluster)
            WORLD.members = stage.members
            for _ in range(2):
                await stage.enter(kind=Ledger, turn=5.0, wait=5.0)
            await stage.spread()
            self._loop = asyncio.get_running_loop()
            cluster.channels.on_message = self._lose_some
            try:
                async with asyncio.timeout(LIMIT_SECONDS):
                    await self._trouble()
                    await self._judge()
            except TimeoutError:
                raise Wrong("it came to no end") from None
            finally:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LIMIT_SECONDS):
                        await self._clean_up()

    def _lose_some(self, _: bytes) -> None:
        """Lose some of what members say to each other; state on its way is in another loop."""
        with suppress(RuntimeError):
            if asyncio.get_running_loop() is self._loop and self._random.random() < LOST:
                raise ChannelLost("it broke in the middle")

    async def _clean_up(self) -> None:
        self._stage.cluster.channels.on_message = lambda _: None
        for _, client, _ in self._clients:
            client.leave()
        for each in list(self._stage.members):
            await self._stage.leave(each)
        rest = [task for _, _, task in self._clients]
        await asyncio.gather(*rest, *(call[3] for call in self._calls), return_exceptions=True)
        await come_to_rest()

    async def _trouble(self) -> None:
        for key in KEYS[:3]:
            for member in self._stage.members[:2]:
                self._clients.append((key, *attached(member, key, "client")))
        await self._stage.until(lambda: all(c.received for _, c, _ in self._clients))
        steps = [self._call] * 6 + [self._repeat] * 4 + [self._talk] * 6 + [self._cut] * 3
        steps += [self._look] * 2 + [self._circle, self._move]
        for _ in range(STEPS):
            self._random.choice(steps)()
            if self._random.random() < 0.5:
                await self._stage.cluster.turn(self._random.choice((0.0, 0.01, 0.1)))
            if self._joins is not None:
                await self._join_or_leave()

    _joins: bool | None = None

    def _move(self) -> None:
        self._joins = len(self._stage.members) < 3

    async def _join_or_leave(self) -> None:
        if self._joins:
            await self._stage.enter(kind=Ledger, turn=5.0, wait=5.0)
            await self._stage.spread()
        else:
            await self._drain(self._stage.members[-1])
        self._joins = None

    async def _drain(self, member: Entities[Any]) -> None:
        """It leaves, while the first members have all the clients."""
        await self._stage.leave(member)

    def _member(self) -> Entities[Any]:
        return self._random.choice(self._stage.members[:2])

    def _op(self) -> str:
        self._count += 1
        return f"op-{self._count}"

    def _call(self) -> None:
        key, op = self._random.choice(KEYS), self._op()
        method = "add" if self._random.random() < 0.8 else "fail"
        self._begin(key, op, method, op.encode())

    def _repeat(self) -> None:
        made = [each for each in self._calls if each[1].startswith("op")]
        if made:
            key, op, id_, _ = self._random.choice(made)
            self._begin(key, op, "add", id_)

    def _begin(self, key: str, op: str, method: str, id_: bytes) -> None:
        station = self._member().station
        data = station.kind.method(method).encode((op,), {})
        call = asyncio.ensure_future(station.caller.call(key, method, data, id_))
        name = op if method == "add" else f"fail {op}"
        self._calls.append((key, name, id_, call))

    def _talk(self) -> None:
        key, client, _ = self._random.choice(self._clients)
        self._said[key].append(op := self._op())
        client.send(op)

    def _cut(self) -> None:
        self._stage.cluster.channels.cut()

    def _look(self) -> None:
        key = self._random.choice(KEYS)
        call = asyncio.ensure_future(self._member()[key].log())
        self._calls.append((key, "look", b"", call))

    def _circle(self) -> None:
        call = asyncio.ensure_future(self._member()["round"].circle())
        self._calls.append(("round", "circle", b"", call))

    # --- the oracle ---

    async def _judge(self) -> None:
        stage = self._stage
        await stage.until(lambda: all(call.done() for *_, call in self._calls))
        logs = await self._settled()
        wrong = [*WORLD.wrong]
        for key, log in logs.items():
            wrong += self._wrong_log(key, log)
        wrong += [each for call in self._calls for each in self._wrong_call(call, logs)]
        for key, client, _ in self._clients:
            wrong += self._wrong_client(client, logs[key])
        if wrong:
            raise Wrong("; ".join(wrong[:3]))

    async def _settled(self) -> dict[str, Log]:
        """The logs when all that is on its way has arrived, or when it has had its time."""
        gives_up_at = time.monotonic() + SETTLING_SECONDS
        while not self._is_settled(await self._logs()) and time.monotonic() < gives_up_at:
            await self._stage.cluster.turn(0.05)
        for _ in range(40):  # what comes twice may come late
            await self._stage.cluster.turn(0.05)
        return await self._logs()

    async def _logs(self) -> dict[str, Log]:
        stage = self._stage
        return {key: await stage.done(stage.members[0][key].log()) for key in KEYS}

    def _is_settled(self, logs: dict[str, Log]) -> bool:
        return (
            all(set(self._said[key]) <= set(log.ops) for key, log in logs.items())
            and all(len(log.rung) >= len(log.ops) for log in logs.values())
            and all(self._has_all(client, logs[key]) for key, client, _ in self._clients)
        )

    def _has_all(self, client: Client, log: Log) -> bool:
        return client.code is not None or not log.ops or log.ops[-1] in client.received

    def _wrong_log(self, key: str, log: Log) -> list[str]:
        wrong = []
        if len(set(log.ops)) != len(log.ops):
            wrong.append(f"{key}: an operation twice: {log.ops}")
        if any(op.startswith("fail") for op in log.ops):
            wrong.append(f"{key}: an operation that raised is kept")
        if lost := [each for each in self._said[key] if each not in log.ops]:
            wrong.append(f"{key}: the messages {lost} of clients are lost; the log is {log.ops}")
        rung = [name for name, _, _ in log.rung]
        if sorted(rung) != sorted(log.ops):
            wrong.append(f"{key}: alarms {rung} of {log.ops}")
        if any(at < due - ROUNDED for _, due, at in log.rung):
            wrong.append(f"{key}: an alarm was early")
        return wrong

    def _wrong_call(
        self, made: tuple[str, str, bytes, asyncio.Future[Any]], logs: dict[str, Log]
    ) -> list[str]:
        key, op, _, call = made
        error = call.exception()
        if op == "circle":
            return [] if isinstance(error, UsageError) else [f"a circle came to {error!r}"]
        if op.startswith("fail"):
            return [] if isinstance(error, LookupError) else [f"{op} came to {error!r}"]
        if error is not None:
            return [f"{op} came to {error!r}"]
        if op == "look":
            dirty = [each for each in call.result().ops if each.startswith("fail")]
            return [f"a reading saw {dirty}"] if dirty else []
        place = msgspec.msgpack.decode(call.result())
        if logs[key].ops[place - 1 : place] != [op]:
            return [f"{op} was answered {place}, and the log of {key} is {logs[key].ops}"]
        return []

    def _wrong_client(self, client: Client, log: Log) -> list[str]:
        if client.code is not None:
            return [f"a client was closed with {client.code}, and nothing was lost"]
        since = int(client.received[0].removeprefix("since "))
        if client.received[1:] != log.ops[since:]:
            return [f"a client has heard {client.received}, where the log is {log.ops}"]
        return []
