"""What reading everywhere costs, and what it brings.

All ratios are within one run. Costs are CPU, in rounds that alternate. Whatever else the machine
does makes a round more expensive, and never cheaper, so the cheapest round of each counts.

- A `@reading` on a copy in another process, beside one at the owner: at most 3 times as much.
- A change of a key that 4, 40 and 400 readers hold, beside a write of a bare volume with the same
  holders: at most 1.5 times. The holders are in another process, whose CPU does not count.
- A change of a key that nobody holds, beside one with `reads="owner"`: at most 3 % more, in memory
  and in a file of SQLite.
- A hot key that one, two and four processes read while its owner changes it ten times a second:
  less than 1 % of the readings reach the owner, and a CPU second brings as many readings in four
  processes as in one, a fifth less at most.

`long_rooms` tells what a turn costs in a room of a million messages.
"""

import asyncio
import json
import sys
import tempfile
from argparse import ArgumentParser
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from time import process_time, thread_time
from typing import NamedTuple

from benchmarks._hot_room import KEY, POOL, HotRoom, rooms_of
from benchmarks._manager import allow_many_files, running_manager
from benchmarks._quick import at_least, at_most, sized
from benchmarks._rounds import line
from tenure import KeyedState, Lookup, Owner, Volume
from tenure.client.lookup_engine import CachesByRange
from tenure.entities.copy_keys import EntityKeys
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster

ROUNDS, CALLS = sized(60, 10), sized(300, 100)
STORED_CALLS = sized(50, 20)
"""The calls of a round that wait for a disk each."""
HIT_BOUND = at_most(3)
HELD_ROUNDS = sized(30, 5)
HOLDERS = (4, 40, sized(400, 100))
HELD_BOUND = at_most(1.5)
TERM = 3.0
"""How long a holder need not renew its lease: longer than it takes to give all of them the key."""
UNREAD_BOUND = at_most(1.03)
PROCESSES = (1, 2, 4)
READ_SECONDS = sized(8, 2)
CHANGES_A_SECOND = 10
ASKING_BOUND = at_most(0.01)
SCALING_BOUND = at_least(0.8)
Work = Callable[[], Awaitable[object]]
Clock = Callable[[], float]


def told(what: str, figure: str, bound: str, *, is_kept: bool) -> bool:
    print(line(what, figure, bound, is_kept=is_kept), flush=True)
    return is_kept


