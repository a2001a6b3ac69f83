"""Frontends with near caches before Redis, as its client-side caching is meant to be used.

Each is a process: it keeps what it has read, and drops what Redis tells it to (`CLIENT TRACKING`).
Redis answers a write without waiting for any frontend, so a frontend may hit the old value until it
has read the message of Redis. Reads and writes go into the same records as in the demo.
"""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from benchmarks._redis_connection import RedisConnection
from lab.demo.caches.read_record import READ, WRITTEN, ReadRecordWriter
from lab.demo.caches.stale_reads import FIRST_VERSION
from tenure.base.instants import Instant
from tenure.runtime.clock import boot_clock

UNPACKED = Path(__file__).parent.parent / ".venv" / "redis-debian"


def redis_binary() -> str | None:
    """The Redis server of this machine, or the one that `.ci/redis` has unpacked."""
    unpacked = UNPACKED / "run"
    return str(unpacked) if unpacked.exists() else shutil.which("redis-server")


@contextmanager
def serving(binary: str, place: Path) -> Iterator[Path]:
    """A Redis at a socket of its own, which keeps nothing."""
    path = place / "redis.sock"
    said = ("--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(place))
    with (place / "redis.log").open("wb") as log:
        server = subprocess.Popen([binary, *said], stdout=log, stderr=log)
    try:
        asyncio.run(_listens(path))
        yield path
    finally:
        server.terminate()
        server.wait()


async def _listens(path: Path) -> None:
    async with asyncio.timeout(10):
        while not path.exists():  # noqa: ASYNC110, ASYNC240  # it tells nobody, and is soon there
            await asyncio.sleep(0.02)


class RedisCache(RedisConnection):
    """The values that one frontend has read, and its connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(reader, writer)
        self.entries: dict[bytes, int] = {}
        self.hits = 0

    async def get(self, key: bytes) -> int:
        found = self.entries.get(key)
        if found is not None:
            self.hits += 1
            return found
        value = await self.ask(b"GET", key)
        return int(value or FIRST_VERSION)

    def on_push(self, found: Any) -> None:  # noqa: ANN401
        """Drop what Redis says has changed."""
        for key in found[1] or list(self.entries):
            self.entries.pop(key, None)

    def on_answer(self, words: tuple[bytes, ...], found: Any) -> None:  # noqa: ANN401
        """Keep what was read."""
        if words[0] == b"GET" and found is not None:
            self.entries[words[1]] = int(found)


def frontends(path: Path, place: Path, count: int, products: int, seconds: float) -> None:
    """Let this many frontends read and write for this long."""
    context = get_context("spawn")
    processes = [
        context.Process(target=_frontend, args=(path, place, number, count, products, seconds))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a frontend ended with code {process.exitcode}")


def _frontend(*asked: Any) -> None:  # noqa: ANN401  # as it was started
    asyncio.run(_live(*asked))


async def _live(
    path: Path, place: Path, number: int, count: int, products: int, seconds: float
) -> None:
    cache = RedisCache(*await asyncio.open_unix_connection(path))
    await cache.ask(b"HELLO", b"3")
    await cache.ask(b"CLIENT", b"TRACKING", b"ON")
    record, random = ReadRecordWriter(place, f"redis-frontend-{number}"), Random(number)
    end = boot_clock() + round(seconds * 1e9)

    async def look() -> None:
        while boot_clock() < end:
            await asyncio.sleep(random.expovariate(50))
            for _ in range(20):
                product = int(products * random.random() ** 3)
                began = boot_clock()
                version = await cache.get(b"%d" % product)
                record.add(READ, product, version, began, boot_clock())

    async def write() -> None:
        versions = dict.fromkeys(range(number, products, count), FIRST_VERSION)
        while boot_clock() < end:
            await asyncio.sleep(random.expovariate(50))
            product = random.choice(list(versions))
            versions[product] += 1
            began = boot_clock()
            await cache.ask(b"SET", b"%d" % product, b"%d" % versions[product])
            record.add(WRITTEN, product, versions[product], began, boot_clock())

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(look())
        group.create_task(write())
    record.flush(Instant(boot_clock()))
    record.close()
    cache.close()
