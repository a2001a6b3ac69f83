"""Four workers of one uvicorn are restarted one after another under load, and one is killed.

Clients route each request to its owner; requests that may be repeated say so with an
Idempotency-Key, and no article may be missing or duplicated in a cart at the end. After the kill,
every key that the dead worker had must answer within a second.

Then the same with a class for each cart: clients ask any worker, by the shared port, and the calls
go to wherever a cart lives. Such a client knows no owner, so it repeats a request itself if the
connection to its worker breaks.

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

from benchmarks._quick import sized, soon
from benchmarks._rounds import line
from benchmarks._shop import KEY, POOL, Shop, shop
from tenure import route
from tenure.errors import TenureError

WORKERS = 4
REQUESTS = sized(50_000, 1_000)
AT_ONCE = 16
USERS = 500
DARK_SECONDS = soon(1.0)
AGAIN_SECONDS = 10.0
SERVED = {"owned": "app", "entities": "app_of_entities"}


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
        """Send at least this many requests, and go on until the restart is over."""

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


async def again(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Ask until there is an answer: another worker may have taken the port over."""
    deadline = monotonic() + AGAIN_SECONDS
    while True:
        try:
            return await handler(request)
        except aiohttp.ClientConnectionError:
            if monotonic() > deadline:
                raise
            await asyncio.sleep(0.01)


async def measure(requests: int, served: str) -> Measured:
    """Restart under load, look into the carts, and kill."""
    async with shop(WORKERS, served) as service:
        is_routed = served == "app"
        way = route(service.lookup, key=KEY) if is_routed else again
        url = f"http://{POOL}" if is_routed else service.url
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(url, middlewares=[way], connector=connector) as session:
            load = Load(session)
            before = await service.owners()
            await load.run(requests, asyncio.ensure_future(restart(service, before)))
            for each in load.errors[:5]:
                print(f"  {each}")
            wrong = await load.wrong()
            dark = await kill_one(session)
    return Measured(load.calls, load.failed, wrong, len(before), dark)


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    parser = ArgumentParser()
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--only", choices=tuple(SERVED))
    asked = parser.parse_args()
    kept = []
    for name, served in SERVED.items():
        if asked.only in (None, name):
            print(f"-- {name}", flush=True)
            kept.append(is_kept(asyncio.run(measure(asked.requests, served))))
    return 0 if all(kept) else 1


def is_kept(found: Measured) -> bool:
    """Print the figures; whether every bound is kept."""
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
    for what, figure, bound, is_one_kept in figures:
        print(line(what, figure, bound, is_kept=is_one_kept))
    return all(is_one_kept for *_, is_one_kept in figures)


if __name__ == "__main__":
    sys.exit(main())
