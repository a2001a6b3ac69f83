"""Owners that are stopped in the middle of a turn, past the term: none of them answers.

In each round several processes take a turn with a key of their own, and are stopped with SIGSTOP
while it is under way. Another owner, which is never stopped, gets their keys when their terms have
run out, and takes a turn with each of them. Then they go on. Whoever of them says that its turn is
done has answered for a key that another one had; all must raise LeaseLost. For what is written to a
database meanwhile, see `fencing`.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from contextlib import AsyncExitStack
from random import Random
from time import monotonic

from benchmarks._manager import running_manager
from benchmarks._quick import sized
from benchmarks._rounds import line
from tenure import LeaseLost, Lookup, NotOwner, OwnedState, Owner

STOPPED = 10
"""Processes that are stopped at a time."""
ROUNDS = sized(20, 1)
BODY_SECONDS = 0.05
LONGEST_SECONDS = 60.0
POOL = "carts"
SEED = 1


class Worker:
    """A process that takes turns when it is told to."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.key = ""
        self.taken_at = 0.0
        """When another owner had the key; all processes of a machine have one clock."""

    async def outcome(self) -> str:
        """What became of its turn. On a busy machine it may be over before the signal comes."""
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


async def measure() -> Counter[str]:
    """What came of all turns."""
    random, outcomes = Random(SEED), Counter[str]()
    with running_manager("--preset", "test", "--create-pools") as manager:
        async with AsyncExitStack() as stack:
            carts: OwnedState[int] = OwnedState(value_type=int)
            other = Owner(manager.url, pool=POOL, address="http://127.0.0.1:1", hand_off=carts)
            await stack.enter_async_context(other)
            lookup = await stack.enter_async_context(Lookup(manager.url, pool=POOL))
            workers = [await started(stack, manager.url) for _ in range(STOPPED)]
            for _ in range(ROUNDS):
                await one_round(workers, lookup, carts, random, outcomes)
    return outcomes


async def started(stack: AsyncExitStack, url: str) -> Worker:
    program = (sys.executable, "-m", "benchmarks._stopped", url)
    process = await asyncio.create_subprocess_exec(*program, stdin=PIPE, stdout=PIPE)
    stack.callback(process.kill)
    return Worker(process)


async def one_round(
    workers: list[Worker],
    lookup: Lookup,
    carts: OwnedState[int],
    random: Random,
    outcomes: Counter[str],
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
                await taken(worker.key, lookup, carts)
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
    """Measure, and print; 1 where a bound is not kept."""
    outcomes = asyncio.run(measure())
    for outcome, count in sorted(outcomes.items()):
        print(f"{count} of {STOPPED * ROUNDS} turns: {outcome}")
    answered, stopped = outcomes["answered"], outcomes["lost"]
    is_kept = answered == 0 and stopped > 0
    print(line("answers after another owner has had the key", str(answered), "0", is_kept=is_kept))
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
