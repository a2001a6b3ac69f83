"""Items: what an entity keeps beside its state because it is more than fits there, by place.

A place is bytes, and items are in their order. They lie in layers: what a turn has changed lies
over what the envelope has, and that over what a store has. The uppermost layer that knows a place
counts, so a layer must be able to say that an item is gone.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter
from typing import NamedTuple, TypeAlias

GONE = b""
"""Says that there is no item at a place. No item is as short as that."""
PART_ITEMS = 64
Item: TypeAlias = tuple[bytes, bytes]
"""A place, and what is there."""
Part: TypeAlias = tuple[Item, ...]
place_of = itemgetter(0)


class ItemSpan(NamedTuple):
    """A span of places, and the direction in which they are read."""

    low: bytes = b""
    """The first place."""
    high: bytes | None = None
    """The place after the last; None if there is no bound."""
    reverse: bool = False

    def __contains__(self, place: object) -> bool:
        return (
            isinstance(place, bytes)
            and self.low <= place
            and (self.high is None or place < self.high)
        )

    @property
    def is_empty(self) -> bool:
        """Whether no place is in it."""
        return self.high is not None and self.high <= self.low

    def after(self, place: bytes) -> "ItemSpan":
        """The rest of the span when everything up to `place` is read."""
        if self.reverse:
            return self._replace(high=place)
        return self._replace(low=place + b"\0")

    def up_to(self, place: bytes) -> "ItemSpan":
        """The part of the span that ends with `place`."""
        if self.reverse:
            return self._replace(low=place)
        return self._replace(high=place + b"\0")

    def of(self, layer: Mapping[bytes, bytes]) -> Iterable[Item]:
        """The items of a layer in the span, in its direction."""
        if isinstance(layer, ItemTable):
            return layer.within(self)
        found = [each for each in layer.items() if each[0] in self]
        return sorted(found, key=place_of, reverse=self.reverse)


class FoundItems(NamedTuple):
    """What a store has in a span: its first items, or all."""

    items: Sequence[Item]
    is_last: bool
    """Whether nothing follows."""


NO_MORE = FoundItems((), is_last=True)


def merged(layers: Iterable[Iterable[Item]], *, reverse: bool) -> Iterator[Item]:
    """The items of all layers, of which the uppermost comes first."""
    last = None
    # At one place `merge` yields what the first iterable has first.
    for place, data in merge(*layers, key=place_of, reverse=reverse):
        if place != last:
            last = place
            if data != GONE:
                yield place, data


class ItemTable(Mapping[bytes, bytes]):
    """Items by place, in order. A table never changes, because an envelope never does: a change
    copies the parts that it touches, and shares the others.
    """

    __slots__ = ("_count", "_firsts", "_parts", "size")

    def __init__(self, parts: tuple[Part, ...] = (), count: int = 0, size: int = 0) -> None:
        self._parts = parts
        self._firsts = [part[0][0] for part in parts]
        self._count = count
        self.size = size
        """The bytes of all places and items."""

    @classmethod
    def of(cls, items: Mapping[bytes, bytes]) -> "ItemTable":
        """The table of these items."""
        return items if isinstance(items, cls) else cls().after(items, keeps_gone=True)

    def __getitem__(self, place: bytes) -> bytes:
        if self._parts:
            part = self._parts[self._part_of(place)]
            at = bisect_left(part, place, key=place_of)
            if at < len(part) and part[at][0] == place:
                return part[at][1]
        raise KeyError(place)

    def __iter__(self) -> Iterator[bytes]:
        return (place for part in self._parts for place, _ in part)

    def __len__(self) -> int:
        return self._count

    def plain(self) -> dict[bytes, bytes]:
        """All of them in one dict, which encoders take."""
        return {place: data for part in self._parts for place, data in part}

    def within(self, span: ItemSpan) -> Iterator[Item]:
        """The items in a span, in its direction."""
        if span.is_empty or not self._parts:
            return
        first = self._part_of(span.low)
        last = len(self._parts) if span.high is None else bisect_left(self._firsts, span.high)
        parts = self._parts[first:last]
        for part in reversed(parts) if span.reverse else parts:
            for each in reversed(part) if span.reverse else part:
                if each[0] in span:
                    yield each

    def after(self, changed: Mapping[bytes, bytes], *, keeps_gone: bool) -> "ItemTable":
        """The table with these items. What is gone leaves nothing behind, unless the table lies
        over another layer, which may have it.
        """
        touched: dict[int, dict[bytes, bytes]] = {}
        for place, data in changed.items():
            touched.setdefault(self._part_of(place), {})[place] = data
        parts, count, size = list(self._parts), self._count, self.size
        for i in sorted(touched, reverse=True):  # a part that is divided moves those after it
            before = dict(parts[i]) if parts else {}
            after = {**before, **touched[i]}
            if not keeps_gone:
                after = {place: data for place, data in after.items() if data != GONE}
            parts[i : i + 1] = _divided(sorted(after.items()))
            count += len(after) - len(before)
            size += _size(after) - _size(before)
        return ItemTable(tuple(parts), count, size)

    def without(self, settled: Mapping[bytes, bytes]) -> "ItemTable":
        """The table without those that another layer has as they are here."""
        left = {place: data for place, data in self.plain().items() if settled.get(place) != data}
        return ItemTable().after(left, keeps_gone=True)

    def _part_of(self, place: bytes) -> int:
        return max(bisect_right(self._firsts, place) - 1, 0)


def _divided(items: list[Item]) -> list[Part]:
    number = max(len(items) // PART_ITEMS, 1)
    length = -(-len(items) // number)
    return [tuple(items[i : i + length]) for i in range(0, len(items), length or 1)]


def _size(items: Mapping[bytes, bytes]) -> int:
    return sum(map(len, items)) + sum(map(len, items.values()))
