"""Tables and families as they are remembered: by one store, or by a whole cluster."""

from typing import Literal

import msgspec

RowKind = Literal["ordered", "hashed"]
Order = Literal["name", "time"]


class FamilyRecord(msgspec.Struct, frozen=True, array_like=True):
    """A family, as a store remembers it."""

    columns: str
    supers: str = ""
    order: Order = "name"
    values: str = "bytes"

    def __str__(self) -> str:
        supers = f"supers={self.supers}, " if self.supers else ""
        return f"{supers}columns={self.columns}, order={self.order!r}, values={self.values}"


class TableRecord(msgspec.Struct, frozen=True, array_like=True):
    """A table, as a store remembers it, so that nobody opens it as something else."""

    kind: RowKind
    keys: str
    fenced_by: str
    families: dict[str, FamilyRecord]
