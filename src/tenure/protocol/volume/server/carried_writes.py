"""Knowledge of the writes of ranges that are not served here, kept beside their state (V15).

It came with the state of a range that is on its way here; or it remains from a range that was
handed over, and may come back. A grant that names the state uses it. Without it, caches fetch their
older entries again, and nothing more is lost.
"""

from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.limits import KNOWN_WRITES
from tenure.protocol.volume.server.versions import KnownWrites, Version


class Carried:
    """The knowledge about one range, as the lease of a number left it."""

    def __init__(self, key_range: KeyRange, number: int) -> None:
        self.range = key_range
        self.number = number
        self.left = RangeMap.of([(key_range, True)], default=False)
        """The parts of the range that are neither granted yet nor forgotten."""
        self.floors: list[tuple[KeyRange, Version]] = []
        self.writes: list[tuple[Key, Version]] = []


class CarriedWrites:
    """All such knowledge of one owner's server. It may be told too much, and keeps about twice as
    much as that server could know from its own writes.
    """

    def __init__(self, most: int = KNOWN_WRITES) -> None:
        self._most = most
        self._carried: list[Carried] = []

    def __len__(self) -> int:
        return sum(len(each.floors) + len(each.writes) for each in self._carried)

    def add(self, key_range: KeyRange, number: int, known: KnownWrites) -> None:
        """Add some of the knowledge about a range. The oldest knowledge is dropped if there is too
        much.
        """
        for carried in self._carried:
            if (carried.range, carried.number) == (key_range, number):
                break
        else:
            carried = Carried(key_range, number)
            self._carried.append(carried)
        carried.floors += known.floors
        carried.writes += known.writes
        while len(self) > 2 * self._most:
            del self._carried[0]

    def forget(self, key_range: KeyRange, number: int) -> None:
        """Forget the knowledge that belongs to the state that the lease of `number` left of a
        range.
        """
        for carried in self._carried:
            if carried.number == number:
                carried.left.assign(key_range, value=False)
        self._drop_empty()

    def take(self, key_range: KeyRange, number: int) -> KnownWrites | None:
        """Return the knowledge about a range that is granted with the state that the lease of
        `number` left, 0 for none. None if there is no such knowledge. No other state of the range
        is granted from here on.
        """
        floors: list[tuple[KeyRange, Version]] = []
        writes: list[tuple[Key, Version]] = []
        for carried in self._carried:
            if carried.number == number:
                _add_common(carried, key_range, floors)
                writes += [
                    (key, version)
                    for key, version in carried.writes
                    if key in key_range and carried.left[key]
                ]
            carried.left.assign(key_range, value=False)
        self._drop_empty()
        return KnownWrites(tuple(floors), tuple(writes)) if floors else None

    def _drop_empty(self) -> None:
        self._carried = [each for each in self._carried if any(each.left.values())]


def _add_common(
    carried: Carried, key_range: KeyRange, floors: list[tuple[KeyRange, Version]]
) -> None:
    for left, is_left in carried.left.within(key_range):
        if is_left:
            floors += [
                (common, floor)
                for piece, floor in carried.floors
                if (common := piece.intersection(left)) is not None
            ]
