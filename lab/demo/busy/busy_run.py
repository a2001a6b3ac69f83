"""What happens in the busy pool, again and again: a crash, then a deploy that takes two minutes.

`make busy` runs it beside a manager, a store and a gateway of `tenure run`. Whoever opens the
dashboard finds a hot key, a crash of the last minutes, and versions side by side.
"""

import asyncio
import signal
import socket
from contextlib import suppress
from random import Random

from lab.demo.busy.visitors import visit
from lab.demo.busy.workers import NAMES, Workers

STEP_SECONDS = 30.0
"""How long a deploy waits between two workers, as one does that looks whether all is well."""
DOWN_PART = 1 / 3
"""The part of that for which a worker that was killed stays away."""


async def run_busy(port: int, gateway: str, step: float) -> None:
    """Be the pool and its visitors, until a signal. Workers take their connections at `port`."""
    ending = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    random = Random(1)
    with socket.create_server(("127.0.0.1", port)) as listener:
        workers = Workers(listener)
        going_on = [
            asyncio.create_task(_troubles(workers, random, step)),
            asyncio.create_task(visit(gateway, random)),
        ]
        ended = asyncio.create_task(ending.wait())
        try:
            done, _ = await asyncio.wait({ended, *going_on}, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()  # raises what has ended it, unless that was the signal
        finally:
            for task in going_on:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await workers.end()


async def _troubles(workers: Workers, random: Random, step: float) -> None:
    for name in NAMES:
        await workers.start(name)
    while True:
        await asyncio.sleep(step)
        victim = random.choice(NAMES)
        await workers.kill(victim)
        await asyncio.sleep(step * DOWN_PART)
        await workers.start(victim)
        workers.version += 1
        for name in NAMES:
            await asyncio.sleep(step)
            await workers.replace(name)
