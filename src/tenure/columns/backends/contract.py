"""What stands behind a store: writes and pages, with all names as bytes.

What an application says has been checked and encoded before it comes here, and what is returned is
decoded after. A backend draws no times and repeats nothing: the store does.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from tenure.columns.results import FoundRow, RowPage
from tenure.columns.tables import Table
from tenure.protocol.replication.admission import Attempt, Outranked, Refused
from tenure.protocol.replication.edits import Edit
from tenure.protocol.replication.layout import FamilyShape
from tenure.protocol.replication.pages import CellPage, FoundCell, Slice, SuperPage

Consistency = Literal["one", "quorum", "all", "local_quorum", "each_quorum"]
"""How many replicas must answer. With one replica they are all the same."""
Fencing = Literal["", "lwt"]
"""How a store that others run as well refuses what former owners write; not at all, unless told."""


class Backend(Protocol):
    """Where the rows of some tables are."""

    async def open(self) -> None:
        """Be ready for everything below. Raises StoreError, and SchemaError."""
        ...

    async def close(self) -> None:
        """Finish what has begun, and let go of everything."""
        ...

    async def write(
        self,
        table: Table,
        key: bytes,
        edits: Sequence[Edit],
        attempt: Attempt,
        level: Consistency,
    ) -> Refused | None:
        """Write one row mutation; None when as many have it as `level` says.

        A refusal says that nothing was applied. Raises WriteUnknown where nobody knows, and
        Overloaded where nothing was begun. May be cancelled: then the outcome is unknown.
        """
        ...

    async def adopt(self, table: Table, key: bytes, number: int, journal: int) -> Outranked | None:
        """Promise, durably, to refuse every lower lease number for the row, and this one of another
        journal; then only may the row be read. A refusal where a higher one was promised.
        """
        ...

    async def column(
        self,
        table: Table,
        key: bytes,
        family: FamilyShape,
        super_column: bytes | None,
        name: bytes,
        level: Consistency,
    ) -> FoundCell | None:
        """One column, if readers see it."""
        ...

    async def page(
        self,
        table: Table,
        key: bytes,
        family: FamilyShape,
        super_column: bytes | None,
        part: Slice,
        level: Consistency,
    ) -> CellPage:
        """Columns of a simple family, or of a super column. `part` is in the family's order.

        In the order of time, bounds are inverted times of 8 bytes, see `layout.inverted`.
        `after` of a slice is the `next` of a page, which the backend made.
        """
        ...

    async def supers(
        self,
        table: Table,
        key: bytes,
        family: FamilyShape,
        part: Slice,
        within: int,
        level: Consistency,
    ) -> SuperPage:
        """Super columns by name, those with columns only, each with its first `within`."""
        ...

    async def row(self, table: Table, key: bytes, within: int, level: Consistency) -> FoundRow:
        """The first `within` columns, or super columns with as many, of each family."""
        ...

    async def rows(self, table: Table, part: Slice, within: int, level: Consistency) -> RowPage:
        """Rows in the order of their keys, those with columns only. Bounds are keys; those of a
        hashed table come in any order that goes on, and are asked for without bounds.
        """
        ...

    async def warm(self, table: Table, key: bytes, families: Sequence[FamilyShape]) -> None:
        """Read a row's families into memory, so that what is asked next is there."""
        ...
