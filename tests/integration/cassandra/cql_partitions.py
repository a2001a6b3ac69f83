"""The tables of the small server, kept in the store's memory engine, an entry for each cell.

An entry's key names the partition, the kind of the entry, and its place in the partition. Keys sort
as their pieces do.
"""

from collections.abc import Iterator
from itertools import groupby
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from tenure.columns.engines.memory import MemoryEngine
from tenure.protocol.replication.row.pages import Cursor

Clustering: TypeAlias = tuple[str, bytes, bytes]
CELL, MARKER, STATIC = b"cell", b"marker", b"static"
RECORDS = "tenure_tables"
_CELL = Struct(">q?")
_NUMBER = Struct(">q")
_END = b"\0\1"


class Cell(NamedTuple):
    """A value at a time; no value is a tombstone, which beats a value of the same time."""

    time: int
    is_gone: bool
    value: bytes


def _entry(*pieces: bytes) -> bytes:
    return b"".join(each.replace(b"\0", b"\0\xff") + _END for each in pieces)


def _pieces(entry: bytes) -> list[bytes]:
    return [each.replace(b"\0\xff", b"\0") for each in entry.split(_END)[:-1]]


def _under(cursor: Cursor, *pieces: bytes) -> Iterator[tuple[list[bytes], bytes]]:
    """The entries whose keys begin with these pieces: the rest of each key, and its value."""
    lower = _entry(*pieces)
    for entry, value in cursor.walk(lower, lower[:-1] + b"\2"):
        yield _pieces(entry[len(lower) :]), value


def _clustering(place: tuple[Any, ...]) -> list[bytes]:
    """The pieces of a place, or of the beginning of one."""
    return [place[0].encode(), *place[1:]] if place else []


class Partition:
    """Everything under one key of a table."""

    def __init__(self, engine: MemoryEngine, table: str, key: bytes) -> None:
        self._engine = engine
        self._table = table
        self._key = key

    def put(self, place: Clustering, cell: Cell) -> None:
        """Keep a cell, unless a later one is there."""
        entry = _entry(self._key, CELL, *_clustering(place))
        (there,) = self._engine.get(self._table, [entry])
        if there is None or cell > _cell(there):
            kept = _CELL.pack(cell.time, cell.is_gone) + cell.value
            self._engine.apply([(self._table, entry, kept)])

    def delete(self, place: tuple[Any, ...], at: int) -> None:
        """Delete everything below a place, up to a time."""
        entry = _entry(self._key, MARKER, *_clustering(place))
        (there,) = self._engine.get(self._table, [entry])
        if there is None or at > _NUMBER.unpack(there)[0]:
            self._engine.apply([(self._table, entry, _NUMBER.pack(at))])
        if not place:
            self.set_static(dict.fromkeys(self.static()))

    def set_static(self, settings: dict[str, int | None]) -> None:
        """Set static columns; None removes one."""
        self._engine.apply(
            [
                (
                    self._table,
                    _entry(self._key, STATIC, name.encode()),
                    None if value is None else _NUMBER.pack(value),
                )
                for name, value in settings.items()
            ]
        )

    def static(self) -> dict[str, int]:
        """The static columns that are set."""
        cursor = self._engine.cursor(self._table)
        found = _under(cursor, self._key, STATIC)
        return {name.decode(): _NUMBER.unpack(value)[0] for (name,), value in found}

    def live(self) -> Iterator[tuple[Clustering, Cell]]:
        """The rows in order, each with its cell."""
        cursor = self._engine.cursor(self._table)
        markers = {
            tuple(place): _NUMBER.unpack(value)[0]
            for place, value in _under(cursor, self._key, MARKER)
        }
        for (family, parent, name), value in _under(cursor, self._key, CELL):
            cell = _cell(value)
            place = family, parent, name
            hidden = max(markers.get(place[:size], -1) for size in range(3))
            if not cell.is_gone and cell.time > hidden:
                yield (family.decode(), parent, name), cell


class Tables:
    """All tables of one server, and the records of how each was made."""

    def __init__(self) -> None:
        self._engine = MemoryEngine()

    def __contains__(self, name: str) -> bool:
        return name in self._engine.spaces()

    def make(self, name: str) -> None:
        """Make a table."""
        self._engine.make_spaces([name])

    def clear(self) -> None:
        """Drop every table."""
        self._engine = MemoryEngine()

    def sync(self) -> None:
        """Make what was written survive: it may be acknowledged now."""
        self._engine.sync()

    def partition(self, table: str, key: bytes) -> Partition:
        """The contents under a key."""
        return Partition(self._engine, table, key)

    def partitions(self, table: str) -> Iterator[tuple[bytes, Partition]]:
        """The contents under each key, in order."""
        entries = self._engine.cursor(table).walk(b"", None)
        for key, _ in groupby(entries, lambda each: _pieces(each[0])[0]):
            yield key, self.partition(table, key)

    def set_record(self, name: str, record: str) -> None:
        """Write down how a table was made."""
        self._engine.apply([(RECORDS, name.encode(), record.encode())])

    def records(self) -> Iterator[tuple[str, str]]:
        """How each table was made."""
        for name, record in self._engine.cursor(RECORDS).walk(b"", None):
            yield name.decode(), record.decode()


def _cell(kept: bytes) -> Cell:
    at, is_gone = _CELL.unpack_from(kept)
    return Cell(at, is_gone, kept[_CELL.size :])
