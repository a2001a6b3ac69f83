"""A server's knowledge of the writes of its objects (V15).

It counts its writes, and remembers the object of each of the last ones. An entry is current if it
is as of the last known write of its object or later, and as of the floor of its range or later: the
floor stands for all unknown writes, whether they were forgotten or made by another owner.
"""

from collections.abc import Iterable
from typing import Annotated, Final, TypeAlias

import msgspec

from tenure.base.keys import Key
from tenure.base.numbers import Number
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.volume.limits import WRITES_PER_CHUNK
from tenure.protocol.volume.messages import ObjectKey

Version: TypeAlias = tuple[Number, Number]
"""A lease number, and a count of writes."""
IN_A_CHUNK: Final = msgspec.Meta(max_length=WRITES_PER_CHUNK)
NOTHING: Version = (0, 0)


class KnownWrites(msgspec.Struct, frozen=True, array_like=True):
    """The floors and the last writes of a range, as they travel with its state."""

    floors: Annotated[tuple[tuple[KeyRange, Version], ...], IN_A_CHUNK]
    writes: Annotated[tuple[tuple[ObjectKey, Version], ...], IN_A_CHUNK]


class Versions:
    """The last writes, and the floors of ranges."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0
        self._writes: dict[Key, Version] = {}
        self._floors: RangeMap[Version] = RangeMap(NOTHING)

    def __len__(self) -> int:
        return len(self._writes)

    def written(self, numbers: Iterable[tuple[Key, int]]) -> None:
        """Note that a write of all these keys has ended, whatever its outcome. Each is known under
        the number of its own range, with which entries are compared.
        """
        self.count += 1
        for key, number in numbers:
            # To the end: the oldest is forgotten first.
            self._writes.pop(key, None)
            self._writes[key] = (number, self.count)
        while len(self._writes) > self.most:
            self.forget(next(iter(self._writes)))

    def forget(self, key: Key) -> None:
        """Forget this write: the floor of its range stands for it."""
        version = self._writes.pop(key)
        for piece, floor in list(self._floors.within(self._floors.range_at(key))):
            # The floor stands for it from here on, so it must not lie below (V15).
            if floor < version:
                self._floors.assign(piece, version)

    def last(self, key: Key) -> Version:
        """The version that an entry of the key must have reached to be current."""
        return max(self._writes.get(key, NOTHING), self._floors[key])

    def is_current(self, key: Key, version: Version) -> bool:
        """Whether an entry that was current as of `version`, in this history, still is."""
        return version >= self.last(key)

    # --- ranges that come and go ---

    def begin(self, key_range: KeyRange, number: int, known: KnownWrites | None) -> None:
        """Begin to serve a range under `number`. Without knowledge of its writes, its floor is this
        number and the present count: it may have been served here under that number before.
        """
        self.end(key_range)
        # Nothing is known of writes elsewhere: what was read before is not current (V15).
        self._floors.assign(key_range, (number, self.count))
        if known is None:
            return
        for piece, floor in known.floors:
            common = piece.intersection(key_range)
            if common is not None:
                self._floors.assign(common, floor)
        for key, version in known.writes:
            if key in key_range:
                self._writes[key] = version
        while len(self._writes) > self.most:
            self.forget(next(iter(self._writes)))

    def end(self, key_range: KeyRange) -> None:
        """Forget the writes of a range."""
        for key in [key for key in self._writes if key in key_range]:
            del self._writes[key]
        self._floors.assign(key_range, NOTHING)

    def known(self, key_range: KeyRange) -> KnownWrites:
        """The knowledge that the next owner of a range is told with its state."""
        writes = tuple((key, v) for key, v in self._writes.items() if key in key_range)
        return KnownWrites(tuple(self._floors.within(key_range)), writes)

    def clear(self) -> None:
        """Forget everything. The count goes on, so that no count comes twice."""
        self._writes.clear()
        self._floors = RangeMap(NOTHING)

    def invariants(self) -> None:
        """No write is later than the count of its number says, and no more writes are kept than
        allowed.
        """
        assert len(self._writes) <= self.most
        assert list(self._floors.within(WHOLE))
