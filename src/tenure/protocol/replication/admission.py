"""Admission: what a replica does with a mutation of one row. Read, decide, write, in one step.

The replica reads what the mutation touches, this decides, and the replica writes the outcome as one
batch, with nothing between. So what is kept is merged already, the newest entry of a name is the
only one, and a reader may stop at the first that it finds.

A mutation that would not count is refused rather than swallowed (R4, R11). Times are drawn by
clocks, and clocks differ: without the refusal a write that was acknowledged later could lie below
one that was acknowledged earlier, and be hidden by it. The replica says what it has, and the writer
begins anew above that. This holds for *first attempts* only. A repeat keeps its version, since it
may have been applied already, and is merged wherever it lies. A time that the user gave is a
decision of the user's, and is merged likewise.

The rule is one comparison: a first attempt must be above the newest version that the row ever had.
That is more than needed where the newest is in another column; it costs one more attempt where two
writers' clocks differ, and in return no delete needs to look at all that it covers.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from xxhash import xxh3_128_intdigest

from tenure.protocol.replication.cells import cell_of, is_live, packed_time
from tenure.protocol.replication.edits import Edit
from tenure.protocol.replication.layout import (
    CELL,
    MARKER,
    FamilyShape,
    number_of,
    place_of,
)
from tenure.protocol.replication.limits import AHEAD_US
from tenure.protocol.replication.records import NOTHING, RowRecord
from tenure.protocol.replication.versions import Version, version_of

AttemptKind = Literal["first", "repeat"]


class Attempt(msgspec.Struct, frozen=True):
    """One try at a mutation."""

    version: Version
    kind: AttemptKind = "first"
    journal: int = 0
    """From which the lease number is; 0 without one."""


class Outrun(msgspec.Struct, frozen=True):
    """Refused: the row has something that is not older. Begin anew above it."""

    newest: Version


class Late(msgspec.Struct, frozen=True):
    """Refused: the time is not above the horizon."""

    horizon: int


class Ahead(msgspec.Struct, frozen=True):
    """Refused: the time is too far past the replica's clock."""

    bound: int


class Outranked(msgspec.Struct, frozen=True):
    """Refused: a higher lease number was promised the row, or the same of another history."""

    fence: int
    journal: int


Refused: TypeAlias = Outrun | Late | Ahead | Outranked

Put: TypeAlias = tuple[str, bytes, bytes | None]
"""A family, a key, and what is kept there; None to remove it."""


class Doomed(NamedTuple):
    """What goes when the horizon has passed it: a tombstone, or a marker with what it covers."""

    time: bytes
    family: str
    """Empty for the row's own marker."""
    key: bytes
    covers: bool
    """Whether it is a marker."""


class MutationAdmitted(msgspec.Struct, frozen=True):
    """What the replica writes, all of it or nothing."""

    puts: list[Put]
    record: RowRecord
    doomed: list[Doomed]
    changed: int
    """The xor of the digests of all entries that went and came."""


def entry_digest(family: str, key: bytes, entry: bytes) -> int:
    """What one entry adds to the digest of its row, and takes away when it goes."""
    return xxh3_128_intdigest(b"".join((family.encode(), b"\0", key, b"\0", entry)))


