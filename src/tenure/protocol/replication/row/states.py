"""States: what a replica has of a row, as one replica tells another (R12).

Mends, repair, seals and adoption do not write: they carry what was written. So they carry entries
as they are kept, with tombstones and markers, and the receiver keeps the greater of two entries.
They draw no times, and no fence stops them.

Two things bound what may be taken. Up to the *sealed* horizon a replica knows everything already: a
state that says something different there was made before the seal, and the tombstone that it lacks
may be gone by now. So that part is ignored. And a row that was *adopted* was settled by its owner:
writes of former owners that the adoption did not find must never reappear (R21). So a state names
its adoption. From a state of an earlier adoption, only the writes of the present owner itself
count. A state of a later one replaces what former owners wrote, and must therefore have the whole
row. What an adoption has settled counts whatever the horizon: an owner that adopted the row without
knowing of a seal has all the same what was sealed, and nobody else may say so any longer.
"""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import msgspec

from tenure.base.numbers import Number
from tenure.protocol.replication.row.message_limits import (
    OF_ENTRIES,
    EntryKey,
    FamilyName,
    Kept,
    Marker,
)
from tenure.protocol.replication.row.records import NOTHING
from tenure.protocol.replication.row.versions import VERSION_BYTES, version_of

StateEntry: TypeAlias = tuple[FamilyName, EntryKey, Kept]
"""A family, a key behind the position of its row, and a cell or marker. Places in the order of time
follow from cells, so they are left out."""


class RowState(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The state of a row on a replica: all of it, or some entries."""

    entries: Annotated[tuple[StateEntry, ...], OF_ENTRIES] = ()
    """Sorted."""
    marker: Marker = NOTHING
    """The row's own."""
    newest: Marker = NOTHING
    """The greatest version that the row ever had, there or anywhere that this was merged from."""
    fence: Number = 0
    journal: Number = 0
    adopted: Number = 0
    attempt: Number = 0
    sealed: Number = 0
    """The sealed horizon of who says so: what is not above it is known to be all."""
    is_whole: bool = False

    @property
    def size(self) -> int:
        """The bytes of all entries and their keys."""
        return sum(len(key) + len(entry) for _, key, entry in self.entries)

    @property
    def adoption(self) -> tuple[int, int]:
        """The adoption by which it was settled last."""
        return self.adopted, self.attempt

    def is_known_to_count(self, entry: bytes, adoption: tuple[int, int], sealed: int) -> bool:
        """Whether what this says in `entry` counts for a row of this adoption and horizon."""
        version = version_of(entry)
        if version.number < adoption[0]:
            return self.adoption >= adoption
        return self.sealed >= sealed or version.time > sealed


def is_marker(entry: bytes) -> bool:
    """Whether an entry is a marker: a version and nothing else."""
    return len(entry) == VERSION_BYTES


def merged(states: Sequence[RowState]) -> RowState:
    """The state of a row that all of these tell together; whole if all are."""
    adoption = max(state.adoption for state in states)
    sealed = max(state.sealed for state in states)
    fence, journal = max((state.fence, state.journal) for state in states)
    found: dict[tuple[str, bytes], bytes] = {}
    marker = NOTHING
    for state in states:
        if state.is_known_to_count(state.marker, adoption, sealed):
            marker = max(marker, state.marker)
        for family, key, entry in state.entries:
            if state.is_known_to_count(entry, adoption, sealed):
                place = family, key
                found[place] = max(entry, found.get(place, b""))
    return RowState(
        entries=tuple((*place, found[place]) for place in sorted(found)),
        marker=marker,
        newest=max(state.newest for state in states),
        fence=fence,
        journal=journal,
        adopted=adoption[0],
        attempt=adoption[1],
        sealed=sealed,
        is_whole=all(state.is_whole for state in states),
    )


def lacks(state: RowState, whole: RowState) -> bool:
    """Whether who has `state` lacks anything of `whole`, into which it was merged."""
    if state.adoption < whole.adoption or state.fence < whole.fence:
        return True
    if state.marker < whole.marker or state.newest < whole.newest:
        return True
    has = set(state.entries)
    return any(entry not in has for entry in whole.entries)
