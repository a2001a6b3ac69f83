"""What owners say to each other when state is handed over (rule P13), as messages and as bytes.

One connection carries one range, straight from the owner that has it to the one that is to have it.
The source says what it has and to which incarnation; the taker accepts, and takes each chunk before
it says so. Of chunks that are not yet said to be taken only a few are under way, so that neither
side has more than these in memory, and both know that the other goes on.

As in `wire.codec` a byte of version stands before everything else, fields are only ever added at
the end with defaults, and whatever the bytes, decoding returns a message or raises
RemoteProtocolError.
"""

from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec

from tenure.base.numbers import JournalId, Number
from tenure.base.ranges import KeyRange
from tenure.errors import LocalProtocolError, RemoteProtocolError
from tenure.protocol.lease.messages import EndKey, Name, Text
from tenure.wire.checks import check_each
from tenure.wire.codec import Bytes
from tenure.wire.limits import CHUNK_BYTES, HAND_OFF_BYTES

VERSION: Final = 1
"""Of what owners say to each other."""
CHUNKS_UNDER_WAY = 4
"""Sent and not yet taken: enough to hide the way there and back, and little to keep in memory."""

M = TypeVar("M")


class Step(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The base of what two owners say to each other: compact arrays, told apart by their name."""


class Offer(Step, frozen=True):
    """The state of a range, as the lease of that number leaves it, for one incarnation."""

    pool: Name
    journal: JournalId
    start: bytes
    end: EndKey
    number: Number
    source: Number
    """The incarnation that has it."""
    taker: Number

    @property
    def range(self) -> KeyRange:
        """The range itself."""
        return KeyRange(self.start, self.end)


class Chunk(Step, frozen=True):
    """Some of the state, in the words of the application."""

    data: Annotated[bytes, msgspec.Meta(max_length=CHUNK_BYTES)]
    is_urgent: bool = False
    """It is of the last difference: nobody serves the range until it is taken."""


class Last(Step, frozen=True):
    """The range is not served any more, and all of its state has been sent."""


class Accepted(Step, frozen=True):
    """Send it."""


class Taken(Step, frozen=True):
    """One more chunk has been taken in."""


class Whole(Step, frozen=True):
    """All of it is here, and the taker's own machine knows."""


class Refused(Step, frozen=True):
    """It is not taken, or not any more; what came of it is dropped."""

    why: Text


ToTaker: TypeAlias = Offer | Chunk | Last
ToSource: TypeAlias = Accepted | Taken | Whole | Refused

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
