"""The cost of asking "do I still own it?" before serving a request.

In one process, in turn, of keys that are held. What reads memory is measured against a look into a
dict and at the clock, without which nothing can know that a lease has not run out.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks._pictures import Bar, Group, draw_bars
from benchmarks._quick import sized
from benchmarks._report import Picture, Section, Table, prose
from benchmarks._rounds import measure
from benchmarks.peers.holders import KEYS, POOL, OfEtcd, OfPostgres, OfRedis
from benchmarks.peers.servers import TITLES, serving, there
from tenure import Owner
from tenure.runtime.clock import boot_clock

TERM = 13.0
ROUNDS = sized(41, 7)
LOCAL, ASKED = 2_000, sized(100, 30)
"""Checks of a round, of those that read memory and of those that ask a server."""
TEXT = """Microseconds of wall time for each check, in the median of {rounds} rounds that take
turns, in one process on one machine: a round trip to another machine adds its own. *Survives a
pause*: the answer is still right if the process was stopped, or cut off, for longer than its term
just before it asked; a flag that another thread keeps is not, until that thread has run. An
answer of a server was right when it was sent, and nobody knows for how long it stays so. `holds`
asks once more when the work is done, whether the key was held all the while: no other has
that."""


class Way(NamedTuple):
    """A way to ask."""

    title: str
    survives: str
    ask: Callable[[Any], object]
    checks: int


@contextmanager
def of_tenure(url: str) -> Iterator[list[Way]]:
    with Owner(url, pool=POOL, address="http://bench") as owner:
        while not all(map(owner.check, KEYS)):
            pass
        check, holds = owner.check, owner.holds
        leases = {key: lease for key in KEYS if (lease := check(key))}
        yield [
            Way("tenure: `check`", "yes", check, LOCAL),
            Way("tenure: `holds`, after the work", "yes", lambda key: holds(leases[key]), LOCAL),
        ]


@contextmanager
def of_zookeeper(url: str) -> Iterator[list[Way]]:
    from kazoo.client import KazooClient  # noqa: PLC0415  # only where it is asked for

    client = KazooClient(url, timeout=TERM)
    client.start()
    lock = client.Lock("/lock", "me")
    lock.acquire()
    partitioner = client.SetPartitioner("/bench", set=tuple(KEYS), time_boundary=0.1)
    while not partitioner.acquired:
        partitioner.wait_for_acquire(1)
    held = frozenset(partitioner)
    yield [
        Way(
            "kazoo: `SetPartitioner.acquired`, and a set",
            "no",
            lambda key: partitioner.acquired and key in held,
            LOCAL,
        ),
        Way("kazoo: `Lock.is_acquired`", "no", lambda _: lock.is_acquired, LOCAL),
        Way("kazoo: `Lock.contenders`, asks the server", "yes", lambda _: lock.contenders(), ASKED),
    ]
    client.stop()


@contextmanager
def of_redis(url: str) -> Iterator[list[Way]]:
    holder = OfRedis(url, "member-0", TERM)
    lock: Any = holder.acquire(0)
    yield [Way("redis-py: `Lock.owned`, asks the server", "yes", lambda _: lock.owned(), ASKED)]


@contextmanager
def of_etcd(url: str) -> Iterator[list[Way]]:
    holder = OfEtcd(url, "member-0", TERM)
    title = "etcd: range of the key, asks the server (JSON)"
    yield [Way(title, "yes", lambda _: holder.members(), ASKED)]


@contextmanager
def of_postgres(url: str) -> Iterator[list[Way]]:
    holder = OfPostgres(url, "member-0", TERM)
    title = "PostgreSQL: `SELECT 1` in the session, asks the server"
    yield [Way(title, "yes", lambda _: holder.renew(), ASKED)]
    holder.go()  # the server waits for it to go


OPEN = {
    "tenure": of_tenure,
    "zookeeper": of_zookeeper,
    "redis": of_redis,
    "etcd": of_etcd,
    "postgres": of_postgres,
}


def _loop(ask: Callable[[Any], object]) -> Callable[[Sequence[Any]], None]:
    def loop(keys: Sequence[Any]) -> None:
        for key in keys:
            ask(key)

    return loop


def bare() -> Way:
    """Measure the steps that no check can do without."""
    held, clock = dict.fromkeys(KEYS, 1), boot_clock

    def ask(key: int) -> bool:
        return key in held and clock() > 0

    return Way("a dict and the clock", "", ask, LOCAL)


def run(tell: Callable[[str], None], rounds: int = ROUNDS) -> Section:
    """All ways in turn."""
    notes: list[str] = []
    ways = [bare()]
    with TemporaryDirectory(prefix="tenure-bench-") as directory, ExitStack() as stack:
        for system in there(notes):
            tell(f"{TITLES[system]}: starting")
            server = stack.enter_context(serving(system, Path(directory, system), TERM))
            ways += stack.enter_context(OPEN[system](server.url))
        tell(f"{rounds} rounds")
        times = measure(
            {way.title: _loop(way.ask) for way in ways},
            {way.title: _many(way.checks) for way in ways},
            rounds,
        )
    return section([(way, median(times[way.title]) / 1000) for way in ways], notes, rounds)


def _many(count: int) -> list[int]:
    return [KEYS[n % len(KEYS)] for n in range(count)]


def section(found: Iterable[tuple[Way, float]], notes: list[str], rounds: int) -> Section:
    """The table and the picture."""
    measured = list(found)
    [ours] = [us for way, us in measured if way.title == "tenure: `check`"]
    rows = [[way.title, f"{us:.2f}", f"{us / ours:.1f}", way.survives] for way, us in measured]
    bars = [Bar(way.title.replace("`", ""), us, f"{us:.2f} µs") for way, us in measured]
    title = "Do I still own it? One check"
    return Section(
        title="Do I still own it?",
        text=prose(TEXT.format(rounds=rounds)),
        tables=[Table(["", "µs", "times `check`", "survives a pause"], rows)],
        pictures=[Picture("check.svg", title, draw_bars(title, "µs", [Group("", bars)]))],
        notes=notes,
    )
