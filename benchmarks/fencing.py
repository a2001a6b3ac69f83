"""Counts late writes of processes that are stopped in the middle, in SQLite and in PostgreSQL:
there are none.

There are 200 rounds of each, as in `_late.py`. Rounds without a fence are for comparison: some of
their writes must be late, because otherwise the rounds would show nothing. PostgreSQL is left out
if it is not installed.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._late import Found, run
from benchmarks._quick import sized
from benchmarks._rounds import line
from tests.unit.fencing.databases import postgres_programs, postgres_server

ROUNDS = sized(200, 20)
SEED = 1


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    with TemporaryDirectory() as place:
        path = Path(place)
        are_kept = [
            report("SQLite", run(f"sqlite:{path / 'fenced'}", ROUNDS, SEED)),
            report("no fence", run(f"sqlite:{path / 'bare'}", ROUNDS, SEED, is_fenced=False)),
        ]
    if postgres_programs() is None:
        print("PostgreSQL is not installed, and was left out")
        return 0 if all(are_kept) else 1
    with postgres_server() as url:
        are_kept.append(report("PostgreSQL", run(url, ROUNDS, SEED)))
    return 0 if all(are_kept) else 1


def report(what: str, found: Found) -> bool:
    """The figures beside their bounds; whether all are kept."""
    for outcome, count in sorted(found.outcomes.items()):
        print(f"{what}: {count} of {ROUNDS} {outcome}")
    is_kept = found.late > 0 if what == "no fence" else found.late == 0
    bound = "> 0" if what == "no fence" else "0"
    print(line(f"{what}: late writes", f"{found.late}", bound, is_kept=is_kept))
    return is_kept


if __name__ == "__main__":
    sys.exit(main())
