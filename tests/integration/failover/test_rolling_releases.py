"""A release is deployed under load, taken back, and deployed again: real processes of two versions
of a class have the same keys in turn, and nothing is lost that either has kept.

Each process is replaced by one of the other release, which begins before it leaves. So for most of
the time both have keys. In the last part the old processes are killed, which a store survives.
"""

import asyncio
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

import pytest

from tests.integration.failover.asked_worker import Worker
from tests.integration.processes import manager
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
KEYS = [f"key-{i}" for i in range(8)]
BETWEEN = 15
"""Calls that are answered between two replacements."""


class Deployment:
    """Two processes of a pool, their load, and what became of it."""

    def __init__(self, url: str, store: str | None) -> None:
        self._url = url
        self._store = () if store is None else (store,)
        self._dice = Random(0)
        self._numbers = count(1)
        self.workers: list[Worker] = []
        self._everybody: list[Worker] = []
        self.kept: dict[str, set[int]] = {key: set() for key in KEYS}
        self.refused: dict[str, set[int]] = {key: set() for key in KEYS}
        self.answered = 0
        self._has_answered = asyncio.Condition()
        self._adding: list[asyncio.Task[None]] = []

    async def join(self, release: str) -> None:
        worker = await Worker.start(
            *("tests.integration.failover.release_worker", release, *self._store),
            TENURE_MANAGERS=self._url,
        )
        self.workers.append(worker)
        self._everybody.append(worker)

    def begin(self) -> None:
        self._adding = [asyncio.create_task(self._add(key)) for key in KEYS]

    async def end(self) -> None:
        for each in self._adding:
            each.cancel()
        await asyncio.gather(*self._adding, return_exceptions=True)
        for worker in self._everybody:
            await worker.end()

    async def _add(self, key: str) -> None:
        while True:
            number = next(self._numbers)
            with suppress(TimeoutError):
                told = await self._dice.choice(self.workers).ask(f"{key} {number}")
                what = told.split(" ")[0]
                if what == "kept":
                    self.kept[key].add(number)
                    async with self._has_answered:
                        self.answered += 1
                        self._has_answered.notify_all()
                elif what == "refused":
                    self.refused[key].add(number)
            await asyncio.sleep(0)

    async def go_on(self) -> None:
        """Wait until some more calls were answered."""
        until = self.answered + BETWEEN
        async with asyncio.timeout(DEADLINE_SECONDS), self._has_answered:
            await self._has_answered.wait_for(lambda: self.answered >= until)

    async def replace_all(self, release: str, *, by_killing: bool = False) -> None:
        for worker in list(self.workers):
            await self.join(release)
            await self.go_on()
            self.workers.remove(worker)
            await (worker.end() if by_killing else worker.leave())
            await self.go_on()

    async def check(self) -> None:
        """All that was kept is there, once, and as the release that has kept it knows it."""
        for key in KEYS:
            kept = {*self.kept[key]}
            found = await self._found(key)
            assert len({*found}) == len(found), f"{key}: something was done twice"
            assert kept <= {*found}, f"{key}: {kept - {*found}} was kept, and is lost"
            assert not self.refused[key] & {*found}, f"{key}: what was not begun was done"

    async def _found(self, key: str) -> list[int]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                told = await self._dice.choice(self.workers).ask(key)
                if told.startswith("has "):
                    listed = told.removeprefix(f"has {key}").strip()
                    assert not listed.startswith("lost"), f"{key} {listed}"
                    return [int(each) for each in listed.split(",") if each]


@pytest.mark.parametrize("stored", [False, True], ids=["handed over", "stored"])
async def test_a_release_is_deployed_and_taken_back_under_load(
    stored: bool,
    tmp_path: Path,
) -> None:
    with manager("--first-start") as managing:
        url = managing.wait_for("listening")["url"]
        deployment = Deployment(url, f"sqlite:{tmp_path / 'store'}" if stored else None)
        try:
            for _ in range(2):
                await deployment.join("old")
            deployment.begin()
            await deployment.go_on()
            for release in ("new", "old", "new"):
                await deployment.replace_all(release)
                await deployment.check()
            if stored:
                await deployment.replace_all("old", by_killing=True)
                await deployment.replace_all("new", by_killing=True)
                await deployment.check()
        finally:
            await deployment.end()
