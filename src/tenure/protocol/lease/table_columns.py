"""A whole lease table as columns: each field of its entries is stored in one array.

Every new lookup is told the whole table: thousands of entries, most of which it may never need. As
a list they are thousands of objects to read, and to check one by one, before the first key is
found. A column is bytes, which are only copied; keys and numbers are made from them when somebody
asks. A table covers all keys, so a range ends where the next begins, and only its start is needed.
"""

import struct
from collections.abc import Sequence
from itertools import pairwise
from operator import lt
from typing import Annotated, TypeAlias

import msgspec

from tenure.base.keys import KEY_BYTES, Key
from tenure.base.numbers import Number
from tenure.base.ranges import LOWEST
from tenure.protocol.lease.limits import RANGES_PER_TABLE, STARTS_BYTES

DIGEST_BYTES = 8
"""The bytes of every start in a hashed pool, but for the first."""
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The code of a number of so many bytes, as `struct` calls it."""
_LARGEST = (1 << 63) - 1
Column: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=max(_CODES) * RANGES_PER_TABLE)]
"""A number of each range."""


class TableColumns(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """All entries of a table, in order. Numbers are little-endian, and equally wide within a
    column.
    """

    ranges: Number
    starts: Annotated[bytes, msgspec.Meta(max_length=STARTS_BYTES)]
    """One after the other, without the first, which is the lowest key."""
    lengths: Column
    """The length of each start; empty if each has DIGEST_BYTES."""
    owners: Column
    numbers: Column
    sinces: Column

    def all_starts(self) -> list[Key]:
        """The start of each range."""
        starts = self.starts
        if not self.lengths:
            size = DIGEST_BYTES
            return [LOWEST, *(starts[at : at + size] for at in range(0, len(starts), size))]
        found, at = [LOWEST], 0
        for length in unpacked(self.lengths, self.ranges - 1):
            found.append(starts[at : at + length])
            at += length
        return found

    def all_owners(self) -> tuple[int, ...]:
        """The owner of each range; 0 if nobody has it."""
        return unpacked(self.owners, self.ranges)

    def all_numbers(self) -> tuple[int, ...]:
        """Under which lease."""
        return unpacked(self.numbers, self.ranges)

    def all_sinces(self) -> tuple[int, ...]:
        """The number since which each range is unbroken."""
        return unpacked(self.sinces, self.ranges)

    def check(self) -> None:
        """Raise ValueError where this is not a table."""
        ranges = self.ranges
        if not 0 < ranges <= RANGES_PER_TABLE:
            raise ValueError(f"a table of {ranges} ranges; 1 to {RANGES_PER_TABLE} are allowed")
        for column in (self.owners, self.numbers, self.sinces):
            _check_width(column, ranges)
        if not self.lengths:
            if len(self.starts) != DIGEST_BYTES * (ranges - 1):
                raise ValueError(f"starts of {len(self.starts)} bytes in all, of {ranges} ranges")
            digests = struct.unpack(f">{ranges - 1}Q", self.starts)
            if not all(map(lt, digests, digests[1:])):
                raise ValueError("starts of ranges that are not in order")
            return
        _check_width(self.lengths, ranges - 1)
        lengths = unpacked(self.lengths, ranges - 1)
        if max(lengths) > KEY_BYTES or sum(lengths) != len(self.starts):
            raise ValueError(f"starts of {len(self.starts)} bytes in all, or too long a start")
        if not all(before < after for before, after in pairwise(self.all_starts())):
            raise ValueError("starts of ranges that are not in order")


def packed(numbers: Sequence[int]) -> bytes:
    """A column of numbers, as narrow as the largest of them lets it be."""
    largest = max(numbers, default=0)
    width = next(width for width in _CODES if largest < 1 << (8 * width))
    return struct.pack(f"<{len(numbers)}{_CODES[width]}", *numbers)


def unpacked(column: bytes, count: int) -> tuple[int, ...]:
    """The numbers of a column."""
    return struct.unpack(f"<{count}{_CODES[len(column) // count]}", column) if count else ()


def _check_width(column: bytes, count: int) -> None:
    width, rest = divmod(len(column), count) if count else (0, 1)
    if rest or width not in _CODES:
        raise ValueError(f"a column of {len(column)} bytes, for {count} numbers")
    if width == max(_CODES) and max(unpacked(column, count)) > _LARGEST:
        raise ValueError(f"a number above {_LARGEST}")


def packed_starts(starts: Sequence[Key]) -> tuple[bytes, bytes]:
    """The columns of starts, and of their lengths, of all ranges but the first."""
    lengths = [*map(len, starts)]
    is_hashed = all(length == DIGEST_BYTES for length in lengths)
    return b"".join(starts), b"" if is_hashed else packed(lengths)
