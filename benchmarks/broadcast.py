"""A room with 10,000 sockets: what one more costs, and a message to all of them.

The room is an entity in this process, and so are its sockets, each of which writes to a list: the
rest, writing to the network, is the web server's. CPU time of the process is counted.

Bounds: connecting each of the last 200 of 10,000 sockets costs at most 1.5 times what it cost for
the first 200; a broadcast costs at most 4 times what it costs to have each socket write a frame
that no entity has sent.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from statistics import median
from time import process_time_ns
from typing import Any

import msgspec

from benchmarks._quick import at_most, sized
from benchmarks._rounds import line
from tenure import Entities, Entity, Socket
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster

SOCKETS = sized(10_000, 2_000)
PART = SOCKETS // 50
BROADCASTS = sized(9, 5)
BOUND_CONNECT = at_most(1.5)
BOUND_BROADCAST = at_most(4)


class Lines(msgspec.Struct):
    """The state of a room."""

    said: int = 0


class Room(Entity[Lines]):
    """Sends what anybody says to everybody."""

    connected = 0

    async def on_connect(self, socket: Socket[Any]) -> None:
        """Count it."""
        del socket
        Room.connected += 1

    async def on_message(self, socket: Socket[Any], text: Any) -> None:  # noqa: ANN401
        """Send it to all."""
        del socket
        self.broadcast(text)


class Listener:
    """The server's end of a WebSocket."""

    written = 0

    def __init__(self) -> None:
        self.said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def accept(self) -> None:
        """Accept it."""

    async def receive(self) -> dict[str, Any]:
        """What the client says."""
        return await self.said.get()

    async def send(self, message: dict[str, Any]) -> None:
        """Write a frame to the client."""
        del message
        Listener.written += 1

    async def close(self, code: int = 1000) -> None:
        """Close it."""


class Crowd:
    """The clients of one room."""

    def __init__(self, rooms: Entities[Room]) -> None:
        self._rooms = rooms
        self._clients: list[Listener] = []
        self._tasks: list[asyncio.Task[Any]] = []

    async def connect(self, count: int) -> float:
        """Connect so many, one after the other: CPU microseconds for each."""
        new = [Listener() for _ in range(count)]
        before = process_time_ns()
        for each in new:
            self._clients.append(each)
            self._tasks.append(asyncio.ensure_future(self._rooms["hall"].attach(each)))
            await until(lambda: Room.connected == len(self._clients))
        return (process_time_ns() - before) / count / 1_000

    async def broadcast(self) -> float:
        """Have one client say something: CPU milliseconds until all have it."""
        written, before = Listener.written, process_time_ns()
        self._clients[0].said.put_nowait({"type": "websocket.receive", "text": "good evening"})
        await until(lambda: Listener.written >= written + len(self._clients))
        return (process_time_ns() - before) / 1e6

    async def write(self) -> float:
        """Have each socket write a frame that no entity has sent."""
        written, before = Listener.written, process_time_ns()
        for each in self._rooms.station.edge._sockets.values():
            each.put(("good evening",))
        await until(lambda: Listener.written >= written + len(self._clients))
        return (process_time_ns() - before) / 1e6

    async def leave(self) -> None:
        """End all sockets."""
        for each in self._tasks:
            each.cancel()
        await asyncio.wait(self._tasks)


async def turned(cluster: InProcessCluster, what: Awaitable[object]) -> None:
    """Turn the clock until it is done: while sockets are busy, no time passes for leases."""
    doing = asyncio.ensure_future(what)
    while not doing.done():
        await cluster.turn(0.1)
    await doing


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until this is so."""
    while not condition():  # noqa: ASYNC110  # what is measured is the CPU, not the time
        await asyncio.sleep(0)


async def measured() -> tuple[float, float, float, float]:
    """Microseconds for one of the first and the last sockets; milliseconds for a broadcast, and for
    writing alone.
    """
    async with InProcessCluster(["rooms"], clock=TurnedClock()) as cluster:
        environment = ClusterEnvironment(cluster)
        rooms = Entities(Room, "rooms", cluster.urls, watchdog=None, _environment=environment)
        await turned(cluster, rooms.__aenter__())
        await turned(cluster, rooms.station.owner.ready())
        crowd = Crowd(rooms)
        await crowd.connect(10)  # code that runs for the first time
        first = await crowd.connect(PART)
        await crowd.connect(SOCKETS - 2 * PART - 10)
        last = await crowd.connect(PART)
        rounds = [(await crowd.broadcast(), await crowd.write()) for _ in range(BROADCASTS)]
        await turned(cluster, crowd.leave())
        await turned(cluster, rooms.__aexit__(None, None, None))
    return first, last, *(median(each) for each in zip(*rounds, strict=True))


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    first, last, broadcast, alone = asyncio.run(measured())
    print(f"a socket connects in {first:.0f} us, and as one of {SOCKETS:,} in {last:.0f} us")
    print(f"a broadcast takes {broadcast:.1f} ms; writing alone {alone:.1f} ms")
    growth, share = last / first, broadcast / alone
    is_flat, is_quick = growth <= BOUND_CONNECT, share <= BOUND_BROADCAST
    bound = f"<= {BOUND_CONNECT:g}"
    print(line("connecting the last, to the first", f"{growth:.2f}", bound, is_kept=is_flat))
    bound = f"<= {BOUND_BROADCAST:g}"
    print(line("a broadcast, to writing alone", f"{share:.2f}", bound, is_kept=is_quick))
    return 0 if is_flat and is_quick else 1


if __name__ == "__main__":
    sys.exit(main())
