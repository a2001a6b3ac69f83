"""What stands behind a store: writes and pages, with all names as bytes.

What an application says has been checked and encoded before it comes here, and what is returned is
decoded after. A backend draws no times and repeats nothing: the store does.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from tenure.columns.requests import (
    ColumnRead,
    PageRead,
    RowMutation,
    RowRead,
    ScanRead,
    SupersRead,
)
from tenure.columns.results import FoundRow, RowPage
from tenure.columns.tables import Table
from tenure.protocol.replication.admission import Attempt, Outranked, Refused
from tenure.protocol.replication.layout import FamilyShape
from tenure.protocol.replication.pages import CellPage, FoundCell, SuperPage
from tenure.protocol.topology.tables import TableRecord

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

    async def records(self) -> Mapping[str, TableRecord]:
        """What tables there are, and how each was made."""
        ...

    async def write(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        """Write one row mutation; None when as many have it as its level says.

        A refusal says that nothing was applied. Raises WriteUnknown where nobody knows, and
        Overloaded where nothing was begun. May be cancelled: then the outcome is unknown.
        """
        ...

    async def adopt(self, table: Table, key: bytes, number: int, journal: int) -> Outranked | None:
        """Promise, durably, to refuse every lower lease number for the row, and this one of another
        journal; then only may the row be read. A refusal where a higher one was promised.
        """
        ...

    async def column(self, asked: ColumnRead) -> FoundCell | None:
        """See `ColumnRead`."""
        ...

    async def page(self, asked: PageRead) -> CellPage:
        """See `PageRead`."""
        ...

    async def supers(self, asked: SupersRead) -> SuperPage:
        """See `SupersRead`."""
        ...

    async def row(self, asked: RowRead) -> FoundRow:
        """See `RowRead`."""
        ...

    async def rows(self, asked: ScanRead) -> RowPage:
        """See `ScanRead`."""
        ...

    async def warm(self, table: Table, key: bytes, families: Sequence[FamilyShape]) -> None:
        """Read a row's families into memory, so that what is asked next is there."""
        ...
