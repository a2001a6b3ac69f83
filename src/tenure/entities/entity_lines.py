"""The lines of one entity in an export: made of what is kept, and read back."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec

from tenure.entities.collection import Collection
from tenure.entities.entity_kind import EntityKind
from tenure.entities.entity_turn import MOST_ALARMS
from tenure.entities.item_codec import ITEM_BYTES
from tenure.entities.mapping import Mapping
from tenure.entities.plain_values import from_json, to_json
from tenure.entities.series import LAST, Series, kept_item, series_parts
from tenure.entities.state_codec import STATE_BYTES
from tenure.entities.state_versions import FIRST, VERSION_FIELD
from tenure.entities.turn_items import MOST_CHANGES, PAGE_ITEMS, TurnItems
from tenure.errors import MALFORMED, TenureError
from tenure.protocol.entity.envelope import ANSWER_SECONDS, Envelope, KeptAnswer, SetAlarm
from tenure.protocol.entity.export_lines import (
    AlarmLine,
    AnswerLine,
    CollectionLine,
    EntityLine,
    ItemLine,
    PartLine,
)
from tenure.protocol.entity.items import Item, ItemSpan

_pack = msgspec.msgpack.Encoder().encode
_unpack: Callable[[bytes], Any] = msgspec.msgpack.Decoder().decode


def collections_of(kind: EntityKind) -> dict[str, Collection]:
    """The collections of a class, by name."""
    return {
        each.name: each
        for base in reversed(kind.type.__mro__)
        for each in vars(base).values()
        if isinstance(each, Collection)
    }


class LinesOfKept:
    """What is kept of entities of one class, as lines."""

    def __init__(self, kind: EntityKind) -> None:
        self._collections = collections_of(kind)

    async def of(
        self, key: str | int, kept: Envelope, items: TurnItems, now: float
    ) -> AsyncIterator[EntityLine | PartLine]:
        """All lines of an entity; none if nothing is kept that matters at the time `now`."""
        answers = list(_answers(kept, now))
        if not (kept.state or kept.alarms or kept.collections or answers):
            return
        yield _entity(key, kept)
        for name, alarm in sorted(kept.alarms.items()):
            next_at = 0.0 if alarm.next_at == alarm.due else alarm.next_at
            yield AlarmLine(name=name, due=alarm.due, next_at=next_at, attempts=alarm.attempts)
        for each in answers:
            yield each
        for name, last in sorted(kept.collections.items()):
            yield CollectionLine(name=name, last=last)
            async for item in self._items(name, last, items):
                yield item

    async def _items(self, name: str, last: int, items: TurnItems) -> AsyncIterator[ItemLine]:
        collection = self._collections.get(name)
        rest: ItemSpan | None = (
            collection.span(last) if isinstance(collection, Series) else ItemSpan()
        )
        while rest is not None:
            found, rest = await items.page(name, rest, PAGE_ITEMS)
            for place, data in found:
                yield _item(collection, place, data)


def _entity(key: str | int, kept: Envelope) -> EntityLine:
    if not kept.state:
        return EntityLine(key=key, latest=kept.latest)
    version, plain = without_version(kept.state)
    return EntityLine(key=key, state=to_json(plain), version=version, latest=kept.latest)


def without_version(state: bytes) -> tuple[int, bytes]:
    """The version that has kept a state, and the state without it."""
    try:
        fields = _unpack(state)
        version = fields.pop(VERSION_FIELD, FIRST) if isinstance(fields, dict) else FIRST
        if type(version) is int and version > FIRST and _marked(version, fields) == state:
            return version, _pack(fields)
    except (*MALFORMED, TypeError, OverflowError):
        pass  # another spelling of the same: it is written as it is
    return FIRST, state


def _marked(version: int, fields: dict[str, Any]) -> bytes:
    return _pack({VERSION_FIELD: version, **fields})


def _answers(kept: Envelope, now: float) -> Iterator[AnswerLine]:
    """Those that somebody may still ask for."""
    for some in kept.answers:
        for call, each in some.items():
            if each.at > now - ANSWER_SECONDS:
                yield AnswerLine(call=call, at=each.at, data=each.data)


def _item(collection: Collection | None, place: bytes, data: bytes) -> ItemLine:
    match collection:
        case Series():
            number, added, item = series_parts(place, data)
            return ItemLine(at=number, added=added, value=to_json(item))
        case Mapping():
            return ItemLine(at=collection.named(place), value=to_json(data))
        case _:
            return ItemLine(at=place.hex(), value=to_json(_pack(data)))


class GivenLines:
    """Lines of one entity that are to be kept, of a class that can read them. Raises ValueError, or
    TenureError, for those that cannot be.
    """

    def __init__(
        self, kind: EntityKind, key: str | int, lines: list[EntityLine | PartLine]
    ) -> None:
        self._kind = kind
        self._collections = collections_of(kind)
        self._now_in = ""
        self.state: bytes | None = None
        """None without a line of the entity itself."""
        self.latest = 0.0
        self.alarms: dict[str, SetAlarm | None] = {}
        self.answers: list[tuple[bytes, KeptAnswer]] = []
        self.items: dict[str, dict[bytes, bytes]] = {}
        self.numbers: dict[str, int] = {}
        for each in lines:
            self._take(key, each)
        items = sum(map(len, self.items.values()))
        if items > MOST_CHANGES:
            raise ValueError(f"one commit keeps {MOST_CHANGES} items at most, and not {items}")
        if len(self.alarms) > MOST_ALARMS:
            raise ValueError(f"an entity has {MOST_ALARMS} alarms at most, not {len(self.alarms)}")

    def _take(self, key: str | int, line: EntityLine | PartLine) -> None:
        match line:
            case EntityLine():
                if line.key != key:
                    raise ValueError(f"a line is of the key {line.key!r:.100}")
                self.state, self.latest = self._state(key, line), line.latest
            case AlarmLine():
                if not self._kind.handles["on_alarm"]:
                    raise ValueError(f"{self._kind.name} has no on_alarm to handle {line.name!r}")
                next_at = line.next_at or line.due
                self.alarms[line.name] = SetAlarm(line.due, next_at, line.attempts)
            case AnswerLine():
                self.answers.append((line.call, KeptAnswer(line.at, line.data)))
            case CollectionLine(name=name):
                self._now_in, self.numbers[name] = name, line.last
                self.items.setdefault(name, {})
            case ItemLine():
                place, data = self._item(line)
                self.items[self._now_in][place] = data

    def _state(self, key: str | int, line: EntityLine) -> bytes:
        if bytes(line.state) == b"null":
            return b""
        codec, data = self._kind.codec, from_json(line.state)
        if line.version > FIRST:
            fields = _unpack(data)
            if not isinstance(fields, dict):
                raise ValueError(f"a state of version {line.version} has named fields")
            data = _marked(line.version, fields)
        if len(data) > STATE_BYTES:
            raise ValueError(f"the state has {len(data):,} bytes; the limit is {STATE_BYTES:,}")
        codec.decode(key, codec.current(key, data))
        return data

    def _item(self, line: ItemLine) -> Item:
        name, at = self._now_in, line.at
        if name not in self.items:
            raise ValueError(f"the item {at!r:.100} is of no collection")
        collection, data = self._collections.get(name), from_json(line.value)
        where = f"the item {at!r:.100} of {name}"
        if collection is None:
            return _unknown_item(where, at, data)
        collection.codec.decode(collection.label, data)
        if len(data) > ITEM_BYTES:
            raise ValueError(f"{where} has {len(data):,} bytes; the limit is {ITEM_BYTES:,}")
        if isinstance(collection, Mapping):
            return collection.place(at), data
        if not isinstance(at, int) or not 1 <= at <= min(self.numbers[name], LAST - 1):
            raise ValueError(f"{where} has no number from 1 to {self.numbers[name]}, the `last`")
        return kept_item(at, line.added, data)


def _unknown_item(where: str, at: str | int, data: bytes) -> Item:
    """An item of a collection that the class does not have, as such a class has exported it."""
    kept = _unpack(data)
    if not isinstance(at, str) or not isinstance(kept, bytes) or not kept:
        raise ValueError(f"{where} cannot be kept, since the class has no such collection")
    return bytes.fromhex(at), kept


UNFIT = (*MALFORMED, TenureError, OverflowError)
"""The errors of lines that cannot be kept."""
