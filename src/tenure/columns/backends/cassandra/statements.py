"""The statements that the backend sends to Cassandra, in CQL.

All families of a table are in one CQL table, in which each of our rows is one partition. So a
mutation over several families is atomic, and one range tombstone deletes a super column or a
family. A column is a CQL row: its family, its super column (empty in a simple family), and its
name.

    key  family      super  name        value
    ann  profile            name        ...      a column
    ann  terms       tea    17          ...      a column in a super column
    ann  terms@time  tea    ~time 17             its place in the order of time

Values are written with UPDATE and not with INSERT, because an INSERT also writes that the row
exists, and a delete of the value leaves that behind. Names of tables are letters, digits and _.
"""

# ruff: noqa: S608 - what is put into the text is checked by `Table`; values are not put in

from collections.abc import Sequence
from typing import NamedTuple

from tenure.columns.backends.cassandra.address import CassandraAddress
from tenure.columns.tables import Table
from tenure.errors import SchemaError
from tenure.protocol.replication.row.layout import FamilyShape
from tenure.protocol.replication.row.pages import Slice

RECORDS = "tenure_tables"
"""The table that records how each table was made."""

NAMES_BYTES = 65_500
"""The most bytes of a family's name, a super column's and a column's together. Cassandra joins them
into one name of at most 65,535 bytes: 1.2 adds 17 to them, and the order of time 13.
"""


class Cql(NamedTuple):
    """A statement, with a `?` for each value."""

    text: str
    values: tuple[bytes | str | int, ...] = ()


def places(family: FamilyShape) -> str:
    """The family that has the places of this family's columns in the order of time."""
    return f"{family.name}@time"


def check_names(table: Table, family: str, super_column: bytes | None, name: bytes | None) -> None:
    """Raise SchemaError for names that Cassandra would refuse."""
    size = len(family) + len(super_column or b"") + len(name or b"")
    if size > NAMES_BYTES:
        raise SchemaError(
            f"names in {table.name}.{family} have {size} bytes together (the family's, the super "
            f"column's and the column's); at most {NAMES_BYTES} are allowed on Cassandra"
        )


# --- the schema ---


def make_keyspace(keyspace: str, replicas: int) -> Cql:
    return Cql(
        f'CREATE KEYSPACE "{keyspace}" WITH replication = '
        f"{{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}"
    )


def make_records() -> Cql:
    return Cql(f"CREATE TABLE {RECORDS} (table_name text PRIMARY KEY, record text)")


def make_table(table: Table) -> Cql:
    statics = ", fence bigint static, journal bigint static, turn bigint static"
    fence = statics if table.fenced_by else ""
    return Cql(
        f'CREATE TABLE "{table.name}" (key blob, family text, super blob, name blob, value blob'
        f"{fence}, PRIMARY KEY ((key), family, super, name))"
    )


def read_records() -> Cql:
    return Cql(f"SELECT table_name, record FROM {RECORDS}")


def keep_record(name: str, record: str) -> Cql:
    return Cql(f"UPDATE {RECORDS} SET record = ? WHERE table_name = ?", (record, name))


# --- writing ---


class ColumnPlace(NamedTuple):
    """A column in CQL: what stands before its name, and its name."""

    key: bytes
    family: str
    super: bytes
    name: bytes


_COLUMN = "WHERE key = ? AND family = ? AND super = ? AND name = ?"
_LEVELS = ("key = ?", "family = ?", "super = ?")


def put(table: Table, place: ColumnPlace, value: bytes, time: int | None) -> Cql:
    """Write a value; without a time, the server draws one, as it must for conditional writes."""
    using, at = _at(time)
    return Cql(f'UPDATE "{table.name}"{using} SET value = ? {_COLUMN}', (*at, value, *place))


def remove(table: Table, place: ColumnPlace, time: int | None) -> Cql:
    using, at = _at(time)
    return Cql(f'DELETE value FROM "{table.name}"{using} {_COLUMN}', (*at, *place))


def clear(table: Table, within: Sequence[bytes | str], time: int | None) -> Cql:
    """Delete a row, a family in it, or a super column in that: `within` names them."""
    where = " AND ".join(_LEVELS[: len(within)])
    using, at = _at(time)
    return Cql(f'DELETE FROM "{table.name}"{using} WHERE {where}', (*at, *within))


def _at(time: int | None) -> tuple[str, tuple[int, ...]]:
    return ("", ()) if time is None else (" USING TIMESTAMP ?", (time,))


# --- the fence of a row ---


class Promise(NamedTuple):
    """The highest lease number that was promised for a row, and the journal that it is from."""

    number: int
    journal: int


class RowFence(NamedTuple):
    """A row's knowledge of its owner: the last promise, and the turn of the last write under it."""

    promise: Promise
    turn: int


def fence_of(table: Table, key: bytes) -> Cql:
    return Cql(f'SELECT fence, journal, turn FROM "{table.name}" WHERE key = ? LIMIT 1', (key,))


def promise(table: Table, key: bytes, given: Promise, before: Promise | None) -> Cql:
    """Promise `given` if the last promise is `before`; the answer says whether it was."""
    held = "fence = null" if before is None else "fence = ? AND journal = ?"
    return Cql(
        f'UPDATE "{table.name}" SET fence = ?, journal = ?, turn = ? WHERE key = ? IF {held}',
        (*given, 0, key, *(before or ())),
    )


