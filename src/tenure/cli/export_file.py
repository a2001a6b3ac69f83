"""Export files, as `tenure entities` writes them: read in little memory, and checked as a whole."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msgspec.structs import replace

from tenure.entities.plain_values import same_spelling
from tenure.errors import MALFORMED, UsageError
from tenure.protocol.entity.copying import PART_BYTES, PART_ITEMS
from tenure.protocol.entity.export_lines import (
    LAYOUT,
    LINE_BYTES,
    AgainLine,
    AlarmLine,
    AnyLine,
    CollectionLine,
    CutLine,
    EndLine,
    EntityDigest,
    EntityLine,
    ExportLine,
    ItemLine,
    LineOrder,
    PartLine,
    read_line,
    written,
)
from tenure.protocol.entity.key_line import EntityKey

FULL_PART = 1 << 20
"""A part of an entity that goes in by itself ends with the line that brings it to this size."""


class EntityPart(NamedTuple):
    """Some lines of an entity, as they are sent."""

    lines: bytes
    number: int
    """How many parts come before."""
    is_last: bool


class FileEntity(NamedTuple):
    """An entity in a file: where its line is, and the digest of all its lines."""

    key: EntityKey
    number: int
    place: int
    digest: bytes


class ExportFile:
    """A file that was checked."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self.head: ExportLine
        self.entities = 0
        """How many there are."""
        self._is_checked = False

    # --- the file as a whole ---

    def check(self) -> None:
        """Read all of it. Raises UsageError for a file that was cut or changed, or a damaged line,
        which it names.
        """
        digest, last = hashlib.sha256(), None
        order: LineOrder | None = None
        for number, data in enumerate(self._raw(0), 1):
            line = self._read(number, data)
            if (number == 1) is not isinstance(line, ExportLine):
                raise self._damaged(number, "the first line, and no other, says what it exports")
            if isinstance(last, EndLine):
                raise self._damaged(number, "it comes after the last line")
            match line:
                case ExportLine():
                    self._check_head(line)
                case EntityLine():
                    order, self.entities = LineOrder(), self.entities + 1
                case AgainLine():
                    order, self.entities = None, self.entities - 1
                case EndLine():
                    self._check_end(number, line, digest.hexdigest())
                case CutLine():
                    raise UsageError(f"{self._path} was cut when it was made: {line.why}")
                case _:
                    self._check_part(number, line, order)
            digest.update(data)
            last = line
        if not isinstance(last, EndLine):
            raise UsageError(
                f"{self._path} is cut: its last line is missing, which says how many entities "
                f"there are. Export again, or copy it again; {self.entities} are in it"
            )
        self._is_checked = True

    def _check_head(self, line: ExportLine) -> None:
        if line.layout > LAYOUT:
            raise UsageError(
                f"{self._path} has the layout {line.layout} of a later version of tenure; this one "
                f"reads {LAYOUT}: import with that version"
            )
        self.head = line

    def _check_part(self, number: int, line: PartLine, order: LineOrder | None) -> None:
        if order is None:
            raise self._damaged(number, "no line of an entity comes before it")
        try:
            order.check(line)
        except ValueError as error:
            raise self._damaged(number, str(error)) from None

    def _check_end(self, number: int, line: EndLine, digest: str) -> None:
        if line.lines != number - 1 or line.entities != self.entities or line.sha256 != digest:
            raise UsageError(
                f"{self._path} has changed since it was made: its last line is of {line.lines} "
                f"lines with {line.entities} entities and the SHA-256 {line.sha256[:16]}..., and "
                f"there are {number - 1} with {self.entities} and {digest[:16]}... Export again, "
                "or mend the last line if the change was yours"
            )

    # --- its entities ---

    def each(self) -> Iterator[FileEntity]:
        """The entities that count, one after the other."""
        found: FileEntity | None = None
        digest, place = EntityDigest(), 0
        for number, data in enumerate(self._raw(0), 1):
            line = self._read(number, data)
            if isinstance(line, EntityLine | AgainLine | EndLine):
                if found is not None and not isinstance(line, AgainLine):
                    yield found._replace(digest=digest.value())
                found, digest = None, EntityDigest()
            if isinstance(line, EntityLine):
                found = FileEntity(line.key, number, place, b"")
            digest.add(line)
            place += len(data)

    def parts(self, of: FileEntity) -> Iterator[EntityPart]:
        """The lines of an entity in parts, the line of the entity itself in the last."""
        part, count, number = bytearray(), 0, 0
        collection: CollectionLine | None = None
        head = b""
        for line in self._lines_of(of):
            if isinstance(line, EntityLine):
                head = written(line)
                continue
            if isinstance(line, CollectionLine):
                collection = line
            if count >= PART_ITEMS - 1 or len(part) >= FULL_PART:
                yield EntityPart(bytes(part), number, is_last=False)
                part, count, number = bytearray(), 0, number + 1
                if isinstance(line, ItemLine) and collection is not None:
                    part += written(collection)
            part += written(line)
            count += 1
        if len(part) + len(head) > PART_BYTES:
            yield EntityPart(bytes(part), number, is_last=False)
            part, number = bytearray(), number + 1
        yield EntityPart(head + bytes(part), number, is_last=True)

    def _lines_of(self, of: FileEntity) -> Iterator[EntityLine | PartLine]:
        for number, data in enumerate(self._raw(of.place), of.number):
            line = self._read(number, data)
            if isinstance(line, ExportLine | AgainLine | EndLine | CutLine):
                return
            if isinstance(line, EntityLine) and number != of.number:
                return
            yield line

    # --- lines ---

    def _raw(self, place: int) -> Iterator[bytes]:
        while True:
            self._file.seek(place)
            data = self._file.readline(LINE_BYTES + 1)
            if not data:
                return
            place += len(data)
            yield data

    def _read(self, number: int, data: bytes) -> AnyLine:
        if not data.endswith(b"\n"):
            why = "it is cut" if len(data) <= LINE_BYTES else f"it has over {LINE_BYTES:,} bytes"
            raise self._damaged(number, why)
        try:
            return as_exported(read_line(data))
        except MALFORMED as error:
            raise self._damaged(number, str(error)) from None

    def _damaged(self, number: int, why: str) -> UsageError:
        said = f"line {number} of {self._path} is damaged: {why}."
        if self._is_checked:  # and it was not then
            return UsageError(
                f"{said} The file was changed while it was imported, and what came before is "
                "there: mend it, and import it again"
            )
        return UsageError(f"{said} Nothing was imported")


def as_exported(line: AnyLine) -> AnyLine:
    """A line that somebody else may have written, as an export has it. Raises ValueError."""
    match line:
        case EntityLine():
            return replace(line, state=same_spelling(line.state))
        case ItemLine():
            return replace(line, value=same_spelling(line.value))
        case AlarmLine() if line.next_at == line.due:
            return replace(line, next_at=0.0)
    return line
