"""The records that a replica keeps of a row as a whole, beside its columns."""

import msgspec

from tenure.protocol.replication.row.versions import VERSION_BYTES

NOTHING = bytes(VERSION_BYTES)
"""A packed version before every other."""


class RowRecord(msgspec.Struct, array_like=True, gc=False):
    """One row, as the space `rows` has it: that the row exists, and what concerns all of it."""

    newest: bytes = NOTHING
    """The greatest version that was ever written to it. A first attempt must be above it (R4)."""
    marker: bytes = NOTHING
    """The row's own marker."""
    digest: bytes = bytes(16)
    """The xor of the xxh3-128 of all entries: two replicas with the same digest have the same."""
    fence: int = 0
    """The highest lease number that was promised: writes under a lower one are refused (R20)."""
    journal: int = 0
    """The identity of the journal from which that number is."""
    adopted: int = 0
    """The lease number of the adoption whose state the row has (R21)."""
    attempt: int = 0
    """The number of the attempt in that adoption."""
    promised: int = 0
    """The highest attempt of an adoption under the lease number `fence` that has been here."""
    is_unmarked: bool = False
    """Whether no family and no super column of the row ever had a marker. Then a write looks for
    none. Records that were kept before this was told do not tell it.
    """


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(RowRecord)


def record_of(stored: bytes | None) -> RowRecord:
    """The record as it is kept; an empty one for a row that is not there."""
    return RowRecord(is_unmarked=True) if stored is None else _DECODER.decode(stored)


def stored(record: RowRecord) -> bytes:
    return _ENCODER.encode(record)
