"""The leader dies, resigns, or stands still: another leads, and no served client notices."""

import signal
from pathlib import Path

import pytest

from tenure.runtime.clock import boot_clock
from tests.integration.failover.stage import KILL, STAGES, TERMINATE, on_etcd

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("journal", ["etcd", "sqlite"])
@pytest.mark.parametrize("number", [KILL, TERMINATE])
async def test_a_leader_that_dies_or_resigns_costs_no_lease(
    tmp_path: Path, journal: str, number: signal.Signals
) -> None:
    async with STAGES[journal](tmp_path) as stage, stage.traffic() as traffic:
        leader = await stage.leader()
        died = boot_clock()
        leader.send(number)
        await stage.leader(after=leader.leadership)
        await traffic.renewed(died, leader.leadership + 1)
        await traffic.have_served()
        traffic.check_unharmed()
        await traffic.newcomer()


async def test_three_leaders_within_one_term_cost_no_lease(tmp_path: Path) -> None:
    async with on_etcd(tmp_path, managers=4) as stage, stage.traffic() as traffic:
        first = traffic.leadership
        for number in (TERMINATE, KILL, TERMINATE):
            leader = await stage.leader(after=traffic.leadership - 1)
            since = boot_clock()
            leader.send(number)
            await traffic.renewed(since, leader.leadership + 1)
        # All three fall into one term, but on a machine so slow that each has one of its own.
        await traffic.have_served()
        traffic.check_unharmed()
        assert traffic.leadership >= first + 3
