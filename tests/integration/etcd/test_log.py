"""The log in etcd: appends and snapshots that are larger than a request, and what they leave."""

import asyncio
from collections.abc import Callable

import pytest

from tenure.journals.etcd.journal import EtcdJournal
from tenure.journals.etcd.log import EtcdLog
from tenure.journals.etcd.store import EtcdStore
from tenure.journals.etcd.values import PIECE_BYTES, Keys
from tenure.journals.etcd.writes import compact
from tenure.protocol.lease.limits import LABEL_CHARACTERS, LABELS_PER_OWNER
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.records import AnyRecord, Changed, Joined, PoolState, State
from tenure.protocol.log.journal import Committed, Deposed
from tenure.protocol.log.ledger import RECORDS_PER_APPEND
from tenure.testing.contracts.journal import lead
from tenure.testing.contracts.records import A_STATE, numbered
from tenure.wire.lease_records import LEASE_RECORDS
from tests.integration.etcd.keys import keys_under
from tests.integration.etcd.servers import Cluster

ETCD_REQUEST_BYTES = 3 << 19
"""The size of a request that etcd accepts by default, 1.5 MiB."""
OpenEtcd = Callable[[str], EtcdJournal[AnyRecord, State]]
pytestmark = pytest.mark.asyncio


def entries(count: int, number: int) -> tuple[Entry, ...]:
    bounds = [i.to_bytes(8, "big") for i in range(count)]
    pairs = zip([b"", *bounds[1:]], [*bounds[1:], None], strict=True)
    return tuple(
        Entry(start=start, end=end, owner=1, number=number, since=number) for start, end in pairs
    )


def large_record(number: int) -> AnyRecord:
    """A record of several pieces."""
    return Changed(pool="rooms", entries=entries(40_000, number))


def large_state(number: int, count: int = 40_000) -> State:
    pool = PoolState(
        pool="rooms",
        kind="hashed",
        split_points=(),
        next_number=number + 1,
        next_incarnation=2,
        entries=entries(count, number),
        members=(),
        numbered=(),
    )
    return State(leadership=number, pools=(pool,))


