"""Kills and stops of whatever there is, drawn from a seed.

One process of each kind at a time is in trouble: so a quorum of nodes is up, and one manager. A
process that is killed is missed for a while before it is started again; one that is stopped goes
on where it was, perhaps long after its leases are over.
"""

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from lab.demo.ring.home_ring import until
from lab.histories.entities.log_system import LogSystem

APART_SECONDS = 1.5
LASTS_SECONDS = (0.1, 0.5, 1.5, 2.5, 5.0)
"""The term of owners is 1.2 s, and that of readers 1 s."""
STOPS = 0.4
"""How often it is a stop, and no kill."""


class Kills:
    """Makes so much trouble with processes of these kinds, and counts it."""

    def __init__(
        self, system: LogSystem, random: Random, most: int, kinds: Mapping[str, Sequence[str]]
    ) -> None:
        self._system = system
        self._random = random
        self._most = most
        self._kinds = kinds
        self.counts: Counter[str] = Counter()

    async def all(self) -> None:
        """Make all of it, and mend it."""
        async with asyncio.TaskGroup() as group:
            for kind, names in self._kinds.items():
                group.create_task(self._of_kind(kind, names))

    async def _of_kind(self, kind: str, names: Sequence[str]) -> None:
        while True:
            await asyncio.sleep(self._random.expovariate(1.0) * APART_SECONDS)
            if self.counts.total() >= self._most:
                return
            name = self._random.choice(names)
            if self._random.random() < STOPS:
                self._count(f"{kind} stopped")
                await self._stop(name)
            else:
                self._count(f"{kind} killed")
                await self._kill(kind, name)

    def _count(self, what: str) -> None:
        self.counts[what] += 1
        if self.counts.total() % 10 == 0:
            print(f"   {self.counts.total()} of {self._most}", file=sys.stderr, flush=True)

    async def _a_while(self) -> None:
        await asyncio.sleep(self._random.choice(LASTS_SECONDS) * (0.5 + self._random.random()))

    async def _stop(self, name: str) -> None:
        self._system.send(name, signal.SIGSTOP)
        try:
            await self._a_while()
        finally:
            self._system.send(name, signal.SIGCONT)

    async def _kill(self, kind: str, name: str) -> None:
        await self._system.kill_now(name)
        await self._a_while()
        await self._system.launch(name)
        await self._system.answers(name)
        if kind == "node":
            down = self._system.down
            await until(down, lambda found: name not in found, f"{name} is left out still")
