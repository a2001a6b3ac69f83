"""Messages between owners survive their bytes, and other bytes raise only one error."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.keys import KEY_BYTES
from tenure.errors import LocalProtocolError, RemoteProtocolError
from tenure.protocol.lease.limits import CHUNK_BYTES
from tenure.protocol.lease.owner.transfer import (
    Accepted,
    Chunk,
    Last,
    NotTaken,
    Offer,
    PeerMessage,
    Taken,
    ToSource,
    ToTaker,
    Whole,
)
from tenure.wire.hand_off import VERSION, decode_to_source, decode_to_taker, encode
from tenure.wire.limits import HAND_OFF_BYTES

MOST = (1 << 63) - 1
OFFER = Offer(
    pool="rooms", journal=MOST, start=b"", end=b"m", number=1, source=2, taker=3, secret=7
)
TO_TAKER: list[ToTaker] = [
    OFFER,
    Offer(pool="räume", journal=1, start=b"m", end=None, number=MOST, source=MOST, taker=MOST),
    Offer(
        pool="rooms",
        journal=1,
        start=b"a" * KEY_BYTES,
        end=b"b" * KEY_BYTES,
        number=1,
        source=2,
        taker=3,
    ),
    Chunk(data=b""),
    Chunk(data=bytes(CHUNK_BYTES)),
    Chunk(data=b"some", is_urgent=True),
    Chunk(data=b"some", is_urgent=True, tells_writes=True),
    Last(),
]
TO_SOURCE: list[ToSource] = [
    Accepted(),
    Accepted(wants_writes=True),
    Taken(),
    Whole(),
    NotTaken(why="it is served here"),
]
CASES = [(decode_to_taker, message) for message in TO_TAKER]
CASES += [(decode_to_source, message) for message in TO_SOURCE]  # type: ignore[misc]
DECODERS = (decode_to_taker, decode_to_source)
SAMPLES = [encode(message) for message in [OFFER, Chunk(data=b"some state"), Last(), *TO_SOURCE]]
BYTES = {
    OFFER: "0199a54f66666572a5726f6f6d73cf7fffffffffffffffc400c4016d01020307",
    Chunk(data=b"some state"): "0194a54368756e6bc40a736f6d65207374617465c2c2",
    Last(): "0191a44c617374",
    Accepted(): "0192a84163636570746564c2",
    Taken(): "0191a554616b656e",
    Whole(): "0191a557686f6c65",
    NotTaken(why="no"): "0192a752656675736564a26e6f",
}
"""The bytes of version 1, for good: an owner of another release is on the other side."""


def packed(*fields: object) -> bytes:
    return bytes([VERSION]) + msgspec.msgpack.encode(fields)


def name_of(each: object) -> str:
    """The same in every process, as those that share the tests must have it."""
    return getattr(each, "__name__", str(each)[:30])


@pytest.mark.parametrize(("decode", "message"), CASES, ids=name_of)
def test_a_message_survives_its_bytes(decode: Callable[[Any], PeerMessage], message: Any) -> None:  # noqa: ANN401
    data = encode(message)
    for given_as in (data, bytearray(data), memoryview(data)):
        assert decode(given_as) == message


@pytest.mark.parametrize(("message", "expected"), BYTES.items(), ids=name_of)
def test_its_bytes_are_those_of_every_release(message: Any, expected: str) -> None:  # noqa: ANN401
    assert encode(message).hex() == expected


def test_a_chunk_of_before_it_could_be_urgent_is_not() -> None:
    assert decode_to_taker(packed("Chunk", b"some state")) == Chunk(
        data=b"some state", is_urgent=False
    )


def test_owners_of_before_there_were_caches_neither_tell_of_writes_nor_want_to_be_told() -> None:
    before = bytes.fromhex("0193a54368756e6bc40a736f6d65207374617465c2")
    assert decode_to_taker(before) == Chunk(data=b"some state", tells_writes=False)
    before = bytes.fromhex("0191a84163636570746564")
    assert decode_to_source(before) == Accepted(wants_writes=False)


def test_an_offer_of_before_there_were_secrets_has_none() -> None:
    """It is understood, and refused in words."""
    data = bytes.fromhex("0198a54f66666572a5726f6f6d73cf7fffffffffffffffc400c4016d010203")
    assert decode_to_taker(data) == Offer(
        pool="rooms", journal=MOST, start=b"", end=b"m", number=1, source=2, taker=3, secret=0
    )


def test_fields_that_a_later_release_adds_are_passed_over() -> None:
    fields = msgspec.msgpack.decode(encode(OFFER)[1:])
    assert decode_to_taker(packed(*fields, {"new": [1]}, 3)) == OFFER
    assert decode_to_source(packed("Refused", "no", 7)) == NotTaken(why="no")


def test_a_chunk_that_no_taker_would_take_is_not_encoded() -> None:
    with pytest.raises(LocalProtocolError, match=f"a chunk of {CHUNK_BYTES + 1} bytes of state"):
        encode(Chunk(data=bytes(CHUNK_BYTES + 1)))


@pytest.mark.parametrize(
    ("decode", "data", "complaint"),
    [
        (decode_to_taker, b"", "an empty message"),
        (decode_to_source, b"\x02\x91\xa5Taken", "speaks version 2 .*: upgrade tenure"),
        (decode_to_taker, bytes(HAND_OFF_BYTES + 1), f"of {HAND_OFF_BYTES + 1} bytes; at most"),
        (
            decode_to_taker,
            packed("Chunk", bytes(CHUNK_BYTES + 1)),
            "`bytes` of length <= 4194304",
        ),
        (decode_to_taker, packed("Surprise"), "malformed message of 11 bytes: .*'Surprise'"),
        (decode_to_taker, packed("Taken"), "malformed .*'Taken'"),
        (decode_to_source, packed("Last"), "malformed .*'Last'"),
        (decode_to_taker, packed("Offer", "rooms", 1, b"", None, 1, 2), "malformed .*length"),
        (decode_to_taker, packed("Offer", "rooms", 1, b"b", b"b", 1, 2, 3), "malformed message"),
        (
            decode_to_taker,
            packed("Offer", "rooms", 1, b"a" * (KEY_BYTES + 1), None, 1, 2, 3),
            "malformed message",
        ),
        (decode_to_source, packed("Refused", 7), "malformed"),
        (decode_to_source, bytes([VERSION]) + b"\x91" * 5_000, "malformed message of 5001 bytes"),
    ],
    ids=name_of,
)
def test_what_is_no_message_is_said_in_one_way(
    decode: Callable[[bytes], PeerMessage], data: bytes, complaint: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=complaint) as raised:
        decode(data)
    assert len(str(raised.value)) < 400


@given(
    st.one_of(
        st.binary(max_size=100),
        st.binary(max_size=100).map(lambda data: bytes([VERSION]) + data),
        st.builds(
            lambda sample, place, gone, new: sample[:place] + new + sample[place + gone :],
            st.sampled_from(SAMPLES),
            st.integers(0, 40),
            st.integers(0, 4),
            st.binary(max_size=4),
        ),
    ),
    st.sampled_from(DECODERS),
)
def test_any_bytes_are_a_message_or_refused(data: bytes, decode: Callable[[bytes], Any]) -> None:
    try:
        message = decode(data)
    except RemoteProtocolError as error:
        assert len(str(error)) < 400  # noqa: PT017  # the log stays readable
    else:
        assert decode(encode(message)) == message
