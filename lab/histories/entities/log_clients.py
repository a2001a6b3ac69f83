"""Clients in one process, until it is told to end: each asks any member, and notes what it is told.

A client waits for an answer for a while, and then asks another member something else: a text that
it asked for may be added yet. A member that cannot be reached was asked nothing.
"""

import asyncio
import signal
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from lab.histories.entities.log_entity import LogAnswer, LogAsked
from lab.histories.entities.member_program import LINE_BYTES
from lab.histories.program import arguments
from lab.judges.logs import Added, AnyLogCall, LookedAtLog, ReadWhole

ANSWER_SECONDS = 15.0
STAYS = 20
"""How many calls a client makes over one connection."""
ADDS = 0.2
PAUSE_SECONDS = 0.03
BACK_OFF_SECONDS = 0.1
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class LogClient:
    """One client."""

    def __init__(self, name: str, seed: str, members: Path, keys: list[str]) -> None:
        self.name = name
        self.keys = keys
        self._random = Random(seed)
        self._members = members
        self._streams: Streams | None = None
        self._left = 0
        self._added = 0

    async def one(self) -> AnyLogCall | None:
        """Make a call; None if there is nothing to note."""
        key = self._random.choice(self.keys)
        if self._random.random() >= ADDS:
            return await self._ask(LogAsked("look", key))
        self._added += 1
        return await self._ask(LogAsked("add", key, f"{self.name}-{self._added}"))

    async def whole(self, key: str) -> AnyLogCall | None:
        """Read all of a log."""
        return await self._ask(LogAsked("whole", key))

    async def rest(self) -> None:
        """Do nothing for a moment."""
        await asyncio.sleep(self._random.expovariate(1.0) * PAUSE_SECONDS)

    async def _ask(self, asked: LogAsked) -> AnyLogCall | None:
        try:
            streams = await self._connected()
        except (OSError, TimeoutError, ValueError):  # it has ended, and nothing was asked
            await asyncio.sleep(BACK_OFF_SECONDS)
            return None
        began = time.monotonic_ns()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await _exchange(streams, asked)
        except (OSError, TimeoutError, EOFError, ValueError):
            self.leave()
            answer = LogAnswer("unknown")
        ended = time.monotonic_ns()
        if answer.told != "written":
            self.leave()
        return self._noted(asked, answer, began, ended)

    def _noted(
        self, asked: LogAsked, answer: LogAnswer, began: int, ended: int
    ) -> AnyLogCall | None:
        call = self.name, asked.key, began, ended
        if asked.what == "add":
            return Added(*call, asked.text, answer.told, answer.count)
        if answer.told != "written":
            return None
        if asked.what == "whole":
            return ReadWhole(*call, answer.texts)
        return LookedAtLog(*call, answer.count, answer.texts, answer.copied)

    async def _connected(self) -> Streams:
        if self._streams is None or self._left == 0:
            self.leave()
            port = int(self._random.choice(sorted(self._members.glob("*.port"))).read_text())
            async with asyncio.timeout(1.0):
                self._streams = await asyncio.open_connection("127.0.0.1", port, limit=LINE_BYTES)
            self._left = STAYS
        self._left -= 1
        return self._streams

    def leave(self) -> None:
        """Close the connection, if there is one."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _exchange(streams: Streams, asked: LogAsked) -> LogAnswer:
    reader, writer = streams
    writer.write(msgspec.json.encode(asked) + b"\n")
    await writer.drain()
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return msgspec.json.decode(line, type=LogAnswer)


async def main(said: dict[str, Any]) -> None:
    """Let clients make calls until a signal ends them."""
    is_over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_over.set)
    place, encoder = Path(said["place"]), msgspec.json.Encoder()
    with (place / f"calls-{said['name']}.jsonl").open("wb") as file:

        async def run(client: LogClient) -> None:
            while not is_over.is_set():
                call = await client.one()
                if call is not None:
                    file.write(encoder.encode(call) + b"\n")
                await client.rest()
            client.leave()

        async with asyncio.TaskGroup() as group:
            for number in range(said["clients"]):
                name = f"{said['name']}.{number}"
                client = LogClient(name, f"{said['seed']} {name}", place / "members", said["keys"])
                group.create_task(run(client))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(arguments()))
