"""Copies: rows as one replica keeps them, on their way to a node that is being filled (R17, R28).

Such a node was wiped, and nobody else writes to it. So it merges nothing: it takes entries as they
are kept, with the row's record, which has their digest. For that, a row must be of one instant, so
a piece consists of whole rows.

The node copies the ranges that it gains in *parts*, which are ranges of positions: several at once,
from several replicas. Each batch also stores how far its part has come, so a copy that was killed
goes on with the piece that was on its way.
"""

from typing import Annotated, TypeAlias

import msgspec

from tenure.base.numbers import Number
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.row.message_limits import (
    OF_ENTRIES,
    OF_FAMILIES,
    EntryKey,
    FamilyName,
    Kept,
    RowPosition,
    TableName,
)

RECORD_BYTES = 1 << 10
"""The most bytes of a row's record: it has a dozen numbers."""
CopiedEntries: TypeAlias = Annotated[list[tuple[EntryKey, Kept]], OF_ENTRIES]


class CopyMark(msgspec.Struct, frozen=True, array_like=True):
    """How far a copy is: tables in the order of their names, and rows in that of positions."""

    table: TableName = ""
    at: RowPosition = b""
    """The position of the last row."""


class CopiedRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    table: TableName
    at: RowPosition
    record: Annotated[bytes, msgspec.Meta(max_length=RECORD_BYTES)]
    """The record as it is kept: see `records`."""
    families: Annotated[dict[FamilyName, CopiedEntries], OF_FAMILIES]
    """Keys behind the position, and what is kept there: cells, markers and places."""


class RangeHorizon(msgspec.Struct, frozen=True, array_like=True):
    """The promises and the knowledge of a replica in a part of the ring (R24, R25)."""

    range: KeyRange
    promised: Number
    sealed: Number


class FillingPart(msgspec.Struct, frozen=True, array_like=True):
    range: KeyRange
    mark: CopyMark = CopyMark()
    bytes: int = 0
    """The number of bytes that were copied."""
    is_done: bool = False


class FillingRecord(msgspec.Struct, frozen=True, array_like=True):
    began: int = 0
    """The version with which the change began: of another one, nothing here counts (R17)."""
    parts: tuple[FillingPart, ...] = ()

    def with_part(self, number: int, part: FillingPart) -> "FillingRecord":
        parts = (*self.parts[:number], part, *self.parts[number + 1 :])
        return FillingRecord(self.began, parts)


CopiedRows: TypeAlias = Annotated[list[CopiedRow], OF_ENTRIES]
_ROWS: msgspec.msgpack.Decoder[list[CopiedRow]] = msgspec.msgpack.Decoder(CopiedRows)
_RECORD: msgspec.msgpack.Decoder[FillingRecord] = msgspec.msgpack.Decoder(FillingRecord)


def rows_of(packed: bytes) -> list[CopiedRow]:
    """The rows of a piece, which goes as one packed list."""
    return _ROWS.decode(packed)


def record_of_filling(kept: bytes | None) -> FillingRecord:
    """The record that was kept; otherwise an empty one."""
    return FillingRecord() if kept is None else _RECORD.decode(kept)
