"""Export lines: all that is kept of the entities of a pool, as lines of JSON that people can read.

The first line says of what pool and class they are. Each entity is a line, followed by one for each
of its alarms, remembered answers, collections and items. The last line has counts and a checksum of
all bytes before it, so a file that was cut is noticed. Lines have one order, and one way to write
each, so an entity that was not changed is the same lines again.
"""

import hashlib
from collections.abc import Iterable
from typing import Annotated, TypeAlias

import msgspec

from tenure.base.numbers import Number
from tenure.protocol.entity.key_line import EntityKey, Name

LAYOUT = 1
LINE_BYTES = 3 << 19
"""The most bytes of a line: a value of a mebibyte, as JSON or in base64, and what is around it."""
VALUE_BYTES = 1_450_000
"""The most bytes of a value in JSON. A longer one is written in base64."""
DIGEST_BYTES = 32
Place: TypeAlias = Annotated[str, msgspec.Meta(max_length=1024)]
Base64: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=LINE_BYTES)]


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line"):
    """A line. Values that need not be said are left out."""


class ExportLine(_Line, frozen=True, kw_only=True, tag="export"):
    """The first line."""

    layout: Number
    pool: Name
    kind: Name
    """The name of the class."""
    version: Number = 1
    """The version of the class at the owner that was asked first."""
    at: Annotated[str, msgspec.Meta(max_length=100)] = ""
    """When the export began."""


class EntityLine(_Line, frozen=True, kw_only=True, tag="entity"):
    """An entity. What follows up to the next such line is of it."""

    key: EntityKey
    state: msgspec.Raw = msgspec.Raw(b"null")
    """Null before any was kept."""
    version: Number = 1
    """The version of the class that kept the state."""
    latest: float = 0.0
    """The latest wall time that the entity was told, in seconds: it is told no earlier one."""


class AlarmLine(_Line, frozen=True, kw_only=True, tag="alarm"):
    """An alarm that is set. Instants are wall time, in seconds."""

    name: Name
    due: float
    next_at: float = 0.0
    """When it rings, if that is not when it was due, because its handler has failed."""
    attempts: Number = 0


class AnswerLine(_Line, frozen=True, kw_only=True, tag="answer"):
    """The first answer to a call that may be repeated."""

    call: Annotated[bytes, msgspec.Meta(max_length=64)]
    at: float
    data: Base64 | None = None
    """None if the call has committed a part of its work, and has not ended."""


class CollectionLine(_Line, frozen=True, kw_only=True, tag="collection"):
    """A collection; its items follow."""

    name: Name
    last: Number = 0
    """The last number that it has given, if it is a series."""


class ItemLine(_Line, frozen=True, kw_only=True, tag="item"):
    """An item of the collection of the line before."""

    at: Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)] | Place
    """Its number, or its name; its place in hexadecimal if the class does not have the collection.
    """
    added: float = 0.0
    """When it was added to a series, in seconds."""
    value: msgspec.Raw = msgspec.Raw(b"null")


class AgainLine(_Line, frozen=True, kw_only=True, tag="again"):
    """What was said of this entity does not count: it follows once more."""

    key: EntityKey


class EndLine(_Line, frozen=True, kw_only=True, tag="end"):
    """The last line."""

    entities: Number
    lines: Number
    """How many lines come before it."""
    sha256: Annotated[str, msgspec.Meta(max_length=64)]


class CutLine(_Line, frozen=True, kw_only=True, tag="cut"):
    """The last line of an export that could not go on."""

    why: Annotated[str, msgspec.Meta(max_length=4000)]
    way_out: Annotated[str, msgspec.Meta(max_length=4000)]


PartLine: TypeAlias = AlarmLine | AnswerLine | CollectionLine | ItemLine
"""What follows the line of an entity."""
AnyLine: TypeAlias = ExportLine | EntityLine | PartLine | AgainLine | EndLine | CutLine

_encode = msgspec.json.Encoder().encode
_line: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)
_entity: msgspec.json.Decoder[EntityLine | PartLine] = msgspec.json.Decoder(EntityLine | PartLine)


def written(line: AnyLine) -> bytes:
    """The bytes of a line, with its end."""
    return _encode(line) + b"\n"


def read_line(data: bytes) -> AnyLine:
    """The line that these bytes are. Raises ValueError."""
    if len(data) > LINE_BYTES:
        raise ValueError(f"it has {len(data):,} bytes; the limit is {LINE_BYTES:,}")
    return _line.decode(data)


def read_entity_lines(data: bytes) -> list[EntityLine | PartLine]:
    """Some lines of one entity. Raises ValueError, which says which line is at fault."""
    found = []
    for number, each in enumerate(data.splitlines(), 1):
        try:
            found.append(_entity.decode(each))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number} of them cannot be read: {error}") from None
    return found


def digest_of(lines: Iterable[AnyLine]) -> "EntityDigest":
    """The digest of the lines of an entity."""
    digest = EntityDigest()
    for each in lines:
        digest.add(each)
    return digest


class EntityDigest:
    """Tells whether an entity is the same as another: a digest of its lines but for its answers,
    which are forgotten after some minutes.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, line: AnyLine) -> None:
        """This line follows."""
        if not isinstance(line, AnswerLine):
            self._hash.update(written(line))

    def value(self) -> bytes:
        """The digest so far."""
        return self._hash.digest()


class LineOrder:
    """Checks that the lines of an entity come in the order in which an export has them."""

    def __init__(self) -> None:
        self._last: tuple[int | str, ...] = ()
        self._collection = ""

    def check(self, line: PartLine) -> None:
        """Raise ValueError for a line that is out of its order."""
        place = self._place(line)
        try:
            is_after = place > self._last or (isinstance(line, AnswerLine) and place == self._last)
        except TypeError:
            raise ValueError("items of one collection have either numbers or names") from None
        if not is_after:
            raise ValueError(
                "it is out of order: alarms come first, by name, then answers, then each "
                "collection by name, with its items by number or name, each once"
            )
        self._last = place

    def _place(self, line: PartLine) -> tuple[int | str, ...]:
        match line:
            case AlarmLine(name=name):
                return 0, name
            case AnswerLine():
                return (1,)
            case CollectionLine(name=name):
                self._collection = name
                return 2, name
            case ItemLine(at=at):
                if not self._collection:
                    raise ValueError("it is an item, and no line of a collection comes before it")
                return 2, self._collection, at
