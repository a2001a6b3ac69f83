"""An envelope as the columns of a row, so that a commit writes what it has changed and no more.

The state has a column for each field, the answers one for each call, and so on. A field's column
begins with the field's place: then the fields are in their own order when they are read, and the
state is byte for byte what it was. A state that is no small map of names is one column.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from tenure.protocol.entity.envelope import (
    ANSWERS_BYTES,
    TOGETHER,
    Answers,
    Envelope,
    KeptAnswer,
    SetAlarm,
)
from tenure.protocol.entity.items import ItemTable
from tenure.protocol.entity.socket_entry import SocketEntry

VERSION = 1
"""The layout of what follows. A row of a higher one is not read."""
STATE, ANSWERS, ALARMS, SOCKETS, ITEMS = FAMILIES = (
    "state",
    "answers",
    "alarms",
    "sockets",
    "items",
)
AS_THEY_ARE = (STATE, ITEMS)
"""The families whose values are bytes already."""
HEAD, WHOLE = b"", b"whole"
"""The names of two columns of the state: when the row was kept, and a state without fields."""
MOST_FIELDS = 1000
FIELD_BYTES = 1000
"""The longest name of a field that gets a column."""
PLACE_BYTES = 2
Column: TypeAlias = tuple[str, bytes]
"""A family, and a name in it."""
Columns: TypeAlias = Mapping[Column, bytes]

_encode = msgspec.msgpack.Encoder().encode
_fields: msgspec.msgpack.Decoder[dict[str, msgspec.Raw]] = msgspec.msgpack.Decoder(
    dict[str, msgspec.Raw]
)
_answer: msgspec.msgpack.Decoder[KeptAnswer] = msgspec.msgpack.Decoder(KeptAnswer)
_alarm: msgspec.msgpack.Decoder[SetAlarm] = msgspec.msgpack.Decoder(SetAlarm)
_socket: msgspec.msgpack.Decoder[SocketEntry] = msgspec.msgpack.Decoder(SocketEntry)


class RowHead(NamedTuple):
    """Under which lease the row was kept, and the latest time that its entity was told."""

    version: int
    number: int
    journal: int
    latest: float
    collections: Mapping[str, int] = {}


_head: msgspec.msgpack.Decoder[RowHead] = msgspec.msgpack.Decoder(RowHead)


class WrittenLater(ValueError):
    """A later version of tenure has written the row, in a layout that this one does not know."""


def changed_columns(before: Envelope, after: Envelope) -> dict[Column, bytes | None]:
    """The columns that lead from one envelope to the other; None removes a column. The head is
    always among them, unless nothing is kept any more.
    """
    changed: dict[Column, bytes | None] = {}
    for family, was, now in zip(FAMILIES, _families(before), _families(after), strict=True):
        for name, each in now.items():
            found = was.get(name)
            if found is not each and found != each:
                changed[family, name] = each if family in AS_THEY_ARE else _encode(each)
        changed |= {(family, name): None for name in was if name not in now}
    head = RowHead(VERSION, after.number, after.journal, after.latest, after.collections)
    changed[STATE, HEAD] = None if after.is_empty else _encode(head)
    return changed


def envelope_of(columns: Columns, step: int) -> Envelope:
    """The envelope that these columns are. Raises ValueError if they are not."""
    of: dict[str, dict[bytes, bytes]] = {family: {} for family in FAMILIES}
    for (family, name), value in columns.items():
        of[family][name] = value
    head = of[STATE].pop(HEAD, None)
    if head is None:
        return Envelope(step=step)
    if (version := msgspec.msgpack.decode(head, type=list[Any])[0]) != VERSION:
        raise WrittenLater(f"it has the layout {version}, which a later version of tenure wrote")
    _, number, journal, latest, collections = _head.decode(head)
    answers, size = _grouped((id_, _answer.decode(it)) for id_, it in of[ANSWERS].items())
    return Envelope(
        number,
        journal,
        _state_of(of[STATE]),
        latest,
        answers,
        {name.decode(): _alarm.decode(each) for name, each in of[ALARMS].items()},
        {id_: _socket.decode(each) for id_, each in of[SOCKETS].items()},
        size,
        step,
        collections,
        _items_of(of[ITEMS]),
    )


def _families(envelope: Envelope) -> Iterator[dict[bytes, Any]]:
    yield _fields_of(envelope.state)
    yield {id_: each for some in envelope.answers for id_, each in some.items()}
    yield {name.encode(): each for name, each in envelope.alarms.items()}
    yield dict(envelope.sockets.items())
    yield {
        item_column(name, place): data
        for name, items in envelope.items.items()
        for place, data in items.items()
    }


def item_column(name: str, place: bytes) -> bytes:
    """The name of an item's column: the collection's, which has no NUL, and the item's place."""
    return name.encode() + b"\0" + place


def _items_of(columns: dict[bytes, bytes]) -> dict[str, ItemTable]:
    found: dict[str, dict[bytes, bytes]] = {}
    for column, data in columns.items():
        name, _, place = column.partition(b"\0")
        found.setdefault(name.decode(), {})[place] = data
    return {name: ItemTable.of(items) for name, items in found.items()}


def _fields_of(state: bytes) -> dict[bytes, bytes]:
    if not state:
        return {}
    try:
        fields = _fields.decode(state)
    except msgspec.DecodeError:  # a number, a list, or a map whose keys are no names
        return {WHOLE: state}
    names = [name.encode() for name in fields]
    if not names or len(names) > MOST_FIELDS or max(map(len, names)) > FIELD_BYTES:
        return {WHOLE: state}
    values = map(bytes, fields.values())
    return {
        place.to_bytes(PLACE_BYTES) + name: value
        for place, (name, value) in enumerate(zip(names, values, strict=True))
    }


def _state_of(columns: dict[bytes, bytes]) -> bytes:
    if not columns or WHOLE in columns:
        return columns.get(WHOLE, b"")
    fields = {name[PLACE_BYTES:].decode(): msgspec.Raw(columns[name]) for name in sorted(columns)}
    return _encode(fields)


def _grouped(found: Iterable[tuple[bytes, KeptAnswer]]) -> tuple[Answers, int]:
    """The answers in the order in which they came, as `with_answer` groups them; and their size."""
    groups: list[dict[bytes, KeptAnswer]] = []
    size = 0
    for id_, each in sorted(found, key=lambda it: it[1].at):
        size += each.size
        if not groups or len(groups[-1]) >= TOGETHER or each.size > ANSWERS_BYTES // TOGETHER:
            groups.append({})
        groups[-1][id_] = each
    return tuple(groups), size
