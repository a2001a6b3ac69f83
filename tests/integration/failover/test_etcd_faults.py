"""Etcd loses members, its majority, its space, its speed: owners that serve go on serving."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tenure.protocol.balance.load import share_of
from tenure.runtime.clock import boot_clock
from tests.integration.etcd.keys import delete, put
from tests.integration.etcd.servers import Cluster
from tests.integration.etcd.test_space import QUOTA, fill, free
from tests.integration.failover.stage import KILL, PREFIX, Stage, on_etcd
from tests.integration.failover.traffic import KEYS, Traffic
from tests.patience import until

pytestmark = pytest.mark.asyncio
MANAGER_KEY = "/tenure/front/manager"
BEAT_KEY = "/tenure/front/beat"
DELAY_SECONDS = 0.15
BEATS = 40
"""How many beats of a leader the shorter outage lasts."""


def etcd_of(stage: Stage) -> Cluster:
    assert stage.etcd
    return stage.etcd


async def goes_on(traffic: Traffic) -> None:
    """Check that everything is as before: all are renewed, nothing was lost, and a leader can
    grant.
    """
    await traffic.renewed(boot_clock())
    await traffic.have_served()
    traffic.check_unharmed()
    await traffic.newcomer()


async def test_a_member_of_etcd_is_killed(tmp_path: Path) -> None:
    """The one that leads the others: the worst."""
    async with on_etcd(tmp_path) as stage, stage.traffic() as traffic:
        etcd = etcd_of(stage)
        etcd.members[await etcd.leader()].kill()
        await goes_on(traffic)


async def test_etcd_loses_its_majority_and_gets_it_back(tmp_path: Path) -> None:
    async with on_etcd(tmp_path) as stage, stage.traffic() as traffic:
        members = etcd_of(stage).members
        for each in members[1:]:
            each.kill()
        await traffic.is_left_alone()
        for each in members[1:]:
            each.start()
        await goes_on(traffic)


@pytest.mark.parametrize("seconds_of_default", [40, 120])
async def test_owners_lapse_in_a_long_outage_and_are_granted_anew(
    tmp_path: Path, seconds_of_default: int
) -> None:
    """The outages last 40 and 120 s beside a term of 12 s. `make outages` lets them take that long;
    otherwise everything takes a tenth of it.
    """
    preset, times = ("default", 1) if "TENURE_TEST_OUTAGES" in os.environ else ("test", 10)
    async with on_etcd(tmp_path, preset=preset) as stage, stage.traffic() as traffic:
        for each in etcd_of(stage).members:
            each.send(signal.SIGSTOP)
        await asyncio.sleep(seconds_of_default / times)
        assert not any(owner.ranges for owner in traffic.owners.values())
        assert not any(traffic.lookup.find(key) for key in KEYS)
        for each in etcd_of(stage).members:
            each.send(signal.SIGCONT)
        await until(traffic.is_settled, "all keys have an owner again")
        await traffic.have_served()
        traffic.check_safe()
        assert sum(map(share_of, traffic.lost)) >= 1, "the loss of every key is signalled"
        await traffic.newcomer()
        for manager in stage.managers:
            said = manager.log
            failures = said.count("journal failed:") + said.count("append unknown:")
            assert 1 <= failures <= BEATS / 4, said  # not at every beat of the outage
            assert failures - said.count("the journal answers again") in (0, 1), said


async def test_all_of_etcd_is_restarted(tmp_path: Path) -> None:
    async with on_etcd(tmp_path) as stage, stage.traffic() as traffic:
        members = etcd_of(stage).members
        for each in members:
            each.kill()
        for each in members:
            each.start()
        await goes_on(traffic)


async def test_etcd_is_out_of_space_for_a_while(tmp_path: Path) -> None:
    options = [f"--quota-backend-bytes={QUOTA}"]
    async with on_etcd(tmp_path, size=1, options=options) as stage, stage.traffic() as traffic:
        await fill(etcd_of(stage))
        await traffic.is_left_alone()
        await free(etcd_of(stage))
        await goes_on(traffic)
        assert "out of space" in "".join(each.log for each in stage.managers)


async def test_managers_of_an_etcd_that_was_wiped_say_what_to_do_and_begin_anew(
    tmp_path: Path,
) -> None:
    async with on_etcd(tmp_path, size=1, preset="test") as stage, stage.traffic() as traffic:
        old = list(stage.managers)
        await delete(etcd_of(stage), PREFIX)
        for each in old:
            assert await each.ended() == 1
            assert "was deleted or replaced while it was in use" in each.log
            assert "`tenure docs operating/etcd`" in each.log
            assert "Traceback" not in each.log
        stage.managers.clear()
        again = stage.start(old[0].journal)
        await stage.leader()
        (leading,) = (each for each in again.events if each["event"] == "leading")
        assert 60 < leading["grants_in_seconds"] <= 65
        traffic.check_safe()
        traffic.abandon()


async def test_with_a_slow_etcd_leaders_follow_each_other_and_grant(tmp_path: Path) -> None:
    """Every answer of etcd takes 150 ms and more; an append takes one, a takeover several."""
    async with on_etcd(tmp_path, breakable=True) as stage, stage.traffic() as traffic:
        for way in (way for ways in stage.to_etcd for way in ways):
            way.delay_seconds = DELAY_SECONDS
        leader = await stage.leader()
        await traffic.renewed(boot_clock(), leader.leadership)
        died = boot_clock()
        leader.send(KILL)
        await traffic.renewed(died, leader.leadership + 1)
        traffic.check_unharmed()
        await traffic.newcomer()


async def test_the_seat_is_vacated_under_the_leader(tmp_path: Path) -> None:
    """This is as if etcd revoked a leadership early: another manager leads while the first may
    still answer. Or the first is the first to see it, and takes the seat again. Before that its
    time is set back, which is no reason for anything.
    """
    async with on_etcd(tmp_path) as stage, stage.traffic() as traffic:
        etcd, before = etcd_of(stage), (await stage.leader()).leadership
        await put(etcd, BEAT_KEY, b"0")
        await traffic.renewed(boot_clock(), before)
        vacated = boot_clock()
        await put(etcd, MANAGER_KEY, b'""')
        await stage.leader(after=before)
        await traffic.renewed(vacated, before + 1)
        await asyncio.gather(*(each.until_role("standing by") for each in stage.standbys))
        await goes_on(traffic)


async def test_majority_and_leader_are_lost_together(tmp_path: Path) -> None:
    async with on_etcd(tmp_path) as stage, stage.traffic() as traffic:
        leader, members = await stage.leader(), etcd_of(stage).members
        for each in members[1:]:
            each.kill()
        leader.send(KILL)
        await traffic.is_left_alone()
        for each in members[1:]:
            each.start()
        await until(etcd_of(stage).ready, "etcd answers")
        await stage.leader(after=leader.leadership)
        await goes_on(traffic)
