"""How long `Lookup.find` takes on 6,400 ranges, beside its bare hash and bisection, and a hash
ring.

Bounds: 1.5 times `bisect_right(bounds, xxh3_64_digest(key))`, and a third of what `uhashring` takes
for `get_node` on a ring of 100 nodes, which has as many points as 100 owners have ranges here.
"""

import sys
from bisect import bisect_right
from collections.abc import Sequence
from random import Random
from statistics import median

from uhashring import HashRing
from xxhash import xxh3_64_digest

from benchmarks._quick import at_most
from benchmarks._rounds import line, measure, ratio
from tenure.client.lookup import Lookup
from tenure.client.routes import Routes
from tenure.protocol.lease.lookup.events import RoutingTable

RANGES = 6_400
OWNERS = 100
KEYS = 5_000
RING_KEYS = 500
TIMES_BARE = at_most(1.5)


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    random = Random(1)
    starts = [b"", *sorted(random.randbytes(8) for _ in range(RANGES - 1))]
    addresses: list[str | None] = [f"http://10.0.0.{random.randrange(OWNERS)}" for _ in starts]
    lookup = Lookup("http://127.0.0.1:7400", pool="rooms")
    table = RoutingTable(tuple(starts), tuple(addresses), "hashed", in_contact=True)
    lookup._board.publish(Routes(table))
    ring = HashRing([f"http://10.0.0.{i}" for i in range(OWNERS)])
    bounds = starts[1:]

    def bare(keys: Sequence[bytes]) -> None:
        for key in keys:
            bisect_right(bounds, xxh3_64_digest(key))

    def bare_of_str(keys: Sequence[str]) -> None:
        for key in keys:
            bisect_right(bounds, xxh3_64_digest(key.encode()))

    def find(keys: Sequence[bytes] | Sequence[str]) -> None:
        for key in keys:
            lookup.find(key)

    def get_node(keys: Sequence[str]) -> None:
        for key in keys:
            ring.get_node(key)

    texts = [f"room-{i}" for i in range(KEYS)]
    raw = [text.encode() for text in texts]
    found = measure(
        {"bare": bare, "find": find, "bare, str": bare_of_str, "find, str": find, "ring": get_node},
        {
            "bare": raw,
            "find": raw,
            "bare, str": texts,
            "find, str": texts,
            "ring": texts[:RING_KEYS],
        },
    )
    for name, times in found.items():
        print(f"{name:<12} {median(times):8.1f} ns")
    return 0 if report(found) else 1


def report(found: dict[str, list[float]]) -> bool:
    """The ratios beside their bounds; whether all are kept."""
    good = True
    for keys, end in (("bytes", ""), ("str", ", str")):
        times = ratio(found[f"find{end}"], found[f"bare{end}"])
        bound = f"<= {TIMES_BARE}"
        good &= times <= TIMES_BARE
        print(
            line(
                f"find, {keys} keys, to bare hash and bisection",
                f"{times:.2f}",
                bound,
                is_kept=times <= TIMES_BARE,
            )
        )
    share = ratio(found["find, str"], found["ring"])
    print(line("find, str keys, to uhashring", f"{share:.2f}", "<= 0.33", is_kept=share <= 1 / 3))
    return good and share <= 1 / 3


if __name__ == "__main__":
    sys.exit(main())
