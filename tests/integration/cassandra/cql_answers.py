"""Answers the statements of the backend, and no others, as a present server does.

Real Cassandra 1.2.0 has no conditions, no static columns and no markers for times. So this answers
statements that need them, by the rules of CQL's reference, from tables in the store's memory engine
(`cql_partitions`). It reads statements as text, as a server does: it refuses one that is malformed.
"""

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from tests.integration.cassandra.cql_partitions import RECORDS, Cell, Partition, Tables

Value: TypeAlias = Any
TYPES = {
    "key": "blob",
    "family": "text",
    "super": "blob",
    "name": "blob",
    "value": "blob",
    "fence": "bigint",
    "journal": "bigint",
    "turn": "bigint",
    "record": "text",
    "table_name": "text",
    "timestamp": "bigint",
    "limit": "int",
    "[applied]": "boolean",
    "writetime(value)": "bigint",
    "cluster_name": "text",
    "partitioner": "text",
    "data_center": "text",
    "rack": "text",
    "release_version": "text",
    "schema_version": "uuid",
    "host_id": "uuid",
    "rpc_address": "inet",
    "peer": "inet",
}
LOCAL = (
    "cluster_name",
    "data_center",
    "host_id",
    "partitioner",
    "rack",
    "release_version",
    "rpc_address",
    "schema_version",
)
"""The columns that the driver reads about a node. The other table for which it asks is refused, as
old servers do.
"""
STATIC = ("fence", "journal", "turn")
COLUMNS = ("family", "super", "name")
_TERM = r"\?|'(?:[^']|'')*'|-?\d+|null"
# ruff: noqa: S608 - it reads statements, and makes none

_SELECT = re.compile(
    r'SELECT (DISTINCT )?(.+?) FROM ([\w."]+)(?: WHERE (.+?))?(?: ORDER BY (.+?))?'
    rf"(?: LIMIT ({_TERM}))?"
)
_UPDATE = re.compile(
    rf'UPDATE ([\w."]+)(?: USING TIMESTAMP ({_TERM}))? SET (.+?) WHERE (.+?)(?: IF (.+))?'
)
_DELETE = re.compile(rf'DELETE (value )?FROM ([\w."]+)(?: USING TIMESTAMP ({_TERM}))? WHERE (.+)')
_IN = re.compile(rf"(\w+) IN \(((?:{_TERM})(?:, (?:{_TERM}))*)\)")
_RELATION = re.compile(rf"(token\((\w+)\)|\w+)\s*(<=|>=|=|<|>)\s*(?:token\(({_TERM})\)|({_TERM}))")


class Refused(Exception):
    """Raised with a server's words about a statement that it refuses."""


class Relation(NamedTuple):
    """A comparison of a column with a term."""

    column: str
    comparison: str
    term: str

    def holds(self, found: Value, value: Value) -> bool:
        """Whether it does; a comparison with nothing holds for `=` alone."""
        if self.comparison == "IN":
            return found in value
        if found is None or value is None:
            return self.comparison == "=" and found is value
        less, same = bool(found < value), bool(found == value)
        return {"=": same, "<": less, "<=": less or same, ">": not less and not same}.get(
            self.comparison, not less
        )


class Statement(NamedTuple):
    """A statement, read."""

    verb: str
    table: str
    columns: tuple[str, ...] = ()
    """The columns that are selected, set, or deleted."""
    terms: tuple[str, ...] = ()
    """The terms to which they are set."""
    where: tuple[Relation, ...] = ()
    conditions: tuple[Relation, ...] = ()
    time: str = ""
    limit: str = ""
    is_distinct: bool = False
    is_descending: bool = False
    text: str = ""

    def markers(self) -> list[str]:
        """Return what each `?` stands for, in the order of the text."""
        terms = [("limit", self.limit)] if self.verb == "SELECT" else []
        told = [(each.column, term) for each in self.where for term in each.term.split(", ")]
        conditions = [(each.column, each.term) for each in self.conditions]
        before = [("timestamp", self.time), *zip(self.columns, self.terms, strict=False)]
        in_order = [*(before if self.verb != "SELECT" else []), *told, *conditions, *terms]
        return [name for name, term in in_order if term == "?"]


