"""An owner that takes a turn for each line that it reads; for the benchmark `pauses`."""

import asyncio
import os
import sys
import time

from benchmarks.pauses import BODY_SECONDS, POOL
from tenure import LeaseLost, NotOwner, OwnedState, Owner


async def main(url: str) -> None:
    """Take turns until nobody writes to this process any more."""
    carts: OwnedState[int] = OwnedState(value_type=int)
    address = f"http://127.0.0.1:{os.getpid() % 60_000 + 1_024}"
    async with Owner(url, pool=POOL, address=address, hand_off=carts) as owner:
        while await asyncio.to_thread(sys.stdin.readline):
            print(await turn(owner, carts), flush=True)


async def turn(owner: Owner, carts: OwnedState[int]) -> str:
    """One turn with a key that is held here, and what became of it."""
    while True:
        key = await held(owner)
        try:
            async with carts.at(key) as it:
                print(f"begun {key}", flush=True)
                time.sleep(BODY_SECONDS)  # noqa: ASYNC251  # a body that computes hears of no loss
                it.value = 1
        except NotOwner:
            continue
        except LeaseLost:
            return "lost"
        return f"answered {time.monotonic()}"


async def held(owner: Owner) -> str:
    """A key that is held here."""
    while True:
        for number in range(1000):
            if owner.check(f"{os.getpid()}-{number}"):
                return f"{os.getpid()}-{number}"
        await asyncio.sleep(0.1)  # many poll on few cores


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
