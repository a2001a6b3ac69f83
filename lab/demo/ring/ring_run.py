"""The scenario: a node is killed and comes back, another one is added, and a hot range is relieved.

All of it under load. It ends with what readers and writers saw: no request may fail, and no read
may return less than was acknowledged.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TypeAlias

import msgspec

from lab.demo.ring.home_ring import HomeRing, until
from lab.demo.ring.ring_load import ROOMS, RingLoad
from tenure.columns.opening import open_store
from tenure.errors import TenureError
from tenure.protocol.topology.answers import TokenMoved

NODES = 4
KILLED = "node-1"
ADDED = f"node-{NODES + 1}"
MOST_MOVES = 4
EVEN_ENOUGH = 1.3
TOLD_SECONDS = 2.0
Say: TypeAlias = Callable[[str], None]


class MoveMade(msgspec.Struct, frozen=True, kw_only=True):
    """One move that was made."""

    node: str
    bytes: int
    why: str


class RingSummary(msgspec.Struct, kw_only=True):
    """The results of the demo of a ring."""

    seconds: float = 0.0
    requests: int = 0
    failed: int = 0
    stale: int = 0
    """Reads that returned less than had been acknowledged."""
    lost: int = 0
    """Keys that had less at the end."""
    p99_ms: float = 0.0
    slowest_ms: float = 0.0
    killed: str = ""
    convicted_seconds: float = 0.0
    """The time after which all others had left the killed node out."""
    added: str = ""
    copied_bytes: int = 0
    """The bytes copied by the node that was added."""
    before: float = 0.0
    """The load of the heaviest node divided by the mean, before the moves; `after` is the same
    after."""
    after: float = 0.0
    moves: list[MoveMade] = []
    trouble: str = ""
    """The step that did not finish."""
    last_failure: str = ""

    @property
    def is_good(self) -> bool:
        """Whether every step finished, and no client noticed."""
        wrong = self.failed or self.stale or self.lost or self.trouble
        return self.requests > 0 and not wrong


class RingDemo:
    """The steps, one after the other."""

    def __init__(self, home: HomeRing, load: RingLoad, say: Say) -> None:
        self.summary = RingSummary()
        self._home = home
        self.load = load
        self._say = say

    async def run(self, seconds: float) -> None:
        """All of them; between them there is load for a while."""
        pause = seconds / 5
        await asyncio.sleep(pause)
        await self.kill(KILLED)
        await asyncio.sleep(pause)
        await self.start_again(KILLED)
        await asyncio.sleep(pause)
        await self.add(ADDED)
        await self.even_out()
        await asyncio.sleep(pause)

    async def kill(self, name: str) -> None:
        """Kill a node, and wait until it is left out."""
        began = monotonic()
        self._say(f"{name} is killed")
        self._home.kill(name)
        await until(self._home.down, lambda down: name in down, f"{name} is not left out")
        self.summary.killed = name
        self.summary.convicted_seconds = monotonic() - began
        self._say(f"{name} is left out, {self.summary.convicted_seconds:.1f} s later")

    async def start_again(self, name: str) -> None:
        """Start it again, and wait until the others have noticed."""
        self._say(f"{name} is started again")
        await self._home.launch(name)
        await until(self._home.down, lambda down: not down, f"{name} is left out still")
        self._say(f"{name} is back")

    async def add(self, name: str) -> None:
        """Add a node: it takes half of the heaviest range."""
        home = self._home
        await home.launch(name)
        await until(lambda: home.node(name), lambda node: node is not None, f"{name} is missing")
        await home.settled()
        await home.said("add", {"node": name})
        self._say(f"{name} is being added")
        copied = 0

        async def change() -> str:
            nonlocal copied
            node = await home.node(name)
            copied = max(copied, node.copied if node else 0)
            return (await home.ring()).change

        await until(change, lambda change: not change, f"{name} is not added")
        self.summary.added, self.summary.copied_bytes = name, copied
        self._say(f"{name} is added; it has copied {copied / 1e6:.1f} MB")

    async def move(self, name: str) -> None:
        """Have a node take half of the heaviest range."""
        self._say(f"{name} is moved")
        await self._home.said("move", {"node": name})
        await self._home.settled()

    async def remove(self, name: str) -> None:
        """Take a node out for ever."""
        self._say(f"{name} is removed")
        await self._home.said("remove", {"node": name})
        await until(
            self._home.ring,
            lambda ring: not ring.change and name in ring.removed,
            f"{name} is not removed",
        )
        self._say(f"{name} is out")

    async def even_out(self, most: int = MOST_MOVES) -> None:
        """Make the moves that are proposed, until the load is even."""
        await self._home.settled()
        self.summary.before = (await self._home.ring()).unevenness
        self._say(f"the heaviest node carries {self.summary.before:.2f} times the mean")
        for _ in range(most):
            proposed = (await self._home.moves()).moves
            if not proposed or (await self._home.ring()).unevenness <= EVEN_ENOUGH:
                break
            await self._move(proposed[0])
        self.summary.after = (await self._home.ring()).unevenness
        self._say(f"the heaviest node carries {self.summary.after:.2f} times the mean")

    async def _move(self, move: TokenMoved) -> None:
        self._say(f"{move.node} is moved: {move.why}; that copies {move.bytes / 1e6:.1f} MB")
        await self._home.said("move", {"node": move.node, "token": move.token_hex})
        await self._home.settled()
        self.summary.moves.append(MoveMade(node=move.node, bytes=move.bytes, why=move.why))

    async def follow(self) -> None:
        """Say how the load goes, again and again."""
        while True:
            before = self.load.counts["requests"]
            await asyncio.sleep(TOLD_SECONDS)
            counts = self.load.counts
            rate = (counts["requests"] - before) / TOLD_SECONDS
            self._say(
                f"  {rate:.0f} requests/s, p99 {self.load.p99() * 1e3:.0f} ms, "
                f"{counts['failed']} failed, {counts['stale']} stale"
            )


async def run_ring(seconds: float, say: Say) -> RingSummary:
    """Run it all in a directory of its own; what it came to."""
    with TemporaryDirectory(prefix="tenure-ring-") as place:
        home = HomeRing(Path(place), NODES, spares=1)
        async with running(home, say) as demo:
            try:
                await demo.run(seconds)
            except TenureError as error:
                demo.summary.trouble = str(error)
        return demo.summary


@asynccontextmanager
async def running(home: HomeRing, say: Say) -> AsyncIterator[RingDemo]:
    """A cluster under load. At the end everything is read once more, and all processes end."""
    began = monotonic()
    try:
        say(f"a manager and {home.nodes} nodes are being started")
        await home.start()
        async with open_store(home.url, ROOMS) as store:
            load = RingLoad(store)
            demo = RingDemo(home, load, say)
            load.start()
            following = asyncio.create_task(demo.follow())
            try:
                yield demo
            finally:
                following.cancel()
                with suppress(asyncio.CancelledError):
                    await following
                await load.stop()
            await load.check()
            _count(demo.summary, load, monotonic() - began)
    finally:
        await home.end()


def _count(summary: RingSummary, load: RingLoad, seconds: float) -> None:
    summary.seconds = seconds
    summary.requests = load.counts["requests"]
    summary.failed = load.counts["failed"]
    summary.stale = load.counts["stale"]
    summary.lost = load.counts["lost"]
    summary.p99_ms = load.p99() * 1e3
    summary.slowest_ms = load.slowest * 1e3
    summary.last_failure = load.last_failure


def ring_lines(summary: RingSummary) -> list[str]:
    """The same for people."""
    copied = sum(move.bytes for move in summary.moves)
    killed, added = summary.killed or "nobody", summary.added or "nobody"
    lines = [
        (
            f"{summary.requests} requests in {summary.seconds:.0f} s: {summary.failed} failed, "
            f"{summary.stale} stale, {summary.lost} acknowledged writes lost"
        )
    ]
    lines.append(
        f"the latest had a p99 of {summary.p99_ms:.0f} ms; the slowest took "
        f"{summary.slowest_ms:.0f} ms"
    )
    lines.append(f"{killed} was killed, and left out after {summary.convicted_seconds:.1f} s")
    lines.append(f"{added} was added, and copied {summary.copied_bytes / 1e6:.1f} MB")
    lines.append(
        f"{len(summary.moves)} moves copied about {copied / 1e6:.1f} MB: the heaviest node carried "
        f"{summary.before:.2f} times the mean, and then {summary.after:.2f}"
    )
    if summary.last_failure:
        lines.append(f"the last request that failed: {summary.last_failure}")
    return [*lines, summary.trouble] if summary.trouble else lines
