"""The fields of messages about rows, each with the most that it may have.

Bounds are in the types, so that nothing larger is ever decoded, whoever sent it.
"""

from typing import Annotated, TypeAlias

from msgspec import Meta

from tenure.base.keys import HASHED_KEY_BYTES
from tenure.protocol.replication.row.limits import (
    MESSAGE_ENTRIES,
    MUTATION_EDITS,
    NAME_BYTES,
    PAGE_COLUMNS,
    SUMS_BYTES,
    VALUE_BYTES,
    WHOLE_BYTES,
)
from tenure.protocol.topology.limits import FAMILIES

RowKey: TypeAlias = Annotated[bytes, Meta(max_length=NAME_BYTES)]
ColumnName: TypeAlias = Annotated[bytes, Meta(max_length=NAME_BYTES)]
"""The name of a column or super column."""
FamilyName: TypeAlias = Annotated[str, Meta(max_length=200)]
TableName: TypeAlias = Annotated[str, Meta(max_length=200)]
Value: TypeAlias = Annotated[bytes, Meta(max_length=VALUE_BYTES)]
Kept: TypeAlias = Annotated[bytes, Meta(max_length=VALUE_BYTES + 64)]
"""What is kept of a column: its value, with the version before it; or a marker."""
Marker: TypeAlias = Annotated[bytes, Meta(max_length=64)]
Digest: TypeAlias = Annotated[bytes, Meta(max_length=64)]
RowPosition: TypeAlias = Annotated[bytes, Meta(max_length=HASHED_KEY_BYTES + 2 * NAME_BYTES + 3)]
"""A hash, a key in which every byte may be doubled, the two bytes that end it, and one byte more in
the position that follows.
"""
EntryKey: TypeAlias = Annotated[bytes, Meta(max_length=4 * NAME_BYTES)]
"""The key of an entry behind the position of its row: the names of its super column, in which bytes
may be doubled, and of its column. The place at which a page ended is a part of one.
"""
Columns: TypeAlias = Annotated[int, Meta(ge=1, le=PAGE_COLUMNS)]
"""How many columns, super columns or rows are asked for."""
ColumnNames: TypeAlias = Annotated[tuple[ColumnName, ...], Meta(max_length=MUTATION_EDITS)]
OF_COLUMNS = Meta(max_length=PAGE_COLUMNS)
OF_EDITS = Meta(max_length=MUTATION_EDITS)
OF_ENTRIES = Meta(max_length=MESSAGE_ENTRIES)
OF_FAMILIES = Meta(max_length=FAMILIES)
Detail: TypeAlias = Annotated[str, Meta(max_length=8_000)]
"""A reason, for people to read."""
Rows: TypeAlias = Annotated[bytes, Meta(max_length=WHOLE_BYTES)]
"""Packed rows."""
Sums: TypeAlias = Annotated[bytes, Meta(max_length=SUMS_BYTES)]
