"""A cluster of processes whose ring changes under load: no request fails or reads too little.

A fourth node is added, and killed at half of its copy; then one is removed, another moved, and a
third replaced. The removed node is refused when it comes again. Copies are throttled, so that there
is a half at which to kill; that takes a minute.
"""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tenure import Family, Table, open_store
from tenure.cli.demo.ports import free_ports
from tenure.columns.store import ColumnStore
from tests import patience
from tests.integration.columns.test_cluster import TENURE, home_cluster

pytestmark = pytest.mark.asyncio
MAIL = Table("mail", kind="hashed", profile=Family(columns=str))
ROWS = 400
VALUE = b"x" * 5_000
SECONDS = 60


class Load:
    """Workers that write and read, each its own row, until they are stopped."""

    def __init__(self, store: ColumnStore) -> None:
        self.store = store
        self.done = 0
        self._stops = asyncio.Event()
        self._workers = [asyncio.create_task(self._work(number)) for number in range(3)]

    async def _work(self, worker: int) -> None:
        count = 0
        while not self._stops.is_set():
            value = f"{worker}-{count}".encode()
            await self.store.insert(MAIL, f"user-{worker}", {"profile": {"n": value}})
            found = await self.store.get(MAIL, f"user-{worker}", "profile", "n")
            assert found.value == value
            count, self.done = count + 1, self.done + 1

    async def stop(self) -> None:
        self._stops.set()
        await asyncio.gather(*self._workers)

    async def until_more(self, rows: int) -> None:
        enough = self.done + rows

        def is_done() -> bool:
            self.check()
            return self.done >= enough

        await patience.until(is_done, seconds=SECONDS)

    def check(self) -> None:
        for worker in self._workers:
            if worker.done():
                worker.result()


class Ring:
    """The manager of a cluster at home."""

    def __init__(self, url: str, load: Load) -> None:
        self._url = f"{url}/v1/clusters/home"
        self._load = load

    async def steer(self, verb: str, **said: object) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self._url}/{verb}", json=said) as answer,
        ):
            assert answer.ok, await answer.text()

    async def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until something holds of the ring, while the load goes on."""
        async with aiohttp.ClientSession() as session:

            async def found() -> Any:  # noqa: ANN401 - JSON
                async with session.get(f"{self._url}/ring") as answer:
                    ring = await answer.json()
                self._load.check()
                return holds(ring) and ring

            return dict(await patience.until(found, seconds=SECONDS))

    async def settled(self) -> dict[str, Any]:
        return await self.until(lambda ring: not ring["change"])


def command_of(home: Path, manager: str, name: str, port: int) -> list[str]:
    """Return the command that starts a node which copies slowly."""
    return [
        *(*TENURE, "columns", "node", "--cluster", "home", "--name", name, "--json"),
        *("--data", str(home / name), "--port", str(port), "--secret", str(home / "secret")),
        *("--manager", manager, "--copy-rate", "0.4", "--log-level", "error"),
    ]


@contextmanager
def node(home: Path, manager: str, name: str, port: int) -> Iterator[subprocess.Popen[str]]:
    """A process of a node."""
    with subprocess.Popen(
        command_of(home, manager, name, port), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert json.loads(process.stdout.readline())["event"] == "listening"
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def standing(name: str, wanted: str) -> Callable[[dict[str, Any]], bool]:
    return lambda ring: any(
        each["name"] == name and each["standing"] == wanted for each in ring["nodes"]
    )


def is_half_copied(ring: dict[str, Any]) -> bool:
    found = next(each for each in ring["nodes"] if each["name"] == "four")
    return bool(0 < found["to_copy"] <= 2 * found["copied"])


async def test_a_ring_changes_under_load(tmp_path: Path) -> None:
    home, [port, _, _, _, four, five] = tmp_path / "home", free_ports(6)
    with home_cluster(home, port) as told:
        async with open_store(told["url"], MAIL) as store:
            rows = [f"row-{number}" for number in range(ROWS)]
            for row in rows:
                await store.insert(MAIL, row, {"profile": {"n": VALUE}})
            load = Load(store)
            ring = Ring(told["manager"], load)
            with node(home, told["manager"], "four", four):
                await ring.until(standing("four", "waiting"))
                await ring.steer("add", node="four")
                await ring.until(is_half_copied)
            with node(home, told["manager"], "four", four):
                found = await ring.settled()
                assert standing("four", "member")(found)
                await ring.steer("remove", node="node-1")
                found = await ring.settled()
                assert found["removed"] == ["node-1"]
                await ring.steer("move", node="node-2", token="4000")  # noqa: S106 - a place on the ring
                await ring.settled()
                with node(home, told["manager"], "five", five):
                    await ring.until(standing("five", "waiting"))
                    await ring.steer("replace", node="node-3", by="five")
                    found = await ring.settled()
                    names = sorted(each["name"] for each in found["nodes"])
                    assert names == ["five", "four", "node-2"]
                    await load.until_more(20)
                    await load.stop()
                    async with open_store(f"columns:http://127.0.0.1:{five}", MAIL) as last:
                        for row in rows:
                            assert (await last.get(MAIL, row, "profile", "n")).value == VALUE
                    command = command_of(home, told["manager"], "node-1", port + 1)
                    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as again:  # noqa: ASYNC220 - as above
                        _, said = await asyncio.to_thread(again.communicate, timeout=SECONDS)
                    assert again.returncode != 0
                    assert "was removed from 'home', for ever" in said
