"""Tables and families, as a store or a whole cluster remembers them."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from tenure.base.names import shown, wrong_with_name
from tenure.protocol.topology.limits import FAMILIES

RowKind = Literal["ordered", "hashed"]
Order = Literal["name", "time"]
WriteOrder = Literal["ordered", "clock"]
"""What decides which of two writes counts: that one began after the other, or their clocks (R4)."""
Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=200)]
NAME_CHARACTERS = 48
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_]{{0,{NAME_CHARACTERS - 1}}}")
TYPES_OF_NAMES: Final = ("bytes", "str", "int", "float", "UUID")
"""The words for the types that keys and names of columns may have."""
_TYPES_OF_VALUES = ("bytes", "msgpack")
_ARGUMENTS = ("self", "name", "kind", "keys", "fenced_by", "writes")
"""What a `Table` is made with beside its families, which therefore have other names."""


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


def wrong_with_word(name: object) -> str | None:
    """The reason why this cannot be the name of a table or family; None if it can."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return None
    return (
        f"{shown(name)} cannot be the name of a table or family: it is a letter, followed by "
        f"letters, digits and _, {NAME_CHARACTERS} at most"
    )


def wrong_with_table(name: str, table: TableRecord) -> str | None:
    """The reason why there can be no such table; None if there can.

    Every node opens every table of the topology by which it acts. So whoever could have a table
    made that no node can open would end all nodes for good.
    """
    return next(_wrongs(name, table), None)


def _wrongs(name: str, table: TableRecord) -> Iterator[str]:
    if not table.families:
        yield f"the table {shown(name)} has no family"
    for word in (name, *table.families):
        if why := wrong_with_word(word):
            yield why
    for word in (each for each in table.families if each in _ARGUMENTS):
        yield f"{word!r} cannot be the name of a family: `Table` has an argument of that name"
    if table.fenced_by and (why := wrong_with_name(table.fenced_by)):
        yield f"{shown(table.fenced_by)} cannot be the name of a pool: {why}"
    families = table.families.values()
    supers = [each.supers for each in families if each.supers]
    for of in chain([table.keys], supers, (each.columns for each in families)):
        if of not in TYPES_OF_NAMES:
            types = ", ".join(TYPES_OF_NAMES)
            yield f"names cannot be of type {shown(of)}; choose one of {types}"
    for family in families:
        if family.values not in _TYPES_OF_VALUES:
            yield f"values are {' or '.join(_TYPES_OF_VALUES)}, not {shown(family.values)}"
