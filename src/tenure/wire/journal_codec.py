"""Records and snapshots as bytes: a format version, a checksum, then msgpack.

A disk may hand back something else than it was given, and a database page that is whole in its
structure can still hold a flipped bit: a lease number that is off by 64 would be believed. So each
record carries a CRC-32 of itself, and what does not match is damage, never a record.

The format rises with every new kind of record, and with every field without which an older manager
would believe what is not so. A journal is more than a message of which one may ignore a part: who
does not know a record does not know what is so. A field that is added at the end, with a default,
and that an older manager may do without, leaves the format as it is, so that managers are upgraded
one after the other on one journal. It may be gone after an older one has led, whose snapshots are
without it.
"""

import zlib
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from tenure.errors import JournalDamaged, JournalTooNew, LocalProtocolError
from tenure.protocol.lease.records import (
    AnyRecord,
    Changed,
    Joined,
    Left,
    PoolCreated,
    State,
)
from tenure.wire.checks import check_each, check_in_order, check_keys, check_owner

FORMAT: Final = 1
"""The format of records and snapshots."""

WAY_OUT: Final = (
    "Move the journal away, with all its files, and start every manager of it anew: they begin a "
    "new history, wait out what the old one may have promised, and every key is lost once"
)
"""What to do about damage."""

T = TypeVar("T")

_HEADER_BYTES = 5  # the format, and a CRC-32 of the rest

_encoder = msgspec.msgpack.Encoder()
_records: msgspec.msgpack.Decoder[AnyRecord] = msgspec.msgpack.Decoder(AnyRecord)
_states = msgspec.msgpack.Decoder(State)


def encode_record(record: AnyRecord) -> bytes:
    """The bytes of a record. Raises LocalProtocolError where they could not be read back.

    Types and limits are checked when something is decoded. A record that passes nobody's decoder
    on its way here (a pool from a configuration file) must not be the end of its journal.
    """
    data = _sealed(_encoder.encode(record))
    _try(decode_record, data, type(record).__name__)
    return data


def encode_state(state: State) -> bytes:
    """The bytes of a snapshot. Raises as `encode_record`."""
    data = _sealed(_encoder.encode(state))
    _try(decode_state, data, "snapshot")
    return data


def decode_record(data: bytes, where: str) -> AnyRecord:
    """The record that `data` holds; `where` is for the error, such as "LSN 12 of journal.sqlite".

    Raises JournalDamaged, or JournalTooNew for a format of a later tenure.
    """
    return _opened(data, where, _records, _check_record)


def decode_state(data: bytes, where: str) -> State:
    """The snapshot that `data` holds. Raises as `decode_record`."""
    return _opened(data, where, _states, _check_state)


def _sealed(body: bytes) -> bytes:
    return bytes([FORMAT]) + _checksum(FORMAT, body) + body


def _checksum(version: int, body: bytes | memoryview) -> bytes:
    return zlib.crc32(body, version).to_bytes(4, "big")


def _opened(
    data: bytes,
    where: str,
    decoder: msgspec.msgpack.Decoder[T],
    check: Callable[[T], None],
) -> T:
    if len(data) <= _HEADER_BYTES:
        raise _damaged(where, f"only {len(data)} bytes")
    body = memoryview(data)[_HEADER_BYTES:]
    if data[1:_HEADER_BYTES] != _checksum(data[0], body):
        raise _damaged(where, "its checksum does not match")
    if data[0] != FORMAT:
        raise JournalTooNew(
            f"{where} is of format {data[0]}, and this tenure reads {FORMAT}: "
            "run the tenure that wrote it, or a later one; nothing was touched"
        )
    try:
        decoded = decoder.decode(body)
        check(decoded)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise _damaged(where, str(error)) from error
    return decoded


def _try(decode: Callable[[bytes, str], object], data: bytes, what: str) -> None:
    try:
        decode(data, f"the {what} to be written")
    except JournalDamaged as error:
        raise LocalProtocolError(f"nothing was written: {error.__cause__}") from error


def _check_record(record: AnyRecord) -> None:
    match record:
        case Changed(entries=entries, steering=steering):
            check_each(entries)
            if steering is not None:
                check_keys(key for key, _ in steering.pins)
        case Left(entries=entries):
            check_each(entries)
        case PoolCreated(split_points=split_points):
            check_keys(split_points)
        case Joined(capacity=capacity, labels=labels):
            check_owner(capacity, labels)


def _check_state(state: State) -> None:
    for pool in state.pools:
        check_keys(pool.split_points)
        check_in_order(pool.entries)
        check_in_order(pool.handed)
        check_keys(key for key, _ in pool.steering.pins)
        for member in pool.members:
            check_owner(member.capacity, member.labels)


def _damaged(where: str, what: str) -> JournalDamaged:
    return JournalDamaged(f"{where} cannot be read back: {what}; nothing was touched. {WAY_OUT}")
