"""The horizons that a node has promised and sealed, by range of the ring (R24, R25).

Its changes are entries of a batch: they hold when the batch is written, and this module believes
them after `load`.
"""

from collections.abc import Sequence

import msgspec

from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.columns.engines.contract import Entry, StorageEngine
from tenure.columns.replica import META
from tenure.protocol.replication.row.copies import RangeHorizon

_PROMISED = b"promised"
_SEALED = b"sealed"


class RangeHorizons:
    def __init__(self, engine: StorageEngine) -> None:
        self._engine = engine
        self.promised: RangeMap[int] = RangeMap(0)
        """The time up to which no write is taken, by position on the ring."""
        self.sealed: RangeMap[int] = RangeMap(0)
        """The time up to which everything is known."""

    def load(self) -> None:
        for key, horizons in ((_PROMISED, self.promised), (_SEALED, self.sealed)):
            [kept] = self._engine.get(META, [key])
            for start, end, time in msgspec.msgpack.decode(kept) if kept else ():
                horizons.assign(KeyRange(start, end), time)

    def within(self, key_range: KeyRange) -> tuple[RangeHorizon, ...]:
        """The promise and the seal of a range, if there are any."""
        found = []
        for piece, promised in self.promised.within(key_range):
            for part, sealed in self.sealed.within(piece):
                if promised or sealed:
                    found.append(RangeHorizon(part, promised, sealed))
        return tuple(found)

    def raised(self, horizons: Sequence[RangeHorizon]) -> list[Entry]:
        """The entries to write so that all of these hold."""
        if not horizons:
            return []
        promised, sealed = self.promised.copy(), self.sealed.copy()
        for each in horizons:
            _raise(promised, each.range, max(each.promised, each.sealed))
            _raise(sealed, each.range, each.sealed)
        return [_kept(_PROMISED, promised), _kept(_SEALED, sealed)]

    def forgotten(self, key_range: KeyRange) -> list[Entry]:
        """The entries to write so that nothing is promised or sealed in a range."""
        promised, sealed = self.promised.copy(), self.sealed.copy()
        promised.assign(key_range, 0)
        sealed.assign(key_range, 0)
        return [_kept(_PROMISED, promised), _kept(_SEALED, sealed)]


def _kept(key: bytes, horizons: RangeMap[int]) -> Entry:
    pieces = [(piece.start, piece.end, time) for piece, time in horizons]
    return META, key, msgspec.msgpack.encode(pieces)


def _raise(horizons: RangeMap[int], key_range: KeyRange, time: int) -> None:
    for piece, before in list(horizons.within(key_range)):
        if before < time:
            horizons.assign(piece, time)
