"""A process of one of two releases, which has some of the ledgers of a pool and calls any of them.

    python -m tests.integration.failover.release_worker old|new [STORE]

It answers lines as `entity_worker` does. The new release has fields that the old one does not know,
in the state and in each entry, and says which of them it has lost.
"""

import asyncio
import sys
from contextlib import suppress
from typing import Any

import msgspec

from tenure import Entities, Entity
from tests.integration.failover.entity_worker import answer, lines_of


class OldEntry(msgspec.Struct):
    """A number, and whether the new release has taken it."""

    number: int
    is_new: bool = False


class NewEntry(OldEntry):
    """The same, and the number again if the new release has taken it."""

    again: int = 0


class OldNumbers(msgspec.Struct):
    """What a ledger has, in the order in which it came."""

    found: list[OldEntry] = []
    by_old: int = 0


class NewNumbers(msgspec.Struct):
    """The same, and how many the new release has taken."""

    found: list[NewEntry] = []
    by_old: int = 0
    by_new: int = 0


class OldRelease(Entity[OldNumbers], name="NumberLedger"):
    """The release before."""

    async def add(self, number: int) -> int:
        """Add the number; how many there are."""
        self.state.found.append(OldEntry(number))
        self.state.by_old += 1
        return len(self.state.found)

    async def all(self) -> list[Any]:
        """All numbers."""
        return [each.number for each in self.state.found]


class NewRelease(Entity[NewNumbers], name="NumberLedger"):
    """The release that is deployed."""

    async def add(self, number: int) -> int:
        """Add the number; how many there are."""
        self.state.found.append(NewEntry(number, is_new=True, again=number))
        self.state.by_new += 1
        return len(self.state.found)

    async def all(self) -> list[Any]:
        """All numbers, and what was lost."""
        state = self.state
        lost = [it for it in state.found if it.again != (it.number if it.is_new else 0)]
        if lost or state.by_old + state.by_new != len(state.found):
            return ["lost", len(state.found), state.by_old, state.by_new, str(lost)]
        return [each.number for each in state.found]


RELEASES: dict[str, type[Entity[Any]]] = {"old": OldRelease, "new": NewRelease}


async def main(release: str, store: str | None) -> None:
    """Answer lines until there are no more."""
    ledgers: Entities[Any]
    async with Entities(RELEASES[release], "ledgers", store=store, turn=10.0) as ledgers:

        async def tell(line: str) -> None:
            with suppress(BrokenPipeError):
                print(" ".join((await answer(ledgers, line)).split("\n")), flush=True)

        print("ready", flush=True)
        async with asyncio.TaskGroup() as group:
            async for line in lines_of(sys.stdin):
                group.create_task(tell(line))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
