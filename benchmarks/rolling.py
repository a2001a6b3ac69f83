"""A rolling restart under load: what clients notice, and how often keys move.

The service is that of `tenure demo`, in processes of its own: a manager, twelve owners that keep
state, a frontend that hears of losses. Beside it this process sends requests at a steady rate,
whether or not earlier ones were answered. It sends a tenth of them while nothing happens; then all
owners are restarted, two at a time, again and again, until all requests are sent.

In the first run each successor is started when its predecessor is gone; in the second, it is there
before its predecessor is asked to leave. `--no-surge` and `--surge` run only one of the two.
`--requests N` sets a smaller number of requests, `--rate N` another rate, `--policy NAME` another
policy than a new pool has.

Run it on a machine that does nothing else: if requests come faster than they can be served, the
figures show only how they queue.
"""

import asyncio
import sys
from argparse import ArgumentParser, BooleanOptionalAction
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from statistics import median, quantiles
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from time import monotonic
from typing import NamedTuple

import aiohttp
import msgspec

from benchmarks._quick import sized, soon
from benchmarks._rounds import line
from tenure.cli.demo.judge import RecordJudge
from tenure.cli.demo.operations import Operations, PresenceRequest, operations
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.presence import Status
from tenure.cli.demo.record import RecordReader
from tenure.cli.demo.reports import POOL
from tenure.cli.demo.rolling_restart import AT_ONCE, RollingRestart
from tenure.cli.demo.service import LOOK_SECONDS, DemoSettings, PresenceService
from tenure.protocol.lease.answers import PlanRead
from tenure.protocol.lease.leader.policies import POLICIES
from tenure.runtime.clock import boot_clock

OWNERS = sized(12, 4)
REQUESTS = sized(200_000, 1_500)
RATE = sized(200, 50)
"""Requests a second: what two cores can serve beside fifteen processes, two of which always start
again. With twice as many, requests wait for a processor (99th percentile 0.25 s above the quiet
one).
"""
QUIET_PART = 10
USERS = 1_000
READS_OF_TEN = 6
MEMBERS_CHANGED = ("house", "welcome", "ring")
"""The phases of policies that follow from changes of membership."""
MOVES, SURGE_MOVES = 1.4, 1.1
SLOWER_MS = soon(100)


class Load:
    """Requests at a steady rate, and their outcomes."""

    def __init__(self, does: Operations, rate: float, random: Random) -> None:
        self.operations = does
        self.rate = rate
        self.times: list[float] = []
        """The seconds that each took, since they were last emptied."""
        self.sent = 0
        self.lost: set[str] = set()
        self._random = random
        self._answered = {f"loaded-{n}": 0 for n in range(USERS)}
        self._users = list(self._answered)
        self._versions = count(1)

    async def run(self, is_over: Callable[[], bool]) -> None:
        """Send until it is over, and wait for the last answers."""
        began, sent = monotonic(), 0
        async with asyncio.TaskGroup() as group:
            while not is_over():
                for _ in range(int((monotonic() - began) * self.rate) - sent):
                    group.create_task(self._one(self._random.choice(self._users)))
                    sent += 1
                    self.sent += 1
                await asyncio.sleep(1 / self.rate)

    async def look(self) -> None:
        """Ask once for every key that was ever written."""
        for user in self._users:
            await self._read(user)

    async def _one(self, user: str) -> None:
        began = monotonic()
        if self._random.randrange(10) < READS_OF_TEN:
            await self._read(user)
        else:
            version = next(self._versions)
            if await self.operations.do(PresenceRequest(user, Status("online", version))):
                self._answered[user] = max(self._answered[user], version)
        self.times.append(monotonic() - began)

    async def _read(self, user: str) -> None:
        answered = self._answered[user]
        done = await self.operations.do(PresenceRequest(user))
        if done and (done.status.version if done.status else 0) < answered:
            self.lost.add(user)


def untold(_: str) -> None:
    """Is told what happens, and ignores it: only the results count here."""


class Surge(RollingRestart):
    """A successor is there before its predecessor is asked to leave."""

    def __init__(self, service: PresenceService) -> None:
        super().__init__(service, tell=untold)
        self._gone: list[OwnerPlace] = []

    async def _restart(self, place: OwnerPlace) -> None:
        owners = self._service.owners
        successor = OwnerPlace(place.number + OWNERS)
        await self._service.replace(successor)
        began = monotonic()
        await self._service.drain(place)
        self.times.append(monotonic() - began)
        self._gone.append(place)
        owners[owners.index(place)] = successor

    def _granted(self) -> float:
        gone = sum(place.total(lambda it: it.granted) for place in self._gone)
        return super()._granted() + gone


class Measured(NamedTuple):
    """One run."""

    requests: int
    failed: int
    at_once: int
    lost: int
    moves: list[float]
    """How often a key moves on average, in each round."""
    drains: list[float]
    quiet: float
    """The 99th percentile of the times of requests, in seconds."""
    rolling: float


