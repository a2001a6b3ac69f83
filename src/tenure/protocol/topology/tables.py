"""Tables and families, as a store or a whole cluster remembers them."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec

from tenure.protocol.topology.limits import FAMILIES

RowKind = Literal["ordered", "hashed"]
Order = Literal["name", "time"]
WriteOrder = Literal["ordered", "clock"]
"""What decides which of two writes counts: that one began after the other, or their clocks (R4)."""
Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=200)]


class FamilyRecord(msgspec.Struct, frozen=True, array_like=True):
    """A family, as a store remembers it."""

    columns: Word
    supers: Word = ""
    order: Order = "name"
    values: Word = "bytes"

    def __str__(self) -> str:
        supers = f"supers={self.supers}, " if self.supers else ""
        return f"{supers}columns={self.columns}, order={self.order!r}, values={self.values}"


class TableRecord(msgspec.Struct, frozen=True, array_like=True):
    """A table, as a store remembers it, so that nobody opens it as a different one."""

    kind: RowKind
    keys: Word
    fenced_by: Word
    families: Annotated[dict[Word, FamilyRecord], msgspec.Meta(max_length=FAMILIES)]
    writes: WriteOrder = "ordered"


def fencing_pools(tables: Mapping[str, TableRecord]) -> set[str]:
    """The pools whose leases fence a table."""
    return {table.fenced_by for table in tables.values() if table.fenced_by}


def why_not_same(name: str, kept: TableRecord, declared: TableRecord) -> str | None:
    """The reason why a table cannot be declared like this, if it was made differently; None if it
    can.

    New families may be added; families that are no longer declared keep their contents. Writes may
    become ordered: from then on, those that were written by clocks are what they are, and older.
    """
    if kept.writes == "ordered" != declared.writes:
        return (
            f"the table {name!r} was made with writes='ordered', and other programs count on it: "
            f"writes={declared.writes!r} would hide what they have written"
        )
    for what in ("kind", "keys", "fenced_by"):
        was, now = getattr(kept, what), getattr(declared, what)
        if was != now:
            return f"the table {name!r} was made with {what}={was!r}, not {now!r}"
    for family, was in kept.families.items():
        now = declared.families.get(family, was)
        if was != now:
            return f"the family {family!r} of the table {name!r} was made with {was}, not {now}"
    return None
