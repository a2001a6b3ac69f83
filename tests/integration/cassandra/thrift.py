"""Thrift as Cassandra 1.2 speaks it, framed: the calls that the comparison needs, written by hand.

The packages that spoke it have not been kept up; what is needed of it fits here.
"""

import socket
import struct
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Self, TypeAlias

Value: TypeAlias = Any
"""The type is the one that the number of the field tells."""
ONE, QUORUM = 1, 2
VERSION_1 = 0x80010000
CALL, EXCEPTION = 1, 3


class Kind(IntEnum):
    """The type of a value, by the protocol's numbers."""

    BOOL = 2
    BYTE = 3
    DOUBLE = 4
    I16 = 6
    I32 = 8
    I64 = 10
    STRING = 11
    STRUCT = 12
    MAP = 13
    SET = 14
    LIST = 15


FIXED: dict[int, str] = {
    Kind.BOOL: ">?",
    Kind.BYTE: ">b",
    Kind.DOUBLE: ">d",
    Kind.I16: ">h",
    Kind.I32: ">i",
    Kind.I64: ">q",
}


class CassandraSays(Exception):
    """An answer that is an error."""


class Fields(list[tuple[int, int, Any]]):
    """A struct: each field's number, type and value. A list's value is (type, items); a map's is
    (type of keys, type of values, items).
    """


class Column(NamedTuple):
    """A column as it is stored there."""

    name: bytes
    value: bytes
    time: int


class SuperColumn(NamedTuple):
    """A super column, with those of its columns that the slice has."""

    name: bytes
    columns: tuple[Column, ...]


class Slice(NamedTuple):
    """A choice of columns, or super columns, and their order."""

    start: bytes = b""
    finish: bytes = b""
    is_reversed: bool = False
    most: int = 100


class Deletion(NamedTuple):
    """The part of a family that a mutation deletes: names, a whole super column, or everything."""

    time: int
    super_name: bytes | None = None
    names: tuple[bytes, ...] | None = None


class Call(NamedTuple):
    """A question to a server."""

    name: str
    arguments: Fields


