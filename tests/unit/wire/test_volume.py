"""Messages between caches and servers survive their bytes; anything else is refused."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenure.base.ranges import KeyRange
from tenure.errors import LocalProtocolError, RemoteProtocolError
from tenure.protocol.volume.limits import LISTED, OBJECT_KEY_BYTES, VALUE_BYTES
from tenure.protocol.volume.messages import (
    Acknowledge,
    AsOf,
    Bye,
    Elsewhere,
    Fetch,
    Fetched,
    Invalidate,
    Item,
    Listed,
    Reconnect,
    Reconnected,
    Renew,
    Renewed,
    RequestRefused,
    UnknownReader,
    VolumeMessage,
    Write,
    WriteDone,
)
from tenure.protocol.volume.server.versions import KnownWrites
from tenure.wire.frame import Bytes
from tenure.wire.versions import NEWEST
from tenure.wire.volume import (
    FIRST_VERSION,
    SharedItems,
    decode_known,
    decode_to_cache,
    decode_to_volume_server,
    encode_known,
    encode_volume,
)

MOST = (1 << 63) - 1
READER: dict[str, Any] = {"epoch": 2, "reader": 3}
ASKED: dict[str, Any] = {"client": 1, **READER}
LISTS = (Listed(key=b"a", number=5, count=6), Listed(key=b"", number=MOST, count=0))
ITEMS = (
    Item(item=1, key=b"a", number=2, count=3),
    Item(item=2, key=b"", number=2, count=4, withdrawn=True, end=b"m"),
    Item(item=3, key=b"m", number=MOST, count=MOST, withdrawn=True),
)
GIVES: dict[str, Any] = {"term_ns": 7, "lease_ns": 8}

KNOWN = KnownWrites(
    ((KeyRange(b"a", b"m"), (5, 6)), (KeyRange(b"m"), (MOST, 0))), ((b"a", (5, 7)), (b"n", (5, 8)))
)


def test_what_is_known_of_writes_comes_in_chunks() -> None:
    [data] = encode_known(KNOWN)
    assert decode_known(data) == KNOWN
    many = KnownWrites(KNOWN.floors, tuple((b"%d" % i, (5, i)) for i in range(2_500)))
    chunks = [decode_known(each) for each in encode_known(many)]
    assert [len(each.writes) for each in chunks] == [1_000, 1_000, 500]
    assert (
        KnownWrites(
            tuple(floor for each in chunks for floor in each.floors),
            tuple(write for each in chunks for write in each.writes),
        )
        == many
    )
    assert encode_known(KnownWrites((), ())) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"nonsense",
        msgspec.msgpack.encode([[[[b"b", b"a"], [1, 1]]], []]),
        msgspec.msgpack.encode([[[[bytes(2_000), None], [1, 1]]], []]),
        msgspec.msgpack.encode([[], [[bytes(OBJECT_KEY_BYTES + 1), [1, 1]]]]),
        msgspec.msgpack.encode([[], [[b"a", ["1", 1]]]]),
    ],
)
def test_known_writes_that_tell_nothing_are_refused(wrong: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="known writes are malformed"):
        decode_known(wrong)


# Each with the bytes that the first version has written: they must be read for ever.
GOLDEN: list[tuple[VolumeMessage, str]] = [
    (
        Reconnect(client=1, sequence=2, history=3, listed=LISTS),
        "0295a95265636f6e6e6563740102039293c40161050693c400cf7fffffffffffffff00",
    ),
    (
        Renew(**ASKED, sequence=4, history=5, listed=LISTS),
        "0297a552656e657701020304059293c40161050693c400cf7fffffffffffffff00",
    ),
    (Fetch(**ASKED, sequence=4, key=b"a"), "0297a5466574636801020304c40161c0"),
    (
        Fetch(**ASKED, sequence=4, key=b"a", as_of=AsOf(history=5, number=6, count=7)),
        "0297a5466574636801020304c4016193050607",
    ),
    (
        Acknowledge(**ASKED, items=(1, 2, MOST)),
        "0295ab41636b6e6f776c65646765010203930102cf7fffffffffffffff",
    ),
    (Write(**ASKED, sequence=4, key=b"a", value=b"v"), "0297a5577269746501020304c40161c40176"),
    (Bye(**ASKED), "0294a3427965010203"),
    (
        Reconnected(client=1, sequence=2, epoch=3, history=4, reader=5, **GIVES, live=LISTS),
        "0299ab5265636f6e6e6563746564010203040507089293c40161050693c400cf7fffffffffffffff00",
    ),
    (
        Renewed(**READER, sequence=4, **GIVES, live=LISTS, items=ITEMS),
        (
            "0298a752656e6577656402030407089293c40161050693c400cf7fffffffffffffff00939601c401"
            "610203c2c09602c4000204c3c4016d9603c4016dcf7fffffffffffffffcf7fffffffffffffffc3c0"
        ),
    ),
    (
        Fetched(
            **READER,
            sequence=4,
            key=b"a",
            kind="value",
            value=b"v",
            number=5,
            count=6,
            **GIVES,
            items=ITEMS,
        ),
        (
            "029ca746657463686564020304c40161a576616c7565c4017605060708939601c401610203c2c096"
            "02c4000204c3c4016d9603c4016dcf7fffffffffffffffcf7fffffffffffffffc3c0"
        ),
    ),
    (
        WriteDone(**READER, sequence=4, key=b"a", ok=False, detail="ö", number=5, count=6, **GIVES),
        "029ca95772697465446f6e65020304c40161c2a2c3b60506070890",
    ),
    (UnknownReader(client=1, sequence=2), "0293ad556e6b6e6f776e5265616465720102"),
    (Elsewhere(client=1, sequence=2), "0293a9456c736577686572650102"),
    (
        RequestRefused(client=1, sequence=2, why="mute", detail="x", again_ns=3),
        "0296ae52657175657374526566757365640102a46d757465a17803",
    ),
    (
        Invalidate(**READER, items=ITEMS),
        (
            "0294aa496e76616c69646174650203939601c401610203c2c09602c4000204c3c4016d9603c4016d"
            "cf7fffffffffffffffcf7fffffffffffffffc3c0"
        ),
    ),
]
MESSAGES = [message for message, _ in GOLDEN]
TO_SERVER = (Reconnect, Renew, Fetch, Acknowledge, Write, Bye)
DECODERS: list[Callable[[Bytes, int], VolumeMessage]] = [decode_to_volume_server, decode_to_cache]


def decode(message: VolumeMessage, data: bytes) -> VolumeMessage:
    reader = decode_to_volume_server if isinstance(message, TO_SERVER) else decode_to_cache
    return reader(data, FIRST_VERSION)


def packed(*fields: object) -> bytes:
    return bytes([FIRST_VERSION]) + msgspec.msgpack.encode(fields)


@pytest.mark.parametrize(("message", "golden"), GOLDEN)
def test_the_first_version_wrote_these_bytes(message: VolumeMessage, golden: str) -> None:
    assert encode_volume(message, FIRST_VERSION).hex() == golden  # type: ignore[arg-type]
    assert decode(message, bytes.fromhex(golden)) == message


@pytest.mark.parametrize("message", MESSAGES)
def test_fields_that_a_later_version_adds_are_passed_over(message: VolumeMessage) -> None:
    fields = msgspec.msgpack.decode(encode_volume(message, FIRST_VERSION)[1:])  # type: ignore[arg-type]
    assert decode(message, packed(*fields, {"new": [1, None]}, 3)) == message


@pytest.mark.parametrize("message", MESSAGES)
def test_the_other_side_does_not_take_it(message: VolumeMessage) -> None:
    other = decode_to_cache if isinstance(message, TO_SERVER) else decode_to_volume_server
    with pytest.raises(RemoteProtocolError, match="malformed"):
        other(encode_volume(message, FIRST_VERSION), FIRST_VERSION)  # type: ignore[arg-type]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_version_without_caches_has_none_of_them(message: VolumeMessage) -> None:
    with pytest.raises(LocalProtocolError, match="upgrade tenure"):
        encode_volume(message, 1)  # type: ignore[arg-type]
    for reader in DECODERS:
        with pytest.raises(RemoteProtocolError, match="upgrade"):
            reader(encode_volume(message, FIRST_VERSION), 1)  # type: ignore[arg-type]


LONG = b"x" * (OBJECT_KEY_BYTES + 1)
HEAVY = b"x" * (VALUE_BYTES + 1)
TOO_MUCH = [
    (replace(MESSAGES[0], listed=(LISTS[0],) * (LISTED + 1)), "length <= 100000"),
    (replace(MESSAGES[1], listed=(LISTS[0],) * (LISTED + 1)), "length <= 100000"),
    (replace(MESSAGES[1], listed=(replace(LISTS[0], key=LONG),)), "length <= 2048"),
    (replace(MESSAGES[2], key=LONG), "length <= 2048"),
    (replace(MESSAGES[5], key=LONG), "length <= 2048"),
    (replace(MESSAGES[5], value=HEAVY), "length <= 4194304"),
    (replace(MESSAGES[4], items=(1,) * 1_000_001), "length <= 1000000"),
    (replace(MESSAGES[8], items=(replace(ITEMS[0], key=LONG),)), "length <= 2048"),
    (replace(MESSAGES[9], value=HEAVY), "length <= 4194304"),
    (replace(MESSAGES[10], key=LONG), "length <= 2048"),
    (replace(MESSAGES[14], items=(replace(ITEMS[0], key=LONG),)), "length <= 2048"),
    (replace(MESSAGES[14], items=(replace(ITEMS[1], key=b"z"),)), "ends after its start"),
    (replace(MESSAGES[14], items=(replace(ITEMS[1], end=LONG),)), "length <= 2048"),
]


@pytest.mark.parametrize(("message", "why"), TOO_MUCH)
def test_what_is_too_long_or_too_many_is_refused(message: VolumeMessage, why: str) -> None:
    with pytest.raises(RemoteProtocolError, match=why):
        decode(message, encode_volume(message, FIRST_VERSION))  # type: ignore[arg-type]


@given(st.binary(max_size=200), st.sampled_from(DECODERS))
def test_any_bytes(data: bytes, reader: Callable[[Bytes, int], VolumeMessage]) -> None:
    for each in (data, bytes([FIRST_VERSION]) + data):
        try:
            message = reader(each, FIRST_VERSION)
        except RemoteProtocolError as error:
            assert len(str(error)) < 400  # noqa: PT017 - the log stays readable
        else:
            encoded = encode_volume(message, FIRST_VERSION)  # type: ignore[arg-type]
            assert reader(encoded, FIRST_VERSION) == message


@given(st.sampled_from(MESSAGES), st.integers(0, 200), st.integers(0, 4), st.binary(max_size=4))
def test_bytes_that_were_a_message_once(
    message: VolumeMessage, place: int, gone: int, new: bytes
) -> None:
    sample = encode_volume(message, FIRST_VERSION)  # type: ignore[arg-type]
    try:
        found = decode(message, sample[:place] + new + sample[place + gone :])
    except RemoteProtocolError:
        return
    assert decode(found, encode_volume(found, FIRST_VERSION)) == found  # type: ignore[arg-type]


def test_items_that_were_encoded_for_another_reader_are_the_same_bytes() -> None:
    item = Item(item=3, key=b"k", number=7, count=9)
    gone = Item(item=4, key=b"a", number=7, count=9, withdrawn=True, end=b"b")
    shared = SharedItems()
    for items, count in (
        ((), 1),
        ((item,), 2),
        ((item,), 2),
        ((item, gone), 3),
        ((), 4),
        ((item,), 5),
    ):
        for reader in (1, 1 << 60):
            plain = Invalidate(epoch=5, reader=reader, items=items)
            assert encode_volume(shared.prepared(plain), NEWEST) == encode_volume(plain, NEWEST)
            assert shared.count == count
