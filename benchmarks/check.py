"""How long `Owner.check` and `Owner.holds` take on 64 ranges, including the count of checks.

Most keys that are checked were checked before; "searched" are those that are not remembered.
Bounds: 1 µs for the two together, and leases that are kept give the garbage collector nothing to
look at. They read the clock, so its cost is printed beside.
"""

import gc
import sys
from collections.abc import Sequence
from random import Random
from statistics import median

from benchmarks._quick import at_most
from benchmarks._rounds import line, measure, ratio
from tenure.base.instants import FAR_FUTURE
from tenure.client.lease import Lease
from tenure.client.owner import Owner
from tenure.client.snapshot import CHECKED_AT_MOST
from tenure.protocol.lease.messages import Leased
from tenure.protocol.lease.owner.events import Holdings
from tenure.runtime.clock import boot_clock

RANGES = 64
KEYS = CHECKED_AT_MOST
BOUND_NS = at_most(1_000)
BOUND_TRACKED = 16
"""Objects beside the leases: the list that they are in, and the interpreter's own few."""


def owner_of_half_the_keys() -> Owner:
    """Return an owner as in a pool of two: what it holds is in 64 ranges, with gaps
    between them.
    """
    random = Random(1)
    points = [b"", *sorted(random.randbytes(8) for _ in range(2 * RANGES - 1))]
    leases = tuple(
        Leased(start=points[i], end=points[i + 1], number=i + 1, since=i + 1, mark="renewed")
        for i in range(0, 2 * RANGES, 2)
    )
    owner = Owner("http://127.0.0.1:7400", pool="rooms", address="http://127.0.0.1:8000")
    owner._board.open()
    owner._board.publish(Holdings(1, 1, leases, FAR_FUTURE))
    return owner


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    owner = owner_of_half_the_keys()
    keys = [key for key in (f"room-{i}" for i in range(3 * KEYS)) if owner.check(key)][:KEYS]
    elsewhere = [key for key in (f"room-{i}" for i in range(3 * KEYS)) if not owner.check(key)]

    def check_and_holds(keys: Sequence[str]) -> None:
        for key in keys:
            lease = owner.check(key)
            assert lease
            owner.holds(lease)

    def check(keys: Sequence[str]) -> None:
        for key in keys:
            owner.check(key)

    def holds(leases: Sequence[Lease]) -> None:
        for lease in leases:
            owner.holds(lease)

    def clock_alone(keys: Sequence[str]) -> None:
        for _ in keys:
            boot_clock()

    before = len(gc.get_objects())
    kept = [lease for key in keys if (lease := owner.check(key))]
    tracked = len(gc.get_objects()) - before
    found = measure(
        {
            "both": check_and_holds,
            "check": check,
            "holds": holds,
            "searched": check,
            "refusal": check,
            "clock": clock_alone,
        },
        {
            "both": keys,
            "check": keys,
            "holds": kept,
            "searched": [key.encode() for key in keys],
            "refusal": elsewhere[:KEYS],
            "clock": keys,
        },
    )
    for name, times in found.items():
        print(f"{name:<12} {median(times):8.1f} ns")
    print(f"check and holds take {ratio(found['both'], found['clock']):.1f} readings of the clock")
    return 0 if report(median(found["both"]), tracked) else 1


def report(both: float, tracked: int) -> bool:
    """The figures beside their bounds; whether all are kept."""
    is_fast, is_light = both <= BOUND_NS, tracked <= BOUND_TRACKED
    print(line("check and holds", f"{both:.0f} ns", f"<= {BOUND_NS:g} ns", is_kept=is_fast))
    what = f"objects tracked beside {KEYS:,} leases kept"
    print(line(what, f"{tracked}", f"<= {BOUND_TRACKED}", is_kept=is_light))
    return is_fast and is_light


if __name__ == "__main__":
    sys.exit(main())
