"""Merging: what a replica does with a state that it receives. Read, decide, write, in one step.

(`admission` is for writes.) Of two entries the greater counts, wherever the state comes from and
however often it comes: so states may be doubled, late, and out of order.

A replica also takes entries that a marker hides, though nobody sees them. Replicas then end with
the same entries, whatever came first, and their digests say so (R27).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from tenure.protocol.replication.row.admission import Doomed, MutationAdmitted, Put, entry_digest
from tenure.protocol.replication.row.cells import is_live, packed_time
from tenure.protocol.replication.row.layout import FamilyShape, number_of, parted, place_of
from tenure.protocol.replication.row.records import NOTHING, RowRecord
from tenure.protocol.replication.row.states import RowState, is_marker
from tenure.protocol.replication.row.versions import version_of

Found = tuple[str, bytes, bytes]
"""A family, a whole key, and what is kept there."""


class WantsWhole(msgspec.Struct, frozen=True):
    """The replica can take nothing: it needs the whole row."""


class StateMerge:
    """A state of one row on its way into a replica."""

    def __init__(
        self,
        shapes: Mapping[str, FamilyShape],
        spaces: Mapping[str, str],
        at: bytes,
        state: RowState,
    ) -> None:
        self._shapes = shapes
        self._spaces = spaces
        self._at = at
        self._state = state
        self._puts: list[Put] = []
        self._doomed: list[Doomed] = []
        self._changed = 0
        self._has_marked = False
        """Whether a family or a super column has got a marker."""

    def wanted(self) -> Iterable[tuple[str, list[bytes]]]:
        """The entries that `admit` must be given, by family."""
        keys: dict[str, list[bytes]] = {}
        for family, key, _ in self._state.entries:
            if family in self._shapes:
                keys.setdefault(family, []).append(self._at + key)
        return keys.items()

    def replaces(self, record: RowRecord) -> bool:
        """Whether it settles the row anew: then `admit` must be given all entries of the row."""
        return self._state.adoption > (record.adopted, record.attempt)

    def admit(
        self,
        record: RowRecord,
        found: Mapping[str, Sequence[bytes | None]],
        everything: Iterable[Found],
        sealed: int,
    ) -> MutationAdmitted | WantsWhole:
        """Decide. `everything` is all that the row has, where the state `replaces` it."""
        state = self._state
        replaces = self.replaces(record)
        # What it does not mention must go, and a part does not say what it leaves out (R21).
        if replaces and not state.is_whole:
            return WantsWhole()
        if replaces:
            self._replace(everything, state)
            marker = self._settled(record.marker, state.marker)
        else:
            marker = record.marker
            if self._counts(state.marker, record, sealed):
                marker = max(marker, state.marker)
            self._merge(record, found, sealed)
        if marker > record.marker:
            self._doomed.append(Doomed(packed_time(marker), "", self._at, covers=True))
        # Never lower, although no fence stops a mend: later writes must meet it (R12, R20).
        fence, journal = max((record.fence, record.journal), (state.fence, state.journal))
        is_fence_kept = (fence, journal) == (record.fence, record.journal)
        after = msgspec.structs.replace(
            record,
            newest=max(record.newest, state.newest),
            marker=marker,
            digest=(int.from_bytes(record.digest) ^ self._changed).to_bytes(16),
            fence=fence,
            journal=journal,
            adopted=state.adopted if replaces else record.adopted,
            attempt=state.attempt if replaces else record.attempt,
            promised=record.promised if is_fence_kept else 0,
            is_unmarked=record.is_unmarked and not self._has_marked,
        )
        return MutationAdmitted(self._puts, after, self._doomed, self._changed)

    def _counts(self, entry: bytes, record: RowRecord, sealed: int) -> bool:
        if version_of(entry).time <= sealed:
            return False  # what is said there is known, or it is wrong (R12)
        return self._state.is_known_to_count(entry, (record.adopted, record.attempt), 0)

    def _merge(
        self, record: RowRecord, found: Mapping[str, Sequence[bytes | None]], sealed: int
    ) -> None:
        """Take what is greater."""
        before: dict[str, Iterator[bytes | None]] = {
            family: iter(entries) for family, entries in found.items()
        }
        for family, key, entry in self._state.entries:
            if family not in before:
                continue
            kept = next(before[family])
            if (kept is None or kept < entry) and self._counts(entry, record, sealed):
                self._put(family, self._at + key, kept, entry)

    def _replace(self, everything: Iterable[Found], state: RowState) -> None:
        """Take all of it; what former owners wrote, and what it does not have, goes."""
        has = {(family, key): entry for family, key, entry in everything}
        told = {(family, self._at + key): entry for family, key, entry in state.entries}
        for place, kept in has.items():
            entry = told.get(place)
            after = self._settled(kept, entry)
            if after != kept:
                self._put(*place, kept, None if after == NOTHING else after)
        for place, entry in told.items():
            if place not in has and place[0] in self._shapes:
                self._put(*place, None, entry)

    def _settled(self, kept: bytes, told: bytes | None) -> bytes:
        """Keep what the present owner wrote; of all else what was told counts."""
        # Written since that adoption: it cannot have been in what was settled (R21).
        if version_of(kept).number >= self._state.adopted:
            return max(kept, told or NOTHING)
        return told or NOTHING

    def _put(self, family: str, key: bytes, before: bytes | None, after: bytes | None) -> None:
        space = self._spaces[family]
        self._puts.append((space, key, after))
        if before is not None:
            self._changed ^= entry_digest(family, key, before)
        if after is not None:
            self._changed ^= entry_digest(family, key, after)
            if is_marker(after):
                self._has_marked = True
                self._doomed.append(Doomed(packed_time(after), family, key, covers=True))
            elif not is_live(after, NOTHING):
                self._doomed.append(Doomed(packed_time(after), family, key, covers=False))
        shape = self._shapes[family]
        if shape.order == "time":
            section, _, name = parted(shape, self._at, key)
            if before is not None and not is_marker(before):
                self._puts.append((space, place_of(section, name, before), None))
            if after is not None and not is_marker(after):
                self._puts.append((space, place_of(section, name, after), number_of(after)))