def read(text: str) -> Statement:
    """A statement. Raises Refused for what this server does not know."""
    if found := _SELECT.fullmatch(text):
        distinct, columns, table, where, order, limit = found.groups()
        return Statement(
            "SELECT",
            _bare(table),
            LOCAL if columns == "*" else tuple(columns.lower().split(", ")),
            where=_relations(where),
            limit=limit or "",
            is_distinct=bool(distinct),
            is_descending="DESC" in (order or ""),
            text=text,
        )
    if found := _UPDATE.fullmatch(text):
        table, at, settings, where, conditions = found.groups()
        pairs = [each.split(" = ") for each in settings.split(", ")]
        return Statement(
            "UPDATE",
            _bare(table),
            tuple(name for name, _ in pairs),
            tuple(term for _, term in pairs),
            _relations(where),
            _relations(conditions),
            at or "",
            text=text,
        )
    if found := _DELETE.fullmatch(text):
        column, table, at, where = found.groups()
        columns = ("value",) if column else ()
        return Statement("DELETE", _bare(table), columns, (), _relations(where), (), at or "")
    if text.startswith(("CREATE ", "DROP ", "USE ")):
        verb, what = text.split(" ", 1)
        return Statement(verb, what, text=text)
    raise Refused(f"line 1: no viable alternative at input {text!r}")


def _bare(table: str) -> str:
    return table.replace('"', "").removeprefix("system.")


def _relations(text: str | None) -> tuple[Relation, ...]:
    found = []
    for each in text.split(" AND ") if text else ():
        if listed := _IN.fullmatch(each):
            found.append(Relation(listed[1], "IN", listed[2]))
            continue
        match = _RELATION.fullmatch(each)
        if match is None:
            raise Refused(f"line 1: no viable alternative at input {each!r}")
        column = f"token({match[2]})" if match[2] else match[1]
        found.append(Relation(column, match[3], match[4] or match[5]))
    return tuple(found)


class Values:
    """The values of a statement's markers, taken one after the other."""

    def __init__(self, values: Sequence[Value]) -> None:
        self._left = iter(values)

    def of(self, term: str) -> Value:
        if term == "?":
            return next(self._left)
        if term == "null":
            return None
        if term.startswith("'"):
            return term[1:-1].replace("''", "'")
        return int(term)

    def of_relation(self, relation: Relation) -> Value:
        """Return the value with which a column is compared: for IN, all values that are listed."""
        if relation.comparison == "IN":
            return [self.of(term) for term in relation.term.split(", ")]
        return self.of(relation.term)


