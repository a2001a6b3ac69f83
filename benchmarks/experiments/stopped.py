"""Two holders at once: one is stopped for twice its term and goes on; for how long do both believe?

Both ask themselves all the time whether they hold a partition, by the call that an application
makes before it serves a request. What is counted is the time in which two of them would have said
yes: each could have answered a request, and their clients could have seen two truths.
"""

from collections.abc import Callable
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import NamedTuple

from benchmarks._quick import QUICK, sized
from benchmarks._report import Promise, Section, Table, prose
from benchmarks.peers.beliefs import together, without
from benchmarks.peers.pool import Pool
from benchmarks.peers.servers import TITLES, serving, there

TERM = 1.3 if QUICK else 13.0
ROUNDS = sized(5, 1)
TEXT = """One of three members is stopped (SIGSTOP) for {stopped:g} s, twice the term, and goes
on; {rounds} rounds. Each member asks itself every 2 ms what it holds, as its application would.
The locks are kept with care: their holder trusts none whose term has run out by its own clock,
but it sees that only when its loop comes around. A holder that asks its server each time pays for
it, as the table of checks shows, and may be stopped after the answer. PostgreSQL never has two
holders, because it never takes a lock from a holder that is stopped: its keys wait until it goes
on, however long that takes."""


class Round(NamedTuple):
    """One time that a holder was stopped."""

    both: float
    """Seconds in which two believed to hold the worst partition."""
    alone: float
    """Seconds in which nobody held that for which this was longest."""


def measure(
    system: str, url: str, place: Path, rounds: int, tell: Callable[[str], None]
) -> list[Round]:
    """Measure this many rounds, of one of three members."""
    found = []
    with Pool(system, url, TERM, place) as pool:
        pool.start()
        pool.start(2)
        for number in range(rounds):
            pool.settle()
            tell(f"{system}: round {number + 1} of {rounds}")
            victim, began = pool.members[number % 3], monotonic()
            victim.send(SIGSTOP)
            sleep(2 * TERM)
            victim.send(SIGCONT)
            pool.settle()
            ended = monotonic()
            both, alone = pool.seconds(together, began, ended), pool.seconds(without, began, ended)
            found.append(Round(max(both), max(alone)))
    return found


def run(tell: Callable[[str], None], rounds: int = ROUNDS) -> Section:
    """Every system in turn."""
    notes: list[str] = []
    found: dict[str, list[Round]] = {}
    with TemporaryDirectory(prefix="tenure-bench-") as directory:
        for system in there(notes):
            place = Path(directory, system)
            with serving(system, place / "server", TERM) as server:
                found[system] = measure(system, server.url, place, rounds, tell)
    return section(found, notes, rounds)


def section(found: dict[str, list[Round]], notes: list[str], rounds: int) -> Section:
    """The table."""
    rows = [
        [
            TITLES[system],
            f"{sum(each.both > 0 for each in all_rounds)} of {rounds}",
            f"{max(each.both for each in all_rounds) * 1000:.0f}",
            f"{median(each.alone for each in all_rounds):.1f}",
        ]
        for system, all_rounds in found.items()
    ]
    worst = max(each.both for each in found["tenure"])
    head = ["", "rounds with two holders", "longest, ms", "nobody held it, s"]
    return Section(
        title="Two holders at once",
        text=prose(TEXT.format(stopped=2 * TERM, rounds=rounds)),
        tables=[Table(head, rows)],
        promises=[
            Promise("tenure: two holders at once", f"{worst * 1000:.0f} ms", "0", worst == 0)
        ],
        notes=notes,
    )
