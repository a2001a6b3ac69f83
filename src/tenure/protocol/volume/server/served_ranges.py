"""The ranges of a server, each with its number and the times from which it may be read
and written.
"""

import msgspec

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange


class Serving(msgspec.Struct, frozen=True):
    """The number under which a range is served, and the time from which it is served."""

    number: int
    writes_from: Instant = Instant(0)
    """When the quiet is over: until then readers of an earlier server may hit (V13, V16)."""
    reads_from: Instant = Instant(0)


class ServedRanges:
    """The ranges that a server serves."""

    def __init__(self, *, is_strong: bool) -> None:
        self.is_strong = is_strong
        self._ranges: RangeMap[Serving | None] = RangeMap(None)

    def __getitem__(self, key: Key) -> Serving | None:
        return self._ranges[key]

    def begin(self, key_range: KeyRange, serving: Serving) -> None:
        """Serve a range."""
        self._ranges.assign(key_range, serving)

    def end(self, key_range: KeyRange) -> None:
        """Serve a range no longer."""
        self._ranges.assign(key_range, None)

    def clear(self) -> None:
        """Serve nothing."""
        self._ranges = RangeMap(None)

    def within(self, key_range: KeyRange) -> list[tuple[KeyRange, Serving]]:
        """The pieces of a range that are served."""
        pieces = self._ranges.within(key_range)
        return [(piece, serving) for piece, serving in pieces if serving is not None]

    def is_under(self, key_range: KeyRange, number: int) -> bool:
        """Whether the whole range is served under that number."""
        return all(
            serving is not None and serving.number == number
            for _, serving in self._ranges.within(key_range)
        )

    def numbers_of(self, keys: tuple[Key, ...]) -> tuple[tuple[Key, int], ...]:
        """The keys among these that are served, each with its number."""
        return tuple((key, each.number) for key in keys if (each := self[key]))

    def number_of(self, keys: tuple[Key, ...]) -> int:
        """The number under which these keys are written together: the lowest of theirs (V14)."""
        return min((number for _, number in self.numbers_of(keys)), default=0)

    def quiet_until(self, keys: tuple[Key, ...]) -> Instant:
        """When the quiet of these keys ends: from then on they may be written (V13)."""
        if not self.is_strong:
            return Instant(0)
        servings = [self[key] for key in keys]
        return max((each.writes_from for each in servings if each), default=Instant(0))

    def reads_from(self, key: Key) -> Instant:
        """The time from which the key may be read (V13)."""
        serving = self[key]
        return Instant(0) if serving is None else serving.reads_from