def take_turn(table: Table, key: bytes, lease: Promise, turn: int) -> Cql:
    """The condition of a write under a lease: the row is promised to that lease, and no write of a
    later turn has been carried out.
    """
    return Cql(
        f'UPDATE "{table.name}" SET turn = ? WHERE key = ? '
        "IF fence = ? AND journal = ? AND turn < ?",
        (turn, key, *lease, turn),
    )


# --- reading ---


class Bounds(NamedTuple):
    """A part of an order: comparisons with names."""

    lower: tuple[str, bytes] | None
    upper: tuple[str, bytes] | None
    is_reversed: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing can lie in it. Cassandra 1.2 refuses to look there."""
        if self.lower is None or self.upper is None:
            return False
        return self.lower[1] >= self.upper[1]


def bounds_of(part: Slice, after: bytes | None) -> Bounds:
    """The requested part of an order, behind `after` in its direction."""
    lower = None if part.start is None else (">=", part.start)
    upper = None if part.end is None else ("<", part.end)
    if after is not None and part.reverse and (upper is None or after < upper[1]):
        upper = ("<", after)
    elif after is not None and not part.reverse and (lower is None or after >= lower[1]):
        lower = (">", after)
    return Bounds(lower, upper, part.reverse)


def one(table: Table, place: ColumnPlace) -> Cql:
    return Cql(f'SELECT value, WRITETIME(value) FROM "{table.name}" {_COLUMN}', tuple(place))


def several(table: Table, within: tuple[bytes, str, bytes], names: Sequence[bytes]) -> Cql:
    """Columns of a simple family, or of a super column, each by its name."""
    marks = ", ".join("?" * len(names))
    return Cql(
        f'SELECT name, value, WRITETIME(value) FROM "{table.name}" '
        f"WHERE {' AND '.join(_LEVELS)} AND name IN ({marks})",
        (*within, *names),
    )


def slice_of(table: Table, within: tuple[bytes, str, bytes], bounds: Bounds, limit: int) -> Cql:
    """The columns of a simple family, or of a super column."""
    where, values = _bounded("name", bounds)
    return Cql(
        f'SELECT name, value, WRITETIME(value) FROM "{table.name}" '
        f"WHERE {' AND '.join(_LEVELS)}{where}{_order(bounds)} LIMIT ?",
        (*within, *values, limit),
    )


def supers_of(table: Table, within: tuple[bytes, str], bounds: Bounds, limit: int) -> Cql:
    """The super columns of a family, each once for every column that it has."""
    where, values = _bounded("super", bounds)
    return Cql(
        f'SELECT super FROM "{table.name}" '
        f"WHERE {' AND '.join(_LEVELS[:2])}{where}{_order(bounds)} LIMIT ?",
        (*within, *values, limit),
    )


def _bounded(what: str, bounds: Bounds) -> tuple[str, tuple[bytes, ...]]:
    told = [each for each in (bounds.lower, bounds.upper) if each is not None]
    where = "".join(f" AND {what} {comparison} ?" for comparison, _ in told)
    return where, tuple(name for _, name in told)


def _order(bounds: Bounds) -> str:
    return " ORDER BY family DESC, super DESC, name DESC" if bounds.is_reversed else ""


def keys_of(table: Table, bounds: Bounds, limit: int, *, is_distinct: bool) -> Cql:
    """The keys of rows in Cassandra's own order, forwards."""
    told = [each for each in (bounds.lower, bounds.upper) if each is not None]
    joined = " AND ".join(f"token(key) {comparison} token(?)" for comparison, _ in told)
    where = f" WHERE {joined}" if joined else ""
    distinct = "DISTINCT " if is_distinct else ""
    return Cql(
        f'SELECT {distinct}key FROM "{table.name}"{where} LIMIT ?',
        (*(key for _, key in told), limit),
    )


# --- servers that know no markers for times and limits ---


def in_full(statement: Cql) -> str:
    """The statement with its values written into it, as CQL 3.0.0 needs them."""
    parts = statement.text.split("?")
    said = "".join(
        text + _literal(value) for text, value in zip(parts, statement.values, strict=False)
    )
    return said + parts[-1]


def _literal(value: bytes | str | int) -> str:
    match value:
        case bytes():
            return f"'{value.hex()}'"
        case str():
            quoted = value.replace("'", "''")
            return f"'{quoted}'"
        case int():
            return str(value)


def batch_in_full(statements: Sequence[Cql]) -> str:
    """Statements of one partition that take effect at once."""
    return f"BEGIN UNLOGGED BATCH {'; '.join(map(in_full, statements))}; APPLY BATCH"


def to_run(statements: Sequence[Cql], address: CassandraAddress) -> str:
    """Statements as an administrator may run them, with the keyspace before the names of tables."""
    use = Cql(f'USE "{address.keyspace}"')
    first = 1 if statements[0].text.startswith("CREATE KEYSPACE") else 0
    said = [*statements[:first], use, *statements[first:]]
    return "\n".join(f"{in_full(each)};" for each in said)
