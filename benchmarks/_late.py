"""Writers that are stopped in the middle: do their writes come late?

In each round one process is told to write under a lease number, and is stopped with SIGSTOP at some
moment: before its transaction, within it, or when it is done. Another process then writes under the
next number, as the next owner of the key does when the first one's term has run out. Then the first
process goes on. A write is *late* if it is committed after one with a higher number.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from random import Random
from typing import Any, NamedTuple

from tenure import Fenced, Lease, PostgresFence, SqliteFence

LONGEST_PAUSE_SECONDS = 0.004
WAIT_FOR_LOCK_SECONDS = 0.15
"""How long a writer waits for a transaction that is open in a process that is stopped."""
STORE = "CREATE TABLE written (at {serial}, number INTEGER)"


class Found(NamedTuple):
    """The results of all rounds."""

    late: int
    outcomes: Counter[str]
    """Outcomes of the processes that were stopped: written, refused, and where the other one
    waited.
    """


def opened(url: str) -> Any:  # noqa: ANN401  # of either driver
    """A connection to `sqlite:PATH`, or to a PostgreSQL."""
    if url.startswith("sqlite:"):
        return sqlite3.connect(url.removeprefix("sqlite:"), timeout=WAIT_FOR_LOCK_SECONDS)
    import psycopg  # noqa: PLC0415  # only where it is asked for

    connection = psycopg.connect(url)
    connection.execute(f"SET lock_timeout = {int(WAIT_FOR_LOCK_SECONDS * 1000)}")
    connection.commit()
    return connection


def write(connection: Any, number: int, random: Random, *, is_fenced: bool) -> str:  # noqa: ANN401
    """One write, with pauses in which a process may be stopped."""
    fence = SqliteFence if isinstance(connection, sqlite3.Connection) else PostgresFence
    lease = Lease(b"key", number, 1, "pool")
    time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))
    try:
        with ExitStack() as stack:
            if is_fenced:
                stack.enter_context(fence(connection).admit(lease.headers()))
            time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))
            connection.execute(f"INSERT INTO written (number) VALUES ({number})")  # noqa: S608
            time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))
        connection.commit()
    except Fenced:
        return "refused"
    except Exception as error:  # noqa: BLE001  # whatever the driver raises where it waited in vain
        connection.rollback()
        return f"waited: {type(error).__name__}"
    return "written"


class Writer:
    """A process that writes when it is told to."""

    def __init__(self, url: str, seed: int, *, is_fenced: bool) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks._late", url, str(seed), str(int(is_fenced))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.answer()

    def begin(self, number: int) -> None:
        """Tell it to write."""
        assert self._process.stdin
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Return the outcome."""
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def stop(self) -> None:
        """Stop it, as a machine does that swaps, or a debugger."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run until it is stopped again."""
        os.kill(self._process.pid, signal.SIGCONT)

    def end(self) -> None:
        """Whatever happened."""
        self._process.kill()
        self._process.communicate()


def run(url: str, rounds: int, seed: int, *, is_fenced: bool = True) -> Found:
    """Make this many rounds, in an empty database."""
    serial = "INTEGER PRIMARY KEY" if url.startswith("sqlite:") else "serial PRIMARY KEY"
    connection, random = opened(url), Random(seed)
    connection.execute(STORE.format(serial=serial))
    connection.commit()
    fence = SqliteFence if url.startswith("sqlite:") else PostgresFence
    _ = fence(connection).create_tables()
    outcomes: Counter[str] = Counter()
    with ExitStack() as stack:
        old, new = (Writer(url, seed + i, is_fenced=is_fenced) for i in range(2))
        stack.callback(old.end)
        stack.callback(new.end)
        for number in range(1, 2 * rounds, 2):
            outcomes[_round(old, new, number, random)] += 1
    numbers = [row[0] for row in connection.execute("SELECT number FROM written ORDER BY at")]
    connection.close()
    late = sum(number < max(numbers[:i], default=0) for i, number in enumerate(numbers))
    return Found(late, outcomes)


def _round(old: Writer, new: Writer, number: int, random: Random) -> str:
    old.begin(number)
    time.sleep(random.uniform(0, 3 * LONGEST_PAUSE_SECONDS))
    old.stop()
    new.begin(number + 1)
    said = new.answer()
    old.go_on()
    was = old.answer()
    if said != "written":  # the other's transaction was open: it is its turn now
        new.begin(number + 1)
        assert new.answer() == "written"
        return "stopped within its transaction"
    return f"stopped outside of it, and {was}"


def _main(url: str, seed: int, *, is_fenced: bool) -> None:
    connection, random = opened(url), Random(seed)
    print("ready", flush=True)
    for line in sys.stdin:
        print(write(connection, int(line), random, is_fenced=is_fenced), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), is_fenced=sys.argv[3] == "1")
