"""How much more a whole request costs if its cart is owned state, found by a routing client.

One aiohttp service in a process of its own has the same carts twice: in a dict, under a lock for
each; and in an OwnedState, which checks the lease, takes turns, and stores bytes. A client asks the
first as any client does, and the second once so, and once by way of `route`, which finds the owner
of each key. So there are three ways for a request to go, in rounds that alternate:

    plain    any client, the dict
    owned    any client, the owned state
    whole    the routing client, the owned state

What is compared is the CPU time of service and client together, and beside it the time on the wall.
Of each way the first quartile of its rounds counts: whatever else the machine does makes a round
dearer, and never cheaper.

Bound: the whole takes 15 % more CPU time than the plain request.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import quantiles
from time import perf_counter, process_time
from typing import NamedTuple

import aiohttp

from benchmarks._carts import POOL
from benchmarks._manager import running_manager
from benchmarks._quick import at_most, sized
from benchmarks._rounds import line
from tenure import Lookup, route

ROUNDS = sized(80, 12)
REQUESTS = sized(300, 100)
AT_ONCE = 8
USERS = 100
BOUND = at_most(1.15)


class Cost(NamedTuple):
    """Seconds for a request."""

    service: float
    client: float
    wall: float

    @property
    def cpu(self) -> float:
        """Return the CPU time of both processes."""
        return self.service + self.client


class Way:
    """How requests go, and what each of its rounds has cost."""

    def __init__(self, session: aiohttp.ClientSession, service: str, cpu_url: str) -> None:
        self._session = session
        self._service = service
        self._cpu_url = cpu_url
        self.costs: list[Cost] = []

    async def go(self) -> None:
        """One round."""
        service = await self._cpu()
        client, wall = process_time(), perf_counter()
        numbers = iter(range(REQUESTS))

        async def ask() -> None:
            for number in numbers:
                path = f"/{self._service}/user-{number % USERS}?article=tea-{number}"
                async with self._session.post(path) as response:
                    response.raise_for_status()
                    await response.read()

        await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
        client, wall = process_time() - client, perf_counter() - wall
        service = await self._cpu() - service
        self.costs.append(Cost(*(each / REQUESTS for each in (service, client, wall))))

    async def _cpu(self) -> float:
        async with aiohttp.request("GET", self._cpu_url) as response:
            return float(await response.json())

    def usual(self) -> Cost:
        """The first quartile of each cost."""
        return Cost(*(quantiles(each)[0] for each in zip(*self.costs, strict=True)))


@asynccontextmanager
async def service(manager: str) -> AsyncIterator[str]:
    """The service's URL, until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks._carts", manager),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()


async def measure() -> dict[str, Cost]:
    """Measure the cost of a request on each way."""
    with running_manager("--create-pools") as manager:
        async with (
            service(manager.url) as url,
            Lookup(manager.url, pool=POOL) as lookup,
            aiohttp.ClientSession(url) as plain,
            aiohttp.ClientSession(
                "http://carts", middlewares=[route(lookup, key="/owned/{user}")]
            ) as routed,
        ):
            ways = {
                "plain": Way(plain, "dict", f"{url}/cpu"),
                "owned": Way(plain, "owned", f"{url}/cpu"),
                "whole": Way(routed, "owned", f"{url}/cpu"),
            }
            for _ in range(ROUNDS + 1):
                for way in ways.values():
                    await way.go()
    for way in ways.values():
        del way.costs[0]  # it has warmed up
    return {name: way.usual() for name, way in ways.items()}


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    found = asyncio.run(measure())
    for name, cost in found.items():
        service_us, client_us, wall_us = (each * 1e6 for each in cost)
        print(f"{name}: service {service_us:.1f} µs, client {client_us:.1f}, wall {wall_us:.1f}")
    plain, owned, whole = found["plain"], found["owned"], found["whole"]
    times = whole.cpu / plain.cpu
    is_kept = times <= BOUND
    print(
        line(
            "CPU time of the whole beside a plain one",
            f"{times:.3f}",
            f"<= {BOUND:g}",
            is_kept=is_kept,
        )
    )
    print(f"  on the wall {whole.wall / plain.wall:.3f}")
    print(f"  owned state alone, in the service {owned.service / plain.service:.3f}")
    print(f"  routing alone, in the client {whole.client / owned.client:.3f}")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
