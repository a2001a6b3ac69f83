"""The inbox search (Cassandra 6.1) and how soon a dead node is suspected (5.3).

The paper measured a cluster on two coasts, in production: milliseconds of one machine are not
compared with its milliseconds, but each search with the fastest one of its kind.
"""

import asyncio
from collections.abc import Callable, Sequence
from statistics import mean, quantiles
from tempfile import TemporaryDirectory

from benchmarks._quick import QUICK
from benchmarks._report import Promise, Section, Table, prose
from lab.demo.inbox import PAPER, SEARCH_NAMES, SEARCHES, measured
from lab.worlds.gossip.world import quiet
from tenure.base.instants import in_seconds
from tenure.protocol.gossip.failure_detector import THRESHOLD

NODES = (5, 20, 50, 100) if not QUICK else (5, 20)
KILLED = "n3"
WARM_ROUNDS = 30
MOST_SECONDS = 40.0
BOUND_SECONDS = 15.0
TEXT = """Searches: our store on RocksDB on this machine, one client; each user's index is read into
memory before, as the paper has it when a user clicks into the search field. Ratios are to the
fastest search of the same kind. Detection: gossip once a second in simulated time, the real
machines; one node is killed, and every other one suspects it when its φ reaches {threshold:g}. The
paper says 10 to 15 s on the average, at a hundred nodes and the same threshold."""


def run(tell: Callable[[str], None], nodes: Sequence[int] = NODES) -> Section:
    """Measure, and return a section with both tables."""
    tell("the inbox is filled and searched")
    with TemporaryDirectory(prefix="tenure-bench-") as place:
        found = asyncio.run(measured(f"rocksdb:{place}/store", SEARCHES))
    rows = []
    for search, paper in PAPER.items():
        for who, times in (("the paper", paper), ("tenure", found[search])):
            ratios = [f"{each / times[0]:.1f}" for each in times[1:]]
            shown = [f"{each:.2f}" for each in times]
            rows.append([f"{who}: {SEARCH_NAMES[search]}", *shown, *ratios])
    head = [
        *("", "fastest, ms", "median, ms", "slowest, ms"),
        *("median to fastest", "slowest to fastest"),
    ]
    detected = {count: detection(count, tell) for count in nodes}
    average = mean(detected[max(nodes)])
    bound = Promise(
        f"a death is suspected, {max(nodes)} nodes, on the average",
        f"{average:.1f} s",
        f"{BOUND_SECONDS:g} s",
        average <= BOUND_SECONDS,
    )
    return Section(
        title="Inbox search, and suspicion",
        text=prose(TEXT.format(threshold=THRESHOLD)),
        tables=[Table(head, rows), detection_table(detected)],
        promises=[bound],
    )


def detection(nodes: int, tell: Callable[[str], None]) -> list[float]:
    """Return after how many seconds each of the others suspects a node that was killed."""
    tell(f"{nodes} nodes gossip")
    world = quiet(1, nodes)
    world.run_quietly(WARM_ROUNDS)
    began, node = world.now, world.disks[KILLED].node
    world.seconds_until_convicted(KILLED, MOST_SECONDS)
    return sorted(
        in_seconds(at - began) for (_, whom), at in world.convictions.items() if whom == node
    )


def detection_table(detected: dict[int, list[float]]) -> Table:
    """One line for each size, below the paper's."""
    rows = [["the paper, 100 nodes", "", "10 to 15", ""]]
    for nodes, seconds in detected.items():
        if len(seconds) > 1:
            p99 = quantiles(seconds, n=100, method="inclusive")[98]
            figures = [f"{seconds[0]:.1f}", f"{mean(seconds):.1f}", f"{p99:.1f}"]
            rows.append([f"tenure, {nodes} nodes", *figures])
    return Table(["", "first, s", "average, s", "p99, s"], rows)
