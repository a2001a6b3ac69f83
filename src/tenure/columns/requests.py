"""The requests of a store to a backend: one value for each, passed on unchanged.

All names are bytes here, checked and encoded. A backend may carry a request out itself, hand it to
a replica, or send it to another process: none of them takes it apart on the way.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from tenure.columns.tables import Table
from tenure.protocol.replication.edits import Edit
from tenure.protocol.replication.layout import FamilyShape
from tenure.protocol.replication.pages import Slice

Consistency = Literal["one", "quorum", "all", "local_quorum", "each_quorum"]
"""How many replicas must answer. With one replica all levels are the same."""


class RowMutation(msgspec.Struct, frozen=True):
    """The changes to one row."""

    table: Table
    key: bytes
    edits: Sequence[Edit]
    level: Consistency = "quorum"
    time: int | None = None
    """The time that the user gives; otherwise the store draws one."""
    number: int = 0
    """The lease number; 0 in a table that is not fenced."""
    journal: int = 0
    """The journal of the lease number; 0 without one."""
    above: int = 0
    """A time that an owner must write above: the newest of the row when it was adopted, or of its
    last write.
    """

    @property
    def is_ordered(self) -> bool:
        """Whether the version must lie above all that was acknowledged before (R4). An owner, who
        is the only writer, knows what that is.
        """
        return self.table.writes != "clock" and self.level != "one" and not self.number


class ColumnRead(msgspec.Struct, frozen=True):
    """One column, if readers see it."""

    table: Table
    key: bytes
    family: FamilyShape
    super: bytes | None
    name: bytes
    level: Consistency = "quorum"


class PageRead(msgspec.Struct, frozen=True):
    """Columns of a simple family, or of a super column. `part` is in the family's order.

    In the order of time, bounds are inverted times of 8 bytes, see `layout.inverted`. `after` of a
    slice is the `next` of a page, which the backend made.
    """

    table: Table
    key: bytes
    family: FamilyShape
    super: bytes | None
    part: Slice
    level: Consistency = "quorum"


class SupersRead(msgspec.Struct, frozen=True):
    """Super columns by name, only those with columns, each with its first `within` columns."""

    table: Table
    key: bytes
    family: FamilyShape
    part: Slice
    within: int
    level: Consistency = "quorum"


class RowRead(msgspec.Struct, frozen=True):
    """The first `within` columns, or super columns with as many, of each family."""

    table: Table
    key: bytes
    within: int
    level: Consistency = "quorum"


class ScanRead(msgspec.Struct, frozen=True):
    """Rows in the order of their keys, only those with columns. Bounds are keys. The rows of a
    hashed table come in any fixed order, and are asked for without bounds.
    """

    table: Table
    part: Slice
    within: int
    level: Consistency = "quorum"
