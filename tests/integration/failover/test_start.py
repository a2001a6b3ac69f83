"""Managers that start at the same instant: one leads, the others follow it."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tenure.runtime.clock import boot_clock
from tests.integration.etcd.servers import running, until
from tests.integration.failover.stage import KILL, Stage

pytestmark = pytest.mark.asyncio


async def journal_for(kind: str, stack: AsyncExitStack, directory: Path) -> str:
    if kind == "sqlite":
        return f"sqlite:{directory / 'journal.sqlite'}"
    cluster = await stack.enter_async_context(running(directory / "etcd", 3))
    return f"etcd:{','.join(cluster.urls)}"


@pytest.mark.parametrize("kind", ["etcd", "sqlite"])
async def test_of_managers_that_start_at_once_one_leads(tmp_path: Path, kind: str) -> None:
    """On a journal that none of them finds there: each may be the one that makes it."""
    async with AsyncExitStack() as stack:
        stage = Stage(stack, "default")
        journal = await journal_for(kind, stack, tmp_path)
        starts = [asyncio.to_thread(stage.start, journal, "--first-start") for _ in range(3)]
        await asyncio.gather(*starts)
        await stage.listening()
        leader = await stage.leader()

        async def others_stand_by() -> bool:
            return all(each.role == "standing by" for each in stage.standbys)

        await until(others_stand_by, "the others stand by")
        assert [each.events[-1]["leader"] for each in stage.standbys] == [leader.url] * 2
        assert leader.leadership == 1
        async with stage.traffic() as traffic:
            died = boot_clock()
            leader.send(KILL)
            await traffic.renewed(died, 2)
            traffic.check_unharmed()
