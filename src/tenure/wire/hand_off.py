"""The bytes of what owners say to each other when state is handed over (rule P13).

As in `wire.codec` a byte of version stands before everything else, fields are only ever added at
the end with defaults, and whatever the bytes, decoding returns a message or raises
RemoteProtocolError. A source or a taker of before there were secrets is spoken to in the same
version: that source is refused, in words, and that taker asks for no secret.
"""

from typing import Final, TypeVar

import msgspec

from tenure.errors import LocalProtocolError, RemoteProtocolError
from tenure.protocol.lease.owner.transfer import Chunk, Offer, ToSource, ToTaker
from tenure.wire.checks import check_each
from tenure.wire.codec import Bytes
from tenure.wire.limits import CHUNK_BYTES, HAND_OFF_BYTES

VERSION: Final = 1
"""The version of what owners say to each other."""
M = TypeVar("M")

_PREFIX = bytes([VERSION])
_SHOWN_CHARACTERS = 200
_encoder = msgspec.msgpack.Encoder()
_for_taker: msgspec.msgpack.Decoder[ToTaker] = msgspec.msgpack.Decoder(ToTaker)
_for_source: msgspec.msgpack.Decoder[ToSource] = msgspec.msgpack.Decoder(ToSource)


def encode(message: ToTaker | ToSource) -> bytes:
    """The bytes of a message. Raises LocalProtocolError for a chunk that no taker would take."""
    if isinstance(message, Chunk) and len(message.data) > CHUNK_BYTES:
        raise LocalProtocolError(
            f"a chunk of {len(message.data)} bytes of state, where {CHUNK_BYTES} are the most: "
            "let export_range give smaller ones, and keep large values elsewhere, by reference"
        )
    return _PREFIX + _encoder.encode(message)


def decode_to_taker(data: Bytes) -> ToTaker:
    """What a taker received. Raises RemoteProtocolError, whatever is wrong with it."""
    message = _decode(data, _for_taker)
    if isinstance(message, Offer):
        try:
            check_each((message,))
        except ValueError as error:
            raise RemoteProtocolError(f"a malformed offer: {error}") from error
    if isinstance(message, Chunk) and len(message.data) > CHUNK_BYTES:
        size = len(message.data)
        raise RemoteProtocolError(f"a chunk of {size} bytes, where {CHUNK_BYTES} are the most")
    return message


def decode_to_source(data: Bytes) -> ToSource:
    """What a source received. Raises RemoteProtocolError, whatever is wrong with it."""
    return _decode(data, _for_source)


def _decode(data: Bytes, decoder: msgspec.msgpack.Decoder[M]) -> M:
    if len(data) > HAND_OFF_BYTES:
        raise RemoteProtocolError(
            f"a message of {len(data)} bytes, where {HAND_OFF_BYTES} are the most"
        )
    if not data or data[0] != VERSION:
        theirs = f"version {data[0]}" if data else "nothing"
        raise RemoteProtocolError(
            f"the other owner speaks {theirs} of the hand-off, this one version {VERSION}: "
            "upgrade tenure on the older side; ranges move without their state until then"
        )
    try:
        return decoder.decode(memoryview(data)[1:])
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        said = str(error)[:_SHOWN_CHARACTERS]
        raise RemoteProtocolError(f"a malformed message of {len(data)} bytes: {said}") from error
