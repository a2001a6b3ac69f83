"""A standby reads what is new, again and again: no record twice, none left out."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.errors import JournalError
from tenure.journals import Tail
from tenure.journals.etcd.journal import EtcdJournal
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.log.journal import Committed
from tenure.testing.contracts.journal import lead
from tenure.testing.contracts.records import A_STATE, numbered
from tests.integration.etcd.proxy import proxy_to
from tests.integration.etcd.servers import Cluster, running
from tests.patience import DEADLINE_SECONDS, until

OpenEtcd = Callable[[str], EtcdJournal[AnyRecord, State]]
pytestmark = pytest.mark.asyncio


class Follower:
    """Keeps what a standby has read."""

    def __init__(self, journal: EtcdJournal[AnyRecord, State]) -> None:
        self._journal = journal
        self._identity = 0
        self.lsn = 0
        self.records: tuple[AnyRecord, ...] = ()
        self.times_begun = 0

    async def look(self) -> bool:
        """Read what is new; whether etcd answered."""
        try:
            found = await self._journal.load_after(self._identity, self.lsn)
        except JournalError:
            return False
        if isinstance(found, Tail):
            assert found.after_lsn == self.lsn
            self.records += found.records
        else:
            self._identity, self.records = found.journal, found.records
            self.times_begun += 1
        self.lsn = found.lsn
        return True

    async def has_read(self, lsn: int) -> None:
        async def is_there() -> bool:
            return await self.look() and self.lsn >= lsn

        await until(is_there, f"LSN {lsn} is read")


async def test_a_standby_that_lags_gets_over_the_compaction_of_etcd_and_of_the_journal(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    """It reads nothing for a while, in which all that it lacks is forgotten; then goes on."""
    leader = open_etcd(etcd.journal_url(prefix=prefix))
    leadership = await lead(leader)
    await leader.append(leadership, 0, numbered(0, 2))
    async with proxy_to(etcd.urls[0]) as proxy:
        follower = Follower(open_etcd(f"etcd:{proxy.url}?prefix={prefix}&timeout=0.3"))
        await follower.has_read(2)
        proxy.mode = "stall"
        assert not await follower.look()
        for lsn in range(2, 10):
            await leader.append(leadership, lsn, numbered(lsn, 1))
        await etcd.compact()
        proxy.mode = "pass"
        await follower.has_read(10)
        assert (follower.records, follower.times_begun) == (numbered(0, 10), 1)

        proxy.mode = "stall"
        await leader.append(leadership, 10, numbered(10, 2))
        await leader.compact(leadership, 11, A_STATE)
        await etcd.compact()
        proxy.mode = "pass"
        await follower.has_read(12)
        assert (follower.records, follower.times_begun) == (numbered(11, 1), 2)


async def test_a_standby_reads_on_while_one_member_after_the_other_fails(
    tmp_path: Path, open_etcd: OpenEtcd
) -> None:
    async with running(tmp_path, size=3) as etcd:
        follower = Follower(open_etcd(etcd.journal_url(timeout=1)))
        leader = open_etcd(etcd.journal_url(timeout=2))
        leadership = await lead(leader)
        lsn = 0
        for member in etcd.members:
            member.kill()

            async def committed(lsn: int = lsn) -> bool:
                return await leader.append(leadership, lsn, numbered(lsn, 4)) == Committed(lsn + 4)

            await until(committed, f"an append without {member.name}")
            lsn += 4
            await follower.has_read(lsn)
            member.start()
            await until(etcd.ready, f"{member.name} is back")
        assert (follower.records, follower.times_begun) == (numbered(0, 12), 1)


async def test_a_standby_outlives_a_restart_of_all(tmp_path: Path, open_etcd: OpenEtcd) -> None:
    async with running(tmp_path) as etcd:
        journal = open_etcd(etcd.journal_url())
        leadership = await lead(journal)
        follower = Follower(open_etcd(etcd.journal_url()))
        await journal.append(leadership, 0, numbered(0, 1))
        await follower.has_read(1)
        etcd.kill()
        assert not await asyncio.wait_for(follower.look(), DEADLINE_SECONDS)
        etcd.members[0].start()
        await until(etcd.ready, "etcd is back")
        await journal.append(leadership, 1, numbered(1, 1))
        await follower.has_read(2)
        assert follower.records == numbered(0, 2)
