"""Refencing: makes the rows of owners writable under a new journal, whose lease numbers start
again.

A row refuses every lease number below the highest that it has seen, and its cells count by lease
number before time. Numbers never go back, as long as the managers keep their journal, or restore a
copy of it. If the journal is lost, and managers begin with a new one, all numbers are too low, and
nobody could write the rows any longer.

Refencing names the journals that are over. The table refuses their leases from then on, durably and
whatever their numbers, so that an owner that still holds one cannot write late. Then each row that
such a journal has fenced is rewritten as if it had never seen a lease: what readers see keeps its
time, and deleted data is removed, because numbers no longer say what a marker hides. Refencing may
be repeated, and rows that the present journal has fenced stay unchanged.
"""

from collections.abc import Iterator, Mapping

from tenure.columns.engines.contract import Entry
from tenure.columns.replica import Replica
from tenure.columns.spaces import rows_space, space
from tenure.columns.tables import Table
from tenure.protocol.replication.row.admission import entry_digest
from tenure.protocol.replication.row.cells import cell_of, is_live, value_in
from tenure.protocol.replication.row.layout import (
    AFTER,
    CELL,
    MARKER,
    TIME_BYTES,
    number_of,
    parted,
)
from tenure.protocol.replication.row.pages import Steps
from tenure.protocol.replication.row.records import NOTHING, RowRecord, record_of, stored
from tenure.protocol.replication.row.versions import Version, version_of

NO_NUMBER = number_of(NOTHING)
"""The number in the order of time of a column that was written without a lease."""


def fencing_journals(replica: Replica, table: Table) -> Steps[Mapping[int, tuple[int, int]]]:
    """The journals that have fenced rows, each with its number of rows and its highest lease
    number.
    """
    found: dict[int, tuple[int, int]] = {}
    for _, kept in replica.engine.cursor(rows_space(table.name)).walk(b"", None):
        record = record_of(kept)
        if record.fence:
            rows, number = found.get(record.journal, (0, 0))
            found[record.journal] = (rows + 1, max(number, record.fence))
        yield
    return found


def give_up_fences(replica: Replica, table: Table, over: frozenset[int]) -> Steps[int]:
    """Refuse the leases of journals that are `over`, and release the rows that they have fenced;
    returns how many. Write nothing else meanwhile.
    """
    replica.refuse_journals(table, over)
    replica.engine.sync()
    count = 0
    for at, kept in replica.engine.cursor(rows_space(table.name)).walk(b"", None):
        record = record_of(kept)
        if record.fence and record.journal in over:
            _let_go(replica, table, at, record)
            count += 1
        yield
    replica.engine.sync()
    return count


def _let_go(replica: Replica, table: Table, at: bytes, record: RowRecord) -> None:
    batch: list[Entry] = []
    digest = 0
    for family in table.families:
        for key, entry in _unfenced(replica, table, at, family, record.marker):
            batch.append((space(table.name, family), key, entry))
            if entry is not None and entry != NO_NUMBER:  # places are no part of the digest
                digest ^= entry_digest(family, key, entry)
    after = RowRecord(
        newest=Version(0, version_of(record.newest).time).packed(), digest=digest.to_bytes(16)
    )
    batch.append((rows_space(table.name), at, stored(after)))
    replica.apply(table.name, at, batch, record, after)


def _unfenced(
    replica: Replica, table: Table, at: bytes, family: str, row_marker: bytes
) -> Iterator[tuple[bytes, bytes | None]]:
    """The entries of a row in one family, without numbers; None for hidden ones."""
    shape = table.shapes[family]
    above, inside = row_marker, (at, b"")
    for key, entry in replica.engine.cursor(space(table.name, family)).walk(at, at + AFTER):
        section, kind, rest = parted(shape, at, key)
        if kind == MARKER:  # markers come before what they hide
            above, inside = (
                (max(above, entry), inside) if section == at else (above, (section, entry))
            )
            yield key, None
            continue
        marker = max(above, inside[1]) if inside[0] == section else above
        if kind == CELL:
            version = Version(0, version_of(entry).time).packed()
            yield key, cell_of(version, value_in(entry)) if is_live(entry, marker) else None
        else:
            name = rest[TIME_BYTES:]  # tombstones have places, too
            cell = replica.engine.get(space(table.name, family), [section + CELL + name])[0] or b""
            yield key, NO_NUMBER if is_live(cell, marker) else None
