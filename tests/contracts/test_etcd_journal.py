"""The journal in etcd passes the public suite, and does what the one in memory does."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.journals import Journal, MemoryJournal, open_journal
from tenure.protocol.lease.records import AnyRecord, JournalAction, State
from tenure.protocol.log.journal import Load, ReadSeat
from tenure.testing.contracts.journal import MakeJournal
from tenure.testing.contracts.restorable import RestorableJournalContract
from tenure.wire.lease_records import LEASE_RECORDS
from tests.contracts.test_journals import ACTIONS, LIKELY, story
from tests.integration.etcd.servers import Cluster, running

PREFIXES = count()


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One etcd for all: each history has a prefix of its own."""
    with asyncio.Runner() as runner:
        started = running(tmp_path_factory.mktemp("etcd"))
        yield runner.run(started.__aenter__())
        runner.run(started.__aexit__(None, None, None))


def fresh_url(etcd: Cluster) -> str:
    return etcd.journal_url(prefix=f"/tenure/{next(PREFIXES)}/")


@pytest.mark.asyncio
class TestEtcd(RestorableJournalContract):
    @pytest_asyncio.fixture
    async def make_journal(self, etcd: Cluster) -> AsyncIterator[MakeJournal]:
        opened: list[Journal[AnyRecord, State]] = []
        url = fresh_url(etcd)

        def make() -> Journal[AnyRecord, State]:
            opened.append(open_journal(url, LEASE_RECORDS))
            return opened[-1]

        yield make
        for journal in opened:
            await journal.close()


def test_etcd_does_what_memory_does(etcd: Cluster) -> None:
    with asyncio.Runner() as runner:

        @settings(max_examples=15)
        @given(st.lists(LIKELY | ACTIONS, max_size=12))
        def check(plan: list[JournalAction | str]) -> None:
            runner.run(both(plan))

        async def both(plan: list[JournalAction | str]) -> None:
            journal = open_journal(fresh_url(etcd), LEASE_RECORDS)
            try:
                end: list[JournalAction | str] = [ReadSeat(), Load(0)]
                assert await story(journal, plan + end) == await story(
                    MemoryJournal(LEASE_RECORDS), plan + end
                )
            finally:
                await journal.close()

        check()
