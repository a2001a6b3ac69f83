"""Managers that start at the same instant: one leads, the others follow it."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tenure.runtime.clock import boot_clock
from tests.integration.etcd.servers import running
from tests.integration.failover.stage import KILL, Stage
from tests.patience import until

pytestmark = pytest.mark.asyncio


async def journal_for(kind: str, stack: AsyncExitStack, directory: Path) -> str:
    if kind == "sqlite":
        return f"sqlite:{directory / 'journal.sqlite'}"
    cluster = await stack.enter_async_context(running(directory / "etcd", 3))
    return f"etcd:{','.join(cluster.urls)}"


@pytest.mark.parametrize("kind", ["etcd", "sqlite"])
async def test_of_managers_that_start_at_once_one_leads(tmp_path: Path, kind: str) -> None:
    """The journal does not exist when they start: any of them may be the one that makes it."""
    async with AsyncExitStack() as stack:
        stage = Stage(stack, "default")
        journal = await journal_for(kind, stack, tmp_path)
        starts = [asyncio.to_thread(stage.start, journal, "--first-start") for _ in range(3)]
        await asyncio.gather(*starts)
        await stage.listening()

        async def others_follow() -> bool:
            leader = await stage.leader()
            last = [each.events[-1] for each in stage.standbys]
            return [each.get("leader") for each in last] == [leader.url] * 2

        await until(others_follow, "the others stand by and know who leads")
        won = {
            (each["leadership"], manager.url)
            for manager in stage.managers
            for each in manager.events
            if each["event"] == "leading"
        }
        assert len(dict(won)) == len(won), "a leadership has one leader"
        async with stage.traffic() as traffic:
            leader, died = await stage.leader(), boot_clock()
            leader.send(KILL)
            await traffic.renewed(died, leader.leadership + 1)
            traffic.check_unharmed()
