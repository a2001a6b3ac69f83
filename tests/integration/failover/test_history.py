"""Histories that managers share are cut short under one that lags, or put back to an old copy under
all.
"""

import asyncio
import shutil
import signal
from pathlib import Path

import pytest

from tenure.journals.etcd.journal import EtcdJournal
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.log.journal import Mandate
from tenure.runtime.clock import boot_clock
from tenure.wire.lease_records import LEASE_RECORDS
from tests.integration.etcd.servers import Cluster
from tests.integration.failover.stage import KILL, Manager, Stage, on_etcd
from tests.integration.processes import run
from tests.patience import until

pytestmark = pytest.mark.asyncio


def etcd_of(stage: Stage) -> Cluster:
    assert stage.etcd
    return stage.etcd


async def compacted(etcd: Cluster, leadership: int) -> None:
    """The journal by its leader, as it does after many records; and then etcd's own history."""
    journal = EtcdJournal.open(etcd.journal_url(), LEASE_RECORDS)
    try:
        found = await journal.load()
        history = LeaseHistory(found.state, found.state_lsn)
        for record in found.records:
            history.apply(record)
        assert await journal.compact(
            Mandate(found.journal, leadership), history.lsn, history.state()
        )
        assert (await journal.load()).records == ()
    finally:
        await journal.close()
    await etcd.compact()


async def test_the_journal_is_compacted_under_a_standby_that_lags(tmp_path: Path) -> None:
    async with on_etcd(tmp_path) as stage, stage.traffic() as traffic:
        leader, (standby,) = await stage.leader(), stage.standbys
        standby.send(signal.SIGSTOP)
        await traffic.newcomer()  # records that the standby has not read
        traffic.settle()
        await compacted(etcd_of(stage), leader.leadership)
        standby.send(signal.SIGCONT)
        died = boot_clock()
        leader.send(KILL)
        await traffic.renewed(died, leader.leadership + 1)
        await traffic.have_served()
        traffic.check_unharmed()
        await traffic.newcomer()


# --- put back ---


async def restarted(etcd: Cluster, put_back: Path | None = None) -> None:
    """Etcd again; with the data that it had at another time."""
    (member,) = etcd.members
    member.kill()
    if put_back is not None:
        data = member.directory / member.name
        shutil.rmtree(data)
        shutil.copytree(put_back, data)
    member.start()
    await until(etcd.ready, "etcd answers")


async def backup(etcd: Cluster, to: Path) -> Path:
    (member,) = etcd.members
    member.kill()
    shutil.copytree(member.directory / member.name, to)
    await restarted(etcd)
    return to


async def refused(manager: Manager) -> None:
    """It ends by itself, and says that the journal is an old one."""
    assert await manager.ended() == 1
    assert "the journal has gone back" in manager.log or "put back" in manager.log, manager.log
    assert "Traceback" not in manager.log


async def test_an_etcd_put_back_under_a_later_leader_is_refused(tmp_path: Path) -> None:
    """The old copy knows only the leadership before."""
    async with on_etcd(tmp_path, size=1) as stage, stage.traffic() as traffic:
        old = await backup(etcd_of(stage), tmp_path / "old")
        leader = await stage.leader()
        died = boot_clock()
        leader.send(KILL)
        second = await stage.leader(after=leader.leadership)
        await traffic.renewed(died, second.leadership)
        traffic.check_unharmed()
        await restarted(etcd_of(stage), old)
        await refused(second)
        traffic.check_unharmed()
        traffic.abandon()


async def test_an_etcd_put_back_is_refused_by_what_its_owners_have_seen(tmp_path: Path) -> None:
    """The manager is a new one: it cannot know. Owners and lookups do."""
    journals = on_etcd(tmp_path, size=1, managers=1, parted=True)
    async with journals as stage, stage.traffic() as traffic:
        old = await backup(etcd_of(stage), tmp_path / "old")
        await traffic.newcomer()
        traffic.settle()
        leader = await stage.leader()
        leader.send(KILL)
        await restarted(etcd_of(stage), old)
        new = stage.start(leader.journal)
        await stage.listening()
        stage.to_managers[0].turn_to(new.url)
        await refused(new)
        traffic.check_safe()
        traffic.abandon()


async def test_an_etcd_put_back_under_the_leader_that_wrote_it_is_refused(tmp_path: Path) -> None:
    async with on_etcd(tmp_path, size=1, managers=1) as stage, stage.traffic() as traffic:
        old = await backup(etcd_of(stage), tmp_path / "old")
        await traffic.newcomer()
        await restarted(etcd_of(stage), old)
        leader = await stage.leader()
        create = ("pool", "create", "docs", "--kind", "hashed", "--manager", leader.url)
        await asyncio.gather(asyncio.to_thread(run, *create), refused(leader))
        traffic.abandon()
