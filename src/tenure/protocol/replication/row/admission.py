"""Admission: what a replica does with a mutation of one row. Read, decide, write, in one step.

The replica reads what the mutation touches, this module decides, and the replica writes the outcome
as one batch; nothing happens in between. So kept entries are already merged, the newest entry of a
name is the only one, and a reader may stop at the first that it finds.

The write is merged wherever it lies (R4): of two entries of a name the greater counts. Its version
was drawn above all that it must not hide and must not be hidden by, before any replica had it, so
nothing needs to be refused for its place, and the write may come again in any order. What is
refused is refused whole: by the fence, by the horizon, or because its time is far ahead of the
clock (R11).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from xxhash import xxh3_128_intdigest

from tenure.base.numbers import Number
from tenure.protocol.replication.row.cells import cell_of, packed_time
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.layout import CELL, MARKER, FamilyShape, number_of, place_of
from tenure.protocol.replication.row.limits import AHEAD_US
from tenure.protocol.replication.row.records import NOTHING, RowRecord
from tenure.protocol.replication.row.versions import Version, version_of

AttemptKind = Literal["first", "repeat", "merge"]
"""Clients of an earlier release draw times without a first round, and say whether it is the first
try. All others say "merge".
"""


class Attempt(msgspec.Struct, frozen=True, array_like=True):
    version: Version
    kind: AttemptKind = "merge"
    journal: Number = 0
    """The journal of the lease number; 0 without one."""
    above: Number = 0
    """The time of the newest version that the first round found. If that is far ahead of a clock,
    so is whatever must be above it.
    """


class Late(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Refused: the time is not above the horizon."""

    horizon: Number


