"""A durable value of a key, written and read back: our store, and the databases beside it.

Every write is on the disk before it is answered. All databases are open at once, on one disk, and
take turns; each does one thing at a time for one client, and for sixteen at once.
"""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from benchmarks._pictures import Bar, Group, draw_bars
from benchmarks._quick import sized
from benchmarks._report import Picture, Section, Table, prose
from benchmarks.peers.servers import running_redis, serving, why_not
from tenure import Family
from tenure import Table as Rows
from tenure.cli.demo.ports import free_ports
from tenure.columns.opening import open_store
from tenure.columns.store import ColumnStore
from tests.integration.cassandra.server import cassandra
from tests.integration.cassandra.server import why_not as why_no_cassandra
from tests.integration.cassandra.thrift import Column, Slice, ThriftClient

VALUE = bytes(100)
TURNS, SECONDS = sized(7, 2), sized(10, 3) / 10
CLIENTS = 16
TABLE = Rows("t", kind="hashed", f=Family(columns=str))
TEXT = """Values of 100 bytes. A write is answered when the disk has it: RocksDB and its log
synced by our store; SQLite in WAL mode with `synchronous=FULL`; Redis with `appendfsync always`;
PostgreSQL as it is by default; Cassandra 1.2.0 with a periodic sync, as it is by default, so its
writes are *not* on the disk yet. Our three nodes answer at `quorum`, on one disk here. One
client, and {clients} at once; {turns} turns of {seconds:g} s each, in the median; the disk of
this machine decides much. All clients are Python. *A late former owner could overwrite*: what a
process can still do that was stopped before its write, when another one has the key (`python -m
benchmarks fencing` shows it)."""


class Turn(NamedTuple):
    """The operations of one turn."""

    rate: float
    seconds: list[float]
    """The seconds of each operation."""


class Database(Protocol):
    """One that keeps values by key."""

    def turn(self, what: str, clients: int, seconds: float) -> Turn:
        """Write or read, with this many at once, for this long."""


class Calls(NamedTuple):
    """The calls of one client of a database."""

    write: Callable[[str], object]
    read: Callable[[str], object]


class Threads:
    """Blocking clients: each has a thread."""

    def __init__(self, connect: Callable[[], Calls]) -> None:
        self._clients = [connect() for _ in range(CLIENTS)]
        self._numbers = count()

    def turn(self, what: str, clients: int, seconds: float) -> Turn:
        began = time.monotonic()

        def work(calls: Calls) -> list[float]:
            call: Callable[[str], object] = getattr(calls, what)
            found: list[float] = []
            before = time.monotonic()
            while before < began + seconds:
                call(f"key-{next(self._numbers) % 1_000}")
                after = time.monotonic()
                found.append(after - before)
                before = after
            return found

        with ThreadPoolExecutor(clients) as pool:
            times = [each for found in pool.map(work, self._clients[:clients]) for each in found]
        return Turn(len(times) / (time.monotonic() - began), times)


class Ours:
    """Our store, whose clients are coroutines."""

    def __init__(self, loop: asyncio.AbstractEventLoop, store: ColumnStore) -> None:
        self._loop = loop
        self._store = store
        self._numbers = count()

    def turn(self, what: str, clients: int, seconds: float) -> Turn:
        began = time.monotonic()

        async def work() -> list[float]:
            found: list[float] = []
            before = time.monotonic()
            while before < began + seconds:
                key = f"key-{next(self._numbers) % 1_000}"
                if what == "write":
                    await self._store.insert(TABLE, key, {"f": {"value": VALUE}})
                else:
                    await self._store.get(TABLE, key, "f", "value")
                after = time.monotonic()
                found.append(after - before)
                before = after
            return found

        async def all_of_them() -> list[list[float]]:
            return list(await asyncio.gather(*(work() for _ in range(clients))))

        found = self._loop.run_until_complete(all_of_them())
        times = [each for one in found for each in one]
        return Turn(len(times) / (time.monotonic() - began), times)


@contextmanager
def ours(url: str) -> Iterator[Database]:
    with asyncio.Runner() as runner:
        opening = open_store(url, TABLE)
        store = runner.run(opening.__aenter__())
        try:
            yield Ours(runner.get_loop(), store)
        finally:
            runner.run(opening.__aexit__(None, None, None))


@contextmanager
def embedded(place: Path) -> Iterator[Database]:
    with ours(f"rocksdb:{place}") as database:
        yield database


@contextmanager
def three_nodes(place: Path) -> Iterator[Database]:
    said = ("--nodes", "3", "--data", str(place), "--port", str(free_ports(4)[0]), "--json")
    command = [sys.executable, "-m", "tenure", "columns", "up", *said]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, text=True) as up:
        assert up.stdout is not None
        try:
            with ours(json.loads(up.stdout.readline())["url"]) as database:
                yield database
        finally:
            up.send_signal(signal.SIGTERM)


