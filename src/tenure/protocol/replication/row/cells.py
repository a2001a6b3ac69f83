"""Cells: what a replica keeps of one column, as bytes in the order in which they win.

A cell is its version, a byte that says whether it is a value or a tombstone, and the value. Of two
cells the greater version wins. Two writes may have the same version, because users may give the
time. Then a delete beats a value, and the larger value beats the smaller: any rule will do, as long
as every replica follows the same one. Since the cell has all three in this order, the greater bytes
win, and merging is `max`: it commutes, associates, and does nothing the second time (R1).

A marker is a version alone: it stands for a deleted super column, family or row, and hides every
cell and tombstone below it whose version is not greater (R2).
"""

from tenure.protocol.replication.row.versions import VERSION_BYTES

_VALUE = b"\0"
_TOMBSTONE = b"\1"
_VALUE_AT = VERSION_BYTES + 1


def cell_of(version: bytes, value: bytes | None) -> bytes:
    """The cell of a packed version: of a value, or without one a tombstone."""
    return version + _TOMBSTONE if value is None else b"".join((version, _VALUE, value))


def value_in(cell: bytes) -> bytes | None:
    """The value; None for a tombstone."""
    return None if cell[VERSION_BYTES] else cell[_VALUE_AT:]


def is_live(cell: bytes, marker: bytes) -> bool:
    """Whether readers see the cell under the greatest marker above it."""
    return not cell[VERSION_BYTES] and not is_hidden(cell, marker)


def is_hidden(cell: bytes, marker: bytes) -> bool:
    """Whether the packed `marker` hides the cell: its version is not greater."""
    return cell[:VERSION_BYTES] <= marker


def packed_time(cell: bytes) -> bytes:
    """The time of a cell, as 8 bytes in the order of time."""
    return cell[8:VERSION_BYTES]
