"""Layout: the entries of a row as sorted keys.

Each family is a space of entries of its own, sorted by bytes. The entries of one row stand side by
side in it, behind the row's *position*: its escaped key, and in a hashed table the hash before it.

    position 1                      the family's marker
    position 2 name                 a cell
    position 3 ~time name           the place of that cell in the order of time

In a super family everything stands within a super column, whose own marker comes first:

    position 2 super 1              the super column's marker
    position 2 super 2 name
    position 2 super 3 ~time name

The time is inverted, so that the newest comes first. A rewritten column moves to the front, and so
does a deleted one: its tombstone has a place, though no reader sees it. Otherwise a replica that
has deleted a column would list the same as one that never had it, and a quorum of the two would say
that it is gone without either telling the other (D2). The entry has the lease number, so that key
and entry together have the whole version.

So a row is one range of keys, a super column is a range within it, and a page a range within that.
"""

import msgspec
from xxhash import xxh3_64_digest

from tenure.protocol.replication.row.cells import packed_time
from tenure.protocol.replication.row.names import escaped, unescaped
from tenure.protocol.replication.row.versions import VERSION_BYTES
from tenure.protocol.topology.ring import HASH_BYTES
from tenure.protocol.topology.tables import Order, RowKind, TableRecord

MARKER = b"\1"
CELL = b"\2"
PLACE = b"\3"
AFTER = b"\4"
"""Behind everything of a row, or of a super column."""

TIME_BYTES = 8
_ALL = (1 << 64) - 1


class FamilyShape(msgspec.Struct, frozen=True):
    name: str
    has_supers: bool = False
    order: Order = "name"

    def section(self, position: bytes, super_column: bytes | None) -> bytes:
        """The beginning of all entries of a super column, or of a simple family's row."""
        if super_column is None:
            return position
        return b"".join((position, CELL, escaped(super_column)))


def shapes_of(table: TableRecord) -> dict[str, FamilyShape]:
    return {
        name: FamilyShape(name, bool(family.supers), family.order)
        for name, family in table.families.items()
    }


def position(key: bytes, kind: RowKind) -> bytes:
    """The position of the row of `key` among the rows of its table."""
    return escaped(key) if kind == "ordered" else xxh3_64_digest(key) + escaped(key)


def bound(token: bytes, kind: RowKind) -> bytes:
    """The least position of rows that stand at `token` on the ring, or above it; all others are
    below.
    """
    hashed = 0 if kind == "ordered" else HASH_BYTES
    return token[:hashed] + token[hashed:].replace(b"\0", b"\0\xff")


def row_key(at: bytes, kind: RowKind) -> tuple[bytes, int]:
    """The key of the row whose position `at` begins with, and the length of that position."""
    return unescaped(at, 0 if kind == "ordered" else HASH_BYTES)


def parted(shape: FamilyShape, at: bytes, key: bytes) -> tuple[bytes, bytes, bytes]:
    """The section, the kind and the rest of the key of an entry in the row at `at`."""
    inside = len(at)
    if shape.has_supers and key[inside : inside + 1] == CELL:
        _, inside = unescaped(key, inside + len(CELL))
    return key[:inside], key[inside : inside + 1], key[inside + 1 :]


def inverted(time: bytes) -> bytes:
    """A time of 8 bytes, so that a later one sorts before an earlier one; and back."""
    return (int.from_bytes(time, "big") ^ _ALL).to_bytes(TIME_BYTES, "big")


def place_of(section: bytes, name: bytes, cell: bytes) -> bytes:
    """The key of the cell's place in the order of time."""
    return b"".join((section, PLACE, inverted(packed_time(cell)), name))


def number_of(cell: bytes) -> bytes:
    """The lease number of the cell that a place tells, as bytes."""
    return cell[: VERSION_BYTES - TIME_BYTES]
