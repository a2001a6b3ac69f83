"""Managers of both versions follow each other, upgraded or killed: no served client notices.

The newer ones are told to plan by the ring, as the older ones do: nothing moves for another reason.
"""

from pathlib import Path

import pytest

from tenure.runtime.clock import boot_clock
from tests.integration.failover.stage import KILL, STAGES
from tests.integration.failover.traffic import POOL
from tests.integration.versions.clients import clients_of
from tests.versions import client
from tests.versions.old import NEW, OLD, Release

pytestmark = pytest.mark.asyncio

POOLS = (POOL, client.POOL)


@pytest.mark.parametrize("journal", ["etcd", "sqlite"])
async def test_a_rolling_upgrade_of_all_managers_and_back_costs_no_lease(
    tmp_path: Path, journal: str
) -> None:
    async with (
        STAGES[journal](tmp_path, managers=3, release=OLD) as stage,
        clients_of(stage.urls, OLD, NEW) as clients,
        stage.traffic() as traffic,
    ):
        for version in (NEW, OLD):
            for each in list(stage.managers):
                since = boot_clock()
                await stage.replace(each, version, *POOLS)
                leadership = (await stage.leader()).leadership
                await traffic.renewed(since, leadership)
                await clients.check_undisturbed(leadership)
            await traffic.have_served()
            traffic.check_unharmed()
            await clients.grow(version)
        await traffic.newcomer()


@pytest.mark.parametrize("journal", ["etcd", "sqlite"])
@pytest.mark.parametrize(("first", "second"), [(NEW, OLD), (OLD, NEW)], ids=["back", "on"])
async def test_a_leader_that_is_killed_is_followed_by_a_standby_of_the_other_version(
    tmp_path: Path, journal: str, first: Release, second: Release
) -> None:
    async with STAGES[journal](tmp_path, managers=1, release=first) as stage:
        [leader] = stage.managers
        standby = stage.start(leader.journal, release=second)
        await standby.until_role("standing by")
        await stage.by_the_ring(*POOLS)
        async with clients_of(stage.urls, NEW, OLD) as clients, stage.traffic() as traffic:
            died = boot_clock()
            leader.send(KILL)
            assert await stage.leader(after=leader.leadership) is standby
            await stage.by_the_ring(*POOLS)
            await traffic.renewed(died, standby.leadership)
            await traffic.have_served()
            traffic.check_unharmed()
            await clients.check_undisturbed(standby.leadership)
            await clients.grow(first)
            await traffic.newcomer()
