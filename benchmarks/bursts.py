"""What `weighted` moves when load comes and goes, and what it leaves behind in the table.

Simulated time, as in `balance`. Bursts: a pool of 10 owners is asked for 1,000 times a second each,
and every other minute for one key as often as for six of them: the same key each time, or another
one. With and without hand-off, for an hour. Bound: 20 % of the key space, where the policy's budget
allows 60 %.

Unequal owners, of capacity 1, 8 and 8, under Zipf's law: the most that one carries for its
capacity, beside the mean. Bound: 1.10 in 95 % of the windows of 10 s.

Drift: without hand-off, so that what has moved is younger than what is beside it, one of the 30
hottest ranks is given to another key every minute, for a day. Bounds: entries of the table, twice
256 for each owner; churn, a fifth of the key space an hour, which is the budget.
"""

import gc
import sys
from random import Random

from benchmarks._balance import KEYS, RATE, World
from benchmarks._quick import sized
from benchmarks._rounds import line
from tenure.protocol.balance.tuning import DEFAULT
from tenure.protocol.balance.weighted import Weighted

OWNERS = 10
BURST, PERIOD = 0.6 * OWNERS * RATE, 120
HOUR = 3600
BURSTS_SECONDS, DRIFT_SECONDS = sized(HOUR, 600), sized(24 * HOUR, HOUR)
START = 300
WINDOW = 10
MOVED_AT_MOST, MOST = 0.2, 1.10


def main() -> int:
    """Run all, and print; return 1 if a bound is not kept."""
    gc.disable()
    kept = []
    for same in (True, False):
        for hands_over in (True, False):
            moved = bursts(same=same, hands_over=hands_over)
            how = "with" if hands_over else "without"
            what = f"moved by bursts of {'one key' if same else 'any key'}, {how} hand-off"
            kept.append(told(what, moved, MOVED_AT_MOST))
    kept.append(told("(max/mean)/F of capacities 1, 8 and 8", unequal(), MOST))
    entries, churn = drift()
    kept.append(told("entries after the drift", entries, 2 * DEFAULT.entries_at_most * OWNERS))
    kept.append(told("churn of the drift, an hour", churn, DEFAULT.lasting / 2))
    return 0 if all(kept) else 1


def told(what: str, figure: float, bound: float) -> bool:
    """Print the figure beside its bound; whether it is kept."""
    print(line(what, f"{figure:.3g}", f"<= {bound:g}", is_kept=figure <= bound), flush=True)
    return figure <= bound


def bursts(*, same: bool, hands_over: bool) -> float:
    """Return the part of the key space that moves."""
    world, dice = World(Weighted(), OWNERS, 0.8, seed=1, hands_over=hands_over), Random(5)
    run(world, START)
    before, key, rest = world.moved, dice.randrange(KEYS), 0.0
    for _ in range(0, BURSTS_SECONDS, PERIOD):
        key = key if same else dice.randrange(KEYS)
        rest = world.load.hot.get(key, world.load.rates[key])
        world.ask(key, BURST)
        run(world, PERIOD // 2)
        world.ask(key, rest)
        run(world, PERIOD // 2)
    return world.moved - before


def unequal() -> float:
    """(max/mean)/F, in the window above which 5 % of all lie."""
    world = World(Weighted(), 3, 1.0, seed=1, capacities=(1.0, 8.0, 8.0))
    run(world, 2 * START)
    windows = []
    for _ in range(0, 2 * START, WINDOW):
        run(world, WINDOW)
        windows.append(world.most_to_mean())
    return sorted(windows)[len(windows) * 95 // 100]


def drift() -> tuple[int, float]:
    """Entries of the table at the end, and the churn of an hour."""
    world = World(Weighted(), OWNERS, 1.0, seed=1, interval=15, hands_over=False)
    run(world, START)
    before = world.moved
    for _ in range(0, DRIFT_SECONDS, 60):
        world.redraw([world.dice.randrange(30)])
        run(world, 60)
    return len(world.table), (world.moved - before) * HOUR / DRIFT_SECONDS


def run(world: World, length: int) -> None:
    """Run for this many seconds."""
    for _ in range(length):
        world.step()


if __name__ == "__main__":
    sys.exit(main())