async def test_an_append_of_a_thousand_joins_is_larger_than_a_request_and_is_whole(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    """The append has as many records as a leader appends at once, each as large as an owner can
    make it.
    """
    labels = {f"{i:0{LABEL_CHARACTERS}}": "z" * LABEL_CHARACTERS for i in range(LABELS_PER_OWNER)}
    joins = tuple(
        Joined(
            pool="rooms",
            incarnation=i,
            name=f"{i:0200}",
            nonce=i,
            address="a" * 2_000,
            labels=labels,
        )
        for i in range(1, RECORDS_PER_APPEND + 1)
    )
    size = sum(len(LEASE_RECORDS.encode_record(join)) for join in joins)
    assert size > 10 * ETCD_REQUEST_BYTES
    journal = open_etcd(etcd.journal_url(prefix=prefix))
    leadership = await lead(journal)
    beats = 0

    async def beat_meanwhile() -> None:
        nonlocal beats
        while not append.done():
            beats += 1
            assert await journal.beat(leadership, beats)
            await asyncio.sleep(0.05)

    append = asyncio.create_task(journal.append(leadership, 0, joins))
    await beat_meanwhile()
    assert await append == Committed(RECORDS_PER_APPEND)
    assert beats > 1, "the leader shows that it lives while it writes"
    assert (await open_etcd(etcd.journal_url(prefix=prefix)).load()).records == joins


async def test_an_append_larger_than_a_request_is_whole_or_not_there(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    journal = open_etcd(etcd.journal_url(prefix=prefix))
    leadership = await lead(journal)
    batch = tuple(large_record(i) for i in range(1, 4))
    assert await journal.append(leadership, 0, batch) == Committed(3)
    pieces = await keys_under(etcd, f"{prefix}parts/")
    assert len(pieces) > 8
    assert await journal.append(leadership, 0, batch) == Committed(3)
    assert await keys_under(etcd, f"{prefix}parts/") == pieces  # not written a second time
    other = open_etcd(etcd.journal_url(prefix=prefix))
    assert (await other.load()).records == batch
    later = await lead(other, "http://b")
    assert await journal.append(leadership, 3, batch) == Deposed()
    assert await keys_under(etcd, f"{prefix}parts/") == pieces
    assert await other.compact(later, 3, A_STATE)
    assert await keys_under(etcd, f"{prefix}parts/") == []
    assert await keys_under(etcd, f"{prefix}records/") == []


async def test_an_unfinished_snapshot_is_not_seen_and_swept_away_by_the_next(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    journal = open_etcd(etcd.journal_url(prefix=prefix))
    leadership = await lead(journal)
    await journal.append(leadership, 0, numbered(0, 4))
    before = await journal.load()
    store, keys = journal._store, Keys(prefix)
    for under in (keys.snapshots, keys.parts):  # a manager that was killed in the middle
        assert await store.write_pieces(store.leads(leadership), under, 3, bytes(3 * PIECE_BYTES))
    assert await journal.load() == before
    for lsn in (3, 4):
        assert await journal.compact(leadership, lsn, large_state(lsn))
        size = len(LEASE_RECORDS.encode_state(large_state(lsn)))
        left = await keys_under(etcd, f"{prefix}snapshots/")
        assert len(left) == -(-size // PIECE_BYTES) > 3
        assert await keys_under(etcd, f"{prefix}parts/") == []
    assert (await journal.load()).state == large_state(4)


async def test_what_was_swept_away_cannot_take_effect(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    """Two that write under one leadership, as no two should: one snapshot wins, and is whole."""
    one, two = (open_etcd(etcd.journal_url(prefix=prefix)) for _ in range(2))
    leadership = await lead(one)
    await one.append(leadership, 0, numbered(0, 9))
    wanted = [(journal, lsn) for lsn in (3, 6, 9) for journal in (one, two)]
    done = [
        compact(each._store, leadership, lsn, LEASE_RECORDS.encode_state(large_state(lsn)))
        for each, lsn in wanted
    ]
    for result in await asyncio.gather(*done, return_exceptions=True):
        assert result is True or "swept away" in str(result)
    found = await two.load()
    assert found.state == large_state(found.state_lsn)
    assert found.lsn == 9


async def test_a_reader_never_sees_half_a_snapshot_nor_misses_a_record(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    """While the leader appends and compacts, and etcd forgets, each load is of one moment."""
    url = etcd.journal_url(prefix=prefix)
    leader, reader = open_etcd(url), open_etcd(url)
    leadership = await lead(leader)

    async def write() -> None:
        for lsn in range(0, 40, 2):
            assert await leader.append(leadership, lsn, numbered(lsn, 2)) == Committed(lsn + 2)
            if lsn % 8 == 0:
                assert await leader.compact(leadership, lsn + 1, large_state(lsn + 1, 20_000))
                await etcd.compact()

    writing = asyncio.create_task(write())
    loads = 0
    while not writing.done() or not loads:
        found = await reader.load()
        loads += 1
        if found.state_lsn:
            assert found.state == large_state(found.state_lsn, 20_000)
        assert found.records == numbered(found.state_lsn, found.lsn - found.state_lsn)
    await writing
    assert (await reader.load()).lsn == 40


async def test_a_reading_whose_revision_is_forgotten_begins_anew(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    journal = open_etcd(etcd.journal_url(prefix=prefix))
    leadership = await lead(journal)
    await journal.append(leadership, 0, numbered(0, 2))
    await journal.compact(leadership, 1, A_STATE)

    class Forgetful(EtcdStore):
        """Etcd forgets what is being read, once."""

        has_forgotten = False

        async def read_pieces(self, *args, **kwargs):  # type: ignore[no-untyped-def] # noqa: ANN002, ANN003, ANN202
            if not self.has_forgotten:
                self.has_forgotten = True
                await journal.append(leadership, 2, numbered(2, 1))
                await journal.compact(leadership, 2, large_state(2))
                await etcd.compact()
            return await super().read_pieces(*args, **kwargs)

    store = Forgetful(journal._gateway, prefix)
    found = await EtcdLog(store, LEASE_RECORDS).load()
    assert found == await journal.load()
    assert (found.lsn, store.has_forgotten) == (3, True)


async def test_a_log_of_many_appends_is_read_page_by_page(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    journal = open_etcd(etcd.journal_url(prefix=prefix))
    leadership = await lead(journal)
    for lsn in range(0, 600, 2):
        await journal.append(leadership, lsn, numbered(lsn, 2))
    assert (await journal.load()).records == numbered(0, 600)
