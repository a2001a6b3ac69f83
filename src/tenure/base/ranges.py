"""Ranges of keys: `[start, end)`, where `end` None means that the range has no upper end."""

from collections.abc import Iterable, Iterator

import msgspec

from tenure.base.keys import Key
from tenure.base.names import shown
from tenure.errors import KeyTypeError

LOWEST: Key = b""


class KeyRange(msgspec.Struct, frozen=True, order=False, array_like=True, gc=False):
    """The keys from `start` up to, but not including, `end`; to the end of the space if None."""

    start: Key = LOWEST
    end: Key | None = None

    def __post_init__(self) -> None:
        start, end = self.start, self.end
        if not isinstance(start, bytes) or not (end is None or isinstance(end, bytes)):
            raise KeyTypeError(
                f"a range is from bytes to bytes, or to None, not from {shown(start)} to "
                f"{shown(end)}; `key(...)` of an owner or a lookup gives the bytes of a key"
            )
        if end is not None and end <= start:
            msg = f"a range ends after its start: start {shown(start)}, end {shown(end)}"
            raise ValueError(msg)

    def __contains__(self, key: Key) -> bool:
        return self.start <= key and (self.end is None or key < self.end)

    def __str__(self) -> str:
        return f"[{self.start.hex() or '-'}, {'-' if self.end is None else self.end.hex()})"

    def covers(self, other: "KeyRange") -> bool:
        """Whether every key of `other` lies in this range."""
        if other.start < self.start:
            return False
        return self.end is None or (other.end is not None and other.end <= self.end)

    def overlaps(self, other: "KeyRange") -> bool:
        """Whether any key is in both."""
        return (self.end is None or other.start < self.end) and (
            other.end is None or self.start < other.end
        )

    def intersection(self, other: "KeyRange") -> "KeyRange | None":
        """The keys in both, or None if no key is."""
        start = max(self.start, other.start)
        end = lower_end(self.end, other.end)
        return KeyRange(start, end) if end is None or start < end else None


WHOLE = KeyRange(LOWEST, None)


def lower_end(a: Key | None, b: Key | None) -> Key | None:
    """The lower of two range ends, None being above every key."""
    if a is None:
        return b
    return a if b is None else min(a, b)


def in_words(count: int) -> str:
    """The count of ranges, as a sentence has it."""
    return "1 range" if count == 1 else f"{count} ranges"


def gaps(wanted: KeyRange, sorted_ranges: Iterable[KeyRange]) -> Iterator[KeyRange]:
    """The parts of `wanted` that lie in none of `sorted_ranges`, in order."""
    position: Key = wanted.start
    for candidate in sorted_ranges:
        common = candidate.intersection(wanted)
        if common is None:
            continue
        if position < common.start:
            yield KeyRange(position, common.start)
        if common.end is None:
            return
        position = max(position, common.end)
    if wanted.end is None or position < wanted.end:
        yield KeyRange(position, wanted.end)