async def measure(
    requests: int, rate: float, directory: Path, policy: str | None, *, is_surge: bool
) -> Measured:
    """Start everything, send at least this many requests, and end everything."""
    settings = DemoSettings(seconds=0, owners=OWNERS, frontends=1, preset="default")
    service = PresenceService(settings, directory, tell=untold)
    rolling = Surge(service) if is_surge else RollingRestart(service, tell=untold)
    try:
        await service.start()
        if policy:
            await choose(policy, service.managers.urls)
        assert service.lookup is not None
        async with (
            aiohttp.ClientSession() as session,
            operations(service.lookup, settings.timing.hold_ns) as does,
        ):
            load = Load(does, rate, Random(2))
            await load.run(lambda: load.sent >= requests // QUIET_PART)
            quiet, load.times = slow(load.times), []
            moves: list[float] = []
            settled = partial(has_settled, session, service.managers.urls)
            restarting = asyncio.create_task(restart(rolling, settled, moves, load, requests))
            await load.run(restarting.done)
            await restarting
            busy = slow(load.times)
            await load.look()
        await service.finish()
    finally:
        await service.close()
    judge = RecordJudge()
    for served in RecordReader(directory).new():
        judge.add(served)
    totals = service.frontends.totals
    return Measured(
        does.counts.requests + totals.requests,
        does.counts.failed + totals.failed,
        len(judge.found),
        len(load.lost) + totals.keys_lost,
        moves,
        rolling.times,
        quiet,
        busy,
    )


async def choose(policy: str, managers: str) -> None:
    """Have the pool dealt out by it from now on."""
    command = ("tenure", "pool", "policy", POOL, policy, "--manager", managers)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *command), stdout=DEVNULL
    )
    if await process.wait():
        raise SystemExit(1)  # it has said why


async def restart(
    rolling: RollingRestart,
    settled: Callable[[], Awaitable[None]],
    moves: list[float],
    load: Load,
    requests: int,
) -> None:
    """All owners, in rounds, until enough was sent. What a round makes move belongs to it."""
    while not moves or load.sent < requests:
        await rolling.play(boot_clock())
        await settled()
        moves.append(rolling.moves_per_key)


async def has_settled(session: aiohttp.ClientSession, manager: str) -> None:
    """Wait until nothing is to move because owners came and went."""
    while True:
        async with session.get(f"{manager}/v1/pools/{POOL}/plan") as response:
            plan = msgspec.json.decode(await response.read(), type=PlanRead)
        if not any(flow.phase in MEMBERS_CHANGED for flow in plan.flows):
            return
        await asyncio.sleep(LOOK_SECONDS)


def slow(times: list[float]) -> float:
    """The 99th percentile."""
    return quantiles(times, n=100)[-1]


def main() -> int:
    """Restart, and print; return 1 if a bound is not kept."""
    parser = ArgumentParser()
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--policy", choices=tuple(POLICIES["hashed"]))
    parser.add_argument("--surge", action=BooleanOptionalAction)
    said = parser.parse_args()
    are_kept = []
    for is_surge in (False, True) if said.surge is None else (said.surge,):
        with TemporaryDirectory() as directory:
            run = measure(said.requests, said.rate, Path(directory), said.policy, is_surge=is_surge)
            found = asyncio.run(run)
        print("successors start before their predecessors leave:" if is_surge else "in place:")
        are_kept.append(report(found, SURGE_MOVES if is_surge else MOVES))
    return 0 if all(are_kept) else 1


def report(found: Measured, moves_bound: float) -> bool:
    """The figures beside their bounds; whether all are kept."""
    print(
        f"  {found.requests:,} requests, {len(found.drains)} restarts of {OWNERS} owners, "
        f"{AT_ONCE} at a time; a drain takes {median(found.drains):.2f} s in the median, "
        f"{max(found.drains):.2f} s at most; a key moves "
        f"{', '.join(f'{each:.2f}' for each in found.moves)} times in the rounds; 99 of 100 "
        f"requests take {found.quiet * 1000:.0f} ms at most when it is quiet"
    )
    moves, slower = max(found.moves), (found.rolling - found.quiet) * 1000
    figures = [
        ("requests that failed", f"{found.failed}", "0", found.failed == 0),
        ("keys with two owners at once", f"{found.at_once}", "0", found.at_once == 0),
        ("keys whose state was lost", f"{found.lost}", "0", found.lost == 0),
        (
            "moves of a key, in the worst round",
            f"{moves:.2f}",
            f"<= {moves_bound:g}",
            moves <= moves_bound,
        ),
        (
            "99th percentile above the quiet one",
            f"{slower:.0f} ms",
            f"<= {SLOWER_MS:g} ms",
            slower <= SLOWER_MS,
        ),
    ]
    for what, figure, bound, is_kept in figures:
        print(line(what, figure, bound, is_kept=is_kept))
    return all(is_kept for *_, is_kept in figures)


if __name__ == "__main__":
    sys.exit(main())