class Model:
    """All tables of one server, and its clock."""

    def __init__(self, partitioner: str) -> None:
        self.keyspaces: set[str] = set()
        self.tables = Tables()
        self.local = {
            "cluster_name": "Small",
            "partitioner": partitioner,
            "data_center": "east",
            "rack": "one",
            "release_version": "4.0.0",
            "schema_version": UUID(int=1),
            "host_id": UUID(int=2),
            "rpc_address": bytes([127, 0, 0, 1]),
        }
        self._last = 0

    def now(self) -> int:
        """A time of the server's own: it never goes back."""
        self._last = max(self._last + 1, time.time_ns() // 1_000)
        return self._last

    def execute(self, statement: Statement, values: Sequence[Value]) -> list[dict[str, Value]]:
        """The rows of the answer."""
        given = Values(values)
        match statement.verb:
            case "CREATE" | "DROP" | "USE":
                self._shape(statement)
                return []
            case "SELECT":
                return self._select(statement, given)
            case _:
                return self.batch([(statement, values)])

    def _shape(self, statement: Statement) -> None:
        text = statement.text
        quoted = re.search(r'"(\w+)"', text)
        if text.startswith("USE "):
            if text.removeprefix("USE ").strip('"') not in self.keyspaces:
                raise Refused(f"{text}: Keyspace does not exist")
        elif text.startswith("DROP KEYSPACE"):  # everything is in one of them
            self.keyspaces.clear()
            self.tables.clear()
        elif text.startswith("CREATE KEYSPACE"):
            assert quoted is not None
            self.keyspaces.add(quoted[1])
        elif text.startswith(f"CREATE TABLE {RECORDS}"):
            self.tables.make(RECORDS)
        else:
            assert quoted is not None
            self.tables.make(quoted[1])

    # --- writing ---

    def batch(self, parts: Sequence[tuple[Statement, Sequence[Value]]]) -> list[dict[str, Value]]:
        """Statements of one partition, at once; not at all where a condition does not hold."""
        if any(part.conditions for part, _ in parts) and any(part.time for part, _ in parts):
            raise Refused("Cannot provide custom timestamp for conditional BATCH")
        at, written, conditions = self.now(), [], []
        for part, values in parts:
            given = Values(values)
            own = given.of(part.time) if part.time else at
            pairs = zip(part.columns, part.terms, strict=False)
            settings = [(name, given.of(term)) for name, term in pairs]
            where = {each.column: given.of(each.term) for each in part.where}
            written.append((part, own, settings, where))
            conditions += [
                (each, given.of(each.term), part.table, where) for each in part.conditions
            ]
        for relation, value, table, where in conditions:
            static = self._partition(table, where).static()
            if not relation.holds(static.get(relation.column), value):
                return [{"[applied]": False, **{name: static.get(name) for name in STATIC}}]
        for part, own, settings, where in written:
            self._write(part, own, dict(settings), where)
        self.tables.sync()
        return [{"[applied]": True}] if conditions else []

    def _write(
        self, part: Statement, at: int, settings: dict[str, Any], where: dict[str, Any]
    ) -> None:
        if part.table == RECORDS:
            self.tables.set_record(where["table_name"], settings["record"])
            return
        partition = self._partition(part.table, where)
        place: Any = tuple(where[each] for each in COLUMNS if each in where)
        if part.verb == "DELETE" and not part.columns:
            partition.delete(place, at)
        elif "value" in part.columns:
            value = settings.get("value")
            partition.put(place, Cell(at, value is None, value or b""))
        else:
            partition.set_static(settings)

    def _partition(self, table: str, where: dict[str, Any]) -> Partition:
        if table not in self.tables:
            raise Refused(f"unconfigured table {table}")
        return self.tables.partition(table, where["key"])

    # --- reading ---

    def _select(self, part: Statement, given: Values) -> list[dict[str, Value]]:
        where = [(each, given.of_relation(each)) for each in part.where]
        limit = given.of(part.limit) if part.limit else None
        rows = [
            row
            for row in self._rows(part)
            if all(each.holds(row[each.column], value) for each, value in where)
        ]
        if part.is_descending:
            rows.reverse()
        if part.is_distinct:
            rows = list({row["key"]: row for row in rows}.values())
        assert limit is None or isinstance(limit, int)
        return [{name: row[name] for name in part.columns} for row in rows[:limit]]

    def _rows(self, part: Statement) -> Iterator[dict[str, Any]]:
        if part.table == "local":
            yield {"key": "local", **self.local}
        elif part.table == RECORDS:
            if RECORDS not in self.tables:
                raise Refused(f"unconfigured table {RECORDS}")
            for name, record in self.tables.records():
                yield {"table_name": name, "record": record}
        elif part.table != "peers":
            yield from self._columns(part)

    def _columns(self, part: Statement) -> Iterator[dict[str, Any]]:
        if part.table not in self.tables:
            raise Refused(f"unconfigured table {part.table}")
        of_statics = all(name in (*STATIC, "key") for name in part.columns)
        for key, partition in self.tables.partitions(part.table):
            static = partition.static()
            whole = {"key": key, "token(key)": key, **dict.fromkeys(STATIC), **static}
            listed = False
            for place, cell in partition.live():
                listed = True
                yield {
                    **whole,
                    **dict(zip(COLUMNS, place, strict=True)),
                    "value": cell.value,
                    "writetime(value)": cell.time,
                }
            if of_statics and not listed and static:
                yield whole
