"""Sums: how two replicas find their differences without sending all that they have (R27).

A row has a *print*: the digest of its entries, together with its marker and its adoption, which are
kept in its record. A range has 1,024 sums of prints, by a hash of the rows' positions, and each
of them consists of 64 inner ones. A sum is an xor, so a write changes it without reading the rest.
Replicas with the same sums have the same rows. Otherwise they look into the sums that differ, and
then at the rows of the inner ones that differ.

A row that does not exist, or of which nothing is left, has the print 0.
"""

from collections.abc import Iterator

from xxhash import xxh3_64_intdigest, xxh3_128_digest, xxh3_128_intdigest

from tenure.protocol.replication.row.records import NOTHING, RowRecord

SUMS = 1_024
INNER_SUMS = 64
SUM_BYTES = 16
PLACE_BYTES = 2
_COMPARED_AT_ONCE = 32 * SUM_BYTES
_INNER_BITS = 6
assert 1 << _INNER_BITS == INNER_SUMS


def row_print(record: RowRecord) -> int:
    """The same for replicas that have the same of a row."""
    found = int.from_bytes(record.digest)
    if record.marker == NOTHING and not record.adopted:
        return found
    told = b"".join((record.marker, record.adopted.to_bytes(8), record.attempt.to_bytes(8), b"row"))
    return found ^ xxh3_128_intdigest(told)


def place_among_sums(at: bytes) -> int:
    return xxh3_64_intdigest(at) % SUMS


def inner_place(at: bytes) -> int:
    """The inner sum that the row at a position is in: those of one sum follow each other."""
    found = xxh3_64_intdigest(at)
    return (found % SUMS) << _INNER_BITS | (found // SUMS) % INNER_SUMS


def inner_places(place: int) -> range:
    return range(place << _INNER_BITS, (place + 1) << _INNER_BITS)


def digest_of_sums(packed: bytes) -> bytes:
    """The digest of the sums, which is sent first."""
    return xxh3_128_digest(packed)


def differing(one: bytes, other: bytes) -> Iterator[int]:
    """The places at which packed sums differ. Most do not: so many are compared at once first."""
    length = min(len(one), len(other)) // SUM_BYTES * SUM_BYTES
    for first in range(0, length, _COMPARED_AT_ONCE):
        after = min(first + _COMPARED_AT_ONCE, length)
        if one[first:after] == other[first:after]:
            continue
        for start in range(first, after, SUM_BYTES):
            if one[start : start + SUM_BYTES] != other[start : start + SUM_BYTES]:
                yield start // SUM_BYTES
