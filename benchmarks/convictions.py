"""How soon all other nodes convict a killed node; no other node may ever be convicted.

    python -m benchmarks convictions         # 100 seeds of each, five minutes
    python -m benchmarks --quick convictions

The network is simulated, with the very gossiper that nodes run, so that forty nodes fit on one
host, every fifth datagram or every other one can be lost, and a figure is of a hundred runs.
`ring` kills a node process, and says when the others leave it out.
"""

import sys

from benchmarks._quick import sized
from benchmarks._rounds import line
from lab.worlds.gossip.world import quiet
from tenure.base.instants import MILLISECOND_NS, SECOND_NS

SEEDS = sized(100, 5)
SEEDS_OF_FORTY = sized(20, 1)
MINUTES = sized(10, 2)
FAST_NS = 300 * MILLISECOND_NS
SETTLED_ROUNDS = 30
GIVES_UP_SECONDS = 30
CASES = (
    # nodes, loss, between rounds, seeds, at most
    (5, 0.0, SECOND_NS, SEEDS, 12),
    (40, 0.0, SECOND_NS, SEEDS_OF_FORTY, 15),
    (20, 0.0, FAST_NS, SEEDS_OF_FORTY, 10),
    (40, 0.0, FAST_NS, SEEDS_OF_FORTY, 10),
    (20, 0.5, FAST_NS, SEEDS_OF_FORTY, 15),
    (40, 0.5, FAST_NS, SEEDS_OF_FORTY, 15),
)
LOSS = 0.2


def _latest(nodes: int, loss: float, interval_ns: int, seeds: int) -> float:
    """Seconds from the death to the last conviction, in the slowest run."""
    slowest = 0.0
    for seed in range(seeds):
        world = quiet(seed, nodes, loss=loss, interval_ns=interval_ns)
        world.run_quietly(SETTLED_ROUNDS)
        slowest = max(slowest, world.seconds_until_convicted("n3", GIVES_UP_SECONDS))
    return slowest


def _blamed() -> tuple[int, float]:
    """How many are convicted though nobody dies, and the highest φ."""
    world, highest = quiet(1, 5, loss=LOSS), 0.0
    for _ in range(60 * MINUTES):
        world.run_quietly(1)
        highest = max(highest, world.highest_phi())
    return len(world.convictions), highest


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    good = True
    for nodes, loss, interval_ns, seeds, most in CASES:
        found = _latest(nodes, loss, interval_ns, seeds)
        what = f"{nodes} nodes, {interval_ns / SECOND_NS:g} s between rounds, {loss:.0%} lost"
        told = f"convicted by all within {found:.1f} s, {seeds} runs"
        print(line(what, told, f"<= {most} s", is_kept=found <= most), flush=True)
        good &= found <= most
    blamed, highest = _blamed()
    what = f"5 nodes, {MINUTES} minutes, {LOSS:.0%} lost, nobody dies"
    told = f"{blamed} convicted, φ reached {highest:.1f}"
    print(line(what, told, "none", is_kept=not blamed))
    return 0 if good and not blamed else 1


if __name__ == "__main__":
    sys.exit(main())
