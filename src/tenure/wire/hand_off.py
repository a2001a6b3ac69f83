"""The bytes of messages between owners that hand state over (rule P13).

A source or a taker from before there were secrets is answered in its own version: such a source is
refused, with a reason, and such a taker asks for no secret.
"""

from typing import Final

import msgspec

from tenure.errors import LocalProtocolError
from tenure.protocol.lease.limits import CHUNK_BYTES
from tenure.protocol.lease.owner.transfer import Chunk, Offer, ToSource, ToTaker
from tenure.wire.checks import check_each
from tenure.wire.frame import Bytes, Reader, framed
from tenure.wire.limits import HAND_OFF_BYTES

VERSION: Final = 1
"""The version of what owners say to each other."""


def encode(message: ToTaker | ToSource) -> bytes:
    """The bytes of a message. Raises LocalProtocolError for a chunk that no taker would take."""
    if isinstance(message, Chunk) and len(message.data) > CHUNK_BYTES:
        raise LocalProtocolError(
            f"a chunk of {len(message.data)} bytes of state; at most {CHUNK_BYTES} are allowed: "
            "let export_range give smaller ones, and keep large values elsewhere, by reference"
        )
    return framed(message, VERSION)


def decode_to_taker(data: Bytes) -> ToTaker:
    """Decode what a taker received. Raises RemoteProtocolError for any malformed bytes."""
    return _read_by_taker(data, VERSION)


def decode_to_source(data: Bytes) -> ToSource:
    """Decode what a source received. Raises RemoteProtocolError for any malformed bytes."""
    return _read_by_source(data, VERSION)


def _check_to_taker(message: ToTaker, _: int) -> None:
    if isinstance(message, Offer):
        check_each((message,))


def _check_to_source(message: ToSource, _: int) -> None:
    """Check nothing: the types express every rule."""


def _other_version(theirs: int, ours: int) -> str:
    return (
        f"the other owner speaks version {theirs} of the hand-off, this one version {ours}: "
        "upgrade tenure on the older side; ranges move without their state until then"
    )


_for_taker: msgspec.msgpack.Decoder[ToTaker] = msgspec.msgpack.Decoder(ToTaker)
_for_source: msgspec.msgpack.Decoder[ToSource] = msgspec.msgpack.Decoder(ToSource)
_read_by_taker = Reader(_for_taker, HAND_OFF_BYTES, _check_to_taker, _other_version)
_read_by_source = Reader(_for_source, HAND_OFF_BYTES, _check_to_source, _other_version)
