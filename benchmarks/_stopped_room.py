"""A process with rooms that speaks in one of them for each line that it reads; for `pauses`.

Each room has a client here, so that the frames of a turn leave this very process. The process
reports the last moment at which an answer or a frame of one of its turns left it.
"""

import asyncio
import os
import sys
import time
from typing import Any

import msgspec

from benchmarks.pauses import BODY_SECONDS, ROOMS
from tenure import Entities, Entity, Lease, Socket
from tenure.errors import TenureError


class Spoken(msgspec.Struct):
    """The state of a room."""

    times: int = 0


class Room(Entity[Spoken]):
    """Says who spoke, and under which lease."""

    async def on_connect(self, socket: Socket[None]) -> None:
        """Somebody listens."""
        socket.send("welcome")

    async def speak(self) -> str:
        """Speak for a while, in which the process may be stopped."""
        said = spoken_under(self.lease)
        if not TURN.said:  # not, where the room has come back, and it is asked for again
            TURN.said = said
            print(f"begun {TURN.key}", flush=True)
            time.sleep(BODY_SECONDS)  # noqa: ASYNC251  # a body that computes hears of no loss
        self.state.times += 1
        self.broadcast(said)
        return said

    async def enter(self) -> int:
        """Prepare the room for its next owner."""
        self.state.times += 1
        return self.state.times


def spoken_under(lease: Lease) -> str:
    return f"{os.getpid()} {lease.number}"


class Turn:
    """The one that may be stopped."""

    key = ""
    said = ""


TURN = Turn()


class Listener:
    """A WebSocket whose client reads everything at once."""

    def __init__(self) -> None:
        self.is_welcome = asyncio.Event()
        self.framed_at = 0.0
        self._is_closed = asyncio.Event()

    async def accept(self) -> None:
        """See ASGI."""

    async def receive(self) -> dict[str, Any]:
        """Receive nothing, until it is closed."""
        await self._is_closed.wait()
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(self, message: dict[str, Any]) -> None:
        """A frame."""
        if message.get("text") == TURN.said:
            self.framed_at = time.monotonic()
        self.is_welcome.set()

    async def close(self, code: int = 1000) -> None:
        """Be gone."""
        del code
        self.is_welcome.set()
        self._is_closed.set()


async def main(url: str) -> None:
    """Serve until nobody writes to this process any more."""
    rooms = Entities(Room, ROOMS, url, watchdog=None)
    async with rooms:
        while await asyncio.to_thread(sys.stdin.readline):
            print(await turn(rooms), flush=True)


async def turn(rooms: Entities[Room]) -> str:
    """One turn in a room that is held here, and what became of it."""
    key, listener, answered_at = await held(rooms), Listener(), 0.0
    TURN.key, TURN.said = key, ""
    attached = asyncio.ensure_future(rooms[key].attach(listener))
    await listener.is_welcome.wait()
    try:
        if await rooms[key].speak() == TURN.said:
            answered_at = time.monotonic()
    except TenureError:
        pass  # nobody could answer in time
    await asyncio.sleep(0.05)  # time for a frame that is on its way
    await listener.close()
    await attached
    if listener.framed_at:
        return f"framed {listener.framed_at}"
    return f"answered {answered_at}" if answered_at else "lost"


async def held(rooms: Entities[Room]) -> str:
    """A key that is held here."""
    while True:
        for number in range(1000):
            key = f"{os.getpid()}-{number}"
            if rooms.station.owner.check(key):
                return key
        await asyncio.sleep(0.1)  # many poll on few cores


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
