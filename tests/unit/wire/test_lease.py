"""Messages survive their bytes, in every version that has them."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tenure.errors import LocalProtocolError, RemoteProtocolError
from tenure.protocol.lease.messages import (
    AnyMessage,
    Entry,
    Held,
    Join,
    Leased,
    LeaseRequest,
    LeaseResponse,
    OwnerInfo,
    SyncResponse,
)
from tenure.wire import lease as codec
from tenure.wire import limits
from tenure.wire.versions import NEWEST, OLDEST
from tests.unit.wire.samples import CASES, COLUMNS, ENTRIES, MOST, Decode, packed, request


@pytest.mark.parametrize(("decode", "message"), CASES)
def test_a_message_survives_its_bytes(decode: Decode, message: AnyMessage) -> None:
    data = codec.encode(message, NEWEST)
    assert data[0] == NEWEST
    for given_as in (data, bytearray(data), memoryview(data)):
        assert decode(given_as, NEWEST) == message


@pytest.mark.parametrize(("decode", "message"), CASES)
def test_fields_that_a_later_version_adds_are_passed_over(
    decode: Decode, message: AnyMessage
) -> None:
    fields = msgspec.msgpack.decode(codec.encode(message, NEWEST)[1:])
    assert decode(packed(*fields, {"new": [1, None, "x"]}, 3), NEWEST) == message


def test_fields_that_an_earlier_version_lacks_have_their_defaults() -> None:
    join = packed("Join", "rooms", "hashed", "a", "http://10.0.0.7", 1, 2, 3)
    assert codec.decode_to_manager(join, NEWEST) == Join(
        pool="rooms",
        kind="hashed",
        name="a",
        address="http://10.0.0.7",
        owner_nonce=1,
        manager_nonce=2,
        sequence=3,
        capacity=1.0,
        labels={},
    )
    asked = packed("LeaseRequest", "rooms", 1, 2, 3, 4, 5, 6, [[b"", None, 1]])
    assert codec.decode_to_manager(asked, NEWEST) == LeaseRequest(
        pool="rooms",
        incarnation=1,
        owner_nonce=2,
        manager_nonce=3,
        sequence=4,
        journal=5,
        leadership=6,
        held=(Held(start=b"", end=None, number=1),),
        leaving=False,
        copies=(),
    )
    answer = packed("LeaseResponse", 1, 2, 3, 4, 5, 6, 7, 8, [[b"", None, 2, 1, "granted"]])
    assert codec.decode_to_owner(answer, NEWEST) == LeaseResponse(
        incarnation=1,
        owner_nonce=2,
        sequence=3,
        manager_nonce=4,
        journal=5,
        leadership=6,
        term_ns=7,
        renew_ns=8,
        leases=(Leased(start=b"", end=None, number=2, since=1, mark="granted", handed=0),),
        copies=(),
        hand_offs=(),
    )


def test_another_version_is_refused_in_words_that_are_true_on_both_sides() -> None:
    for version, other in ((2, 1), (1, 2), (2, 71)):
        with pytest.raises(RemoteProtocolError) as caught:
            codec.decode_to_owner(bytes([other]) + b"what comes then", version)
        assert str(caught.value) == (
            f"a message of protocol version {other}, where version {version} is spoken; upgrade "
            "the older side, if both are tenure"
        )


@pytest.mark.parametrize(("decode", "message"), CASES)
def test_a_message_goes_out_and_comes_in_from_the_version_that_brought_it(
    decode: Decode, message: AnyMessage
) -> None:
    newest = codec.encode(message, NEWEST)
    for version in range(OLDEST, NEWEST + 1):
        if version >= codec.SINCE[type(message)]:
            data = codec.encode(message, version)
            assert data[0] == version
            assert decode(data, version) == message
        else:
            with pytest.raises(LocalProtocolError, match="is of protocol version"):
                codec.encode(message, version)
            with pytest.raises(RemoteProtocolError, match=r"malformed.* is of protocol version"):
                decode(bytes([version]) + newest[1:], version)


def test_no_bytes_are_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="empty"):
        codec.decode_to_owner(b"", NEWEST)


@pytest.mark.parametrize(
    ("decode", "limit"),
    [
        (codec.decode_to_manager, limits.REQUEST_BYTES),
        (codec.decode_to_owner, limits.MESSAGE_BYTES),
        (codec.decode_to_lookup, limits.MESSAGE_BYTES),
    ],
)
def test_too_many_bytes_are_refused_before_they_are_looked_at(decode: Decode, limit: int) -> None:
    with pytest.raises(RemoteProtocolError, match=f"{limit + 1} bytes; at most {limit} are"):
        decode(bytes(limit + 1), NEWEST)


def test_a_table_of_the_papers_size_passes_and_a_request_for_all_of_it_too() -> None:
    bounds = [i.to_bytes(8, "big") for i in range(128_000)]
    ranges = list(zip([b"", *bounds[1:]], [*bounds[1:], None], strict=True))
    entries = tuple(
        Entry(start=start, end=end, owner=2000, number=MOST, since=MOST) for start, end in ranges
    )
    owners = tuple(
        OwnerInfo(incarnation=i, name=f"owner-{i}", address=f"http://10.0.{i}.1:8000")
        for i in range(2000)
    )
    table = SyncResponse(
        sequence=1,
        nonce=2,
        journal=3,
        leadership=4,
        lsn=5,
        kind="hashed",
        snapshot=True,
        entries=entries,
        owners=owners,
        sync_ns=6,
        contact_ns=7,
    )
    assert codec.decode_to_lookup(codec.encode(table, NEWEST), NEWEST) == table
    held = request(*(Held(start=start, end=end, number=MOST) for start, end in ranges))
    assert isinstance(codec.decode_to_manager(held, NEWEST), LeaseRequest)


def test_what_no_peer_would_take_is_not_sent() -> None:
    long_key = bytes(limits.REQUEST_BYTES)
    with pytest.raises(LocalProtocolError, match="a LeaseRequest of"):
        request(Held(start=long_key, end=None, number=1))
    answer = LeaseResponse(
        incarnation=1,
        owner_nonce=2,
        sequence=3,
        manager_nonce=4,
        journal=5,
        leadership=6,
        term_ns=7,
        renew_ns=8,
        leases=(Leased(start=long_key, end=None, number=1, since=1, mark="granted"),),
    )
    assert len(codec.encode(answer, NEWEST)) > limits.REQUEST_BYTES


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"entries": ENTRIES}, "a whole table as columns, and changes beside it"),
        ({"snapshot": False}, "a whole table as columns, and changes beside it"),
        ({"columns": replace(COLUMNS, ranges=3)}, "a column of 2 bytes, for 3 numbers"),
    ],
)
def test_columns_that_are_not_a_table_are_malformed(changed: dict[str, Any], why: str) -> None:
    [good] = [
        each for _, each in CASES if isinstance(each, SyncResponse) and each.columns is not None
    ]
    data = codec.encode(replace(good, **changed), NEWEST)
    with pytest.raises(RemoteProtocolError, match=why):
        codec.decode_to_lookup(data, NEWEST)
