"""The room that the benchmark `everywhere` reads; as a program, a process that only reads it.

The program reads the room once and says `ready`. For each number of seconds that it is told, it
reads as often as it can for so long, and says how many readings that were, how many of them found
no copy and so reached the owner, and how much CPU it took.
"""

import asyncio
import json
import sys
from time import monotonic, process_time
from typing import Any

import msgspec

from tenure import Entities, Entity, reading

POOL = "rooms"
KEY = "hot"
READINGS = 50
"""How many readings are made before others of the process have their turn."""


class Said(msgspec.Struct):
    """The state of a room."""

    count: int = 0
    last: str = ""


class HotRoom(Entity[Said]):
    """A room of which everybody wants to know the last line."""

    async def say(self, text: str) -> int:
        """Say something new."""
        self.state.count += 1
        self.state.last = text
        return self.state.count

    @reading
    async def last(self) -> str:
        """Return the last line."""
        return self.state.last


def rooms_of(managers: Any, pool: str = POOL, **options: Any) -> Entities[HotRoom]:  # noqa: ANN401  # as Entities takes them
    """Rooms that are read everywhere, unless `reads` says otherwise."""
    options.setdefault("reads", "everywhere")
    return Entities(HotRoom, pool, managers, watchdog=None, **options)


async def read_for(room: HotRoom, seconds: float) -> int:
    """How many readings that were."""
    ends, done = monotonic() + seconds, 0
    while monotonic() < ends:
        for _ in range(READINGS):
            await room.last()
        done += READINGS
        await asyncio.sleep(0)
    return done


async def serve(manager: str) -> None:
    async with rooms_of(manager).readers() as readers:
        room = readers[KEY]
        await room.last()
        print("ready", flush=True)
        while asked := await asyncio.to_thread(sys.stdin.readline):
            assert readers._place is not None
            copies = readers._place.copies
            hits, spent = copies.hits, process_time()
            done = await read_for(room, float(asked))
            told = {
                "readings": done,
                "asked": done - (copies.hits - hits),
                "cpu": process_time() - spent,
            }
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
