"""How fast a node copies the ranges that it gains, and what is sent again if it is killed halfway.

    python -m benchmarks copies               # 512 MB, about six minutes
    python -m benchmarks copies --mb 100
    python -m benchmarks --quick copies

All nodes are processes of this host. A node takes the place of a dead one, from one replica, and
from two. On a host with few processors the node that takes is the slowest of them all, so that more
sources bring nothing. So this is repeated with sources that run a sixth of the time only, in turns,
as on slow hosts of their own: what two of them send is more than what one does.

The last time the node is killed when it has half, and started again. How much comes twice then is
told as the most that it can be: what it had said that it has and has not, and the pieces that were
on their way. The quick form prints how fast copies are, and asks nothing of it: a copy of 24 MB is
over before it is under way.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from time import monotonic

from msgspec.structs import fields

from benchmarks._quick import QUICK, sized
from lab.demo.ring.home_ring import REPAIR_SECONDS, HomeRing, until
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tenure.protocol.replication.node_events import NodeConfig
from tenure.protocol.replication.upkeep.copying import PIECES_AT_ONCE
from tenure.protocol.topology.answers import RingRead

MB = sized(512, 24)
VALUE_BYTES = 100_000
WRITERS = 8
MB_A_SECOND = 40.0
"""The rate from one node in the paper."""
SLOW_MB_A_SECOND = 4
"""The rate of the copy that is killed at half of its 24 MB: slow, so that there is a half."""
SENT_AGAIN = 0.05
TURN_SECONDS = 0.02
"""How long a slow source runs, before the next has its turn."""
TURNS = 6
SLOW_SHARE = 4
"""A slow copy is of so much less."""
TABLE = Table("copied", kind="hashed", said=Family(columns=str))
"""Hashed, so that its rows are everywhere on the ring: parts of it are copied side by side."""
PIECE_BYTES: int = next(each.default for each in fields(NodeConfig) if each.name == "piece_bytes")


class Copy:
    """A ring whose last node died, and the node that takes its place."""

    def __init__(self, home: HomeRing, sources: int) -> None:
        self._home = home
        self._dead, self.new = f"node-{sources + 1}", f"node-{sources + 2}"

    async def prepare(self, size: int) -> None:
        """Fill the ring, and lose a node of it."""
        home = self._home
        await home.start()
        await _fill(home, size)
        home.kill(self._dead)
        await until(home.down, lambda down: self._dead in down, f"{self._dead} is not left out")
        await home.launch(self.new)
        await until(lambda: home.node(self.new), lambda node: node is not None, "nobody waits")

    async def begin(self) -> None:
        """Have it copied."""
        await self._home.said("replace", {"node": self._dead, "by": self.new})

    async def end(self) -> None:
        """Wait until everything is copied."""
        await until(self._home.ring, lambda ring: ring.phase != "filling", "it is not copied")

    async def copied(self, least: int) -> int:
        """Return how much it reports as copied, as soon as that reaches this much."""

        def has(ring: RingRead) -> bool:
            return any(node.name == self.new and node.copied >= least for node in ring.nodes)

        ring = await until(self._home.ring, has, f"{least} bytes are not copied")
        return next(node.copied for node in ring.nodes if node.name == self.new)


async def _fill(home: HomeRing, size: int) -> None:
    async with open_store(home.url, TABLE) as store:

        async def write(worker: int) -> None:
            for number in range(worker, size // VALUE_BYTES, WRITERS):
                value = bytes([number % 256]) * VALUE_BYTES
                await store.insert(
                    TABLE, f"room-{number}", {"said": {"all": value}}, consistency="all"
                )

        await asyncio.gather(*(write(worker) for worker in range(WRITERS)))


def _home(place: str, sources: int, rate: float) -> HomeRing:
    options = ("--repair-every", f"{REPAIR_SECONDS:g}", "--copy-rate", f"{rate:g}")
    return HomeRing(Path(place), sources + 1, 1, options)


@asynccontextmanager
async def in_turns(pids: list[int]) -> AsyncIterator[None]:
    """Let each process run in one of `TURNS` turns, and be stopped in all others."""

    async def rotate() -> None:
        for turn in cycle(range(TURNS)):
            for number, pid in enumerate(pids):
                if turn == 2 * number:
                    os.kill(pid, SIGCONT)
            await asyncio.sleep(TURN_SECONDS)
            for pid in pids:
                os.kill(pid, SIGSTOP)

    rotating = asyncio.create_task(rotate())
    try:
        yield
    finally:
        rotating.cancel()
        with suppress(asyncio.CancelledError):
            await rotating
        for pid in pids:
            os.kill(pid, SIGCONT)


async def rate_from(sources: int, size: int, *, are_slow: bool = False) -> float:
    """Return how many megabytes a second a node copies from this many others, each of which has
    everything. Before the first piece it waits until they vouch for it, and until the dead node
    counts as down (R26).
    """
    with tempfile.TemporaryDirectory(prefix="tenure-copies-") as place:
        home = _home(place, sources, 10_000)
        try:
            copy = Copy(home, sources)
            await copy.prepare(size)
            pids = home.pids()
            slow = [pids[f"node-{number + 1}"] for number in range(sources)] if are_slow else []
            async with in_turns(slow):
                await copy.begin()
                there = await copy.copied(1)
                began = monotonic()
                await copy.end()
                return (size - there) / (monotonic() - began) / 1e6
        finally:
            await home.end()


async def sent_again(size: int) -> float:
    """Return the part that is sent twice, at most, if the node is killed when it has half."""
    sources = 2
    with tempfile.TemporaryDirectory(prefix="tenure-copies-") as place:
        home = _home(place, sources, SLOW_MB_A_SECOND * size / 24e6)
        try:
            copy = Copy(home, sources)
            await copy.prepare(size)
            await copy.begin()
            before = await copy.copied(size // 2)
            home.kill(copy.new)
            await until(home.down, lambda down: copy.new in down, "it is not left out")
            await home.launch(copy.new)
            await until(home.down, lambda down: copy.new not in down, "it is left out still")
            after = await copy.copied(1)
            await copy.end()
        finally:
            await home.end()
    under_way = sources * PIECES_AT_ONCE * (PIECE_BYTES + VALUE_BYTES)
    return (max(0, before - after) + under_way) / size


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks copies")
    parser.add_argument("--mb", type=int, default=MB, help="how much is copied")
    size = parser.parse_args().mb * 1_000_000
    rates = []
    for sources in (1, 2):
        rates.append(asyncio.run(rate_from(sources, size)))
        print(f"from {sources}: {rates[-1]:.1f} MB/s", flush=True)
    slow = []
    for sources in (1, 2):
        slow.append(asyncio.run(rate_from(sources, size // SLOW_SHARE, are_slow=True)))
        print(f"from {sources} that run a sixth of the time: {slow[-1]:.1f} MB/s", flush=True)
    again = asyncio.run(sent_again(size))
    print(f"killed at half: at most {again:.1%} was sent again (< {SENT_AGAIN:.0%})")
    wrong = [
        what
        for what, is_wrong in (
            (f"less than {MB_A_SECOND:g} MB/s from one", rates[0] < MB_A_SECOND),
            ("two slow nodes are not faster than one", slow[1] <= slow[0]),
            ("too much was sent again", again >= SENT_AGAIN),
        )
        if is_wrong and not QUICK
    ]
    for each in wrong:
        print(f"NOT REACHED: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
