"""Managers on one journal, and traffic on them: the stage for faults.

Managers are processes; so are the members of etcd. Where a test asks for it, there are proxies on
every way from a manager to etcd, or from clients to a manager.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tenure.protocol.lease.timing import PRESETS
from tests.integration.etcd.proxy import Proxy, proxy_to
from tests.integration.etcd.servers import Cluster, running
from tests.integration.failover.traffic import Traffic, traffic
from tests.integration.processes import ManagerProcess
from tests.patience import until
from tests.versions.old import NEW, Release

PREFIX = "/tenure/"
"""Said, because older releases have another by default."""


class Manager(ManagerProcess):
    """A manager whose reports are kept."""

    def __init__(self, journal: str, preset: str, *options: str, release: Release = NEW) -> None:
        self.events: list[dict[str, Any]] = []
        self.journal = journal
        self.release = release
        port = () if "--port" in options else ("--port", "0")
        super().__init__([*port, "--preset", preset, "--journal", journal, *options], release)

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    @property
    def url(self) -> str:
        return next((str(each["url"]) for each in self.events if each["event"] == "listening"), "")

    @property
    def leadership(self) -> int:
        """Return the last one that it has won by now; 0 if it never led. A living manager may win
        another.
        """
        won = [each["leadership"] for each in self.events if each["event"] == "leading"]
        return int(won[-1]) if won else 0

    @property
    def role(self) -> str:
        """Return the role that it reported last."""
        return str(self.events[-1]["event"]) if self.events else ""

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    async def until_role(self, role: str) -> None:
        async def is_so() -> bool:
            assert not self.has_ended, self.log
            return self.role == role

        await until(is_so, f"{self.url} is {role}: {self.events[-3:]}")

    async def ended(self) -> int:
        """Wait for its end; its exit code."""
        return await asyncio.to_thread(self.end)

    def clean_up(self) -> None:
        self.process.kill()
        self.end()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe
            pipe.close()


class Stage:
    """Managers, and what they stand on."""

    def __init__(self, stack: AsyncExitStack, preset: str) -> None:
        self.stack = stack
        self.preset = preset
        self.timing = PRESETS[preset]
        self.managers: list[Manager] = []
        self.etcd: Cluster | None = None
        self.to_etcd: list[list[Proxy]] = []
        """The proxies of each manager, one to each member."""
        self.to_managers: list[Proxy] = []

    def start(self, journal: str, *options: str, release: Release = NEW) -> Manager:
        """One manager more; of the present release if no other is named."""
        made = Manager(journal, self.preset, *options, release=release)
        self.stack.callback(made.clean_up)
        self.managers.append(made)
        return made

    async def replace(self, manager: Manager, release: Release, *rings: str) -> Manager:
        """Stop a manager, and start one of another release at the same URL; it stands by then.

        If one of the present release leads from then on, it is told at once to plan these pools by
        the ring: on a busy machine it would lead for long enough to move ranges by their load.
        """
        leads = manager is await self.leader()
        manager.send(TERMINATE)
        assert await manager.ended() == 0, manager.log
        if leads:
            await self.leader(after=manager.leadership)
            await self.by_the_ring(*rings)
        port = manager.url.rpartition(":")[2]
        made = self.start(manager.journal, "--port", port, release=release)
        self.managers.remove(manager)
        await made.until_role("standing by")
        return made

    async def listening(self) -> None:
        async def is_so() -> bool:
            for each in self.managers:
                assert each.url or not each.has_ended, each.log
            return all(each.url for each in self.managers)

        await until(is_so, "all managers listen")

    async def leader(self, after: int = 0) -> Manager:
        """The one that leads under a leadership above `after`."""

        async def is_so() -> bool:
            assert not all(each.has_ended for each in self.managers), self.managers[-1].log
            return max(each.leadership for each in self.managers) > after

        await until(is_so, f"a leadership after {after}")
        return max(self.managers, key=lambda each: each.leadership)

    async def by_the_ring(self, *pools: str) -> None:
        """Have the leader plan these by the ring, as managers of every version can. Those of the
        first release know nothing else.

        What is not there yet is made, so that nothing has to move on account of it.
        """
        leader = await self.leader()
        if leader.release is not NEW:
            return
        url = f"{leader.url}/v1/pools"
        async with aiohttp.ClientSession(raise_for_status=True) as session:
            for pool in pools:
                await session.post(url, json={"name": pool, "kind": "hashed"})
                await session.post(f"{url}/{pool}/policy", json={"policy": "ring"})

    @property
    def standbys(self) -> list[Manager]:
        """All that live, but for the one that led last."""
        last = max(self.managers, key=lambda each: each.leadership)
        return [each for each in self.managers if each is not last and not each.has_ended]

    @property
    def urls(self) -> list[str]:
        """Return where clients find the managers."""
        return [each.url for each in self.to_managers or self.managers]

    @asynccontextmanager
    async def traffic(self, owners: int = 3) -> AsyncIterator[Traffic]:
        async with traffic(self.urls, self.timing, owners) as made:
            yield made
            made.check_safe()


@asynccontextmanager
async def on_etcd(
    directory: Path,
    *,
    preset: str = "default",
    managers: int = 2,
    size: int = 3,
    options: Sequence[str] = (),
    breakable: bool = False,
    parted: bool = False,
    release: Release = NEW,
) -> AsyncIterator[Stage]:
    """Managers on an etcd; `breakable` between the two, `parted` between clients and managers."""
    async with AsyncExitStack() as stack:
        stage = Stage(stack, preset)
        stage.etcd = await stack.enter_async_context(running(directory / "etcd", size, options))
        for n in range(managers):
            urls = stage.etcd.urls
            if breakable:
                ways = [await stack.enter_async_context(proxy_to(url)) for url in urls]
                stage.to_etcd.append(ways)
                urls = [each.url for each in ways]
            first = ["--first-start"] if n == 0 else []
            stage.start(f"etcd:{','.join(urls)}?prefix={PREFIX}", *first, release=release)
            if n == 0:
                await stage.leader()
        await stage.listening()
        if parted:
            for each in stage.managers:
                way = await stack.enter_async_context(proxy_to(each.url))
                stage.to_managers.append(way)
        yield stage


@asynccontextmanager
async def on_sqlite(
    directory: Path,
    *,
    preset: str = "default",
    managers: int = 2,
    release: Release = NEW,
) -> AsyncIterator[Stage]:
    """Managers on a journal in a file."""
    async with AsyncExitStack() as stack:
        stage = Stage(stack, preset)
        journal = f"sqlite:{directory / 'journal.sqlite'}"
        stage.start(journal, "--first-start", release=release)
        await stage.leader()
        for _ in range(managers - 1):
            stage.start(journal, release=release)
        await stage.listening()
        yield stage


STAGES = {"etcd": on_etcd, "sqlite": on_sqlite}
KILL, TERMINATE = signal.SIGKILL, signal.SIGTERM