@contextmanager
def in_sqlite(place: Path) -> Iterator[Database]:
    def connect() -> Calls:
        database = sqlite3.connect(place, timeout=30, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE IF NOT EXISTS t (k TEXT PRIMARY KEY, v BLOB)")
        write, read = "INSERT OR REPLACE INTO t VALUES (?, ?)", "SELECT v FROM t WHERE k = ?"
        return Calls(
            lambda key: database.execute(write, (key, VALUE)),
            lambda key: database.execute(read, (key,)).fetchone(),
        )

    yield Threads(connect)


@contextmanager
def in_redis(place: Path) -> Iterator[Database]:
    import redis  # noqa: PLC0415  # only where it is asked for

    with running_redis(place, "--appendonly", "yes", "--appendfsync", "always") as server:
        host, _, port = server.url.rpartition(":")

        def connect() -> Calls:
            client = redis.Redis(host, int(port))
            return Calls(lambda key: client.set(key, VALUE), client.get)

        yield Threads(connect)


@contextmanager
def in_postgres(place: Path) -> Iterator[Database]:
    import psycopg  # noqa: PLC0415  # only where it is asked for

    with serving("postgres", place, 13) as server, ExitStack() as stack:
        write = "INSERT INTO t VALUES (%s, %s) ON CONFLICT (k) DO UPDATE SET v = excluded.v"

        def connect() -> Calls:
            database: Any = stack.enter_context(psycopg.connect(server.url, autocommit=True))
            database.execute("CREATE TABLE IF NOT EXISTS t (k TEXT PRIMARY KEY, v BYTEA)")
            return Calls(
                lambda key: database.execute(write, (key, VALUE)),
                lambda key: database.execute("SELECT v FROM t WHERE k = %s", (key,)).fetchone(),
            )

        yield Threads(connect)


@contextmanager
def in_cassandra(place: Path) -> Iterator[Database]:
    with cassandra(place) as running, ExitStack() as stack:
        is_first = True

        def connect() -> Calls:
            nonlocal is_first
            client = stack.enter_context(ThriftClient(running.host, running.thrift_port))
            if is_first:
                client.add_keyspace("k", {"f": ("BytesType", None)})
                is_first = False
            client.set_keyspace("k")

            def write(key: str) -> None:
                client.mutate(key.encode(), {"f": [Column(b"v", VALUE, time.time_ns() // 1000)]})

            return Calls(write, lambda key: client.slice(key.encode(), "f", Slice(most=1)))

        yield Threads(connect)


FENCED = "nothing, in a table with `fenced_by`"
ANY = "everything"
DATABASES: dict[str, tuple[Callable[[Path], Any], Callable[[], str | None], str]] = {
    "tenure's store, embedded": (embedded, lambda: None, FENCED),
    "tenure's store, three nodes": (three_nodes, lambda: None, FENCED),
    "SQLite": (in_sqlite, lambda: None, f"{ANY}; nothing with our `SqliteFence`"),
    "Redis, AOF always": (in_redis, lambda: why_not("redis"), ANY),
    "PostgreSQL": (
        in_postgres,
        lambda: why_not("postgres"),
        f"{ANY}; nothing with our `PostgresFence`",
    ),
    "Cassandra 1.2.0 (periodic sync)": (in_cassandra, why_no_cassandra, ANY),
}
KINDS = (("write", 1), ("write", CLIENTS), ("read", 1), ("read", CLIENTS))


def run(tell: Callable[[str], None], turns: int = TURNS, seconds: float = SECONDS) -> Section:
    """All databases, in turns."""
    notes: list[str] = []
    found: dict[str, dict[tuple[str, int], list[Turn]]] = {}
    with TemporaryDirectory(prefix="tenure-bench-") as directory, ExitStack() as stack:
        there: dict[str, Database] = {}
        for n, (name, (opened, why, _)) in enumerate(DATABASES.items()):
            if missing := why():
                notes.append(f"{name}: skipped, {missing}")
                continue
            tell(f"{name}: starting")
            there[name] = stack.enter_context(opened(Path(directory, str(n))))
            found[name] = {kind: [] for kind in KINDS}
        for number in range(turns + 1):
            tell(f"turn {number} of {turns}")
            for name, database in there.items():
                for kind in KINDS:
                    turn = database.turn(*kind, seconds)
                    if number:  # the first warms up
                        found[name][kind].append(turn)
    return section(found, notes, turns, seconds)


def section(
    found: dict[str, dict[tuple[str, int], list[Turn]]],
    notes: list[str],
    turns: int,
    seconds: float,
) -> Section:
    """The table and the picture."""
    rates = {
        name: {kind: median(turn.rate for turn in of[kind]) for kind in KINDS}
        for name, of in found.items()
    }
    rows = [
        [name, *(f"{rate:,.0f}" for rate in rates[name].values()), _late(of), DATABASES[name][2]]
        for name, of in found.items()
    ]
    head = ["", *(f"{what}s/s, {n} at once" if n > 1 else f"{what}s/s" for what, n in KINDS)]
    head += ["write p99, ms", "a late former owner could overwrite"]
    groups = [
        Group(
            f"{what}s a second, {clients} at once" if clients > 1 else f"{what}s a second",
            [
                Bar(name, of[what, clients], f"{of[what, clients]:,.0f}")
                for name, of in rates.items()
            ],
        )
        for what, clients in KINDS
    ]
    title = "A durable value, written and read back"
    return Section(
        title="A durable owned value",
        text=prose(TEXT.format(clients=CLIENTS, turns=turns, seconds=seconds)),
        tables=[Table(head, rows)],
        pictures=[Picture("durable.svg", title, draw_bars(title, "operations a second", groups))],
        notes=notes,
    )


def _late(of: dict[tuple[str, int], list[Turn]]) -> str:
    times = [each for turn in of["write", 1] for each in turn.seconds]
    return f"{quantiles(times, n=100)[98] * 1000:.1f}"
