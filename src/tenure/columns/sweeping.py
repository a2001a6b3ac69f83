"""Sweeping removes deleted data for good, once the horizon has passed it.

A tombstone must outlast every write that it may have to hide. So a store first promises, durably,
to take no more writes of its time or an earlier time: it raises its *horizon*. Then the tombstone
may go (R23, R24). A single replica has nobody to wait for, so its promises are settled at once
(R25).

The horizon lags behind the clock, for applications that give their own times. It is raised no
further than sweeping needs: a store in which nothing was deleted takes writes of any time.

A mutation enters what it deletes, by time, into a list of doomed things. The sweeper follows that
list, so its work depends on the number of deletes and not on the size of the store. A marker may
hide any amount of data: the sweeper removes that data in steps, and the marker last. A row of which
nothing is left goes too, unless a fence was promised on it.
"""

from itertools import islice

import msgspec

from tenure.base.ranges import KeyRange
from tenure.columns.engines.contract import Entry
from tenure.columns.replica import Replica
from tenure.columns.spaces import doomed_of, doomed_space, rows_space, space
from tenure.columns.tables import Table
from tenure.protocol.replication.row.admission import Doomed, entry_digest
from tenure.protocol.replication.row.cells import is_hidden, is_live, packed_time
from tenure.protocol.replication.row.layout import (
    AFTER,
    CELL,
    MARKER,
    TIME_BYTES,
    inverted,
    parted,
    place_of,
    row_key,
)
from tenure.protocol.replication.row.limits import STEP_ENTRIES
from tenure.protocol.replication.row.pages import Pace, Steps, of_a_step
from tenure.protocol.replication.row.records import NOTHING, record_of, stored
from tenure.protocol.replication.row.versions import version_of
from tenure.protocol.topology.ring import position as on_ring

DOOMED_AT_ONCE = 64
"""How many doomed things are read from the list at a time."""
DROP_ENTRIES = 8
"""How many entries removing one tombstone counts as: it takes a read and a write."""


def doomed_within(replica: Replica, table: Table, key_range: KeyRange, until: int) -> int:
    """The time of the newest thing in a range that was deleted up to `until`; 0 if there is no such
    thing. If too many things of other ranges come first, the unread rest counts as one thing.
    """
    upper = (until + 1).to_bytes(TIME_BYTES)
    walk = replica.engine.cursor(doomed_space(table.name)).walk(b"", upper, reverse=True)
    time = 0
    for entry, kind in islice(walk, STEP_ENTRIES):
        doomed = doomed_of(entry, kind)
        time = int.from_bytes(doomed.time)
        key, _ = row_key(doomed.key, table.kind)
        if on_ring(key, table.kind) in key_range:
            return time
    return 0 if next(walk, None) is None else time


