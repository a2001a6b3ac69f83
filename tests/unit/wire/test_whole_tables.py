"""A table that many ask for is encoded once, and its bytes are what they would be without that."""

import msgspec

from tenure.protocol.lease.messages import Entry, OwnerInfo, SyncResponse
from tenure.protocol.lease.table import Right, columns_of
from tenure.wire.lease import WholeTables, decode_to_lookup, encode
from tenure.wire.versions import NEWEST


def table(number: int) -> SyncResponse:
    return SyncResponse(
        sequence=1,
        nonce=2,
        journal=3,
        leadership=4,
        lsn=5,
        kind="hashed",
        snapshot=True,
        entries=(Entry(start=b"", end=None, owner=1, number=number, since=number),),
        owners=(OwnerInfo(incarnation=1, name="a", address="http://a"),),
        sync_ns=6,
        contact_ns=7,
    )


def test_the_bytes_are_the_same_for_everyone_who_asks() -> None:
    tables, first = WholeTables(), table(5)
    for sequence in (1, 2):
        asked = msgspec.structs.replace(first, sequence=sequence)
        data = encode(tables.prepared(asked), NEWEST)
        assert data == encode(asked, NEWEST)
        assert decode_to_lookup(data, NEWEST) == asked


def test_the_very_same_table_is_packed_once_and_another_anew() -> None:
    tables, first = WholeTables(), table(5)
    packed = tables.prepared(first).entries
    assert tables.prepared(msgspec.structs.replace(first, sequence=2)).entries is packed
    assert tables.prepared(table(6)).entries is not packed
    others = msgspec.structs.replace(first, owners=(*first.owners,) * 2)
    assert encode(tables.prepared(others), NEWEST) == encode(others, NEWEST)


def test_columns_are_packed_once_too() -> None:
    tables = WholeTables()
    columns = [columns_of([b""], [Right(1, number, number)]) for number in (5, 6)]
    first, other = (msgspec.structs.replace(table(5), entries=(), columns=c) for c in columns)
    for asked in (first, other, msgspec.structs.replace(first, sequence=2)):
        assert encode(tables.prepared(asked), NEWEST) == encode(asked, NEWEST)
    assert tables.prepared(first).columns is tables.prepared(first).columns


def test_tables_that_are_past_are_forgotten() -> None:
    tables = WholeTables()
    kept = [tables.prepared(table(number)) for number in range(3 * WholeTables.KEPT)]
    assert len(kept) > len(tables._kept) == WholeTables.KEPT
