"""An etcd for tests that do it no harm, shared by those of one process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count

import pytest
import pytest_asyncio

from tenure.journals.etcd.journal import EtcdJournal
from tenure.protocol.lease.records import AnyRecord, State
from tenure.wire.lease_records import LEASE_RECORDS
from tests.integration.etcd.servers import Cluster, running

PREFIXES = count()


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One member that nobody stops, fills or locks."""
    with asyncio.Runner() as runner:
        started = running(tmp_path_factory.mktemp("etcd"))
        yield runner.run(started.__aenter__())
        runner.run(started.__aexit__(None, None, None))


@pytest.fixture
def prefix() -> str:
    """A journal that no other test has."""
    return f"/tenure/{next(PREFIXES)}/"


@pytest_asyncio.fixture
async def open_etcd() -> AsyncIterator[Callable[[str], EtcdJournal[AnyRecord, State]]]:
    """Opens journals, and closes them at the end."""
    opened: list[EtcdJournal[AnyRecord, State]] = []

    def make(url: str) -> EtcdJournal[AnyRecord, State]:
        opened.append(EtcdJournal.open(url, LEASE_RECORDS))
        return opened[-1]

    yield make
    for journal in opened:
        await journal.close()
