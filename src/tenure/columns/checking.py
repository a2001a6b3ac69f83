"""Checks whether a store's entries, their digests and the order of time agree.

Reading an entry verifies the checksum of its block. Beyond that, what a store keeps twice must
agree: the digest of each row with its entries, the sums with the digests, each place in the order
of time with a cell, and each cell with its place. The files of a node can be checked, too, while it
does not run.
"""

from tenure.columns.node_replica import counter_of
from tenure.columns.replica import Replica
from tenure.columns.spaces import rows_space, space
from tenure.columns.tables import Table
from tenure.protocol.replication.row.admission import entry_digest
from tenure.protocol.replication.row.layout import (
    AFTER,
    CELL,
    MARKER,
    PLACE,
    TIME_BYTES,
    FamilyShape,
    inverted,
    number_of,
    parted,
    place_of,
    row_key,
)
from tenure.protocol.replication.row.pages import Cursor, Pace, Steps
from tenure.protocol.replication.row.records import record_of
from tenure.protocol.replication.row.sums import SUMS, place_among_sums


def check(replica: Replica, table: Table) -> Steps[list[str]]:
    """Yield a line for each disagreement in a table. It reads in steps; write nothing meanwhile.

    Raises StoreDamaged for a file that cannot be read.
    """
    return _Check(replica, table).steps()


class _Check:
    def __init__(self, replica: Replica, table: Table) -> None:
        self._replica = replica
        self._table = table
        self._wrong: list[str] = []
        self._seen = dict.fromkeys(table.families, 0)
        """Entries by family that belong to rows."""
        self._pace = Pace()

    def steps(self) -> Steps[list[str]]:
        engine, name = self._replica.engine, self._table.name
        walkers = {each: engine.cursor(space(name, each)) for each in self._table.families}
        finders = {each: engine.cursor(space(name, each)) for each in self._table.families}
        sums = [0] * SUMS
        for at, stored in engine.cursor(rows_space(name)).walk(b"", None):
            digest = 0
            for family, shape in self._table.shapes.items():
                for key, value in walkers[family].walk(at, at + AFTER):
                    digest ^= self._entry(shape, finders[family], at, key, value)
                    self._seen[family] += 1
                    if self._pace.is_over(len(key) + len(value)):
                        yield
            sums[place_among_sums(at)] ^= digest
            if int.from_bytes(record_of(stored).digest) != digest:
                self._complain(at, "its digest is not that of its entries")
            yield
        # A node keeps sums of ranges instead, and makes them anew in each life.
        if not counter_of(engine) and sums != list(self._replica.sums(name)):
            self._wrong.append(f"{name}: the sums are not those of its rows")
        for family, walker in walkers.items():
            yield from self._strays(family, walker)
        return self._wrong

    def _strays(self, family: str, walker: Cursor) -> Steps[None]:
        count = 0
        for key, value in walker.walk(b"", None):
            count += 1
            if self._pace.is_over(len(key) + len(value)):
                yield
        if count != self._seen[family]:
            strays = count - self._seen[family]
            self._wrong.append(f"{self._table.name}.{family}: {strays} entries belong to no row")

    def _entry(
        self, shape: FamilyShape, finder: Cursor, at: bytes, key: bytes, value: bytes
    ) -> int:
        """Look at one entry; return what it adds to the digest of its row."""
        section, kind, rest = parted(shape, at, key)
        if kind == PLACE:
            cell = finder.get(b"".join((section, CELL, rest[TIME_BYTES:])))
            version = value + inverted(rest[:TIME_BYTES])
            if cell is None or not cell.startswith(version):
                self._complain(at, f"a place in the order of time of {shape.name} has no column")
            return 0
        if kind == CELL and shape.order == "time":
            if finder.get(place_of(section, rest, value)) != number_of(value):
                self._complain(at, f"a column of {shape.name} has no place in the order of time")
        elif kind not in (CELL, MARKER):
            self._complain(at, f"an entry of {shape.name} is of no known kind")
        return entry_digest(shape.name, key, value)

    def _complain(self, at: bytes, what: str) -> None:
        key = self._table.keys.decode(row_key(at, self._table.kind)[0])
        self._wrong.append(f"{self._table.name}, row {key!r}: {what}")