class Mutation:
    """A mutation of one row on its way into a replica: what it must see, and what comes of it."""

    def __init__(self, shapes: Mapping[str, FamilyShape], at: bytes, edits: Sequence[Edit]) -> None:
        self._at = at
        self._clears_row = False
        self._markers: dict[str, dict[bytes, bool]] = {}
        """By family: the key of each marker above what is edited, and whether it is set."""
        self._cells: dict[str, dict[bytes, tuple[bytes, bytes, bytes | None, bytes]]] = {}
        """By family and key: section, name, value, and the marker next above."""
        self._shapes = shapes
        for edit in edits:
            self._sort_in(edit)

    def _sort_in(self, edit: Edit) -> None:
        if edit.family is None:
            self._clears_row = True
            return
        markers = self._markers.setdefault(edit.family, {})
        section = self._shapes[edit.family].section(self._at, edit.super)
        whole, own = self._at + MARKER, section + MARKER
        markers.setdefault(whole, False)
        if edit.name is None:
            markers[own] = True
            return
        markers.setdefault(own, False)
        cells = self._cells.setdefault(edit.family, {})
        key = b"".join((section, CELL, edit.name))
        if key in cells and not _beats(edit.value, cells[key][2]):
            return
        cells[key] = section, edit.name, edit.value, own

    def wanted(self) -> Iterable[tuple[str, list[bytes]]]:
        """What `admit` must be given, by family."""
        for family, markers in self._markers.items():
            yield family, [*markers, *self._cells.get(family, ())]

    def admit(
        self,
        attempt: Attempt,
        record: RowRecord,
        found: Mapping[str, Sequence[bytes | None]],
        horizon: int,
        now: int,
    ) -> "MutationAdmitted | Refused":
        """Decide. `found` is what `wanted` asked for, in its order; times are in microseconds."""
        if refused := refusal_of(attempt, record, horizon, now):
            return refused
        version = attempt.version.packed()
        outcome = _Outcome(version)
        above = record.marker
        if self._clears_row and version > above:
            above = version
            outcome.doomed.append(Doomed(packed_time(version), "", self._at, covers=True))
        for family, markers in self._markers.items():
            entries = found[family]
            hidden = outcome.mark(family, markers, entries, above, self._at + MARKER)
            old = entries[len(markers) :]
            shape = self._shapes[family]
            cells = self._cells.get(family, {})
            for (key, (section, name, value, own)), before in zip(cells.items(), old, strict=True):
                cell = cell_of(version, value)
                if version > hidden[own] and (before is None or before < cell):
                    outcome.write(shape, section, name, key, before, cell)
        after = msgspec.structs.replace(
            record,
            newest=max(record.newest, version),
            marker=above,
            digest=(int.from_bytes(record.digest) ^ outcome.changed).to_bytes(16),
            fence=max(record.fence, attempt.version.number),
            journal=attempt.journal or record.journal,
        )
        return MutationAdmitted(outcome.puts, after, outcome.doomed, outcome.changed)


def refusal_of(attempt: Attempt, record: RowRecord, horizon: int, now: int) -> Refused | None:
    """Why the replica refuses the attempt, whatever it writes; None if it does not."""
    number, time = attempt.version
    if not may_write(number, attempt.journal, record):
        return Outranked(record.fence, record.journal)
    # A clock that was put back must not keep everybody from writing until it has caught up.
    bound = max(now, horizon, version_of(record.newest).time) + AHEAD_US
    if time > bound:
        return Ahead(bound)
    if time <= horizon:
        return Late(horizon)
    if attempt.kind == "first" and attempt.version.packed() <= record.newest:
        return Outrun(version_of(record.newest))
    return None


def may_write(number: int, journal: int, record: RowRecord) -> bool:
    """Whether the fence lets the lease number pass.

    Numbers compare across journals, because restored managers go on above what was given. So the
    same number of another journal is not the same lease.
    """
    if number != record.fence:
        return number > record.fence
    return journal == record.journal


def _beats(value: bytes | None, other: bytes | None) -> bool:
    """Which of two edits of one column counts, within one mutation: as between mutations (R1)."""
    return other is not None and (value is None or value > other)


class _Outcome:
    """The puts of one mutation, and their effect on the digest."""

    def __init__(self, version: bytes) -> None:
        self._version = version
        self.puts: list[Put] = []
        self.doomed: list[Doomed] = []
        self.changed = 0

    def mark(
        self,
        family: str,
        markers: Mapping[bytes, bool],
        entries: Sequence[bytes | None],
        above: bytes,
        whole: bytes,
    ) -> dict[bytes, bytes]:
        """Set the markers that are to be set; returns the greatest at or above each place."""
        after = {}
        for (key, is_set), before in zip(markers.items(), entries, strict=False):
            after[key] = before or NOTHING
            if is_set and self._version > after[key]:
                after[key] = self._version
                self._put(family, key, before, self._version)
                self.doomed.append(Doomed(packed_time(self._version), family, key, covers=True))
        top = max(above, after[whole])
        return {key: max(top, marker) for key, marker in after.items()}

    def write(
        self,
        shape: FamilyShape,
        section: bytes,
        name: bytes,
        key: bytes,
        before: bytes | None,
        cell: bytes,
    ) -> None:
        self._put(shape.name, key, before, cell)
        has_value = is_live(cell, b"")
        if not has_value:
            self.doomed.append(Doomed(packed_time(cell), shape.name, key, covers=False))
        if shape.order == "time":
            if before is not None and is_live(before, b""):
                self.puts.append((shape.name, place_of(section, name, before), None))
            if has_value:
                self.puts.append((shape.name, place_of(section, name, cell), number_of(cell)))

    def _put(self, family: str, key: bytes, before: bytes | None, after: bytes) -> None:
        self.puts.append((family, key, after))
        self.changed ^= entry_digest(family, key, after)
        if before is not None:
            self.changed ^= entry_digest(family, key, before)
