"""Checks paths and mutations as an application gives them, and turns their names into bytes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tenure.base.names import shown
from tenure.columns.tables import Family, Table
from tenure.errors import SchemaError
from tenure.protocol.replication.row.edits import Edit, check_size
from tenure.protocol.replication.row.layout import FamilyShape


class Deletion:
    """The type of DELETE."""

    def __repr__(self) -> str:
        return "DELETE"


DELETE: Final = Deletion()
"""In a row mutation, stands in place of a value, a super column's columns or a family's columns,
and deletes them.
"""


class Path(msgspec.Struct, frozen=True):
    """A path with its names as bytes: to a column, a super column, a family, or the whole row."""

    shape: FamilyShape | None = None
    super: bytes | None = None
    name: bytes | None = None

    def edit(self) -> Edit:
        """The edit that deletes what it names."""
        return Edit(self.shape.name if self.shape else None, self.super, self.name)


def key_of(table: Table, key: object) -> bytes:
    """The key of a row as bytes. Raises SchemaError for another type, or one that is too long."""
    return table.keys.encoded(key, f"a key of the table {table.name!r}")


def path_of(table: Table, path: Sequence[object]) -> Path:
    """The path that `path` names within a row. Raises SchemaError for one that the table lacks."""
    if not path:
        return Path()
    family, *names = path
    shape = shape_of(table, family)
    declared = table.families[shape.name]
    types = [("super column", declared.supers)] if declared.supers else []
    types.append(("column", declared.columns))
    if len(names) > len(types):
        raise SchemaError(
            f"the path {shown(tuple(path))} is too long: {_spelled(table, shape)} is the longest"
        )
    found = [
        type_of.encoded(name, f"the name of a {what} of {table.name}.{shape.name}")
        for name, (what, type_of) in zip(names, types, strict=False)
    ]
    if declared.supers is None:
        return Path(shape, None, *found)
    return Path(shape, *found)


def shape_of(table: Table, family: object) -> FamilyShape:
    """The shape of the family of that name. Raises SchemaError where there is no such family."""
    shape = table.shapes.get(family) if isinstance(family, str) else None
    if shape is None:
        raise SchemaError(
            f"the table {table.name!r} has no family {shown(family)}; it has "
            f"{', '.join(table.families)}"
        )
    return shape


def edits_of(table: Table, mutation: Mapping[str, Any]) -> list[Edit]:
    """The edits of a row mutation. Raises SchemaError for anything that the table lacks."""
    if not isinstance(mutation, Mapping):
        raise SchemaError(
            f"a row mutation is a mapping by family, such as {{{_an_example(table)}}}, not "
            f"{shown(mutation)}"
        )
    edits: list[Edit] = []
    for name, change in mutation.items():
        edits += _of_family(table, name, change)
    check_size(edits)
    return edits


def _of_family(table: Table, name: str, change: Any) -> list[Edit]:  # noqa: ANN401 - a mapping, or DELETE
    shape_of(table, name)
    if change is DELETE:
        return [Edit(name)]
    family, where = table.families[name], f"{table.name}.{name}"
    if family.supers is None:
        return _of_columns(family, name, where, None, _mapping(change, where, "column"))
    edits: list[Edit] = []
    for super_name, columns in _mapping(change, where, "super column").items():
        super_column = family.supers.encoded(super_name, f"the name of a super column of {where}")
        if columns is DELETE:
            edits.append(Edit(name, super_column))
            continue
        inside = f"{where}.{shown(super_name)}"
        mapping = _mapping(columns, inside, "column")
        edits += _of_columns(family, name, inside, super_column, mapping)
    return edits


def _of_columns(
    family: Family, of: str, where: str, super_column: bytes | None, columns: Mapping[Any, Any]
) -> list[Edit]:
    what, encoded = f"the name of a column of {where}", family.columns.encoded
    return [
        Edit(
            of,
            super_column,
            encoded(name, what),
            None if value is DELETE else family.encoded(value, where, name),
        )
        for name, value in columns.items()
    ]


def _mapping(change: Any, where: str, of: str) -> Mapping[Any, Any]:  # noqa: ANN401 - it is checked here
    if isinstance(change, Mapping):
        return change
    raise SchemaError(
        f"what is written to {where} is a mapping from the name of each {of}, or DELETE, not "
        f"{shown(change)}"
    )


def _spelled(table: Table, shape: FamilyShape) -> str:
    supers = ", super column" if shape.has_supers else ""
    return f"{table.name}: key, {shape.name!r}{supers}, column"


def _an_example(table: Table) -> str:
    name, shape = next(iter(table.shapes.items()))
    columns = "{super column: {column: value}}" if shape.has_supers else "{column: value}"
    return f"{name!r}: {columns}"
