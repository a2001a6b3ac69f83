"""The results that a store returns: columns, super columns, rows, and pages of them."""

from collections.abc import Iterator
from typing import Any

import msgspec

from tenure.columns.tables import Family, Table
from tenure.protocol.replication.messages import WholeRow
from tenure.protocol.replication.row.pages import CellPage, FoundCell, SuperPage
from tenure.protocol.replication.row.versions import Version


class Column(msgspec.Struct, frozen=True):
    """A column: its name, its value, and when it was written."""

    name: Any
    value: Any
    version: Version


class SuperColumn(msgspec.Struct, frozen=True):
    """A super column with its first columns; `next` says where to go on in it, if anywhere."""

    name: Any
    columns: tuple[Column, ...]
    next: bytes | None = None


class Page(msgspec.Struct, frozen=True):
    """Columns, or super columns, in their order. Pass `next` to `get` for those that follow; after
    the last page it is None. The last page may be empty.
    """

    columns: tuple[Any, ...]
    next: bytes | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


class Row(msgspec.Struct, frozen=True):
    """A row: its key, and the first page of each family that has any columns."""

    key: Any
    families: dict[str, Page]


def column_of(family: Family, found: FoundCell) -> Column:
    return Column(family.columns.decode(found.name), family.decoded(found.value), found.version)


def page_of(family: Family, found: CellPage | SuperPage) -> Page:
    if isinstance(found, CellPage):
        return Page(tuple(column_of(family, each) for each in found.cells), found.next)
    assert family.supers is not None
    return Page(
        tuple(
            SuperColumn(
                family.supers.decode(name),
                tuple(column_of(family, each) for each in page.cells),
                page.next,
            )
            for name, page in found.supers
        ),
        found.next,
    )


def row_of(table: Table, found: WholeRow) -> Row:
    families = {name: page_of(table.families[name], page) for name, page in found.families.items()}
    return Row(table.keys.decode(found.key), families)