class ThriftClient:
    """One connection. Calls that were sent one after another are answered in that order."""

    def __init__(self, host: str, port: int, level: int = ONE) -> None:
        self._level = level
        self._socket = socket.create_connection((host, port), 30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._calls = 0
        self._sent: deque[tuple[int, str]] = deque()
        """Calls whose answers nobody has taken yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    # --- the calls ---

    def version(self) -> str:
        found: bytes = self._call(Call("describe_version", Fields()))
        return found.decode()

    def add_keyspace(
        self, name: str, families: Mapping[str, tuple[str, str | None]], replicas: int = 1
    ) -> None:
        """`families` says of each what its names are compared as, and those within supers."""
        defined = [_family(name, family, *types) for family, types in families.items()]
        keyspace = Fields(
            [
                (1, Kind.STRING, name),
                (2, Kind.STRING, "org.apache.cassandra.locator.SimpleStrategy"),
                (3, Kind.MAP, (Kind.STRING, Kind.STRING, {"replication_factor": str(replicas)})),
                (5, Kind.LIST, (Kind.STRUCT, defined)),
            ]
        )
        self._call(Call("system_add_keyspace", Fields([(1, Kind.STRUCT, keyspace)])))

    def set_keyspace(self, name: str) -> None:
        self._call(Call("set_keyspace", Fields([(1, Kind.STRING, name)])))

    def mutate(
        self, key: bytes, mutations: Mapping[str, Sequence[Column | SuperColumn | Deletion]]
    ) -> None:
        """All of a row, at once."""
        self._call(self.mutating(key, mutations))

    def mutating(
        self, key: bytes, mutations: Mapping[str, Sequence[Column | SuperColumn | Deletion]]
    ) -> Call:
        """The call of `mutate`, to be sent."""
        of_row = {
            family: (Kind.STRUCT, [_mutation(each) for each in of_family])
            for family, of_family in mutations.items()
        }
        whole = (Kind.STRING, Kind.MAP, {key: (Kind.STRING, Kind.LIST, of_row)})
        fields = Fields([(1, Kind.MAP, whole), (2, Kind.I32, self._level)])
        return Call("batch_mutate", fields)

    def slice(
        self, key: bytes, family: str, wanted: Slice, super_name: bytes | None = None
    ) -> list[Column | SuperColumn]:
        """Columns of a family or of a super column; or super columns."""
        return columns_of(self._call(self.slicing(key, family, wanted, super_name)))

    def slicing(
        self, key: bytes, family: str, wanted: Slice, super_name: bytes | None = None
    ) -> Call:
        """The call of `slice`, to be sent."""
        fields = [
            (1, Kind.STRING, key),
            (2, Kind.STRUCT, _parent(family, super_name)),
            (3, Kind.STRUCT, _predicate(wanted)),
            (4, Kind.I32, self._level),
        ]
        return Call("get_slice", Fields(fields))

    def rows(
        self, family: str, start: bytes, end: bytes, wanted: Slice, count: int = 100
    ) -> list[tuple[bytes, list[Column | SuperColumn]]]:
        """A range of rows in key order, `end` included; rows whose columns are gone have none."""
        span = Fields([(1, Kind.STRING, start), (2, Kind.STRING, end), (5, Kind.I32, count)])
        fields = [
            (1, Kind.STRUCT, _parent(family, None)),
            (2, Kind.STRUCT, _predicate(wanted)),
            (3, Kind.STRUCT, span),
            (4, Kind.I32, self._level),
        ]
        found = self._call(Call("get_range_slices", Fields(fields)))
        return [(row[1], columns_of(row.get(2, []))) for row in found]

    # --- the protocol ---

    def _call(self, call: Call) -> Value:
        self.send(call)
        return self.receive()

    def send(self, call: Call) -> None:
        """Ask, and take the answer later, with `receive`."""
        name, arguments = call
        self._calls += 1
        message = bytearray(struct.pack(">II", VERSION_1 | CALL, len(name)) + name.encode())
        message += struct.pack(">i", self._calls)
        _write(message, Kind.STRUCT, arguments)
        self._socket.sendall(struct.pack(">I", len(message)) + message)
        self._sent.append((self._calls, name))

    def receive(self) -> Value:
        """The result of the first call that was sent and has not been answered yet, as what
        Thrift's types are in Python; a struct is a dict by field number.
        """
        number, name = self._sent.popleft()
        (size,) = struct.unpack(">I", self._receive(4))
        answer = _Reader(self._receive(size))
        kind = answer.number(">I") & 0xFF
        answer.value(Kind.STRING)
        assert answer.number(">i") == number
        result = answer.value(Kind.STRUCT)
        if kind == EXCEPTION or any(field != 0 for field in result):
            raise CassandraSays(f"{name}: {result}")
        return result.get(0)

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            part = self._socket.recv(size - len(received))
            if not part:
                raise ConnectionError("Cassandra closed the connection")
            received += part
        return bytes(received)


def _family(keyspace: str, name: str, compared_as: str, within: str | None) -> Fields:
    fields = [(1, Kind.STRING, keyspace), (2, Kind.STRING, name)]
    fields += [
        (3, Kind.STRING, "Standard" if within is None else "Super"),
        (5, Kind.STRING, compared_as),
    ]
    fields += [(6, Kind.STRING, within)] if within is not None else []
    return Fields(fields)


def _parent(family: str, super_name: bytes | None) -> Fields:
    of_super = [(4, Kind.STRING, super_name)] if super_name is not None else []
    return Fields([(3, Kind.STRING, family), *of_super])


def _predicate(wanted: Slice) -> Fields:
    span = Fields(
        [
            (1, Kind.STRING, wanted.start),
            (2, Kind.STRING, wanted.finish),
            (3, Kind.BOOL, wanted.is_reversed),
            (4, Kind.I32, wanted.most),
        ]
    )
    return Fields([(2, Kind.STRUCT, span)])


def _mutation(change: Column | SuperColumn | Deletion) -> Fields:
    match change:
        case Column():
            return Fields([(1, Kind.STRUCT, Fields([(1, Kind.STRUCT, _column(change))]))])
        case SuperColumn(name=name, columns=columns):
            listed = (Kind.STRUCT, [_column(each) for each in columns])
            whole = Fields([(1, Kind.STRING, name), (2, Kind.LIST, listed)])
            return Fields([(1, Kind.STRUCT, Fields([(2, Kind.STRUCT, whole)]))])
        case Deletion(time=time, super_name=super_name, names=names):
            fields: list[tuple[int, int, Any]] = [(1, Kind.I64, time)]
            if super_name is not None:
                fields.append((2, Kind.STRING, super_name))
            if names is not None:
                fields.append(
                    (3, Kind.STRUCT, Fields([(1, Kind.LIST, (Kind.STRING, list(names)))]))
                )
            return Fields([(2, Kind.STRUCT, Fields(fields))])


def _column(column: Column) -> Fields:
    return Fields(
        [(1, Kind.STRING, column.name), (2, Kind.STRING, column.value), (3, Kind.I64, column.time)]
    )


def columns_of(found: Sequence[dict[int, Any]]) -> list[Column | SuperColumn]:
    """Return the columns that the result of a slice lists."""
    return [_column_or_super(each) for each in found]


def _column_or_super(found: dict[int, Any]) -> Column | SuperColumn:
    if 1 in found:
        return _as_column(found[1])
    return SuperColumn(found[2][1], tuple(_as_column(each) for each in found[2][2]))


def _as_column(found: dict[int, Any]) -> Column:
    return Column(found[1], found[2], found[3])


def _write(out: bytearray, kind: int, value: Value) -> None:
    match kind:
        case _ if kind in FIXED:
            out += struct.pack(FIXED[kind], value)
        case Kind.STRING if isinstance(value, str):
            _write(out, kind, value.encode())
        case Kind.STRING:
            out += struct.pack(">I", len(value)) + value
        case Kind.STRUCT:
            for field, of_kind, each in value:
                out += struct.pack(">bh", of_kind, field)
                _write(out, of_kind, each)
            out.append(0)
        case Kind.MAP:
            of_keys, of_values, items = value
            out += struct.pack(">bbI", of_keys, of_values, len(items))
            for key, each in items.items():
                _write(out, of_keys, key)
                _write(out, of_values, each)
        case Kind.LIST:
            of_kind, items = value
            out += struct.pack(">bI", of_kind, len(items))
            for each in items:
                _write(out, of_kind, each)
        case _:
            raise AssertionError(kind)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, layout: str) -> Value:
        (found,) = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return found

    def value(self, kind: int) -> Value:
        match kind:
            case _ if kind in FIXED:
                return self.number(FIXED[kind])
            case Kind.STRING:
                start = self._at + 4
                self._at = start + self.number(">I")
                return self._data[start : self._at]
            case Kind.STRUCT:
                return dict(self._fields())
            case Kind.MAP:
                of_keys, of_values, size = self.number(">b"), self.number(">b"), self.number(">I")
                return {self.value(of_keys): self.value(of_values) for _ in range(size)}
            case _:
                assert kind in (Kind.LIST, Kind.SET)
                of_kind, size = self.number(">b"), self.number(">I")
                return [self.value(of_kind) for _ in range(size)]

    def _fields(self) -> Iterable[tuple[int, Any]]:
        while kind := self.number(">b"):
            field = self.number(">h")
            yield field, self.value(kind)
