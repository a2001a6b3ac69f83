"""The exhaustive search in scopes that take minutes: `make exhaustive`.

Prints each scope, how many states there are in it, and whether every promise was kept. The scopes
that take seconds are in `tests/simulation/test_exhaustive.py`.
"""

import sys
import time

from lab.worlds.lease.exhaustive import ONE_NAME, TWO_NAMES, in_short, search
from lab.worlds.lease.small import Limits

MOST_STATES = 20_000_000
SCOPES = (
    (TWO_NAMES, Limits(ticks=6, late=1, lose=1)),
    (TWO_NAMES, Limits(ticks=6, double=1, lose=1)),
    (TWO_NAMES, Limits(ticks=8, freeze=1)),
    (TWO_NAMES, Limits(ticks=6, late=1, revoke=1)),
    (TWO_NAMES, Limits(ticks=5, journal=1)),
    (TWO_NAMES, Limits(ticks=5, crash=1, lose=1, starts=2)),
    (TWO_NAMES, Limits(ticks=6, manager_crash=1, starts=2)),
    (TWO_NAMES, Limits(ticks=5, manager_crash=1, lose=1)),
    (TWO_NAMES, Limits(ticks=4, manager_crash=2, starts=3)),
    (TWO_NAMES, Limits(ticks=4, manager_crash=1, starts=2, lookups=1)),
    (TWO_NAMES, Limits(ticks=5, freeze=1, lookups=1)),
    (TWO_NAMES, Limits(ticks=5, late=1, lookups=1)),
    (TWO_NAMES, Limits(ticks=5, crash=1, lose=1, starts=2, lookups=1)),
    (ONE_NAME, Limits(ticks=7, late=1, lose=1)),
    (ONE_NAME, Limits(ticks=8, freeze=1)),
    (ONE_NAME, Limits(ticks=6, manager_crash=1, starts=2)),
)


def main() -> int:
    """Search them all; 0 if each was looked at as a whole, and no promise was broken."""
    wrong = 0
    for names, limits in SCOPES:
        began = time.perf_counter()
        found = search(limits, names=names, most_states=MOST_STATES)
        print(f"{in_short(names, limits):<60}{time.perf_counter() - began:>6.0f} s  {found}")
        sys.stdout.flush()
        wrong += not found.complete
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
