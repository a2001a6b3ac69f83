"""The example `periodic.py`: every site is checked by one process, also when one comes or goes."""

from collections import Counter

import pytest

from examples.periodic import SITES, Rounds
from tenure import Lease
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster

pytestmark = pytest.mark.asyncio


class Checked:
    """Several processes, and which sites they have checked."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self._cluster = cluster
        self.sites: Counter[str] = Counter()

    async def begin(self) -> Rounds:
        rounds = Rounds(self.check)
        rounds.owner = self._cluster.owner(on_grant=rounds.on_grant, on_revoke=rounds.on_revoke)
        await rounds.owner.__aenter__()
        await self._cluster.turn(20)
        return rounds

    async def check(self, site: str, lease: Lease) -> None:
        assert lease.number
        self.sites[site] += 1

    async def of_a_round(self, *processes: Rounds) -> Counter[str]:
        self.sites.clear()
        for each in processes:
            assert await each.go_round() == len(each.mine)
        return self.sites


async def test_every_site_is_checked_once_a_round_by_whichever_process_has_it() -> None:
    once = Counter(SITES)
    async with InProcessCluster(["checks"], clock=TurnedClock()) as cluster:
        checked = Checked(cluster)
        first = await checked.begin()
        assert await checked.of_a_round(first) == once
        second = await checked.begin()
        assert await checked.of_a_round(first, second) == once
        assert first.mine
        assert second.mine
        await first.owner.close()
        await cluster.turn(5)
        assert await checked.of_a_round(second) == once
        third = await checked.begin()
        cluster.crash(second.owner)
        await cluster.turn(20)
        assert await checked.of_a_round(third) == once
        await third.owner.close()


async def test_a_site_whose_lease_is_lost_is_not_checked_even_before_that_is_told() -> None:
    async with InProcessCluster(["checks"], clock=TurnedClock()) as cluster:
        checked = Checked(cluster)
        only = await checked.begin()
        cluster.kill_manager()
        told = set(only.mine)
        await cluster.turn(20)
        only.mine = told
        assert await only.go_round() == 0
