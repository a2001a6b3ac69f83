"""Owners that are stopped in the middle of a turn, past the term: none of them answers.

In each round several processes take a turn with a key of their own, and are stopped with SIGSTOP
while it is under way. Another owner, which is never stopped, gets their keys when their terms have
run out, and takes a turn with each of them. Then the stopped processes go on. A process that then
says that its turn is done has answered for a key that another one had; all must raise LeaseLost.

Then the same with entities: neither an answer nor a frame to a WebSocket may leave a process that
was stopped in the turn that sent it. `fencing` covers what is written to a database meanwhile.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from random import Random
from time import monotonic

from benchmarks._manager import running_manager
from benchmarks._quick import sized
from benchmarks._rounds import line
from tenure import Entities, LeaseLost, Lookup, NotOwner, OwnedState, Owner

STOPPED = 10
"""Processes that are stopped at a time."""
ROUNDS = sized(20, 1)
BODY_SECONDS = 0.05
LONGEST_SECONDS = 60.0
POOL, ROOMS = "carts", "rooms"
SEED = 1


class Worker:
    """A process that takes turns when it is told to."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.key = ""
        self.taken_at = 0.0
        """The time when another owner had the key; all processes of a machine have one clock."""

    async def outcome(self) -> str:
        """Return the outcome of its turn. On a busy machine the turn may be over before the signal
        comes.
        """
        said, _, at = (await self.said()).partition(" ")
        return "over before it was stopped" if at and float(at) < self.taken_at else said

    async def said(self) -> str:
        assert self._process.stdout
        return (await self._process.stdout.readline()).decode().strip()

    async def begin(self) -> None:
        """Have it take a turn; it is under way when this returns."""
        assert self._process.stdin
        self._process.stdin.write(b"\n")
        word, self.key = (await self.said()).split()
        assert word == "begun", word

    def send(self, number: signal.Signals) -> None:
        """Stop it, or have it go on."""
        os.kill(self._process.pid, number)


Take = Callable[[str], Awaitable[None]]
"""Have the owner that is not stopped take a turn with a key, once it has the key."""


async def of_turns() -> Counter[str]:
    """Return the outcome of all turns with owned state."""
    with running_manager("--preset", "test", "--create-pools") as manager:
        carts: OwnedState[int] = OwnedState(value_type=int)
        other = Owner(manager.url, pool=POOL, address="http://127.0.0.1:1", hand_off=carts)
        async with other, Lookup(manager.url, pool=POOL) as lookup:
            return await measure("_stopped", manager.url, lambda key: taken(key, lookup, carts))


async def of_rooms() -> Counter[str]:
    """Return the outcome of all turns with entities."""
    from benchmarks._stopped_room import Room  # noqa: PLC0415  # it reads what is above

    with running_manager("--preset", "test", "--create-pools") as manager:
        async with Entities(Room, ROOMS, manager.url, watchdog=None) as rooms:

            async def take(key: str) -> None:
                while not rooms.station.owner.check(key):  # noqa: ASYNC110  # nobody tells
                    await asyncio.sleep(0.05)
                await rooms[key].enter()

            return await measure("_stopped_room", manager.url, take)


async def measure(program: str, url: str, take: Take) -> Counter[str]:
    """Return the outcome of all turns."""
    random, outcomes = Random(SEED), Counter[str]()
    async with AsyncExitStack() as stack:
        workers = [await started(stack, program, url) for _ in range(STOPPED)]
        for _ in range(ROUNDS):
            await one_round(workers, take, random, outcomes)
    return outcomes


async def started(stack: AsyncExitStack, program: str, url: str) -> Worker:
    said = (sys.executable, "-m", f"benchmarks.{program}", url)
    process = await asyncio.create_subprocess_exec(*said, stdin=PIPE, stdout=PIPE)
    stack.callback(process.kill)
    return Worker(process)


async def one_round(
    workers: list[Worker], take: Take, random: Random, outcomes: Counter[str]
) -> None:
    """Stop all of them, let another have their keys, and have them go on."""

    async def stop(worker: Worker) -> None:
        await worker.begin()
        await asyncio.sleep(random.uniform(0, BODY_SECONDS / 2))
        worker.send(signal.SIGSTOP)

    await asyncio.gather(*map(stop, workers))
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            for worker in workers:
                await take(worker.key)
                worker.taken_at = monotonic()
    finally:
        for worker in workers:
            worker.send(signal.SIGCONT)
    outcomes.update(await asyncio.gather(*(worker.outcome() for worker in workers)))


async def taken(key: str, lookup: Lookup, carts: OwnedState[int]) -> None:
    """The owner that is not stopped has the key, and has served it."""
    while True:
        try:
            async with carts.at(key) as it:
                it.value = 2
        except (NotOwner, LeaseLost):
            await lookup.wait(key, not_at=lookup.find(key), timeout=0.1)
        else:
            return


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    kept = [judged("turns", of_turns()), judged("turns of entities", of_rooms())]
    return 0 if all(kept) else 1


def judged(what: str, measured: Coroutine[None, None, Counter[str]]) -> bool:
    """Whether nothing left a process after another owner has had the key."""
    outcomes = asyncio.run(measured)
    for outcome, count in sorted(outcomes.items()):
        print(f"{count} of {STOPPED * ROUNDS} {what}: {outcome}")
    left, stopped = outcomes["answered"] + outcomes["framed"], outcomes["lost"]
    is_kept = left == 0 and stopped > 0
    said = f"{what}: answers and frames after another owner has had the key"
    print(line(said, str(left), "0", is_kept=is_kept))
    return is_kept


if __name__ == "__main__":
    sys.exit(main())
