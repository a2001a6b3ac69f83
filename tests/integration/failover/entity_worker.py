"""A process that has some of the ledgers of a pool, and calls any of them.

    python -m tests.integration.failover.entity_worker STORE

It says `ready`, and then what becomes of each line `KEY NUMBER` that it reads: `kept KEY NUMBER`,
or `unknown KEY NUMBER`, or `refused KEY NUMBER` where nothing was begun. A line `KEY` alone is
answered with all numbers of that key.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import IO, Any

import msgspec

from tenure import Entities, Entity, TenureError, refusal


class Numbers(msgspec.Struct):
    """What a ledger has, in the order in which it came, beside something that stays as it is."""

    found: list[int] = []
    padding: str = "x" * 2_000


class NumberLedger(Entity[Numbers]):
    """Takes each number once."""

    async def add(self, number: int) -> int:
        """Add the number; how many there are."""
        self.state.found.append(number)
        self.set_alarm("look", self.now() + 3600)
        return len(self.state.found)

    async def all(self) -> list[int]:
        """All numbers. It has a turn of its own, so its owner has adopted the row."""
        return self.state.found

    async def on_alarm(self, alarm: object) -> None:
        """Nobody waits for an hour."""


async def lines_of(pipe: IO[str]) -> AsyncIterator[str]:
    """What is said over a pipe, line by line."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    while line := (await reader.readline()).decode().strip():
        yield line


async def answer(ledgers: Entities[Any], line: str) -> str:
    """What becomes of a line."""
    key, _, number = line.partition(" ")
    try:
        if not number:
            return f"has {key} {','.join(map(str, await ledgers[key].all()))}"
        await ledgers[key].add(int(number))
    except TenureError as error:
        told = refusal(error)
        is_begun = told is None or told.headers.get("Tenure-Outcome") != "not-begun"
        return f"{'unknown' if is_begun else 'refused'} {line} {type(error).__name__}: {error}"
    return f"kept {line}"


async def main(store: str) -> None:
    """Answer lines until there are no more."""
    async with Entities(NumberLedger, "ledgers", store=store, turn=10.0) as ledgers:

        async def tell(line: str) -> None:
            with suppress(BrokenPipeError):
                print(" ".join((await answer(ledgers, line)).split("\n")), flush=True)

        print("ready", flush=True)
        async with asyncio.TaskGroup() as group:
            async for line in lines_of(sys.stdin):
                group.create_task(tell(line))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
