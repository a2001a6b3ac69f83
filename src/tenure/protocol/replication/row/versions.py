"""Versions: which of two writes of the same thing counts.

A version is a lease number and a time in microseconds. In a table that no lease fences the number
is 0, and the time alone decides. In a fenced table the number comes first, so that late writes of a
former owner never beat those of its successor, whatever their clocks said.

A version is kept as 16 bytes whose order is that of versions: to compare, nothing is decoded.
"""

from struct import Struct
from typing import NamedTuple

from tenure.base.numbers import Number

VERSION_BYTES = 16
_PAIR = Struct(">QQ")


class Version(NamedTuple):
    """The time of a write, and its lease number, which is 0 if no lease is needed."""

    number: Number
    time: Number
    """The time in microseconds since 1970."""

    def packed(self) -> bytes:
        """The version as bytes that sort as versions do."""
        return _PAIR.pack(self.number, self.time)


NEVER = Version(0, 0)
"""The version before every write: a marker that hides nothing."""


def version_of(packed: bytes) -> Version:
    """The version with which `packed`, a cell or a marker, begins."""
    return Version(*_PAIR.unpack_from(packed))
