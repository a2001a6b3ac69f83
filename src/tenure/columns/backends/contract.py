"""The contract of a store's backends: writes and pages, with all names as bytes.

The store checks and encodes what the application passes before it calls a backend, and decodes what
the backend returns. A backend repeats nothing that its caller could not tell: the store does that.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Literal, Protocol, TypeVar, cast

import msgspec

from tenure.columns.requests import RowMutation
from tenure.columns.tables import Table
from tenure.protocol.replication.messages import (
    ReadPage,
    ReadRow,
    ReadRows,
    Reads,
    ReadSupers,
    RowsFound,
)
from tenure.protocol.replication.row.admission import Attempt, Outranked, Refused
from tenure.protocol.replication.row.layout import FamilyShape
from tenure.protocol.replication.row.limits import PAGE_COLUMNS
from tenure.protocol.replication.row.pages import CellPage, Slice, SuperPage
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.topology.tables import TableRecord

A = TypeVar("A")
P = TypeVar("P", CellPage, SuperPage, RowsFound)

Fencing = Literal["", "lwt"]
"""How a store on another system refuses what former owners write; not at all unless configured."""


class Backend(Protocol):
    """The place where the rows of some tables are."""

    async def open(self) -> None:
        """Be ready for everything below. Raises StoreError, and SchemaError."""
        ...

    async def close(self) -> None:
        """Finish what has begun, and release everything."""
        ...

    async def records(self) -> Mapping[str, TableRecord]:
        """The tables that exist, with how each was made."""
        ...

    async def draw(self, mutation: RowMutation, floor: int) -> Attempt:
        """Draw a version for an ordered write: a time not below `floor`, above all that was
        acknowledged before, that no other write has. Nothing is written yet.
        """
        ...

    async def write(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        """Write one row mutation; returns None when as many replicas have it as its level requires.

        A refusal says that nothing was applied, but for one that is partial. Raises WriteUnknown if
        nobody knows the outcome, and NotEnoughReplicas or Overloaded if nothing was sent. May be
        cancelled: then the outcome is unknown.
        """
        ...

    async def adopt(
        self, table: Table, key: bytes, number: int, journal: int
    ) -> Version | Outranked:
        """Promise, durably, to refuse every lower lease number for the row, and this number from
        another journal; only then may the row be read. Returns the newest version that the row
        has, or a refusal if a higher number was promised.
        """
        ...

    async def read(self, asked: Reads[A]) -> A:
        """What readers see of it. What `warms` is only read into memory."""
        ...


async def pages_of(backend: Backend, asked: Reads[P], first: P | None = None) -> AsyncIterator[P]:
    """All pages of what is asked for; the first of them may have been read already."""
    question = cast("ReadPage | ReadSupers | ReadRows", asked)
    page = await backend.read(asked) if first is None else first
    yield page
    while page.next is not None:
        part = msgspec.structs.replace(question.part, after=page.next)
        page = await backend.read(cast("Reads[P]", msgspec.structs.replace(question, part=part)))
        yield page


async def pages_of_family(
    backend: Backend,
    within: ReadRow,
    shape: FamilyShape,
    first: CellPage | SuperPage | None = None,
) -> AsyncIterator[tuple[bytes | None, CellPage]]:
    """All pages of a family of a row, each with its super column. `within` says which row, and how
    many columns a page has at most; the first page may have been read already.
    """
    asked = ReadPage(
        table=within.table, key=within.key, family=shape.name, part=Slice(within.within)
    )
    if not shape.has_supers:
        async for page in pages_of(backend, asked, cast("CellPage | None", first)):
            yield None, page
        return
    listing = ReadSupers(
        table=within.table,
        key=within.key,
        family=shape.name,
        part=Slice(PAGE_COLUMNS),
        within=within.within,
    )
    async for listed in pages_of(backend, listing, cast("SuperPage | None", first)):
        for name, begin in listed.supers:
            of_super = msgspec.structs.replace(asked, super=name)
            async for page in pages_of(backend, of_super, begin):
                yield name, page
