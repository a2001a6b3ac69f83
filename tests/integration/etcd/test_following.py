"""Following the journal: no record twice, none left out, whatever happens to the watch."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from tenure.errors import JournalWentBack
from tenure.journals import History
from tenure.journals.etcd import EtcdJournal
from tenure.journals.etcd_follow import Followed
from tenure.protocol.lease.records import AnyRecord
from tenure.protocol.log.journal import Committed
from tenure.testing.contracts.journal import A_STATE, lead, numbered
from tests.integration.etcd.proxy import proxy_to
from tests.integration.etcd.servers import Cluster, running, until

OpenEtcd = Callable[[str], EtcdJournal]
pytestmark = pytest.mark.asyncio


class Follower:
    """What a standby has heard."""

    def __init__(self, journal: EtcdJournal, after_lsn: int = 0, quiet_seconds: float = 5) -> None:
        self.heard: list[Followed] = []
        self.lsn = after_lsn
        self.records: tuple[AnyRecord, ...] = ()
        self._task = asyncio.create_task(self._follow(journal, quiet_seconds))

    async def _follow(self, journal: EtcdJournal, quiet_seconds: float) -> None:
        async with aclosing(journal.follow(self.lsn, quiet_seconds)) as changes:
            async for change in changes:
                if isinstance(change, History):
                    self.records = ()
                else:
                    assert change.after_lsn == self.lsn
                self.heard.append(change)
                self.records += change.records
                self.lsn = change.lsn

    async def has_heard(self, lsn: int) -> None:
        async def is_there() -> bool:
            if self._task.done():
                self._task.result()
            return self.lsn >= lsn

        await until(is_there, f"LSN {lsn} is heard")

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.result()


async def test_records_are_heard_as_they_are_committed(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    url = etcd.journal_url(prefix=prefix)
    leader, standby = open_etcd(url), open_etcd(url)
    leadership = await lead(leader)
    await leader.append(leadership, 0, numbered(0, 3))
    follower = Follower(standby, after_lsn=1)
    await follower.has_heard(3)
    for lsn in range(3, 9):
        assert await leader.append(leadership, lsn, numbered(lsn, 1)) == Committed(lsn + 1)
        await follower.has_heard(lsn + 1)
    await leader.append(leadership, 9, numbered(9, 200))
    assert await leader.compact(leadership, 100, A_STATE)  # of no concern to who has heard it
    await leader.append(leadership, 209, numbered(209, 1))
    await follower.has_heard(210)
    await follower.end()
    assert follower.records == numbered(1, 209)
    assert not any(isinstance(each, History) for each in follower.heard)


async def test_who_lacks_what_a_snapshot_replaced_gets_the_snapshot(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    journal = open_etcd(etcd.journal_url(prefix=prefix))
    leadership = await lead(journal)
    await journal.append(leadership, 0, numbered(0, 5))
    await journal.compact(leadership, 4, A_STATE)
    follower = Follower(journal, after_lsn=2)
    await follower.has_heard(5)
    await follower.end()
    assert follower.heard == [await journal.load()]


async def test_a_lagging_watcher_gets_over_the_compaction_of_etcd_and_of_the_journal(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    """It hears nothing for a while, in which all that it lacks is forgotten; then goes on."""
    leader = open_etcd(etcd.journal_url(prefix=prefix))
    leadership = await lead(leader)
    await leader.append(leadership, 0, numbered(0, 2))
    async with proxy_to(etcd.urls[0]) as proxy:
        standby = open_etcd(f"etcd:{proxy.url}?prefix={prefix}&timeout=0.3")
        follower = Follower(standby, quiet_seconds=0.3)
        await follower.has_heard(2)
        proxy.mode = "stall"
        for lsn in range(2, 10):
            await leader.append(leadership, lsn, numbered(lsn, 1))
        await etcd.compact()
        proxy.mode = "pass"
        await follower.has_heard(10)
        assert follower.records == numbered(0, 10)

        proxy.mode = "stall"
        await leader.append(leadership, 10, numbered(10, 2))
        await leader.compact(leadership, 11, A_STATE)
        await etcd.compact()
        proxy.mode = "pass"
        await follower.has_heard(12)
        await follower.end()
    assert isinstance(follower.heard[-1], History)
    assert follower.heard[-1] == await leader.load()


async def test_the_watch_goes_on_over_endpoints_that_fail_one_after_the_other(
    tmp_path: Path, open_etcd: OpenEtcd
) -> None:
    async with running(tmp_path, size=3) as etcd:
        follower = Follower(open_etcd(etcd.journal_url(timeout=1)), quiet_seconds=1)
        leader = open_etcd(etcd.journal_url(timeout=2))
        leadership = await lead(leader)
        lsn = 0
        for member in etcd.members:
            member.kill()

            async def committed(lsn: int = lsn) -> bool:
                return await leader.append(leadership, lsn, numbered(lsn, 4)) == Committed(lsn + 4)

            await until(committed, f"an append without {member.name}")
            lsn += 4
            await follower.has_heard(lsn)
            member.start()
            await until(etcd.ready, f"{member.name} is back")
        await follower.end()
        assert follower.records == numbered(0, 12)


async def test_a_follower_outlives_a_restart_of_all(tmp_path: Path, open_etcd: OpenEtcd) -> None:
    async with running(tmp_path) as etcd:
        journal = open_etcd(etcd.journal_url())
        leadership = await lead(journal)
        follower = Follower(open_etcd(etcd.journal_url()))
        await journal.append(leadership, 0, numbered(0, 1))
        await follower.has_heard(1)
        etcd.kill()
        etcd.members[0].start()
        await until(etcd.ready, "etcd is back")
        await journal.append(leadership, 1, numbered(1, 1))
        await follower.has_heard(2)
        await follower.end()
        assert follower.records == numbered(0, 2)


async def test_a_log_shorter_than_what_was_heard_is_refused(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    journal = open_etcd(etcd.journal_url(prefix=prefix))
    await journal.append(await lead(journal), 0, numbered(0, 2))
    with pytest.raises(JournalWentBack, match=r"ends at LSN 2, .* read it up to 3"):
        async with aclosing(journal.follow(3)) as changes:
            await anext(changes)