class Ahead(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Refused: the time is too far past the replica's clock."""

    bound: Number


class Outranked(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Refused: the row has promised a higher lease number, or the same one of another history."""

    fence: Number
    journal: Number
    is_partial: bool = False
    """Whether some replica may have the write all the same, so that a later owner may find it."""


_NOTHING_THERE = repeat(None)

Refused: TypeAlias = Late | Ahead | Outranked

Put: TypeAlias = tuple[str, bytes, bytes | None]
"""The space of a family, a key, and what is kept there; None to remove it."""


class Doomed(NamedTuple):
    """An entry that goes once the horizon has passed it: a tombstone, or a marker with what it
    covers.
    """

    time: bytes
    family: str
    """Empty for the row's own marker."""
    key: bytes
    covers: bool
    """Whether it is a marker."""


class MutationAdmitted(msgspec.Struct, frozen=True):
    """The entries that the replica writes, all of them or none."""

    puts: list[Put]
    record: RowRecord
    doomed: list[Doomed]
    changed: int
    """The xor of the digests of all entries that went and came."""


def entry_digest(family: str, key: bytes, entry: bytes) -> int:
    """The part of a row's digest that one entry adds, and takes away when it goes."""
    return xxh3_128_intdigest(b"\0".join((family.encode(), key, entry)))


class _Section:
    """The changes of a mutation to a simple family, or to one super column."""

    def __init__(
        self, shape: FamilyShape, space: str, at: bytes, super_column: bytes | None
    ) -> None:
        self.shape = shape
        self.space = space
        self.prefix = shape.section(at, super_column)
        self.is_cleared = False
        self.base = self.prefix + CELL
        self.values: dict[bytes, bytes | None] = {}
        """The values, by the keys of their cells."""

    def add_again(self, key: bytes, value: bytes | None) -> None:
        """Two edits of one column are merged as those of two mutations would be (R1)."""
        other = self.values[key]
        if other is not None and (value is None or value > other):
            self.values[key] = value


class Mutation:
    """A mutation of one row on its way into a replica: what it must read, and its outcome."""

    def __init__(
        self,
        shapes: Mapping[str, FamilyShape],
        spaces: Mapping[str, str],
        at: bytes,
        edits: Sequence[Edit],
    ) -> None:
        self._spaces = spaces
        self._at = at
        self._clears_row = False
        self._families: dict[str, dict[bytes | None, _Section]] = {}
        """The sections by super column; that of None comes first, for it has the family's marker.
        """
        section: _Section | None = None
        last_family: str | None = None
        last_super: bytes | None = None
        base, values = b"", dict[bytes, bytes | None]()
        for edit in edits:
            family, super_column, name = edit.family, edit.super, edit.name
            # Most follow one of their own section, and then both are the very same objects.
            if section is None or super_column is not last_super or family is not last_family:
                if family is None:
                    self._clears_row = True
                    continue
                section = self._section(shapes[family], super_column)
                last_family, last_super = family, super_column
                base, values = section.base, section.values
            if name is None:
                section.is_cleared = True
                continue
            key = base + name
            if key in values:
                section.add_again(key, edit.value)
            else:
                values[key] = edit.value

    def _section(self, shape: FamilyShape, super_column: bytes | None) -> _Section:
        space = self._spaces[shape.name]
        sections = self._families.get(shape.name)
        if sections is None:
            sections = self._families[shape.name] = {None: _Section(shape, space, self._at, None)}
        section = sections.get(super_column)
        if section is None:
            section = sections[super_column] = _Section(shape, space, self._at, super_column)
        return section

    def wanted(self, record: RowRecord) -> Iterable[tuple[str, list[bytes]]]:
        """The entries that `admit` must be given, by family."""
        for family, sections in self._families.items():
            keys: list[bytes] = []
            for section in sections.values():
                if not record.is_unmarked:
                    keys.append(section.prefix + MARKER)
                keys += section.values
            if keys:
                yield family, keys

    def admit(
        self,
        attempt: Attempt,
        record: RowRecord,
        found: Mapping[str, Sequence[bytes | None]],
        horizon: int,
        now: int,
    ) -> "MutationAdmitted | Refused":
        """Decide. `found` is what `wanted` asked for, in its order. A family that has none of it
        may be missing. Times are in microseconds.
        """
        if refused := refusal_of(attempt, record, horizon, now):
            return refused
        version = attempt.version.packed()
        outcome = _Outcome(version)
        above = record.marker
        if self._clears_row and version > above:
            above = version
            outcome.doomed.append(Doomed(packed_time(version), "", self._at, covers=True))
        for family, sections in self._families.items():
            entries, start, marker = found.get(family), 0, above
            for super_column, section in sections.items():
                before, hidden = None, marker
                if entries and not record.is_unmarked:
                    before, start = entries[start], start + 1
                if section.is_cleared or before is not None:
                    hidden = outcome.mark(section, before, marker)
                if super_column is None:
                    marker = hidden
                end = start + len(section.values)
                # What a marker hides is not written: nobody could ever read it (R2).
                if version > hidden:
                    outcome.write(section, entries[start:end] if entries else _NOTHING_THERE)
                start = end
        number = attempt.version.number
        after = RowRecord(
            newest=max(record.newest, version),
            marker=above,
            digest=(int.from_bytes(record.digest) ^ outcome.changed).to_bytes(16),
            fence=number,  # no lower one is admitted
            journal=attempt.journal or record.journal,
            adopted=record.adopted,
            attempt=record.attempt,
            # A promise belongs to one lease: under a higher number it says nothing (R19).
            promised=record.promised if number == record.fence else 0,
            is_unmarked=record.is_unmarked and not outcome.has_marked,
        )
        return MutationAdmitted(outcome.puts, after, outcome.doomed, outcome.changed)


def refusal_of(attempt: Attempt, record: RowRecord, horizon: int, now: int) -> Refused | None:
    """The reason why the replica refuses the attempt, whatever it writes; None if it does not."""
    number, time = attempt.version
    # First: a past owner is told so, whatever else is wrong, and tries no more (R20).
    if not may_write(number, attempt.journal, record):
        return Outranked(record.fence, record.journal)
    if time > now + AHEAD_US:
        # A clock that was put back must not keep everybody from writing until it has caught up.
        bound = max(now, horizon, version_of(record.newest).time, attempt.above) + AHEAD_US
        if time > bound:
            return Ahead(bound)
    # What it deletes or hides may be gone by now: it would bring back what was deleted (R24).
    if time <= horizon:
        return Late(horizon)
    newest = version_of(record.newest).time
    if attempt.kind == "first" and time <= newest:
        return Late(newest)  # a coordinator of an earlier release has asked nobody for the newest
    return None


def may_write(number: int, journal: int, record: RowRecord) -> bool:
    """Whether the fence lets the lease number pass.

    Numbers compare across journals, because restored managers go on above what was given. So the
    same number of another journal is not the same lease.
    """
    if number != record.fence:
        return number > record.fence
    # Equal numbers of two journals are two leases, and only one was promised (R19).
    return journal == record.journal


class _Outcome:
    """The puts of one mutation, and their effect on the digest."""

    def __init__(self, version: bytes) -> None:
        self._version = version
        self.puts: list[Put] = []
        self.doomed: list[Doomed] = []
        self.changed = 0
        self.has_marked = False
        """Whether a family or a super column has got a marker."""

    def mark(self, section: _Section, before: bytes | None, above: bytes) -> bytes:
        """Set the section's marker if it is to be set; the greatest at it and above."""
        version = self._version
        if section.is_cleared and version > (before or NOTHING):
            family, key = section.shape.name, section.prefix + MARKER
            self.puts.append((section.space, key, version))
            self.has_marked = True
            self.changed ^= entry_digest(family, key, version)
            if before is not None:
                self.changed ^= entry_digest(family, key, before)
            self.doomed.append(Doomed(packed_time(version), family, key, covers=True))
            return max(above, version)
        return max(above, before or NOTHING)

    def write(self, section: _Section, entries: Iterable[bytes | None]) -> None:
        """Write the cells that count. `entries` are those that are there, in order.

        Every cell of every write passes through here, so what is the same for all is made once.
        """
        version, family, space = self._version, section.shape.name, section.space
        by_time = section.shape.order == "time"
        changed, encoded, put = self.changed, family.encode(), self.puts.append
        of_value, tombstone = cell_of(version, b""), cell_of(version, None)
        for (key, value), before in zip(section.values.items(), entries, strict=False):
            cell = tombstone if value is None else of_value + value
            if before is not None:
                # The greater stays, so all replicas agree whatever comes first (R1).
                if before >= cell:
                    continue
                changed ^= xxh3_128_intdigest(b"\0".join((encoded, key, before)))
            changed ^= xxh3_128_intdigest(b"\0".join((encoded, key, cell)))
            put((space, key, cell))
            if value is None:
                self.doomed.append(Doomed(packed_time(cell), family, key, covers=False))
            if by_time:
                self._move(section, key, before, cell)
        self.changed = changed

    def _move(self, section: _Section, key: bytes, before: bytes | None, cell: bytes) -> None:
        """Have the cell in its place in the order of time, and the one before it no more."""
        space, prefix = section.space, section.prefix
        name = key[len(section.base) :]
        if before is not None:
            self.puts.append((space, place_of(prefix, name, before), None))
        self.puts.append((space, place_of(prefix, name, cell), number_of(cell)))
