"""What a turn costs in a room of a million messages, beside one in a room of ten.

Each turn changes the state and adds a message to the room's series, with a store in a file of
SQLite. A large room and a new small one take turns in rounds that alternate. The CPU time of their
process is compared, that of the database's thread included. Whatever else the machine does makes a
round more expensive, so the cheapest round of each counts.

Bound: 5 % more.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from time import process_time

import msgspec

from benchmarks._quick import at_most, sized
from benchmarks._rounds import line
from tenure import Entities, Entity, Series
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster

FEW = 10
MANY = sized(1_000_000, 20_000)
AT_ONCE = 1_000
"""How many messages one turn adds while a room is filled."""
ROUNDS = sized(40, 10)
TURNS = sized(200, 100)
BOUND = at_most(1.05)


class Said(msgspec.Struct):
    """The state of a room."""

    count: int = 0


class FilledRoom(Entity[Said]):
    """A room that keeps everything that was said."""

    history = Series(str)

    async def say(self, text: str, times: int = 1) -> int:
        """Add a message as often."""
        for _ in range(times):
            self.state.count += 1
            self.history.add(text)
        return self.state.count


async def cost(room: FilledRoom) -> float:
    """CPU seconds for a turn."""
    began = process_time()
    for _ in range(TURNS):
        await room.say("a message as people write them, of some sixty characters")
    return (process_time() - began) / TURNS


async def measure(place: Path) -> dict[int, list[float]]:
    """The costs in both rooms, in alternating rounds."""
    found: dict[int, list[float]] = {FEW: [], MANY: []}
    async with InProcessCluster(["rooms"], timing=DEFAULT) as cluster:
        environment = ClusterEnvironment(cluster)
        url = f"sqlite:{place / 'rooms'}"
        async with Entities(
            FilledRoom, "rooms", cluster.urls, store=url, watchdog=None, _environment=environment
        ) as rooms:
            for _ in range(0, MANY, AT_ONCE):
                await rooms["large"].say("x" * 60, AT_ONCE)
            for number in range(ROUNDS):
                small = rooms[f"small {number}"]
                await small.say("x" * 60, FEW)
                found[FEW].append(await cost(small))
                found[MANY].append(await cost(rooms["large"]))
    return found


def main() -> int:
    """Measure and print; return 1 if the bound is not kept."""
    with tempfile.TemporaryDirectory() as place:
        found = asyncio.run(measure(Path(place)))
    for size, costs in found.items():
        print(f"a room of {size:<9,} {min(costs) * 1e6:8.1f} µs of CPU for a turn")
    times = min(found[MANY]) / min(found[FEW])
    is_kept = times <= BOUND
    what = f"a turn in a room of {MANY:,} beside one of {FEW}"
    print(line(what, f"{times:.3f}", f"<= {BOUND:g}", is_kept=is_kept))
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
