"""Records and snapshots as bytes: a format version, a checksum, then msgpack.

A disk may return other bytes than it was given, and a database page with a sound structure can
still hold a flipped bit: a lease number that is off by 64 would be believed. So each record carries
a CRC-32 of itself, and bytes that do not match it are damage, never a record.

This is the frame; each protocol defines its records and snapshots in a file of its own. A
protocol's format rises with every new kind of record, and with every field whose absence would make
an older manager believe something false. One may ignore a part of a message, but not of a journal:
a manager that does not know a record does not know the state. If a field is added at the end, with
a default, and an older manager may do without it, the format stays as it is, so that managers can
be upgraded one after the other on one journal. The field may be lost after an older manager has
led, since its snapshots do not have it.
"""

import zlib
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec

from tenure.errors import MALFORMED, JournalDamaged, JournalTooNew, LocalProtocolError

WAY_OUT: Final = (
    "Move the journal away, with all its files, and start every manager of it anew: they begin a "
    "new history, wait out what the old one may have promised, and every key is lost once"
)
"""The advice in errors about damage."""

R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")

_HEADER_BYTES = 5  # the format, and a CRC-32 of the rest

_encoder = msgspec.msgpack.Encoder()


class JournalCodec(Generic[R, S]):
    """The records of one protocol and the states that they come to, as bytes.

    The checks raise ValueError if a rule is broken that types cannot express. Encoding raises
    LocalProtocolError for a record that could not be read back: types and limits are checked in
    decoding, and a record that was never decoded on its way here (a pool from a configuration file)
    must not be the end of its journal. Decoding raises JournalDamaged, or JournalTooNew for a later
    format; `where` is for the error, such as "LSN 12 of journal.sqlite".
    """

    def __init__(
        self,
        *,
        format_of: Callable[[R | S], int],
        newest: int,
        records: msgspec.msgpack.Decoder[R],
        states: msgspec.msgpack.Decoder[S],
        empty: S,
        check_record: Callable[[R], None],
        check_state: Callable[[S], None],
    ) -> None:
        self._format_of = format_of
        self.newest = newest
        """The newest format that can be read. `format_of` says in which format a record or snapshot
        is written: the oldest that can express it, so that an older manager reads as much as it
        can.
        """
        self.empty = empty
        """The state before any record."""
        self._records = records
        self._states = states
        self._check_record = check_record
        self._check_state = check_state

    def encode_record(self, record: R) -> bytes:
        """The bytes of a record."""
        data = self._sealed(record)
        _try(self.decode_record, data, type(record).__name__)
        return data

    def encode_state(self, state: S) -> bytes:
        """The bytes of a snapshot."""
        data = self._sealed(state)
        _try(self.decode_state, data, "snapshot")
        return data

    def decode_record(self, data: bytes, where: str) -> R:
        """The record that `data` holds."""
        return self._opened(data, where, self._records, self._check_record)

    def decode_state(self, data: bytes, where: str) -> S:
        """The snapshot that `data` holds."""
        return self._opened(data, where, self._states, self._check_state)

    def _sealed(self, value: R | S) -> bytes:
        body = _encoder.encode(value)
        version = self._format_of(value)
        return bytes([version]) + checksum(version, body) + body

    def _opened(
        self,
        data: bytes,
        where: str,
        decoder: msgspec.msgpack.Decoder[T],
        check: Callable[[T], None],
    ) -> T:
        if len(data) <= _HEADER_BYTES:
            raise _damaged(where, f"only {len(data)} bytes")
        body = memoryview(data)[_HEADER_BYTES:]
        if data[1:_HEADER_BYTES] != checksum(data[0], body):
            raise _damaged(where, "its checksum does not match")
        if not 1 <= data[0] <= self.newest:
            raise JournalTooNew(
                f"{where} is of format {data[0]}, and this tenure reads up to {self.newest}: "
                "run the tenure that wrote it, or a later one; nothing was touched"
            )
        try:
            decoded = decoder.decode(body)
            check(decoded)
        except MALFORMED as error:
            raise _damaged(where, str(error)) from error
        return decoded


def checksum(version: int, body: bytes | memoryview) -> bytes:
    """The checksum of the format and of what comes after the checksum."""
    return zlib.crc32(body, version).to_bytes(4, "big")


def _try(decode: Callable[[bytes, str], object], data: bytes, what: str) -> None:
    try:
        decode(data, f"the {what} to be written")
    except JournalDamaged as error:
        raise LocalProtocolError(f"nothing was written: {error.__cause__}") from error


def _damaged(where: str, what: str) -> JournalDamaged:
    return JournalDamaged(f"{where} cannot be read back: {what}; nothing was touched. {WAY_OUT}")
