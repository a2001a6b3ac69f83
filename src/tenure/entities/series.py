"""`Series`: a collection of items in the order in which they were added.

Each has a number, from 1 on, and the time at which it was added. Neither goes back, so the order is
that of both, and a time is looked up among the numbers by halves.
"""

from datetime import UTC, datetime
from struct import Struct
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from tenure.base.names import shown
from tenure.entities.collection import FIRST, Collection, ItemRead, check_page, span_of, token_of
from tenure.errors import ConfigurationError, UsageError
from tenure.protocol.entity.items import GONE, ItemSpan

if TYPE_CHECKING:
    from tenure.entities.entity import Entity
    from tenure.entities.entity_turn import EntityTurn

T = TypeVar("T")
_time = Struct(">d")
PLACE_BYTES = 8
LAST = (1 << 63) - 1


class SeriesPage(list[T], Generic[T]):
    """Items of a series. Pass `next` to `page` for those that follow; it is None after the last."""

    __slots__ = ("next", "numbers", "times")

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[int] = []
        """The number of each item."""
        self.times: list[datetime] = []
        """When each item was added."""
        self.next: str | None = None


class Series(Collection, Generic[T]):
    """Items in the order in which they were added, in a class of entities: `history =
    Series(Message)`. They are kept with the state, in the same commit, but apart from it, and read
    in pages. With `most`, the oldest go when there are more.
    """

    @overload
    def __init__(self, item: type[T], *, most: int | None = ...) -> None: ...
    @overload
    def __init__(self, item: Any, *, most: int | None = ...) -> None: ...  # noqa: ANN401  # a union

    def __init__(self, item: Any, *, most: int | None = None) -> None:
        super().__init__(item)
        if most is not None and (type(most) is not int or most < 1):
            raise ConfigurationError(f"most is a number of items from 1 on, not {shown(most)}")
        self.most = most

    def span(self, last: int) -> ItemSpan:
        """Where its items are if `last` is the number of the last one. A store may have later items
        already, and older ones than a smaller `most` leaves.
        """
        first = 1 if self.most is None else max(last - self.most + 1, 1)
        return ItemSpan(_place(first), _place(last + 1))

    @overload
    def __get__(self, entity: None, owner: type, /) -> "Series[T]": ...
    @overload
    def __get__(self, entity: "Entity[Any]", owner: type, /) -> "SeriesView[T]": ...

    def __get__(self, entity: "Entity[Any] | None", owner: type, /) -> "Series[T] | SeriesView[T]":
        return self if entity is None else SeriesView(entity._turn, self)  # noqa: SLF001  # ours


class SeriesView(Generic[T]):
    """The series of one key, as a turn sees it."""

    __slots__ = ("_series", "_turn")

    def __init__(self, turn: "EntityTurn", series: Series[T]) -> None:
        self._turn = turn
        self._series = series

    @property
    def last(self) -> int:
        """The number of the item that was added last; 0 before the first."""
        return self._turn.items.number(self._series.name)

    def add(self, item: T) -> int:
        """Add an item, which is kept when the call returns. Returns its number. Raises
        ValueTypeError if it cannot be kept.
        """
        series, items = self._series, self._turn.items_to_change("add to a series")
        data = series.codec.encode(series.label, item)
        number = items.number(series.name) + 1
        items.change(series.name, _place(number), _time.pack(self._turn.now()) + data, number)
        if series.most is not None and number > series.most:
            items.change(series.name, _place(number - series.most), GONE, number)
        return number

    def remove(self, number: int) -> None:
        """Remove the item of this number, if there is one."""
        series, items = self._series, self._turn.items_to_change("remove from a series")
        last = items.number(series.name)
        if _checked_number(number) <= last:
            items.change(series.name, _place(number), GONE, last)

    def get(self, number: int) -> ItemRead[T | None]:
        """The item of this number, or None."""
        _checked_number(number)
        return ItemRead(self._turn, self._get(number))

    async def _get(self, number: int) -> T | None:
        page, _ = await self._read(ItemSpan(_place(number), _place(number + 1)), 1)
        return page[0] if page else None

    def page(
        self,
        first: int = FIRST,
        *,
        newest: bool = False,
        after: int | datetime | None = None,
        before: int | datetime | None = None,
        next: str | None = None,  # noqa: A002  # as a page calls it
    ) -> ItemRead[SeriesPage[T]]:
        """The first items, or with `newest` the last, in this direction. `after` and `before` leave
        out what is not after that number or time, or not before it. `next` goes on after a page.
        """
        check_page(first, next, newest=newest, after=after, before=before)
        span = None if next is None else span_of(self._turn, self._series, next)
        return ItemRead(self._turn, self._page(first, span, newest, after, before))

    async def _page(
        self,
        first: int,
        span: ItemSpan | None,
        newest: bool,  # noqa: FBT001  # as it was given
        after: object,
        before: object,
    ) -> SeriesPage[T]:
        if span is None:
            low = 0 if after is None else await self._number(after, is_after=True)
            high = LAST if before is None else await self._number(before, is_after=False)
            span = ItemSpan(_place(low), _place(high), newest)
        page, rest = await self._read(span, first)
        page.next = token_of(self._turn, self._series.name, rest)
        return page

    async def _read(self, span: ItemSpan, first: int) -> tuple[SeriesPage[T], ItemSpan | None]:
        series = self._series
        low, high, _ = series.span(self.last)
        assert high is not None
        clipped = ItemSpan(max(span.low, low), min(span.high or high, high), span.reverse)
        found, rest = await self._turn.items.page(series.name, clipped, first)
        page: SeriesPage[T] = SeriesPage()
        for place, data in found:
            number, added, item = series_item(place, data)
            page.append(series.codec.decode(series.label, item))
            page.numbers.append(number)
            page.times.append(added)
        return page, rest

    async def _number(self, bound: object, *, is_after: bool) -> int:
        """The first number after a bound, or not before it."""
        if not isinstance(bound, datetime):
            return min(_checked_number(bound) + is_after, LAST)
        if bound.tzinfo is None:
            raise UsageError(f"{bound!r} has no time zone: write datetime.now(UTC), or add one")
        low, high = 1, self.last + 1
        while low < high:
            middle = (low + high) // 2
            page, _ = await self._read(ItemSpan(_place(middle), _place(high)), 1)
            if not page or page.times[0] > bound or (page.times[0] == bound and not is_after):
                high = middle
            else:
                low = page.numbers[0] + 1
        return low


def _place(number: int) -> bytes:
    return number.to_bytes(PLACE_BYTES)


def series_parts(place: bytes, data: bytes) -> tuple[int, float, bytes]:
    """The number of an item that is kept, when it was added, in seconds, and what was."""
    return int.from_bytes(place), _time.unpack_from(data)[0], data[_time.size :]


def series_item(place: bytes, data: bytes) -> tuple[int, datetime, bytes]:
    """The same, with a datetime."""
    number, added, item = series_parts(place, data)
    return number, datetime.fromtimestamp(added, UTC), item


def kept_item(number: int, added: float, item: bytes) -> tuple[bytes, bytes]:
    """The place of an item, and what is kept there."""
    return _place(number), _time.pack(added) + item


def _checked_number(number: object) -> int:
    if type(number) is not int or not 0 <= number < LAST:
        raise UsageError(
            f"the number of an item is from 1 on, or a bound a datetime: {shown(number)}"
        )
    return number
