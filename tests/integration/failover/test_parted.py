"""The leader is cut off from etcd but not from its clients, and the reverse."""

from pathlib import Path

import pytest

from tenure.runtime.clock import boot_clock
from tests.integration.etcd.proxy import Mode, Proxy
from tests.integration.failover.stage import on_etcd
from tests.patience import until

pytestmark = pytest.mark.asyncio


def become(ways: list[Proxy], mode: Mode) -> None:
    for way in ways:
        way.mode = mode


async def test_a_leader_cut_off_from_etcd_falls_silent_and_another_leads(tmp_path: Path) -> None:
    """Whatever it had sent to etcd arrives when it no longer leads."""
    async with on_etcd(tmp_path, breakable=True) as stage, stage.traffic() as traffic:
        leader = await stage.leader()
        parted = boot_clock()
        become(stage.to_etcd[0], "hold")
        await stage.leader(after=leader.leadership)
        await traffic.renewed(parted, leader.leadership + 1)
        become(stage.to_etcd[0], "pass")
        await leader.until_role("standing by")
        await traffic.have_served()
        traffic.check_unharmed()
        await traffic.newcomer()


async def test_a_leader_cut_off_from_its_clients_for_less_than_a_term_costs_nothing(
    tmp_path: Path,
) -> None:
    """No other manager can lead, because this one beats. Owners keep serving by what they were told
    (P24).
    """
    async with on_etcd(tmp_path, parted=True) as stage, stage.traffic() as traffic:
        leader = await stage.leader()
        become(stage.to_managers, "hold")
        await traffic.is_left_alone()
        become(stage.to_managers, "pass")
        await traffic.renewed(boot_clock(), leader.leadership)
        await traffic.have_served()
        traffic.check_unharmed()
        assert [each.leadership for each in stage.managers] == [leader.leadership, 0]


async def test_a_leader_cut_off_from_its_clients_for_a_term_costs_the_leases_and_says_so(
    tmp_path: Path,
) -> None:
    async with on_etcd(tmp_path, preset="test", parted=True) as stage, stage.traffic() as traffic:
        leader = await stage.leader()
        become(stage.to_managers, "hold")

        async def all_is_over() -> bool:
            return not any(owner.ranges for owner in traffic.owners.values()) and bool(traffic.lost)

        await until(all_is_over, "the leases have ended, and the lookup signals it")
        become(stage.to_managers, "pass")
        await until(traffic.is_settled, "the owners share the keys again")
        await traffic.have_served()
        traffic.check_safe()
        assert max(each.leadership for each in stage.managers) == leader.leadership
