"""What routing costs a client, and what relaying costs a server.

A request through the routing client beside a plain one, to the same server, in turn. And the
processor time of two workers for requests that are relayed from one to the other, beside requests
that the first serves itself, over the same connection, in rounds that alternate. Of each the first
quartile of its rounds counts: whatever else the machine does makes a round dearer, and never
cheaper.
"""

import asyncio
import sys
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import NamedTuple

import aiohttp
from aiohttp import web

from benchmarks._quick import at_most, sized
from benchmarks._rounds import line, ratio
from benchmarks._shop import shop
from tenure import route
from tenure.base.instants import SECOND_NS
from tenure.testing.cluster import InProcessCluster

ROUNDS = sized(41, 11)
REQUESTS = sized(200, 50)
"""The requests of a round."""
RELAYED_ROUNDS = sized(40, 8)
RELAYED = sized(200, 50)
"""The relayed requests of a round."""
ROUTED_BOUND = at_most(1.15)
RELAYED_BOUND = at_most(2.2)


class Measured(NamedTuple):
    """The two ratios."""

    routed: float
    relayed: float


async def routed() -> float:
    """Return how many times as long a request through the routing takes as a plain one."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="[]")

    app = web.Application()
    app.router.add_get("/carts/{user}", answer)
    runner = web.AppRunner(app, access_log=None)
    async with AsyncExitStack() as stack:
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = "http://{}:{}".format(*runner.addresses[0][:2])
        cluster = await stack.enter_async_context(InProcessCluster(["carts"]))
        owner = await stack.enter_async_context(cluster.owner(url))
        lookup = await stack.enter_async_context(cluster.lookup())
        await owner.ready()
        routing = route(lookup, key="/carts/{user}")
        plain = await stack.enter_async_context(aiohttp.ClientSession(url))
        through = await stack.enter_async_context(
            aiohttp.ClientSession("http://carts", middlewares=[routing])
        )
        times: dict[str, list[float]] = {"plain": [], "through": []}
        for _ in range(ROUNDS):
            for name, session in (("plain", plain), ("through", through)):
                times[name].append(await timed(session))
    return ratio(times["through"], times["plain"])


async def ask(session: aiohttp.ClientSession) -> None:
    """One request."""
    async with session.get("/carts/ann") as response:
        await response.read()


async def timed(session: aiohttp.ClientSession) -> float:
    """The seconds of a round."""
    began = perf_counter()
    for _ in range(REQUESTS):
        await ask(session)
    return perf_counter() - began


async def relayed() -> float:
    """Return how many times the processor time of a direct request a relayed one takes, over both
    workers.
    """
    async with shop(2) as service:
        one = aiohttp.TCPConnector(limit=1)  # all requests reach the worker of this connection
        async with aiohttp.ClientSession(service.url, connector=one) as session:
            here = await number(session, "/pid")
            by_pid: defaultdict[int, list[str]] = defaultdict(list)
            for n in range(100):
                by_pid[await number(session, f"/carts/user-{n}/pid")].append(f"user-{n}")
            [there] = set(by_pid) - {here}
            spent: defaultdict[int, list[float]] = defaultdict(list)
            for _ in range(RELAYED_ROUNDS + 1):
                for pid in (here, there):
                    before = cpu(here) + cpu(there)
                    for n in range(RELAYED):
                        user = by_pid[pid][n % len(by_pid[pid])]
                        async with session.get(f"/carts/{user}") as response:
                            await response.read()
                    spent[pid].append(cpu(here) + cpu(there) - before)
            assert await number(session, "/pid") == here
    relayed, direct = (quantiles(spent[pid][1:])[0] for pid in (there, here))  # one warms up
    return relayed / direct


async def number(session: aiohttp.ClientSession, path: str) -> int:
    """Return the number that it answers."""
    async with session.get(path) as response:
        return int(await response.text())


def cpu(pid: int) -> float:
    """The processor seconds of a process, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text("ascii").split()[0]) for each in threads) / SECOND_NS


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    found = Measured(asyncio.run(routed()), asyncio.run(relayed()))
    figures = [
        ("a routed request, to a plain one", found.routed, ROUTED_BOUND),
        ("processor time of a relayed request, to a direct one", found.relayed, RELAYED_BOUND),
    ]
    for what, figure, bound in figures:
        print(line(what, f"{figure:.2f}", f"<= {bound:g}", is_kept=figure <= bound))
    return 0 if all(figure <= bound for _, figure, bound in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