async def cheapest(works: dict[str, Work], clock: Clock, calls: int = CALLS) -> dict[str, float]:
    """CPU seconds of each, in its cheapest round."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            began = clock()
            for _ in range(calls):
                await work()
            found[name].append((clock() - began) / calls)
    return {name: min(costs) for name, costs in found.items()}


def beside(what: str, costs: dict[str, float], bound: float) -> list[bool]:
    """Compare all with the first."""
    name, least = next(iter(costs.items()))
    print(f"   {name}: {least * 1e6:.1f} µs")
    kept = []
    for each, cost in list(costs.items())[1:]:
        times = cost / least
        figure = f"{times:.3f} x, {cost * 1e6:.1f} µs"
        kept.append(told(f"{what}, {each}", figure, f"{bound:g} x", is_kept=times <= bound))
    return kept


# --- hits ---


async def hits() -> list[bool]:
    """Readings at the owner, in another member, and in a process of readers."""
    async with InProcessCluster([POOL], timing=DEFAULT) as cluster, AsyncExitStack() as stack:
        members = []
        for _ in range(2):
            environment = ClusterEnvironment(cluster)
            members.append(
                await stack.enter_async_context(rooms_of(cluster.urls, _environment=environment))
            )
        owner, other = members
        await other.station.owner.ready()
        readers = await stack.enter_async_context(owner.readers())
        key = next(key for key in map(str, range(1000)) if owner.station.owner.check(key))
        await owner[key].say("hello")
        works: dict[str, Work] = {
            "at the owner": owner[key].last,
            "in another member": other[key].last,
            "by readers()": readers[key].last,
        }
        for work in works.values():
            await work()  # has it copied
        assert other.station.copies is not None
        before = other.station.copies.hits
        costs = await cheapest(works, thread_time)
        assert other.station.copies.hits - before >= ROUNDS * CALLS * 0.99, "they were no hits"
    return beside("a reading of a copy", costs, HIT_BOUND)


# --- changes of a key that others hold ---


class HoldingProcess:
    """A process with many holders of one key."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def hold(self) -> None:
        """All hold the key, until it is written."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"hold\n")
        said = await self._process.stdout.readline()
        assert said == b"held\n", "the holders have ended"


@asynccontextmanager
async def holding(url: str, key: bytes, count: int) -> AsyncIterator[HoldingProcess]:
    command = (sys.executable, "-m", "benchmarks._holding", url, key.hex(), str(count))
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    try:
        yield HoldingProcess(process)
    finally:
        process.kill()
        await process.wait()


async def held() -> list[bool]:
    """Changes of a room, and writes of a bare volume, with the same holders."""
    state: KeyedState[str] = KeyedState(value_type=str)
    volume = Volume(state.get, value_type=str, term=TERM)
    with running_manager() as manager:
        rooms = rooms_of(manager.url)
        rooms._settings.read_term = TERM
        owner = Owner(
            manager.url, pool="rows", address="http://127.0.0.1/", hand_off=state, volume=volume
        )
        async with rooms, owner, Lookup(manager.url, pool="rows") as lookup:
            await owner.ready()

            async def change() -> None:
                await rooms[KEY].say("hello")

            async def write() -> None:
                async with volume.write(KEY):
                    state[KEY] = "hello"

            await change()  # a copy from before the first would not be held
            bare = Held(await door(lookup), volume.keys.key(KEY), write)
            room = Held(await door(rooms.station.lookup), EntityKeys().key(KEY), change)
            kept = []
            for count in HOLDERS:
                costs = await costs_held({"a bare volume": bare, "a room": room}, count)
                kept += beside(f"a change with {count} holders", costs, HELD_BOUND)
    return kept


class Held(NamedTuple):
    """What is held, and how it is changed."""

    url: str
    key: bytes
    change: Work


async def door(lookup: Lookup) -> str:
    """Where caches of the one owner of a pool connect."""
    loop = asyncio.get_running_loop()
    there: asyncio.Future[str] = loop.create_future()

    def tell(url: str) -> None:
        if not there.done():
            there.set_result(url)

    def follow(by_range: CachesByRange) -> None:
        for _, url in by_range:
            if url is not None:
                loop.call_soon_threadsafe(tell, url)

    lookup.follow_caches(follow)
    return await there


async def costs_held(works: dict[str, Held], count: int) -> dict[str, float]:
    """CPU seconds of a change of each, in its cheapest round."""
    found: dict[str, list[float]] = {name: [] for name in works}
    async with AsyncExitStack() as stack:
        holders = {
            name: await stack.enter_async_context(holding(each.url, each.key, count))
            for name, each in works.items()
        }
        for _ in range(HELD_ROUNDS):
            for name, each in works.items():
                await holders[name].hold()
                began = process_time()
                await each.change()
                found[name].append(process_time() - began)
    return {name: min(costs) for name, costs in found.items()}


# --- changes of a key that nobody holds ---


async def unread() -> list[bool]:
    """Changes with both kinds of `reads`, in memory and in a file."""
    kept = []
    with tempfile.TemporaryDirectory() as place:
        for kind, clock, store, calls in (
            ("in memory", thread_time, None, CALLS),
            ("in a file", process_time, Path(place), STORED_CALLS),
        ):
            async with (
                InProcessCluster(["at owners", "everywhere"], timing=DEFAULT) as cluster,
                AsyncExitStack() as stack,
            ):
                works: dict[str, Work] = {}
                for pool, reads in (("at owners", "owner"), ("everywhere", "everywhere")):
                    rooms = rooms_of(
                        cluster.urls,
                        pool,
                        reads=reads,
                        store=store and f"sqlite:{store / pool}",
                        _environment=ClusterEnvironment(cluster),
                    )
                    room = (await stack.enter_async_context(rooms))[KEY]
                    await room.say("from here on nobody has a copy")
                    works[f"{kind}, read {pool}"] = partial(room.say, "hello")
                kept += beside("an unread key", await cheapest(works, clock, calls), UNREAD_BOUND)
    return kept


# --- a hot key ---


class ReadingProcess:
    """A process that reads the hot room."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def read(self, seconds: float) -> dict[str, float]:
        """What it says of its readings."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n".encode())
        said: dict[str, float] = json.loads(await self.says())
        return said

    async def says(self) -> bytes:
        assert self._process.stdout is not None
        said = await self._process.stdout.readline()
        assert said, "a reading process has ended"
        return said


@asynccontextmanager
async def reading_process(manager: str) -> AsyncIterator[ReadingProcess]:
    command = (sys.executable, "-m", "benchmarks._hot_room", manager)
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    try:
        reading = ReadingProcess(process)
        await reading.says()
        yield reading
    finally:
        process.kill()
        await process.wait()


async def change_often(room: HotRoom) -> None:
    while True:
        await room.say("hello")
        await asyncio.sleep(1 / CHANGES_A_SECOND)


async def hot() -> list[bool]:
    """Readings by the number of processes."""
    by_cpu, asking = [], 0.0
    with running_manager() as manager:
        async with rooms_of(manager.url) as rooms, AsyncExitStack() as stack:
            await rooms[KEY].say("hello")
            stack.callback(asyncio.create_task(change_often(rooms[KEY])).cancel)
            readers: list[ReadingProcess] = []
            for count in PROCESSES:
                while len(readers) < count:
                    entering = stack.enter_async_context(reading_process(manager.url))
                    readers.append(await entering)
                found = await asyncio.gather(*(each.read(READ_SECONDS) for each in readers))
                done, asked, cpu = (sum(map(itemgetter(what), found)) for what in found[0])
                by_cpu.append(done / cpu)
                asking = asked / done
                print(
                    f"   {count} processes: {done / READ_SECONDS:,.0f} readings a second, "
                    f"{done / cpu:,.0f} in a CPU second, {asking:.3%} at the owner"
                )
    scaling = by_cpu[-1] / by_cpu[0]
    return [
        told(
            f"readings that reach the owner, {PROCESSES[-1]} processes",
            f"{asking:.3%}",
            f"< {ASKING_BOUND:.0%}",
            is_kept=asking < ASKING_BOUND,
        ),
        told(
            f"readings in a CPU second, {PROCESSES[-1]} to 1",
            f"{scaling:.2f} x",
            f">= {SCALING_BOUND:.2g} x",
            is_kept=scaling >= SCALING_BOUND,
        ),
    ]


PARTS = {"hits": hits, "held": held, "unread": unread, "hot": hot}


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    parser = ArgumentParser(prog="python -m benchmarks everywhere")
    parser.add_argument("--only", choices=tuple(PARTS))
    only = parser.parse_args().only
    allow_many_files()
    kept = []
    for name in (only,) if only else PARTS:
        print(f"-- {name}", flush=True)
        kept += asyncio.run(PARTS[name]())
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
