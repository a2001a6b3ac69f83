"""Restoring a journal in etcd: it must exist, and nothing is left behind."""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tenure.errors import JournalDamaged
from tenure.journals import Restorable, open_copy
from tenure.journals.contract import Beginning
from tenure.journals.etcd.journal import EtcdJournal
from tenure.manager.restore import read_copy
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.log.journal import Seat
from tenure.testing.contracts.journal import lead
from tenure.testing.contracts.records import EVERY_RECORD
from tenure.wire.lease_records import LEASE_RECORDS
from tests.integration.etcd.keys import keys_under, put
from tests.integration.etcd.servers import Cluster

pytestmark = pytest.mark.asyncio

Open = Callable[[str], EtcdJournal[AnyRecord, State]]


@pytest_asyncio.fixture
async def copy(etcd: Cluster, prefix: str) -> AsyncIterator[Restorable[AnyRecord, State]]:
    journal = open_copy(etcd.journal_url(prefix=prefix), LEASE_RECORDS)
    yield journal
    await journal.close()


async def test_where_there_is_none_none_is_begun(
    etcd: Cluster, prefix: str, copy: Restorable[AnyRecord, State]
) -> None:
    with pytest.raises(JournalDamaged, match=f"nothing, or something under {prefix}, but no jou"):
        await read_copy(copy)
    assert await keys_under(etcd, prefix) == []


async def test_what_is_another_programs_is_left_alone(
    etcd: Cluster, prefix: str, copy: Restorable[AnyRecord, State]
) -> None:
    await put(etcd, f"{prefix}notes", b"mine")
    with pytest.raises(JournalDamaged, match="but no journal of tenure"):
        await read_copy(copy)
    assert await keys_under(etcd, prefix) == [f"{prefix}notes"]


async def test_what_the_copy_had_is_swept_away(
    etcd: Cluster, prefix: str, copy: Restorable[AnyRecord, State], open_etcd: Open
) -> None:
    manager = open_etcd(etcd.journal_url(prefix=prefix))
    leadership = await lead(manager)
    await manager.append(leadership, 0, EVERY_RECORD)
    assert await manager.compact(leadership, 2, State(leadership=7))
    seat = await copy.read_seat()
    assert await copy.restore(seat, len(EVERY_RECORD), Beginning(77, Seat(9), State(leadership=9)))
    front = ["beat", "end", "head", "identity", "leadership", "manager", "watch_ns"]
    *rest, piece = await keys_under(etcd, prefix)
    assert rest == [f"{prefix}front/{each}" for each in front]
    assert piece.startswith(f"{prefix}snapshots/{len(EVERY_RECORD):016x}-")
