"""Edits: the parts of a row mutation, with all names as bytes."""

import msgspec

from tenure.errors import SchemaError
from tenure.protocol.replication.row.limits import MUTATION_BYTES, MUTATION_EDITS
from tenure.protocol.replication.row.message_limits import ColumnName, FamilyName, Value


class Edit(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One part of a mutation: a column with its value, or a deletion, which has no value.

    The fields that are None say how much is deleted: none of them, a column; `name`, a super
    column; `super` as well, a family; and `family` as well, the row. Columns of simple families
    have no `super`.
    """

    family: FamilyName | None = None
    super: ColumnName | None = None
    name: ColumnName | None = None
    value: Value | None = None

    @property
    def size(self) -> int:
        """The bytes of its names and its value."""
        return sum(len(each) for each in (self.super, self.name, self.value) if each is not None)


def check_size(edits: list[Edit]) -> None:
    """Raise SchemaError for a mutation that is over its limits, or that does nothing."""
    if not edits:
        raise SchemaError("the mutation is empty: name a family with a column to write or delete")
    if len(edits) > MUTATION_EDITS:
        raise SchemaError(
            f"the mutation has {len(edits)} columns; at most {MUTATION_EDITS} are allowed: split it"
        )
    size = 0
    for edit in edits:
        size += len(edit.super or b"") + len(edit.name or b"") + len(edit.value or b"")
    if size > MUTATION_BYTES:
        raise SchemaError(
            f"the mutation has {size} bytes; at most {MUTATION_BYTES} are allowed: split it"
        )
