"""Three members: one is killed or stopped, the majority goes and comes back."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tenure.errors import JournalError
from tenure.journals.etcd.journal import EtcdJournal
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.log.journal import Committed, Mandate, Seat, Unknown
from tenure.testing.contracts.journal import WATCH_NS, lead
from tenure.testing.contracts.records import numbered
from tests.integration.etcd.proxy import proxy_to
from tests.integration.etcd.servers import Cluster, running
from tests.patience import until

OpenEtcd = Callable[[str], EtcdJournal[AnyRecord, State]]
pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def three(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with running(tmp_path_factory.mktemp("three"), size=3) as cluster:
        yield cluster


class Writer:
    """A leader that repeats an append until it knows its outcome."""

    def __init__(self, journal: EtcdJournal[AnyRecord, State], leadership: Mandate) -> None:
        self.journal = journal
        self.leadership = leadership
        self.lsn = 0
        self.unknown = 0

    async def write(self, count: int) -> None:
        for _ in range(count):
            await until(self._is_written, "an append is committed")

    async def _is_written(self) -> bool:
        result = await self.journal.append(self.leadership, self.lsn, numbered(self.lsn, 1))
        if isinstance(result, Unknown):
            self.unknown += 1
            return False
        self.lsn += 1
        assert result == Committed(self.lsn)
        return True


async def test_a_member_is_killed_and_nothing_is_lost(three: Cluster, open_etcd: OpenEtcd) -> None:
    """First the one that leads the others, which is also the one that is asked; then it is back."""
    journal = open_etcd(three.journal_url(timeout=2))
    writer = Writer(journal, await lead(journal))
    await writer.write(20)
    first = await three.leader()
    writing = asyncio.create_task(writer.write(60))
    three.members[first].kill()
    await writing
    assert (await journal.load()).records == numbered(0, 80)
    found = await journal.health()
    assert [bool(each.error) for each in found.members] == [i == first for i in range(3)]
    assert not found.is_good

    three.members[first].start()
    await until(three.ready, "all three answer")
    await writer.write(5)
    found = await journal.health()
    assert found.is_good
    assert sum(each.is_leader for each in found.members) == 1
    for each in three.urls:
        assert (await open_etcd(f"etcd:{each}?timeout=10").load()).records == numbered(0, 85)


async def test_a_stopped_member_costs_one_timeout(three: Cluster, open_etcd: OpenEtcd) -> None:
    """The stopped member does not lead the others: otherwise they would elect another, which only
    etcd can speed up.
    """
    stopped = (await three.leader() + 1) % 3
    others = [url for i, url in enumerate(three.urls) if i != stopped]
    async with proxy_to(three.urls[stopped]) as proxy:
        journal = open_etcd(f"etcd:{','.join([proxy.url, *others])}?timeout=2")
        leadership = await lead(journal)
        asked = proxy.requests
        three.members[stopped].send(signal.SIGSTOP)
        try:
            assert await journal.beat(leadership, 1)
            assert await journal.append(leadership, 0, numbered(0, 1)) == Committed(1)
            assert proxy.requests == asked + 1, "it was asked once"
        finally:
            three.members[stopped].send(signal.SIGCONT)


async def test_without_a_majority_nothing_is_known_and_with_it_everything_goes_on(
    three: Cluster, open_etcd: OpenEtcd
) -> None:
    journal = open_etcd(three.journal_url(timeout=1))
    leadership = await lead(journal)
    writer = Writer(journal, leadership)
    await writer.write(3)
    for each in three.members[1:]:
        each.kill()
    assert isinstance(await journal.append(leadership, 3, numbered(3, 1)), Unknown)
    for call in (journal.read_seat(), journal.beat(leadership, 1), journal.load()):
        with pytest.raises(JournalError, match="no member of etcd answered"):
            await call
    for each in three.members[1:]:
        each.start()
    await writer.write(3)
    assert (await journal.load()).records == numbered(0, 6)
    assert await journal.read_seat() == Seat(1, 0, "http://a", WATCH_NS)
