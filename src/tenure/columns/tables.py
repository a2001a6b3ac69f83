"""Tables, as an application declares them."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

import msgspec

from tenure.base.names import shown
from tenure.columns.spaces import space
from tenure.errors import SchemaError
from tenure.protocol.replication.row.layout import FamilyShape
from tenure.protocol.replication.row.limits import VALUE_BYTES
from tenure.protocol.replication.row.names import NameType, name_type
from tenure.protocol.topology.tables import (
    FamilyRecord,
    Order,
    RowKind,
    TableRecord,
    WriteOrder,
    why_not_same,
    wrong_with_word,
)

Writes = Literal["ordered", "clock", "async"]


class Family:
    """One family of columns: the type of their names, their order, and what their values are.

    `columns` is the type of their names: bytes, str, int, float or UUID. With `supers`, another of
    these, the family has super columns, and columns in them. `order` is "name", or "time": the
    newest first. `values` are bytes, or any type that msgspec encodes.

    Raises SchemaError for what cannot be used.
    """

    def __init__(
        self,
        *,
        columns: type,
        supers: type | None = None,
        order: Order = "name",
        values: Any = bytes,  # noqa: ANN401 - such as a union
    ) -> None:
        if order not in ("name", "time"):
            raise SchemaError(f"order is 'name' or 'time', not {shown(order)}")
        self.columns: NameType = name_type(columns, "columns")
        self.supers: NameType | None = None if supers is None else name_type(supers, "supers")
        self.order: Order = order
        self.values = values
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = None if values is bytes else _decoder(values)

    def encoded(self, value: object, where: str, name: object) -> bytes:
        """Encode the value of a column. Raises SchemaError if it is too large or not of the
        type.
        """
        if self._decoder is None:
            if not isinstance(value, bytes):
                raise SchemaError(
                    f"the value of {where}.{shown(name)} is bytes, not {type(value).__name__}: "
                    "encode it, or declare the family with values=TYPE"
                )
            encoded = bytes(value)
        else:
            try:
                encoded = self._encoder.encode(value)
                self._decoder.decode(encoded)  # what cannot be read back is refused at once
            except (TypeError, ValueError, OverflowError) as error:
                raise SchemaError(
                    f"the value of {where}.{shown(name)} is not of {self.values!r}: {error}"
                ) from None
        if len(encoded) > VALUE_BYTES:
            raise SchemaError(
                f"the value of {where}.{shown(name)} has {len(encoded)} bytes, and {VALUE_BYTES} "
                "at most: keep it in parts, or in a file"
            )
        return encoded

    def decoded(self, encoded: bytes) -> Any:  # noqa: ANN401 - of the declared type
        """Decode `encoded`. Raises SchemaError if it is not of the declared type."""
        if self._decoder is None:
            return encoded
        try:
            return self._decoder.decode(encoded)
        except msgspec.DecodeError as error:
            raise SchemaError(
                f"a value that is kept is not of {self.values!r} ({error}): declare the family as "
                "it was when the value was written"
            ) from None

    def record(self) -> FamilyRecord:
        """The record that a store keeps of the family."""
        supers = self.supers.word if self.supers else ""
        values = "bytes" if self._decoder is None else "msgpack"
        return FamilyRecord(self.columns.word, supers, self.order, values)

    def __repr__(self) -> str:
        return f"Family({self.record()})"


class Table:
    """A table: rows under keys, in families of columns.

    In an *ordered* table rows can be scanned in the order of their keys; in a *hashed* one they are
    spread by a hash. `keys` is the type of the keys. `fenced_by` names a pool: then the rows are
    written through `OwnedRows`, under a lease of that pool. `writes` says what is promised of
    several writers of one row: with "ordered" each column is a register, so no acknowledged write
    is lost; with "clock" a write takes one round instead of two, and the greater time wins; with
    "async" a write is answered when one replica has it.

    Raises SchemaError for what cannot be used.
    """

    def __init__(
        self,
        name: str,
        *,
        kind: RowKind = "ordered",
        keys: type = str,
        fenced_by: str = "",
        writes: Writes = "ordered",
        **families: Family,
    ) -> None:
        if kind not in ("ordered", "hashed"):
            raise SchemaError(f"kind is 'ordered' or 'hashed', not {shown(kind)}")
        if writes not in ("ordered", "clock", "async"):
            raise SchemaError(f"writes is 'ordered', 'clock' or 'async', not {shown(writes)}")
        if not isinstance(fenced_by, str):
            raise SchemaError(f"fenced_by is the name of a pool, not {shown(fenced_by)}")
        if not families:
            raise SchemaError(f"the table {name!r} has no family: add one, as in state=Family(...)")
        for each in (name, *families):
            _check_name(each)
        for each, family in families.items():
            if not isinstance(family, Family):
                raise SchemaError(f"{each} is a Family(...), not {shown(family)}")
        self.name = name
        self.kind: RowKind = kind
        self.keys: NameType = name_type(keys, "keys")
        self.fenced_by = fenced_by
        self.writes: Writes = writes
        self.families: Mapping[str, Family] = families
        self.shapes: Mapping[str, FamilyShape] = {
            each: FamilyShape(each, family.supers is not None, family.order)
            for each, family in families.items()
        }
        self.spaces: Mapping[str, str] = {each: space(name, each) for each in families}

    def record(self) -> TableRecord:
        """The record that a store keeps of the table."""
        families = {name: family.record() for name, family in self.families.items()}
        writes: WriteOrder = "clock" if self.writes == "clock" else "ordered"
        return TableRecord(self.kind, self.keys.word, self.fenced_by, families, writes)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {', '.join(self.families)}>"


def table_of(name: str, record: TableRecord) -> Table:
    """The table that a store remembers: its values are bytes, or whatever msgpack decodes."""
    return _table_of(name, msgspec.msgpack.encode(record))


@lru_cache(maxsize=256)
def _table_of(name: str, packed: bytes) -> Table:
    record = msgspec.msgpack.decode(packed, type=TableRecord)

    def family(each: FamilyRecord) -> Family:
        return Family(
            columns=name_type(each.columns, "columns").python,
            supers=name_type(each.supers, "supers").python if each.supers else None,
            order=each.order,
            values=bytes if each.values == "bytes" else Any,
        )

    families = {each: family(found) for each, found in record.families.items()}
    keys = name_type(record.keys, "keys").python
    return Table(
        name,
        kind=record.kind,
        keys=keys,
        fenced_by=record.fenced_by,
        writes=record.writes,
        **families,
    )


def by_name(tables: Iterable[Table]) -> dict[str, Table]:
    """The tables by their names. Raises SchemaError if two have the same name."""
    found: dict[str, Table] = {}
    for table in tables:
        if not isinstance(table, Table):
            raise SchemaError(f"{shown(table)} is not a Table")
        if table.name in found:
            raise SchemaError(f"two tables are called {table.name!r}: give them different names")
        found[table.name] = table
    return found


def check_same(name: str, kept: TableRecord, declared: TableRecord) -> None:
    """Raise SchemaError if a table is declared differently from how it was made."""
    why = why_not_same(name, kept, declared)
    if why is not None:
        raise SchemaError(f"{why}: declare it as it was, or choose another name")


def _check_name(name: str) -> None:
    why = wrong_with_word(name)
    if why is not None:
        raise SchemaError(why)


def _decoder(of: Any) -> "msgspec.msgpack.Decoder[Any]":  # noqa: ANN401 - such as a union
    try:
        return msgspec.msgpack.Decoder(of)
    except TypeError as error:
        raise SchemaError(f"values cannot be of type {shown(of)}: {error}") from None
