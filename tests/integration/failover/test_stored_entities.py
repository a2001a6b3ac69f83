"""Entities, and owned state, on a store of three nodes: owners and nodes are processes, and end
under load.

Rounds of three steps go on for half a minute, each in an order that is drawn: an owner is killed;
an owner is stopped past its term and woken when its successors have answered; a node is killed, and
the one that was killed before comes again. Numbers are added to some keys all the while. What a key
has is a list, so whatever was seen of it once begins what is seen later: a former owner's late
commit would put an earlier list, with something else at its end, in its place.

`TENURE_TEST_SEED` draws the same orders again.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from random import Random, SystemRandom
from time import monotonic

import pytest

from lab.demo.ring.home_ring import HomeRing, until
from tests.integration.failover.asked_worker import Worker
from tests.integration.failover.entity_worker import APART

pytestmark = pytest.mark.asyncio
SECONDS = 30.0
"""The time in which rounds begin."""
STEPS = ("kill_an_owner", "stop_an_owner", "kill_a_node")
KEYS = [f"key-{i}" for i in range(12)]
NODES = ["node-1", "node-2", "node-3"]


class Load:
    """Numbers that are added to keys, and what became of them."""

    def __init__(self, worker: str, home: HomeRing, dice: Random) -> None:
        self._worker = worker
        self._home = home
        self._dice = dice
        self._numbers = count(1)
        self.workers: list[Worker] = []
        """Those that may be asked: neither killed nor stopped."""
        self._everybody: list[Worker] = []
        self._down = ""
        self._kept: dict[str, set[int]] = {key: set() for key in KEYS}
        self._refused: dict[str, set[int]] = {key: set() for key in KEYS}
        self._seen: dict[str, list[int]] = {key: [] for key in KEYS}
        self.counts: Counter[str] = Counter()
        self._adding: list[asyncio.Task[None]] = []

    async def join(self) -> None:
        """One more may own keys."""
        worker = await Worker.start(
            *(f"tests.integration.failover.{self._worker}", "columns:"),
            TENURE_MANAGERS=self._home.manager,
            TENURE_STORE=self._home.url,
        )
        self.workers.append(worker)
        self._everybody.append(worker)

    def begin(self) -> None:
        """Add numbers to each key, one after the other, until `end`."""
        self._adding = [asyncio.create_task(self._add(key)) for key in KEYS]

    async def end(self) -> None:
        """Add no more."""
        for each in self._adding:
            each.cancel()
        await asyncio.gather(*self._adding, return_exceptions=True)

    async def leave(self) -> None:
        """All processes end."""
        await self.end()
        for each in self._everybody:
            await each.end()

    async def _add(self, key: str) -> None:
        while True:
            number = next(self._numbers)
            worker = self._dice.choice(self.workers)
            with suppress(TimeoutError):
                told = await worker.ask(f"{key} {number}")
                what = told.split(" ")[0]
                self.counts[what] += 1
                if what == "kept":
                    self._kept[key].add(number)
                elif what == "refused":
                    self._refused[key].add(number)
            await asyncio.sleep(0)  # a worker that has died answers at once

    async def check(self) -> None:
        """Whatever was kept is there, nothing that was seen has changed, and nothing is there
        twice, or although it was not begun.
        """
        for key in KEYS:
            kept = {*self._kept[key]}
            found = await until(lambda key=key: self._all(key), bool, f"{key} cannot be read")  # type: ignore[misc]  # mypy cannot infer it
            listed = found.removeprefix(f"has {key}").strip()
            numbers = [int(each) for each in listed.split(",") if each]
            seen = self._seen[key]
            assert APART not in numbers, f"{key}: collections and state were kept apart"
            assert numbers[: len(seen)] == seen, f"{key}: what was seen has changed"
            assert kept <= {*numbers}, f"{key}: {kept - {*numbers}} was kept, and is lost"
            assert len({*numbers}) == len(numbers), f"{key}: something was done twice"
            assert not self._refused[key] & {*numbers}, f"{key}: what was not begun was done"
            self._seen[key] = numbers

    async def _all(self, key: str) -> str:
        with suppress(TimeoutError):
            told = await self._dice.choice(self.workers).ask(key)
            return told if told.startswith("has ") else ""
        return ""

    # --- what happens ---

    async def kill_an_owner(self) -> None:
        worker = self.workers.pop(self._dice.randrange(len(self.workers)))
        worker.process.kill()
        await self.check()
        await self.join()

    async def stop_an_owner(self) -> None:
        worker = self.workers.pop(self._dice.randrange(len(self.workers)))
        worker.process.send_signal(signal.SIGSTOP)
        await self.check()
        worker.process.send_signal(signal.SIGCONT)
        self.workers.append(worker)  # it may soon own some of the keys again
        await self.check()

    async def kill_a_node(self) -> None:
        if self._down:
            await self._home.launch(self._down)
            await until(self._home.down, lambda down: not down, "a node is left out still")
        self._down = self._dice.choice(NODES)
        self._home.kill(self._down)
        await self.check()


@asynccontextmanager
async def loaded(worker: str, place: Path, dice: Random) -> AsyncIterator[Load]:
    home = HomeRing(place, len(NODES), 0, managing=("--first-start", "--preset", "test"))
    load = Load(worker, home, dice)
    try:
        await home.start()
        for _ in range(2):
            await load.join()
        load.begin()
        yield load
    finally:
        await load.leave()
        await home.end()


@pytest.mark.parametrize("worker", ["entity_worker", "state_worker"])
async def test_nothing_is_lost_and_nothing_late_is_taken_whatever_ends(
    worker: str, tmp_path: Path
) -> None:
    seed = int(os.environ.get("TENURE_TEST_SEED") or SystemRandom().getrandbits(31))
    print(f"TENURE_TEST_SEED={seed}")
    dice = Random(seed)
    async with loaded(worker, tmp_path, dice) as load:
        ends_at = monotonic() + SECONDS
        while monotonic() < ends_at:
            for step in dice.sample(STEPS, len(STEPS)):
                print(step, dict(load.counts))
                await getattr(load, step)()
        await load.end()
        await load.check()
    print(dict(load.counts))
    assert load.counts["kept"] > len(KEYS)