class Sweep:
    """One pass over what is doomed in one table, up to the horizon."""

    def __init__(self, replica: Replica, table: Table) -> None:
        self._replica = replica
        self._table = table
        self._upper = (replica.horizon + 1).to_bytes(TIME_BYTES)
        self._pace = Pace()

    def steps(self) -> Steps[int]:
        """Remove doomed things in steps; returns how much it was."""
        count, after = 0, b""
        while True:
            walk = self._replica.engine.cursor(doomed_space(self._table.name))
            found = list(islice(walk.walk(after, self._upper), DOOMED_AT_ONCE))
            for entry, kind in found:
                doomed = doomed_of(entry, kind)
                if int.from_bytes(doomed.time) > self._settled_to(self._at(doomed.key)):
                    continue
                yield from (
                    self._clear(entry, doomed) if doomed.covers else self._drop(entry, doomed)
                )
                count += 1
            if len(found) < DOOMED_AT_ONCE:
                return count
            after = found[-1][0] + b"\0"
            yield

    def _settled_to(self, at: bytes) -> int:
        return self._replica.settled_to(self._table, at)

    def _drop(self, entry: bytes, doomed: Doomed) -> Steps[None]:
        """Remove a tombstone, unless something newer has replaced it."""
        name = space(self._table.name, doomed.family)
        [cell] = self._replica.engine.get(name, [doomed.key])
        at = self._at(doomed.key)
        if cell is None or is_live(cell, b"") or packed_time(cell) != doomed.time:
            self._apply(at, entry, [])
        else:
            changed = entry_digest(doomed.family, doomed.key, cell)
            gone: list[Entry] = [(name, doomed.key, None)]
            shape = self._table.shapes[doomed.family]
            if shape.order == "time":
                section, _, column = parted(shape, at, doomed.key)
                gone.append((name, place_of(section, column, cell), None))
            self._apply(at, entry, gone, changed)
        if self._pace.is_over(len(cell or b""), DROP_ENTRIES):
            yield

    def _clear(self, entry: bytes, doomed: Doomed) -> Steps[None]:
        """Remove what a marker hides, and then the marker, unless it was set again by now."""
        at = self._at(doomed.key)
        marker = self._marker(doomed)
        if marker[-TIME_BYTES:] != doomed.time:
            self._apply(at, entry, [])
            return
        for family in [doomed.family] if doomed.family else self._table.families:
            lower = doomed.key.removesuffix(MARKER) + CELL if doomed.family else at + MARKER
            yield from self._remove_hidden(family, at, lower, marker)
        if self._marker(doomed) != marker:
            self._apply(at, entry, [])
        elif doomed.family:
            changed = entry_digest(doomed.family, doomed.key, marker)
            gone = (space(self._table.name, doomed.family), doomed.key, None)
            self._apply(at, entry, [gone], changed)
        else:
            self._apply(at, entry, [], has_marker=False)

    def _marker(self, doomed: Doomed) -> bytes:
        if not doomed.family:
            return self._replica.record(self._table, doomed.key).marker
        [found] = self._replica.engine.get(space(self._table.name, doomed.family), [doomed.key])
        return found or NOTHING

    def _remove_hidden(self, family: str, at: bytes, lower: bytes, marker: bytes) -> Steps[None]:
        name, upper = space(self._table.name, family), lower[:-1] + AFTER
        while True:
            walk = self._replica.engine.cursor(name).walk(lower, upper)
            found, is_last = of_a_step(walk)
            gone = [
                (key, value)
                for key, value in found
                if is_hidden(self._version(family, at, key, value), marker)
            ]
            changed = 0
            for key, value in gone:
                if len(value) > TIME_BYTES:  # places are no part of the digest
                    changed ^= entry_digest(family, key, value)
            self._apply(at, None, [(name, key, None) for key, _ in gone], changed)
            if is_last:
                return
            lower = found[-1][0] + b"\0"
            yield

    def _version(self, family: str, at: bytes, key: bytes, value: bytes) -> bytes:
        """The version of any entry: markers and cells begin with it, places have it in two
        parts.
        """
        if len(value) > TIME_BYTES:
            return value
        _, _, rest = parted(self._table.shapes[family], at, key)
        return value + inverted(rest[:TIME_BYTES])

    def _at(self, key: bytes) -> bytes:
        return key[: row_key(key, self._table.kind)[1]]

    def _apply(
        self,
        at: bytes,
        entry: bytes | None,
        batch: list[Entry],
        changed: int = 0,
        *,
        has_marker: bool = True,
    ) -> None:
        """Write what one step removes from a row, together with the change of the row's record."""
        if entry is not None:
            batch = [*batch, (doomed_space(self._table.name), entry, None)]
        record = self._replica.record(self._table, at)
        digest = int.from_bytes(record.digest) ^ changed
        after = msgspec.structs.replace(
            record,
            digest=digest.to_bytes(16),
            marker=record.marker if has_marker else NOTHING,
        )
        is_empty = not digest and after.marker == NOTHING and not after.fence
        is_past = version_of(record.newest).time <= self._settled_to(at)
        is_gone = is_empty and is_past
        if after != record or is_gone:
            kept = None if is_gone else stored(after)
            batch = [*batch, (rows_space(self._table.name), at, kept)]
        if batch:
            gone = record_of(None) if is_gone else after
            self._replica.apply(self._table.name, at, batch, record, gone)
