"""Where the time goes: the costliest functions of what is done all day.

The manager's machine with 2,500 nodes at rest, the tables that it tells new lookups, a lookup's
machine that takes one, an owner's checks, a lookup's `find`, and the simulator of leases. Times are
of a profiled run, which takes two to five times as long as it would alone; the order is what
counts. What checks and `find`, which are a few lines each, take alone, `check` and `find` measure.
"""

import cProfile
import pstats
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

from benchmarks._quick import sized
from benchmarks.check import owner_of_half_the_keys
from benchmarks.experiments.limits import Clients, VirtualManager
from lab.worlds.lease.run import run_seed
from lab.worlds.lease.trial import Trial
from tenure.base.instants import Instant
from tenure.client.routes import RouteBoard, Routes
from tenure.protocol.lease.client_events import ManagerSaid
from tenure.protocol.lease.lookup.events import LookupAction, LookupConfig, Route
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import SyncResponse
from tenure.protocol.lease.timing import DEFAULT
from tenure.wire.lease import decode_to_lookup, encode
from tenure.wire.versions import NEWEST

OWNERS, LOOKUPS = sized(500, 50), sized(2_000, 200)
SECONDS = float(sized(30, 3))
TABLES = sized(500, 20)
TAKEN = sized(20, 3)
SEEDS = sized(8, 1)
CALLS = sized(100_000, 10_000)
SHOWN = 12
SOURCES = Path(__file__).parents[1]


def main() -> int:
    """Print a table for each."""
    manager = VirtualManager(DEFAULT)
    clients = Clients(manager, OWNERS, LOOKUPS)
    clients.join()
    for number in range(LOOKUPS):
        clients.sync(number, is_new=True)
    nodes = f"the manager's machine, {OWNERS + LOOKUPS:,} nodes"
    show(f"{nodes}, {SECONDS:g} s at rest", lambda: clients.rest(DEFAULT, SECONDS))
    show(f"{nodes}, {TABLES} new lookups", lambda: ask_for_tables(clients))
    said = manager.synced
    assert said is not None
    assert said.columns is not None
    data = encode(said, NEWEST)
    show(f"a lookup takes {said.columns.ranges:,} ranges, {TAKEN} times", lambda: take(data, said))
    owner, board = owner_of_half_the_keys(), RouteBoard()
    [route] = [each for each in take(data, said) if isinstance(each, Route)]
    board.publish(Routes(route.table))
    show(f"{CALLS:,} checks of an owner", lambda: call(owner.check))
    show(f"{CALLS:,} times find, of a lookup, the first included", lambda: call(board.find))
    show(f"{SEEDS} simulated hours of leases", simulate)
    return 0


def ask_for_tables(clients: Clients) -> None:
    """Let this many new lookups come."""
    for number in range(TABLES):
        clients.sync(number, is_new=True)


def call(asked: Callable[[str], object]) -> None:
    """Ask it of many keys."""
    for number in range(CALLS):
        asked(f"room-{number}")


def take(data: bytes, said: SyncResponse) -> list[LookupAction]:
    """A new lookup reads a whole table, each time; what it wants done at the end."""
    actions: list[LookupAction] = []
    for _ in range(TAKEN):
        lookup = LookupMachine(LookupConfig(managers=("manager",), pool="bench"), Random(1))
        lookup.advance(Instant(0))
        lookup.nonce, lookup.sequence = said.nonce, said.sequence
        told = ManagerSaid("manager", decode_to_lookup(data, NEWEST))
        actions = lookup.handle(Instant(1), told).actions
        assert lookup.in_contact
    return actions


def simulate() -> None:
    """Some seeds of an hour."""
    for seed in range(SEEDS):
        assert run_seed(Trial(seed=seed, hours=1)).violation is None


def show(what: str, run: Callable[[], object]) -> None:
    """Run it under the profiler; print what took longest by itself."""
    profile = cProfile.Profile()
    profile.runcall(run)
    stats = pstats.Stats(profile)
    rows = sorted(stats.stats.items(), key=lambda each: -each[1][2])  # type: ignore[attr-defined]
    whole = sum(each[1][2] for each in rows)
    print(f"{what}: {whole:.2f} s")
    for (file, line, name), (_, calls, alone, _, _) in rows[:SHOWN]:
        where = file.removeprefix(f"{SOURCES}/src/") if line else ""
        print(f"  {alone / whole:6.1%} {calls:>9,} calls  {name}  {where}{f':{line}' * bool(line)}")


if __name__ == "__main__":
    sys.exit(main())
