"""Records survive their bytes, and no damage to these goes unseen."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.keys import KEY_BYTES
from tenure.errors import JournalDamaged, JournalTooNew, LocalProtocolError
from tenure.protocol.lease.messages import Entry, Held
from tenure.protocol.lease.records import AnyRecord, Changed, Joined, PoolCreated, State
from tenure.testing.contracts.records import A_STATE, EVERY_RECORD
from tenure.wire.journal_codec import checksum
from tenure.wire.lease_records import LEASE_RECORDS

WHERE = "LSN 12 of journal.sqlite"


def sealed(version: int, value: object) -> bytes:
    """Return what a tenure of that format may have written."""
    body = msgspec.msgpack.encode(value)
    return bytes([version]) + checksum(version, body) + body


@pytest.mark.parametrize("record", EVERY_RECORD)
def test_a_record_survives_its_bytes(record: AnyRecord) -> None:
    assert LEASE_RECORDS.decode_record(LEASE_RECORDS.encode_record(record), WHERE) == record


@pytest.mark.parametrize("state", [State(), A_STATE])
def test_a_snapshot_survives_its_bytes(state: State) -> None:
    assert LEASE_RECORDS.decode_state(LEASE_RECORDS.encode_state(state), WHERE) == state


@pytest.mark.parametrize("record", EVERY_RECORD)
def test_every_flipped_bit_is_damage(record: AnyRecord) -> None:
    data = LEASE_RECORDS.encode_record(record)
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            with pytest.raises(JournalDamaged, match=WHERE):
                LEASE_RECORDS.decode_record(bytes(flipped), WHERE)


def test_every_truncation_is_damage() -> None:
    data = LEASE_RECORDS.encode_state(A_STATE)
    for length in range(len(data)):
        with pytest.raises(JournalDamaged, match=WHERE):
            LEASE_RECORDS.decode_state(data[:length], WHERE)


@given(st.binary(max_size=100))
def test_any_bytes_are_damage(data: bytes) -> None:
    with pytest.raises(JournalDamaged):
        LEASE_RECORDS.decode_record(data, WHERE)


def test_a_later_format_says_which_and_what_to_do() -> None:
    with pytest.raises(JournalTooNew) as caught:
        LEASE_RECORDS.decode_record(sealed(3, ["Merged", "rooms", 5]), WHERE)
    assert str(caught.value) == (
        "LSN 12 of journal.sqlite is of format 3, and this tenure reads up to 2: run the tenure "
        "that wrote it, or a later one; nothing was touched"
    )


@pytest.mark.parametrize(
    "value",
    [
        ["Merged", "rooms", 5],
        ["WaitedOut", "rooms", 5][:0],
        ["Changed", "rooms", [[b"b", b"a", 1, 1, 1]]],
        ["Changed", "rooms", [[b"", b"a", 1, 1, 1]], -1],
        ["Joined", "rooms", 1, "a", 1, "http://a", float("nan")],
        ["Joined", "rooms", -1, "a", 1, "http://a"],
    ],
    ids=["unknown", "empty", "range", "handed", "capacity", "number"],
)
def test_what_is_whole_and_yet_no_record_is_damage(value: list[object]) -> None:
    with pytest.raises(JournalDamaged, match=WHERE):
        LEASE_RECORDS.decode_record(sealed(1, value), WHERE)


def test_what_an_earlier_tenure_wrote_has_defaults() -> None:
    changed = sealed(1, ["Changed", "rooms", [[b"", b"a", 1, 2, 1]]])
    assert LEASE_RECORDS.decode_record(changed, WHERE) == Changed(
        pool="rooms", entries=(Entry(start=b"", end=b"a", owner=1, number=2, since=1),), handed=0
    )


def test_a_snapshot_whose_handed_ranges_overlap_is_damage() -> None:
    [pool] = A_STATE.pools
    handed = (Held(start=b"", end=b"g", number=4), Held(start=b"c", end=None, number=3))
    broken = msgspec.structs.replace(A_STATE, pools=(msgspec.structs.replace(pool, handed=handed),))
    with pytest.raises(LocalProtocolError, match="nothing was written: a range begins at 63"):
        LEASE_RECORDS.encode_state(broken)


@pytest.mark.parametrize(
    "record",
    [
        PoolCreated(pool="", kind="hashed"),
        PoolCreated(pool="p" * 201, kind="hashed"),
        PoolCreated(pool="p", kind="ordered", split_points=(b"k" * (KEY_BYTES + 1),)),
        Joined(pool="p", incarnation=1 << 63, name="a", nonce=1, address="http://a"),
        Changed(pool="p", entries=(Entry(start=b"b", end=b"a", owner=1, number=1, since=1),)),
    ],
    ids=["no name", "long name", "long key", "large number", "range"],
)
def test_what_could_not_be_read_back_is_not_written(record: AnyRecord) -> None:
    with pytest.raises(LocalProtocolError, match="nothing was written: "):
        LEASE_RECORDS.encode_record(record)
