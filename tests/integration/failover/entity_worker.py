"""A process that has some of the ledgers of a pool, and calls any of them.

    python -m tests.integration.failover.entity_worker STORE

It says `ready`, and then what becomes of each line `KEY NUMBER` that it reads: `kept KEY NUMBER`,
or `unknown KEY NUMBER`, or `refused KEY NUMBER` where nothing was begun. A line `KEY` alone is
answered with all numbers of that key.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import IO, Any

import msgspec

from tenure import Entities, Entity, Mapping, Series, TenureError, refusal

APART = -1
"""Is said instead of numbers where the collections have others than the state."""


class Numbers(msgspec.Struct):
    """What a ledger has, in the order in which it came, beside something that stays as it is."""

    found: list[int] = []
    padding: str = "x" * 2_000


class NumberLedger(Entity[Numbers]):
    """Takes each number once, and has it in the state and in two collections."""

    order = Series(int)
    places = Mapping(int, int)

    async def add(self, number: int) -> int:
        """Add the number; how many there are."""
        self.state.found.append(number)
        self.order.add(number)
        self.places.put(number, len(self.state.found))
        self.set_alarm("look", self.now() + 3600)
        return len(self.state.found)

    async def all(self) -> list[int]:
        """All numbers. It has a turn of its own, so its owner has adopted the row."""
        found = self.state.found
        order = await every(self.order)
        named = await every(self.places)
        is_same = order == found and sorted(named) == sorted(range(1, len(found) + 1))
        return found if is_same else [APART]

    async def on_alarm(self, alarm: object) -> None:
        """Nobody waits for an hour."""


async def every(collection: Any) -> list[int]:  # noqa: ANN401  # a view of either
    """All items of a collection, page by page."""
    found: list[int] = []
    page = await collection.page(100)
    while True:
        found += page.values() if isinstance(page, dict) else page
        if page.next is None:
            return found
        page = await collection.page(100, next=page.next)


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


async def answer_lines(answered: Callable[[str], Awaitable[str]]) -> None:
    """Answer lines until there are no more."""

    async def tell(line: str) -> None:
        with suppress(BrokenPipeError):
            print(" ".join((await answered(line)).split("\n")), flush=True)

    print("ready", flush=True)
    async with asyncio.TaskGroup() as group:
        async for line in lines_of(sys.stdin):
            group.create_task(tell(line))


async def main(store: str) -> None:
    """Answer lines until there are no more."""
    async with Entities(NumberLedger, "ledgers", store=store, turn=10.0) as ledgers:
        await answer_lines(partial(answer, ledgers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
