"""How long `Owner.check` and `Owner.holds` take on 64 ranges, the count of checks included.

Bound: 1 µs for the two together. They read the clock, so its cost is printed beside.
"""

import gc
from collections.abc import Sequence
from random import Random
from statistics import median

from benchmarks._rounds import line, measure, ratio
from leasehold.base.instants import FAR_FUTURE
from leasehold.client.owner import Owner
from leasehold.protocol.lease.messages import Leased
from leasehold.protocol.lease.owner_events import Holdings
from leasehold.runtime.clock import boot_clock

RANGES = 64
KEYS = 5_000
BOUND_NS = 1_000


def owner_of_half_the_keys() -> Owner:
    """As in a pool of two: what it holds is in 64 ranges, with gaps between them."""
    random = Random(1)
    points = [b"", *sorted(random.randbytes(8) for _ in range(2 * RANGES - 1))]
    leases = tuple(
        Leased(points[i], points[i + 1], i + 1, i + 1, "renewed") for i in range(0, 2 * RANGES, 2)
    )
    owner = Owner("http://127.0.0.1:7400", pool="rooms", address="http://127.0.0.1:8000")
    owner._board.open()
    owner._board.publish(Holdings(1, 1, leases, FAR_FUTURE))
    return owner


def main() -> None:
    """Measure, and print."""
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

    def clock_alone(keys: Sequence[str]) -> None:
        for _ in keys:
            boot_clock()

    before = len(gc.get_objects())
    kept = [owner.check(key) for key in keys]
    tracked = len(gc.get_objects()) - before
    del kept
    found = measure(
        {"both": check_and_holds, "check": check, "refusal": check, "clock": clock_alone},
        {"both": keys, "check": keys, "refusal": elsewhere[:KEYS], "clock": keys},
    )
    for name, times in found.items():
        print(f"{name:<12} {median(times):8.1f} ns")
    both = median(found["both"])
    print(f"check and holds take {ratio(found['both'], found['clock']):.1f} readings of the clock")
    print(f"{len(keys)} leases kept: {tracked} more objects for the garbage collector to look at")
    print(line("check and holds", f"{both:.0f} ns", f"<= {BOUND_NS} ns", is_kept=both <= BOUND_NS))


if __name__ == "__main__":
    main()
