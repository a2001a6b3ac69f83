"""Whatever the bytes are, decoding them raises only one error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import RemoteProtocolError
from tenure.protocol.lease.messages import AnyMessage, Standby
from tenure.wire import lease as codec
from tenure.wire.versions import NEWEST
from tests.unit.wire.samples import CASES, DECODERS, SAMPLES, Decode, packed


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
