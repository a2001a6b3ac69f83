"""Reads from a cache in the frontend, and a write that they must not outlive.

Our cache, the client-side caching of Redis, and Redis without a cache. The client of Redis is
written by hand: that of `redis-py` caches nothing before a server older than 7.4. A write of ours
is answered when no frontend can read the old value any more: all have let go of it, or the term of
those that are silent has run out. Redis answers at once, and tells its clients.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks._quick import QUICK, sized
from benchmarks._redis_readers import RedisCache
from benchmarks._report import Promise, Section, Table, prose
from benchmarks.peers.proxy import Proxy, proxied
from benchmarks.peers.servers import running_redis, why_not
from tenure import Cache, CacheServer, Volume

FRONTENDS = (4, 40) if QUICK else (4, 40, 400)
READS, WRITES = sized(20_000, 3_000), sized(30, 8)
TERM = 3.0
WATCHED_SECONDS = 2 * TERM
TEXT = """All frontends are in one process, each with a connection of its own, and hold the same
key when it is written. *A read* is of a frontend that has the key; *a write* is until it is
answered, in the median of {writes}. *Cut off*: the packets to one frontend are dropped, then the
key is written: how long the write takes, and for how long after its answer that frontend still
reads the old value, of {watched:g} s for which it was watched. The term of our cache is {term:g}
s."""


class Frontend(NamedTuple):
    """One process's way to read."""

    read: Callable[[], Awaitable[object]]
    peek: Callable[[], object]
    """Returns what it would serve now, or None if it must ask."""


class Way(NamedTuple):
    """A way to cache."""

    open: Callable[[str], Awaitable[Frontend]]
    write: Callable[[int], Awaitable[object]]
    url: str


@asynccontextmanager
async def ours(place: Path) -> AsyncIterator[Way]:
    del place
    rows = {"a": 0}
    volume = Volume(rows.get, value_type=int, term=TERM)
    async with (
        CacheServer(volume, listen="127.0.0.1:0") as server,
        AsyncExitStack() as stack,
    ):

        async def opened(url: str) -> Frontend:
            cache = await stack.enter_async_context(Cache(url, value_type=int))
            return Frontend(lambda: cache.get("a"), lambda: cache.peek("a"))

        async def write(value: int) -> None:
            async with volume.write("a"):
                rows["a"] = value

        await volume.changed("b")  # past the quiet with which a server begins
        yield Way(opened, write, server.url)


@asynccontextmanager
async def of_redis(place: Path, *, is_cached: bool) -> AsyncIterator[Way]:
    with running_redis(place) as server:
        clients: list[RedisCache] = []

        async def connected(url: str) -> RedisCache:
            client = RedisCache(*await asyncio.open_connection(*_host_and_port(url)))
            await client.ask(b"HELLO", b"3")
            clients.append(client)
            return client

        async def opened(url: str) -> Frontend:
            client = await connected(url)
            if is_cached:
                await client.ask(b"CLIENT", b"TRACKING", b"ON")

            async def read() -> object:
                if not is_cached:
                    client.entries.clear()
                return await client.get(b"a")

            return Frontend(read, lambda: client.entries.get(b"a") if is_cached else None)

        writer = await connected(server.url)

        async def write(value: int) -> object:
            return await writer.ask(b"SET", b"a", b"%d" % value)

        await write(0)
        yield Way(opened, write, server.url)
        for client in clients:
            client.close()


def _host_and_port(url: str) -> tuple[str, int]:
    host, _, port = url.rpartition(":")
    return host, int(port)


class Found(NamedTuple):
    """The results of one way."""

    read: float
    writes: list[float]
    cut_write: float
    stale: float


async def measure(way: Way, place: Path, frontends: tuple[int, ...]) -> Found:
    """Measure reads, writes with this many frontends, and a frontend that is cut off."""
    values, there, writes = count(1), [await way.open(way.url)], []
    one = there[0]
    await one.read()
    began = perf_counter()
    for _ in range(READS):
        await one.read()
    read = (perf_counter() - began) / READS
    for wanted in frontends:
        there += [await way.open(way.url) for _ in range(wanted - len(there))]
        times = []
        for _ in range(WRITES):
            for frontend in there:
                await frontend.read()
            began = perf_counter()
            await way.write(next(values))
            times.append(perf_counter() - began)
        writes.append(median(times))
    with proxied(way.url, place / "proxy") as proxy:
        return Found(read, writes, *await cut_off(way, proxy, next(values)))


async def cut_off(way: Way, proxy: Proxy, value: int) -> tuple[float, float]:
    """The seconds of the write, and those in which the old value was read after it."""
    frontend = await way.open(proxy.url)
    old = await frontend.read()
    proxy.cut()
    began = perf_counter()
    await way.write(value)
    wrote = perf_counter()
    stale = 0.0
    while (now := perf_counter()) < wrote + WATCHED_SECONDS:
        if frontend.peek() == old:
            stale = now - wrote
        await asyncio.sleep(0.01)
    return wrote - began, stale


def run(tell: Callable[[str], None], frontends: tuple[int, ...] = FRONTENDS) -> Section:
    """Each way in turn."""
    missing = why_not("redis")
    notes = [f"Redis: skipped, {missing}"] if missing else []
    ways: dict[str, Callable[[Path], Any]] = {"tenure: `Cache`": ours}
    if not missing:
        ways["Redis, client-side caching"] = lambda place: of_redis(place, is_cached=True)
        ways["Redis, without a cache"] = lambda place: of_redis(place, is_cached=False)
    found: dict[str, Found] = {}

    async def of(name: str, place: Path) -> None:
        async with ways[name](place) as way:
            found[name] = await measure(way, place, frontends)

    with TemporaryDirectory(prefix="tenure-bench-") as directory:
        for number, name in enumerate(ways):
            tell(name)
            asyncio.run(of(name, Path(directory, str(number))))
    rows = [
        [
            name,
            f"{each.read * 1e6:.2f}",
            *(f"{one * 1000:.2f}" for one in each.writes),
            f"{each.cut_write:.2f}",
            f"{each.stale:.1f}",
        ]
        for name, each in found.items()
    ]
    stale = found["tenure: `Cache`"].stale
    head = ["", "a read, µs", *(f"a write, {n} frontends, ms" for n in frontends)]
    return Section(
        title="Reads from a cache, and writes",
        text=prose(TEXT.format(writes=WRITES, watched=WATCHED_SECONDS, term=TERM)),
        tables=[Table([*head, "cut off: the write, s", "old value read after it, s"], rows)],
        promises=[Promise("old values read after a write", f"{stale:.1f} s", "0", stale == 0)],
        notes=notes,
    )
