"""Messages survive their bytes; and whatever else the bytes are, only one error comes of them."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.keys import KEY_BYTES
from tenure.errors import LocalProtocolError, RemoteProtocolError
from tenure.protocol.lease.messages import (
    AnyMessage,
    Attest,
    Attested,
    Changes,
    Copy,
    Entry,
    HandOff,
    Held,
    Hello,
    Introduction,
    Join,
    KeyLoad,
    Leased,
    LeaseRequest,
    LeaseResponse,
    LoadReport,
    OwnerInfo,
    Poke,
    Process,
    RangeLoad,
    Refusal,
    Standby,
    Sync,
    SyncRefusal,
    SyncResponse,
)
from tenure.wire import lease as codec
from tenure.wire import limits
from tenure.wire.frame import Bytes
from tenure.wire.versions import NEWEST, OLDEST

Decode = Callable[[Bytes, int], AnyMessage]

MOST = (1 << 63) - 1
ENTRIES = (Entry(b"", b"m", 1, 5, 5), Entry(b"m", None, 0, 6, 6))
OWNERS = (OwnerInfo(1, "a", "http://10.0.0.7"),)
PROCESS = Process("5e2d7a54-6ff6-4a51-9aa2-9f2e0b4d1c3e", 4026531836, 4026531834, 4711, 123456)
TO_MANAGER: list[AnyMessage] = [
    Hello("rooms", MOST),
    Join("rooms", None, "a", "http://10.0.0.7", 1, 2, 3, 0.5, {"zone": "östlich"}),
    Join("rooms", "hashed", "a", "http://10.0.0.7", 1, 2, 3, process=PROCESS),
    Attested("rooms", 1, PROCESS, msgspec.structs.replace(PROCESS, pid=MOST), 2, 3),
    LeaseRequest("rooms", 1, 2, 3, 4, 5, 6, ()),
    LeaseRequest("rooms", 1, 2, 3, 4, 5, 6, (Held(b"", b"a", 1), Held(b"b", None, MOST)), True),
    Join("rooms", "hashed", "a", "http://10.0.0.7", 1, 2, 3, hand_off="ws://10.0.0.7"),
    LeaseRequest(
        "rooms", 1, 2, 3, 4, 5, 6, (), copies=(Copy(b"", b"a", 1), Copy(b"b", None, 2, 3))
    ),
    Sync("rooms", 1, 2, 3, 4, 5),
]
TO_OWNER: list[AnyMessage] = [
    Introduction(1, 2, 3),
    LeaseResponse(1, 2, 3, 4, 5, 6, 7, 8, (Leased(b"a", b"b", 2, 1, "granted"),)),
    LeaseResponse(1, 2, 3, 4, 5, 6, 7, 8, (Leased(b"a", b"b", MOST, 1, "granted", 7),)),
    LeaseResponse(
        *(1, 2, 3, 4, 5, 6, 7, 8, ()),
        copies=(Held(b"", b"a", 1), Held(b"a", None, MOST)),
        hand_offs=(HandOff(b"", b"a", 1, 2, "ws://b"), HandOff(b"a", None, 2, 3, "ws://c")),
    ),
    Refusal(1, 2, 3, 4, 5, "name_held", "another is alive", 6),
    Poke(),
    Attest("rooms", 1, PROCESS, 2),
    Standby(None),
]
TO_LOOKUP: list[AnyMessage] = [
    SyncResponse(1, 2, 3, 4, 5, "hashed", True, ENTRIES, OWNERS, 6, 7),
    SyncResponse(1, 2, 3, 4, 5, "ordered", False, ENTRIES[::-1], OWNERS, 6, 7),
    SyncRefusal(1, 2, "no such pool"),
    Changes("rooms", 1, 2, 3, 4, (*ENTRIES, *ENTRIES), ()),
    Standby("http://10.0.0.9:7400"),
]
RECEIVERS: list[tuple[Decode, list[AnyMessage]]] = [
    (codec.decode_to_manager, TO_MANAGER),
    (codec.decode_to_owner, TO_OWNER),
    (codec.decode_to_lookup, TO_LOOKUP),
]
DECODERS = [decode for decode, _ in RECEIVERS]
CASES = [(decode, message) for decode, messages in RECEIVERS for message in messages]
SAMPLES = [codec.encode(message, NEWEST) for _, message in CASES]


def request(*held: Held) -> bytes:
    return codec.encode(LeaseRequest("rooms", 1, 2, 3, 4, 5, 6, held), NEWEST)


def packed(*fields: object) -> bytes:
    return bytes([NEWEST]) + msgspec.msgpack.encode(fields)


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
        "rooms", "hashed", "a", "http://10.0.0.7", 1, 2, 3, 1.0, {}
    )
    asked = packed("LeaseRequest", "rooms", 1, 2, 3, 4, 5, 6, [[b"", None, 1]])
    assert codec.decode_to_manager(asked, NEWEST) == LeaseRequest(
        "rooms", 1, 2, 3, 4, 5, 6, (Held(b"", None, 1),), leaving=False, copies=()
    )
    answer = packed("LeaseResponse", 1, 2, 3, 4, 5, 6, 7, 8, [[b"", None, 2, 1, "granted"]])
    assert codec.decode_to_owner(answer, NEWEST) == LeaseResponse(
        *(1, 2, 3, 4, 5, 6, 7, 8, (Leased(b"", None, 2, 1, "granted", 0),)), (), ()
    )


# --- whatever the bytes -------------------------------------------------------------------------


def message_or_refusal(decode: Decode, data: bytes) -> None:
    """Anything but a message or RemoteProtocolError fails the test that calls this."""
    try:
        message = decode(data, NEWEST)
    except RemoteProtocolError as error:
        assert len(str(error)) < 400  # noqa: PT017 - whatever was sent, the log stays readable
    else:
        assert decode(codec.encode(message, NEWEST), NEWEST) == message


@given(st.binary(max_size=200), st.sampled_from(DECODERS))
def test_any_bytes(data: bytes, decode: Decode) -> None:
    message_or_refusal(decode, data)
    message_or_refusal(decode, bytes([NEWEST]) + data)


@given(
    st.sampled_from(SAMPLES),
    st.integers(0, 200),
    st.integers(0, 4),
    st.binary(max_size=4),
    st.sampled_from(DECODERS),
)
def test_bytes_that_were_a_message_once(
    sample: bytes, place: int, gone: int, new: bytes, decode: Decode
) -> None:
    message_or_refusal(decode, sample[:place] + new + sample[place + gone :])


TAGS = st.sampled_from([type(message).__name__ for _, message in CASES])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats()
    | st.sampled_from(["hashed", "rooms", "renewed"])
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(TAGS, st.lists(VALUES, max_size=14), st.sampled_from(DECODERS))
def test_any_values_under_a_known_name(tag: str, fields: list[object], decode: Decode) -> None:
    message_or_refusal(decode, packed(tag, *fields))


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize(
    "body",
    [
        b"\x93\xa4Poke\x90" + b"\x91" * 100_000,  # deeper than any stack
        b"\xdd\xff\xff\xff\xff",  # four billion elements follow, it says
        b"\x92\xa4Poke\xdf\xff\xff\xff\xff",
        b"\x92\xa4Poke\xc6\xff\xff\xff\xff",
        b"\x91\xa1\xff",  # no UTF-8
        b"\x91\xd9\xff" + b"x" * 255,
        b"\xc1",  # never used in msgpack
    ],
)
def test_hostile_bytes_are_malformed(decode: Decode, body: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="malformed"):
        decode(bytes([NEWEST]) + body, NEWEST)


@pytest.mark.parametrize(("decode", "message"), CASES)
def test_what_is_meant_for_another_receiver_is_malformed(
    decode: Decode, message: AnyMessage
) -> None:
    for other in DECODERS:
        if other is not decode and not isinstance(message, Standby):
            with pytest.raises(RemoteProtocolError, match="malformed"):
                other(codec.encode(message, NEWEST), NEWEST)


# --- versions and limits ------------------------------------------------------------------------


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
    with pytest.raises(RemoteProtocolError, match=f"{limit + 1} bytes, where {limit} are the most"):
        decode(bytes(limit + 1), NEWEST)


def test_a_table_of_the_papers_size_passes_and_a_request_for_all_of_it_too() -> None:
    bounds = [i.to_bytes(8, "big") for i in range(128_000)]
    ranges = list(zip([b"", *bounds[1:]], [*bounds[1:], None], strict=True))
    entries = tuple(Entry(start, end, 2000, MOST, MOST) for start, end in ranges)
    owners = tuple(OwnerInfo(i, f"owner-{i}", f"http://10.0.{i}.1:8000") for i in range(2000))
    table = SyncResponse(1, 2, 3, 4, 5, "hashed", True, entries, owners, 6, 7)
    assert codec.decode_to_lookup(codec.encode(table, NEWEST), NEWEST) == table
    held = request(*(Held(start, end, MOST) for start, end in ranges))
    assert isinstance(codec.decode_to_manager(held, NEWEST), LeaseRequest)


def test_what_no_peer_would_take_is_not_sent() -> None:
    long_key = bytes(limits.REQUEST_BYTES)
    with pytest.raises(LocalProtocolError, match="a LeaseRequest of"):
        request(Held(long_key, None, 1))
    answer = LeaseResponse(1, 2, 3, 4, 5, 6, 7, 8, (Leased(long_key, None, 1, 1, "granted"),))
    assert len(codec.encode(answer, NEWEST)) > limits.REQUEST_BYTES


@pytest.mark.parametrize("most", [b"k" * KEY_BYTES])
def test_a_key_is_as_long_as_the_limit_and_no_longer(most: bytes) -> None:
    for held in (Held(b"", most, 1), Held(most, None, 1)):
        assert isinstance(codec.decode_to_manager(request(held), NEWEST), LeaseRequest)
    for held in (Held(b"", most + b"k", 1), Held(most + b"k", None, 1)):
        with pytest.raises(RemoteProtocolError, match="a key of 1025 bytes, where 1024"):
            codec.decode_to_manager(request(held), NEWEST)


def test_too_many_ranges_and_owners_are_refused() -> None:
    held = [Held(b"", b"a", 1)] * (limits.RANGES_PER_MESSAGE + 1)
    with pytest.raises(RemoteProtocolError, match="131073 ranges"):
        codec.decode_to_manager(request(*held), NEWEST)
    owners = OWNERS * (limits.OWNERS_PER_MESSAGE + 1)
    with pytest.raises(RemoteProtocolError, match="32769 owners"):
        codec.decode_to_lookup(
            codec.encode(Changes("rooms", 1, 2, 3, 4, (), owners), NEWEST), NEWEST
        )


@pytest.mark.parametrize(
    ("load", "complaint"),
    [
        (LoadReport(1, (RangeLoad(b"", None, -1.0),)), "a rate of -1.0"),
        (LoadReport(1, (RangeLoad(b"", None, float("nan")),)), "a rate of nan"),
        (LoadReport(1, (), (KeyLoad(b"k", float("inf")),)), "a rate of inf"),
        (LoadReport(1, (), (KeyLoad(b"k" * 1025, 1.0),)), "a key of 1025 bytes"),
        (LoadReport(1, (RangeLoad(b"b", None, 1.0), RangeLoad(b"a", None, 1.0))), "before the end"),
        (LoadReport(1, (RangeLoad(b"", b"a", 1.0),) * 4097), "a load of 4097 ranges"),
        (LoadReport(1, (), (KeyLoad(b"k", 1.0),) * 257), "257 hot keys"),
    ],
    ids=["negative", "nan", "infinite", "long key", "out of order", "ranges", "keys"],
)
def test_a_load_is_of_few_things_with_rates_that_can_be_added_up(
    load: LoadReport, complaint: str
) -> None:
    asked = LeaseRequest("rooms", 1, 2, 3, 4, 5, 6, (), load=load)
    with pytest.raises(RemoteProtocolError, match=complaint):
        codec.decode_to_manager(codec.encode(asked, NEWEST), NEWEST)


@pytest.mark.parametrize(
    "capacity", [0.0, -1.0, float("nan"), float("inf")], ids=["zero", "negative", "nan", "inf"]
)
def test_a_capacity_is_a_positive_number(capacity: float) -> None:
    join = Join("rooms", "hashed", "a", "http://10.0.0.7", 1, 2, 3, capacity)
    with pytest.raises(RemoteProtocolError, match="capacity"):
        codec.decode_to_manager(codec.encode(join, NEWEST), NEWEST)


@pytest.mark.parametrize(
    "labels",
    [{str(i): "" for i in range(65)}, {"zone": "z" * 201}, {"z" * 201: ""}],
    ids=["many", "long value", "long name"],
)
def test_labels_are_few_and_short(labels: dict[str, str]) -> None:
    join = Join("rooms", "hashed", "a", "http://10.0.0.7", 1, 2, 3, 1.0, labels)
    with pytest.raises(RemoteProtocolError, match="label"):
        codec.decode_to_manager(codec.encode(join, NEWEST), NEWEST)


# --- ranges -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds",
    [
        [(b"b", b"a")],
        [(b"a", b"a")],
        [(b"a", b"")],
        [(b"b", b"c"), (b"a", b"b")],
        [(b"a", b"c"), (b"b", b"d")],
        [(b"a", b"b"), (b"a", b"b")],
        [(b"a", None), (b"b", None)],
        [(b"a", None), (b"b", b"c")],
    ],
)
def test_ranges_listed_as_a_whole_are_sorted_and_do_not_overlap(
    bounds: list[tuple[bytes, bytes | None]],
) -> None:
    leased = tuple(Leased(start, end, 1, 1, "renewed") for start, end in bounds)
    copies = tuple(Copy(start, end, 1) for start, end in bounds)
    counting = tuple(Held(start, end, 1) for start, end in bounds)
    orders = tuple(HandOff(start, end, 1, 2, "ws://b") for start, end in bounds)
    asked = LeaseRequest("rooms", 1, 2, 3, 4, 5, 6, (), copies=copies)
    told = LeaseResponse(1, 2, 3, 4, 5, 6, 7, 8, (), counting)
    ordered = LeaseResponse(1, 2, 3, 4, 5, 6, 7, 8, (), (), orders)
    entries = tuple(Entry(start, end, 1, 1, 1) for start, end in bounds)
    for decode, message in (
        (codec.decode_to_manager, request(*(Held(start, end, 1) for start, end in bounds))),
        (
            codec.decode_to_owner,
            codec.encode(LeaseResponse(1, 2, 3, 4, 5, 6, 7, 8, leased), NEWEST),
        ),
        (codec.decode_to_manager, codec.encode(asked, NEWEST)),
        (codec.decode_to_owner, codec.encode(told, NEWEST)),
        (codec.decode_to_owner, codec.encode(ordered, NEWEST)),
        (
            codec.decode_to_lookup,
            codec.encode(SyncResponse(1, 2, 3, 4, 5, "hashed", True, entries, (), 6, 7), NEWEST),
        ),
    ):
        with pytest.raises(RemoteProtocolError, match="a range"):
            decode(message, NEWEST)


@pytest.mark.parametrize("bounds", [(b"b", b"a"), (b"a", b"a")])
def test_a_changed_range_ends_after_its_start(bounds: tuple[bytes, bytes]) -> None:
    changes = Changes("rooms", 1, 2, 3, 4, (Entry(*bounds, 1, 1, 1),), ())
    with pytest.raises(RemoteProtocolError, match="not after its start"):
        codec.decode_to_lookup(codec.encode(changes, NEWEST), NEWEST)
