"""`Mapping`: a collection of values by name, in the order of their names."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from tenure.base.names import shown
from tenure.entities.collection import FIRST, Collection, ItemRead, check_page, span_of, token_of
from tenure.errors import ConfigurationError, UsageError
from tenure.protocol.entity.items import GONE, ItemSpan

if TYPE_CHECKING:
    from tenure.entities.entity import Entity
    from tenure.entities.entity_turn import EntityTurn

K = TypeVar("K", bound=str | int)
V = TypeVar("V")
MOST_NAME = 200
"""The most characters of a name."""
INT_BYTES = 8
LEAST_INT = -(1 << 63)


class MappingPage(dict[K, V], Generic[K, V]):
    """Values by name. Pass `next` to `page` for those that follow; it is None after the last."""

    __slots__ = ("next",)

    def __init__(self) -> None:
        super().__init__()
        self.next: str | None = None


class Mapping(Collection, Generic[K, V]):
    """Values by name, in a class of entities: `members = Mapping(str, Member)`. Names are of type
    str or int. They are kept with the state, in the same commit, but apart from it.
    """

    @overload
    def __init__(self, name: type[K], value: type[V]) -> None: ...
    @overload
    def __init__(self, name: type[K], value: Any) -> None: ...  # noqa: ANN401  # such as a union

    def __init__(self, name: type[K], value: Any) -> None:
        super().__init__(value)
        if name is not str and name is not int:
            raise ConfigurationError(f"the names of a Mapping are str or int, not {shown(name)}")
        self.names = name
        self.place: Callable[[object], bytes] = _of_text if name is str else _of_int

    def named(self, place: bytes) -> Any:  # noqa: ANN401  # K
        """The name at a place."""
        return place.decode() if self.names is str else int.from_bytes(place) + LEAST_INT

    @overload
    def __get__(self, entity: None, owner: type, /) -> "Mapping[K, V]": ...
    @overload
    def __get__(self, entity: "Entity[Any]", owner: type, /) -> "MappingView[K, V]": ...

    def __get__(
        self, entity: "Entity[Any] | None", owner: type, /
    ) -> "Mapping[K, V] | MappingView[K, V]":
        return self if entity is None else MappingView(entity._turn, self)  # noqa: SLF001  # ours


class MappingView(Generic[K, V]):
    """The mapping of one key, as a turn sees it."""

    __slots__ = ("_mapping", "_turn")

    def __init__(self, turn: "EntityTurn", mapping: Mapping[K, V]) -> None:
        self._turn = turn
        self._mapping = mapping

    def put(self, name: K, value: V) -> None:
        """Have this value under the name, when the call returns. Raises ValueTypeError if it cannot
        be kept.
        """
        mapping, items = self._mapping, self._turn.items_to_change("put into a mapping")
        data = mapping.codec.encode(mapping.label, value)
        items.change(mapping.name, mapping.place(name), data)

    def remove(self, name: K) -> None:
        """Remove the value of this name, if there is one."""
        mapping, items = self._mapping, self._turn.items_to_change("remove from a mapping")
        items.change(mapping.name, mapping.place(name), GONE)

    def get(self, name: K) -> ItemRead[V | None]:
        """The value of this name, or None."""
        return ItemRead(self._turn, self._get(self._mapping.place(name)))

    async def _get(self, place: bytes) -> V | None:
        mapping = self._mapping
        data = await self._turn.items.get(mapping.name, place)
        found: V | None = None if data is None else mapping.codec.decode(mapping.label, data)
        return found

    def page(
        self,
        first: int = FIRST,
        *,
        reverse: bool = False,
        after: K | None = None,
        before: K | None = None,
        next: str | None = None,  # noqa: A002  # as a page calls it
    ) -> ItemRead[MappingPage[K, V]]:
        """The first values in the order of their names, or with `reverse` the last, in this
        direction. `after` and `before` are names between which they are. `next` goes on after a
        page.
        """
        mapping = self._mapping
        check_page(first, next, reverse=reverse, after=after, before=before)
        if next is not None:
            span = span_of(self._turn, mapping, next)
        else:
            low = b"" if after is None else mapping.place(after) + b"\0"
            span = ItemSpan(low, None if before is None else mapping.place(before), reverse)
        return ItemRead(self._turn, self._page(span, first))

    async def _page(self, span: ItemSpan, first: int) -> MappingPage[K, V]:
        mapping = self._mapping
        found, rest = await self._turn.items.page(mapping.name, span, first)
        page: MappingPage[K, V] = MappingPage()
        for place, data in found:
            page[mapping.named(place)] = mapping.codec.decode(mapping.label, data)
        page.next = token_of(self._turn, mapping.name, rest)
        return page


def _of_text(name: object) -> bytes:
    if isinstance(name, str) and 0 < len(name) <= MOST_NAME:
        try:
            return name.encode()
        except UnicodeEncodeError:
            pass  # half a character
    raise UsageError(f"a name is a text of 1 to {MOST_NAME} characters, not {shown(name)}")


def _of_int(name: object) -> bytes:
    if type(name) is int and LEAST_INT <= name < -LEAST_INT:
        return (name - LEAST_INT).to_bytes(INT_BYTES)
    raise UsageError(f"a name is a number of 64 bits, not {shown(name)}")
