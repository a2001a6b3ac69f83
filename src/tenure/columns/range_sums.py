"""The sums of a node's ranges, kept in the batches that change them (R27).

Replicas share ranges and not tables, so sums are kept by range. When the ring changes, the ranges
change, and the sums of the new ones are *built*: the records of their rows are read, in steps. A
row that is written meanwhile counts at once if the building has passed it, and is read later if it
has not.

To list the rows of some sums, each row has an entry in the table's space of places.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter

import msgspec
from xxhash import xxh3_128_digest

from tenure.base.ranges import KeyRange
from tenure.columns.engines.contract import Entry, StorageEngine
from tenure.protocol.replication.row.layout import bound
from tenure.protocol.replication.row.limits import SUMMED_ROWS
from tenure.protocol.replication.row.pages import listed, of_a_step
from tenure.protocol.replication.row.records import record_of
from tenure.protocol.replication.row.sums import (
    INNER_SUMS,
    PLACE_BYTES,
    SUM_BYTES,
    SUMS,
    inner_place,
    inner_places,
    place_among_sums,
    row_print,
)
from tenure.protocol.topology.tables import RowKind

META = "meta"
AFTER_BYTES = 17
"""Sorts behind anything that a key has behind its prefix."""
_SUM = b"range sum "
_BUILT = b"range sums are built "
_NAMED = msgspec.msgpack.Decoder(tuple[str, KeyRange])


class _Piece:
    """A range of one table."""

    def __init__(self, table: str, kind: RowKind, key_range: KeyRange) -> None:
        self.table = table
        self.range = key_range
        self.lower = bound(key_range.start, kind)
        self.upper = None if key_range.end is None else bound(key_range.end, kind)
        named = msgspec.msgpack.encode((table, key_range))
        self.name = xxh3_128_digest(named)
        self.sums = bytearray(SUMS * SUM_BYTES)
        """The sums as they are sent: they are read far more often than they change."""
        self._set: set[int] = set()
        """The places of all sums that were ever more than zero."""
        self.built_to: bytes | None = self.lower
        """The position from which on no row counts yet; None when all rows count."""

    def has(self, at: bytes) -> bool:
        return at >= self.lower and (self.upper is None or at < self.upper)

    def key(self, place: int) -> bytes:
        return _SUM + self.name + place.to_bytes(PLACE_BYTES)

    def sum(self, place: int) -> int:
        start = place * SUM_BYTES
        return int.from_bytes(self.sums[start : start + SUM_BYTES])

    def set_sum(self, place: int, total: int) -> None:
        self._set.add(place)
        start = place * SUM_BYTES
        self.sums[start : start + SUM_BYTES] = total.to_bytes(SUM_BYTES)

    def kept(self) -> list[Entry]:
        """Everything that the disk has of it: a sum that is missing there is zero."""
        named = msgspec.msgpack.encode((self.table, self.range))
        built: Entry = META, _BUILT + self.name, named
        sums = ((place, self.sum(place)) for place in sorted(self._set))
        return [
            built,
            *((META, self.key(at), each.to_bytes(SUM_BYTES)) for at, each in sums if each),
        ]


class RangeSums:
    def __init__(self, engine: StorageEngine) -> None:
        self._engine = engine
        self._pieces: dict[str, list[_Piece]] = {}
        """The pieces of each table, in the order of positions."""
        self._lowers: dict[str, list[bytes]] = {}

    # --- which ranges ---

    def load(self, tables: Mapping[str, RowKind]) -> None:
        """Load the ranges that are on the disk, before anything is written."""
        pieces: dict[str, list[_Piece]] = {}
        for _, kept in self._walk(_BUILT):
            table, key_range = _NAMED.decode(kept)
            piece = _Piece(table, tables[table], key_range)
            self._read_kept(piece)
            pieces.setdefault(table, []).append(piece)
        for of in pieces.values():
            of.sort(key=attrgetter("lower"))
        self._set(pieces)

    def follow(self, tables: Mapping[str, RowKind], ranges: Sequence[KeyRange]) -> None:
        """Keep the sums of these ranges, and of no others."""
        wanted = {(table, each) for table in tables for each in ranges}
        if wanted == {(each.table, each.range) for each in self._all()}:
            return
        known = {(each.table, each.range): each for each in self._all()}
        pieces: dict[str, list[_Piece]] = {}
        for table, kind in tables.items():
            for key_range in sorted(ranges, key=attrgetter("start")):
                piece = known.pop((table, key_range), None) or _Piece(table, kind, key_range)
                pieces.setdefault(table, []).append(piece)
        self._set(pieces)
        for piece in known.values():
            self._drop(piece.name)

    def _all(self) -> Iterable[_Piece]:
        return (piece for pieces in self._pieces.values() for piece in pieces)

    def _set(self, pieces: dict[str, list[_Piece]]) -> None:
        self._pieces = pieces
        self._lowers = {table: [each.lower for each in of] for table, of in pieces.items()}

    def _read_kept(self, piece: _Piece) -> None:
        for key, kept in self._walk(_SUM + piece.name):
            piece.set_sum(int.from_bytes(key[-PLACE_BYTES:]), int.from_bytes(kept))
        piece.built_to = None

    def _drop(self, name: bytes) -> None:
        keys = [_BUILT + name, *(key for key, _ in self._walk(_SUM + name))]
        self._engine.apply([(META, key, None) for key in keys])

    def _walk(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._engine.cursor(META).walk(prefix, prefix + b"\xff" * AFTER_BYTES)

    def build(self) -> bool:
        """Count some rows that were not counted yet; return whether all are."""
        piece = next((each for each in self._all() if each.built_to is not None), None)
        if piece is None:
            return True
        assert piece.built_to is not None
        walk = self._engine.cursor(f"{piece.table}/rows").walk(piece.built_to, piece.upper)
        found, is_last = of_a_step(walk)
        for at, kept in found:
            place = place_among_sums(at)
            piece.set_sum(place, piece.sum(place) ^ row_print(record_of(kept)))
        if is_last:
            self._engine.apply(piece.kept())
            piece.built_to = None
        else:
            piece.built_to = found[-1][0] + b"\0"
        return False

    # --- writing ---

    def apply(self, batch: list[Entry], changes: Iterable[tuple[str, bytes, int]]) -> None:
        """Write a batch that changes the prints of rows, together with their sums."""
        totals: dict[tuple[_Piece, int], int] = {}
        for table, at, changed in changes:
            piece = self._piece(table, at) if changed else None
            if piece is not None and (piece.built_to is None or at < piece.built_to):
                place = place_among_sums(at)
                totals[piece, place] = totals.get((piece, place), piece.sum(place)) ^ changed
        for (piece, place), total in totals.items():
            if piece.built_to is None:
                batch.append((META, piece.key(place), total.to_bytes(SUM_BYTES)))
        self._engine.apply(batch)
        for (piece, place), total in totals.items():
            piece.set_sum(place, total)

    def _piece(self, table: str, at: bytes) -> _Piece | None:
        index = bisect_right(self._lowers.get(table, ()), at) - 1
        if index < 0:
            return None
        piece = self._pieces[table][index]
        return piece if piece.has(at) else None

    # --- reading ---

    def read(self, table: str, key_range: KeyRange, place: int | None = None) -> bytes | None:
        """The sums of a range, or the inner sums of one of them; None if they are not built, or if
        that one has too many rows.
        """
        piece = self._found(table, key_range)
        if piece is None or piece.built_to is not None:
            return None
        if place is None:
            return bytes(piece.sums)
        inner = [0] * INNER_SUMS
        places = inner_places(place)
        positions = [*islice(self._positions(piece, places), SUMMED_ROWS + 1)]
        if len(positions) > SUMMED_ROWS:
            return None
        for at, found in self._printed(piece, positions):
            inner[inner_place(at) - places[0]] ^= int.from_bytes(found)
        return b"".join(each.to_bytes(SUM_BYTES) for each in inner)

    def rows(
        self, table: str, key_range: KeyRange, places: Sequence[int], after: bytes = b""
    ) -> tuple[list[tuple[bytes, bytes]], bool]:
        """The positions and prints of some rows of inner sums, behind a position in the first of
        these, and whether they are the last.
        """
        piece = self._found(table, key_range)
        if piece is None:
            return [], True
        found, is_all = listed((at, b"") for at in self._positions(piece, places, after))
        return self._printed(piece, [at for at, _ in found]), is_all

    def _found(self, table: str, key_range: KeyRange) -> _Piece | None:
        pieces = self._pieces.get(table, ())
        return next((each for each in pieces if each.range == key_range), None)

    def _positions(
        self, piece: _Piece, places: Iterable[int], after: bytes = b""
    ) -> Iterator[bytes]:
        cursor = self._engine.cursor(places_space(piece.table))
        lower = max(piece.lower, after + b"\0") if after else piece.lower
        for place in places:
            first = _packed(place)
            upper = _packed(place + 1) if piece.upper is None else first + piece.upper
            for key, _ in cursor.walk(first + lower, upper):
                yield key[PLACE_BYTES:]
            lower = piece.lower

    def _printed(self, piece: _Piece, positions: list[bytes]) -> list[tuple[bytes, bytes]]:
        kept = self._engine.get(f"{piece.table}/rows", positions)
        prints = (row_print(record_of(each)).to_bytes(SUM_BYTES) for each in kept)
        return list(zip(positions, prints, strict=True))


def places_space(table: str) -> str:
    """The space that lists the rows of each inner sum."""
    return f"{table}/places"


def place_entry(table: str, at: bytes, value: bytes | None) -> Entry:
    """The entry that says that a row is in a sum, or its removal."""
    return places_space(table), _packed(inner_place(at)) + at, value


def _packed(place: int) -> bytes:
    whole = place.to_bytes(PLACE_BYTES + 1)
    return whole[1:] if not whole[0] else b"\xff" * (PLACE_BYTES + 1)
