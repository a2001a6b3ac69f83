"""A request to a keyed entity, beside the same by hand on FastAPI with locks in Redis.

One service behind uvicorn, in one process, with a cart for each user: in a dict under a lock, which
is what one process alone can do; as an entity; and as it is written by hand with `redis-py`: take
the user's lock, read the cart, write it, release the lock.
"""

import asyncio
import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import aiohttp

from benchmarks._quick import sized
from benchmarks._report import Section, Table, prose
from benchmarks.peers.servers import Server, running_redis, why_not

ROUNDS, REQUESTS = sized(40, 4), sized(400, 150)
AT_ONCE = 8
USERS = 100
TEXT = """FastAPI behind one uvicorn worker; {at_once} requests at a time for {users} users,
{rounds} rounds of {requests} requests that take turns. CPU is of the service and of Redis
together, for each request, in the first quartile of the rounds; latency is over all of them. The
entity's cart is in the memory of the process that owns the user, under a lease; Redis keeps it in
the memory of its own. A lock in Redis whose holder was stopped for longer than its time to live
lets two requests work on one cart: see *Two holders at once*. An entity can be [kept in a
database](../docs/guides/entities.md) too; that is not measured here."""
TITLES = {
    "dict": "a dict, under an asyncio lock (one process only)",
    "entity": "tenure: an entity",
    "redis": "by hand: redis-py Lock, GET, SET",
}


class Round(NamedTuple):
    """The cost of a round's requests."""

    cpu: float
    """Seconds for each."""
    rate: float
    latencies: list[float]


class Asker:
    """Asks the services in turn."""

    def __init__(self, session: aiohttp.ClientSession, url: str, redis: Server | None) -> None:
        self._session = session
        self._url = url
        self._redis = redis

    async def round(self, service: str) -> Round:
        before, began = await self._cpu(), perf_counter()
        numbers, latencies = iter(range(REQUESTS)), []

        async def ask() -> None:
            for number in numbers:
                url = f"{self._url}/{service}/user-{number % USERS}?article=tea-{number}"
                asked = perf_counter()
                async with self._session.post(url) as response:
                    response.raise_for_status()
                    await response.read()
                latencies.append(perf_counter() - asked)

        await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
        took = perf_counter() - began
        return Round((await self._cpu() - before) / REQUESTS, REQUESTS / took, latencies)

    async def _cpu(self) -> float:
        async with self._session.get(f"{self._url}/cpu") as response:
            used = float(await response.json())
        return used + (self._redis.cpu_seconds() if self._redis else 0.0)


async def measure(
    services: list[str], redis: Server | None, rounds: int, tell: Callable[[str], None]
) -> dict[str, list[Round]]:
    """The rounds of each service, in turn."""
    address = [redis.url] if redis else []
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks._counters", *address), stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout
    found: dict[str, list[Round]] = {service: [] for service in services}
    try:
        port = int(await server.stdout.readline())
        async with aiohttp.ClientSession() as session:
            asker = Asker(session, f"http://127.0.0.1:{port}", redis)
            for number in range(rounds + 1):
                tell(f"round {number} of {rounds}")
                for service, those in found.items():
                    one = await asker.round(service)
                    if number:  # the first warms up
                        those.append(one)
    finally:
        server.terminate()
        await server.wait()
    return found


def run(tell: Callable[[str], None], rounds: int = ROUNDS) -> Section:
    """All ways."""
    missing = why_not("redis")
    notes = [f"{TITLES['redis']}: skipped, {missing}"] if missing else []
    with TemporaryDirectory(prefix="tenure-bench-") as directory, ExitStack() as stack:
        opened = nullcontext() if missing else running_redis(Path(directory))
        redis = stack.enter_context(opened)
        services = [each for each in TITLES if redis or each != "redis"]
        found = asyncio.run(measure(services, redis, rounds, tell))
    cpu = {name: quantiles(each.cpu for each in those)[0] for name, those in found.items()}
    rows = []
    for name, those in found.items():
        late = quantiles((each for one in those for each in one.latencies), n=100)
        rates = median(each.rate for each in those)
        cells = [f"{cpu[name] * 1e6:.0f}", f"{cpu[name] / cpu['entity']:.2f}", f"{rates:,.0f}"]
        rows.append([TITLES[name], *cells, f"{late[49] * 1000:.1f}", f"{late[98] * 1000:.1f}"])
    head = ["", "CPU, µs", "times the entity's", "requests/s", "median, ms", "p99, ms"]
    return Section(
        title="A request to an entity",
        text=prose(TEXT.format(at_once=AT_ONCE, users=USERS, rounds=rounds, requests=REQUESTS)),
        tables=[Table(head, rows)],
        notes=notes,
    )
