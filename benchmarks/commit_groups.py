"""How many commits a second a file of SQLite keeps: calls of 64 keys at once, of one key, and bare
SQLite.

A call of an entity with `store="sqlite:..."` returns when its row is durable. Calls that wait at
the same time share a transaction, and so a sync. So 64 keys bring many times the commits of one
key, whose calls follow each other. Bare SQLite does the same without any of us: one thread updates
rows of as many bytes, 64 in each transaction, in a file with the same settings. All three take
turns in rounds that alternate, in one process; what is compared is how many commits end in a
second.

Bounds: five times the commits of one key, and 0.8 of bare SQLite. The quick form does not judge the
second: a call takes the processor, and bare SQLite the disk, so on a machine that does other things
it compares these.
"""

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import monotonic

import msgspec

from benchmarks._quick import QUICK, at_least, sized
from benchmarks._rounds import line, ratio
from tenure import Entities, Entity
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster

KEYS = 64
ROUNDS = sized(15, 5)
SECONDS = sized(4, 1)
OF_ONE_KEY, OF_BARE_SQLITE = at_least(5), 0.0 if QUICK else 0.8
ROW_BYTES = 240
"""About what is kept of an entity whose state has 200 bytes."""
Rate = Callable[[], Awaitable[float]]


class Padded(msgspec.Struct):
    """A state of 200 bytes, of which a number changes."""

    number: int = 0
    padding: str = "x" * 190


class PaddedEntity(Entity[Padded]):
    """The entity of a key."""

    async def put(self) -> None:
        """Change the state."""
        self.state.number += 1


async def rate_of_calls(entities: Entities[PaddedEntity], keys: int) -> float:
    """How many calls end in a second, with one after the other of each key."""
    began, done = monotonic(), 0
    ends_at = began + SECONDS

    async def call(key: str) -> None:
        nonlocal done
        while monotonic() < ends_at:
            await entities[key].put()
            done += 1

    await asyncio.gather(*(call(f"key-{i}") for i in range(keys)))
    return done / (monotonic() - began)


class BareRows:
    """Rows in a file of SQLite, as whoever wrote it by hand would keep them."""

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = FULL")
        self._file.execute("CREATE TABLE rows (key BLOB PRIMARY KEY, data BLOB) WITHOUT ROWID")
        rows = [(b"key-%d" % i, b"") for i in range(KEYS)]
        self._file.executemany("INSERT INTO rows VALUES (?, ?)", rows)

    def rate(self) -> float:
        """How many rows are kept in a second."""
        began, done = monotonic(), 0
        while monotonic() < began + SECONDS:
            self._file.execute("BEGIN IMMEDIATE")
            for i in range(KEYS):
                data = (b"%d" % done).ljust(ROW_BYTES, b"x")
                self._file.execute("UPDATE rows SET data = ? WHERE key = ?", (data, b"key-%d" % i))
                done += 1
            self._file.execute("COMMIT")
        return done / (monotonic() - began)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


async def measure(place: Path) -> dict[str, list[float]]:
    """The rates of all three, in alternating rounds."""
    bare = BareRows(place / "bare")
    async with InProcessCluster(["padded"], timing=DEFAULT) as cluster:
        environment, url = ClusterEnvironment(cluster), f"sqlite:{place / 'entities'}"
        async with Entities(
            PaddedEntity, "padded", cluster.urls, store=url, watchdog=None, _environment=environment
        ) as entities:
            rates: dict[str, Rate] = {
                f"{KEYS} keys": lambda: rate_of_calls(entities, KEYS),
                "one key": lambda: rate_of_calls(entities, 1),
                "bare SQLite": lambda: asyncio.to_thread(bare.rate),
            }
            await rates[f"{KEYS} keys"]()  # warm
            found: dict[str, list[float]] = {name: [] for name in rates}
            for _ in range(ROUNDS):
                for name, rate in rates.items():
                    found[name].append(await rate())
    bare.close()
    return found


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    with tempfile.TemporaryDirectory() as place:
        found = asyncio.run(measure(Path(place)))
    for name, rates in found.items():
        print(f"{name:<12} {median(rates):8,.0f} commits a second")
    ours, one, bare = found.values()
    kept = []
    for what, other, bound in (
        (f"commits of {KEYS} keys beside one key", one, OF_ONE_KEY),
        ("beside bare SQLite with the same groups", bare, OF_BARE_SQLITE),
    ):
        times = ratio(ours, other)
        kept.append(times >= bound)
        print(line(what, f"{times:.2f}", f">= {bound:.2g}", is_kept=kept[-1]))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
