"""Four workers of one uvicorn are restarted one after another under load, and one is killed.

Clients send each request to its owner by the routing; what may be carried out twice says so with an
Idempotency-Key, and no article may be missing or twice in a cart at the end. After the kill, every
key that the dead worker had must answer within a second.

    python -m benchmarks workers --requests 50000
"""

import asyncio
import os
import signal
import sys
from argparse import ArgumentParser
from collections import defaultdict
from time import monotonic
from typing import NamedTuple

import aiohttp

from benchmarks._quick import at_most, sized
from benchmarks._rounds import line
from benchmarks._shop import KEY, POOL, Shop, shop
from tenure import route
from tenure.errors import TenureError

WORKERS = 4
REQUESTS = sized(50_000, 1_000)
AT_ONCE = 16
USERS = 500
DARK_SECONDS = at_most(1.0)


class Measured(NamedTuple):
    """One run."""

    calls: int
    failed: int
    wrong: int
    """Articles that are missing, or twice in a cart."""
    restarted: int
    dark: float
    """Seconds from the kill to the answer for the last of the dead worker's keys."""


class Load:
    """Articles for carts, until it is told to stop."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self.calls = self.failed = 0
        self.kept: defaultdict[str, set[str]] = defaultdict(set)
        self.errors: list[str] = []

    async def run(self, requests: int, restarting: "asyncio.Task[None]") -> None:
        """At least so many requests, and until the restart is over."""

        async def one_after_another() -> None:
            while self.calls < requests or not restarting.done():
                self.calls += 1
                await self._one(f"user-{self.calls % USERS}", f"article-{self.calls}")

        await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
        await restarting

    async def _one(self, user: str, article: str) -> None:
        headers = {"Idempotency-Key": article}
        try:
            async with self.session.post(
                f"/carts/{user}", params={"article": article}, headers=headers
            ) as response:
                response.raise_for_status()
                await response.read()
        except (aiohttp.ClientError, OSError, TenureError) as error:
            self.failed += 1
            self.errors.append(repr(error)[:200])
        else:
            self.kept[user].add(article)

    async def wrong(self) -> int:
        """How many articles are not in their carts once."""
        found = 0
        for user, kept in self.kept.items():
            async with self.session.get(f"/carts/{user}") as response:
                cart = await response.json()
            found += len(cart) - len(set(cart)) + len(kept - set(cart))
        return found


async def restart(service: Shop, before: set[str]) -> None:
    """All workers, one after another, as uvicorn does at SIGHUP."""
    service.process.send_signal(signal.SIGHUP)
    while (await service.owners()) & before:  # noqa: ASYNC110  # nobody tells
        await asyncio.sleep(0.05)
    await service.settled(WORKERS)


async def kill_one(session: aiohttp.ClientSession) -> float:
    """Kill a worker; the seconds until all of its keys answer."""
    by_pid: defaultdict[int, list[str]] = defaultdict(list)
    for n in range(USERS):
        async with session.get(f"/carts/user-{n}/pid") as response:
            by_pid[await response.json()].append(f"user-{n}")
    pid, users = max(by_pid.items(), key=lambda each: len(each[1]))
    began = monotonic()
    os.kill(pid, signal.SIGKILL)

    async def answered(user: str) -> None:
        async with session.get(f"/carts/{user}") as response:
            response.raise_for_status()

    await asyncio.gather(*map(answered, users))
    return monotonic() - began


async def measure(requests: int) -> Measured:
    """Restart under load, look into the carts, and kill."""
    async with shop(WORKERS) as service:
        routing = route(service.lookup, key=KEY)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(
            f"http://{POOL}", middlewares=[routing], connector=connector
        ) as session:
            load = Load(session)
            before = await service.owners()
            await load.run(requests, asyncio.ensure_future(restart(service, before)))
            for each in load.errors[:5]:
                print(f"  {each}")
            wrong = await load.wrong()
            dark = await kill_one(session)
    return Measured(load.calls, load.failed, wrong, len(before), dark)


def main() -> int:
    """Measure, and print; 1 where a bound is not kept."""
    parser = ArgumentParser()
    parser.add_argument("--requests", type=int, default=REQUESTS)
    found = asyncio.run(measure(parser.parse_args().requests))
    print(f"  {found.calls:,} calls, {found.restarted} workers restarted")
    figures = [
        ("calls that failed", f"{found.failed}", "0", found.failed == 0),
        ("articles missing or doubled", f"{found.wrong}", "0", found.wrong == 0),
        (
            "seconds without an answer after kill -9",
            f"{found.dark:.2f}",
            f"<= {DARK_SECONDS:g}",
            found.dark <= DARK_SECONDS,
        ),
    ]
    for what, figure, bound, is_kept in figures:
        print(line(what, figure, bound, is_kept=is_kept))
    return 0 if all(is_kept for *_, is_kept in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
