"""Processes of pools that are attacked, in one: entities that call each other, an owner that has
state and takes caches, and an owner that lists a rival beside its manager.

It prints its addresses, and answers each line of its input with how it fares: `Fares` as JSON.
"""

import asyncio
import sys
from collections.abc import Collection
from contextlib import AsyncExitStack

import msgspec

from tenure import Credentials, Entities, Entity, KeyedState, Owner, TenureError, Volume

KEYS = [f"key-{number}" for number in range(20)]
CALL_SECONDS = 10.0


class Hits(msgspec.Struct):
    count: int = 0


class Hit(Entity[Hits]):
    """Counts how often it was called."""

    async def add(self) -> int:
        self.state.count += 1
        return self.state.count


class Places(msgspec.Struct, frozen=True):
    """What the process is told: its managers, its tokens, and where to listen."""

    manager: str
    rival: str
    tokens: dict[str, str]
    hand_off: str
    volume: str
    entities: tuple[str, str]


class Fares(msgspec.Struct, frozen=True, kw_only=True):
    """How the process fares, since it began."""

    calls: int
    failed_calls: int
    wrong_answers: int
    """Calls of entities whose answers show that one before was forgotten, or that another than the
    entity has answered."""
    lost_ranges: int
    """How often an owner has lost a range that nobody else was to have."""
    lost_rows: int
    """Objects of the owner with state that are not there any more."""
    besieged: int
    """How many ranges the owner has that lists a rival."""


class Members:
    """All that is attacked here."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.counts = dict.fromkeys(KEYS, 0)
        self.calls = self.failed = self.wrong = self.lost = 0
        self.rooms: KeyedState[str] = KeyedState(value_type=str)
        self.entities: list[Entities[Hit]] = []

    def _shows(self, pool: str) -> Credentials:
        return Credentials(token=self.places.tokens[f"owner {pool}"])

    def _on_revoke(self, ranges: Collection[object]) -> None:
        self.lost += len(ranges)

    async def open(self, stack: AsyncExitStack) -> None:
        """Join all pools."""
        places = self.places
        rooms = Owner(
            places.manager,
            pool="rooms",
            address="http://127.0.0.1:1",
            hand_off=self.rooms,
            hand_off_listen=places.hand_off,
            volume=Volume(self.rooms.get, value_type=str, listen=places.volume),
            on_revoke=self._on_revoke,
            credentials=self._shows("rooms"),
        )
        await stack.enter_async_context(rooms)
        await rooms.ready()
        for listen in places.entities:  # their token is that of the process
            one = Entities(Hit, "counters", places.manager, listen=listen)
            self.entities.append(await stack.enter_async_context(one))
        self.besieged = Owner(
            (places.manager, places.rival),
            pool="besieged",
            address="http://127.0.0.1:2",
            credentials=self._shows("besieged"),
        )
        await stack.enter_async_context(self.besieged)
        for key in KEYS:
            self.rooms[key] = key

    async def call_on(self) -> None:
        """Call entities through both members, in turns."""
        while True:
            for number, key in enumerate(KEYS):
                self.calls += 1
                try:
                    async with asyncio.timeout(CALL_SECONDS):
                        count = await self.entities[number % 2][key].add()
                except (TenureError, TimeoutError):
                    self.failed += 1
                    self.counts[key] += 1  # it may have been carried out
                    continue
                self.wrong += count not in (self.counts[key] + 1, self.counts[key])
                self.counts[key] = count
            await asyncio.sleep(0.05)

    def fare(self) -> Fares:
        return Fares(
            calls=self.calls,
            failed_calls=self.failed,
            wrong_answers=self.wrong,
            lost_ranges=self.lost,
            lost_rows=sum(self.rooms.get(key) != key for key in KEYS),
            besieged=len(self.besieged.ranges),
        )


async def main() -> None:
    loop = asyncio.get_running_loop()
    members = Members(msgspec.json.decode(sys.stdin.readline(), type=Places))
    async with AsyncExitStack() as stack:
        await members.open(stack)
        calling = asyncio.ensure_future(members.call_on())
        print("begun", flush=True)
        while await loop.run_in_executor(None, sys.stdin.readline):
            print(msgspec.json.encode(members.fare()).decode(), flush=True)
        calling.cancel()


if __name__ == "__main__":
    asyncio.run(main())
