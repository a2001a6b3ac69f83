"""The keys of an etcd journal, and their values.

    {prefix}front/identity      which journal this is, and its format
    {prefix}front/leadership    the seat, a key for each of its parts: what guards a write compares
    {prefix}front/manager         them, and `etcdctl get --prefix` shows them to people
    {prefix}front/beat
    {prefix}front/watch_ns
    {prefix}front/head          the snapshot: of which LSN, and where its pieces are
    {prefix}front/end           the LSN of the last record
    {prefix}records/LSN         an append, by the LSN of its last record
    {prefix}parts/LSN-ID/N      the pieces of an append that is too large for one request
    {prefix}snapshots/LSN-ID/N  the pieces of a snapshot

The *front* is all that is small and changes. It is read as one range and not in a transaction,
since an etcd that is out of space refuses transactions, even if they only read.

LSNs in keys are 16 hexadecimal digits, so that their order is that of the keys. Records are kept by
their *last* LSN, so that the records which a snapshot of LSN n replaces are a range of keys, n
included.

A value is JSON if people may want to read it, and otherwise msgpack after a CRC-32. (The records
within have checksums of their own, but a reference that was altered must not be followed either.)
"""

import zlib
from typing import Final, TypeVar

import msgspec

from tenure.base.numbers import JournalId, Number
from tenure.errors import MALFORMED, JournalDamaged, JournalTooNew
from tenure.journals.etcd.wire import RangeAnswer, after_prefix
from tenure.protocol.log.journal import Mandate, Seat
from tenure.wire.journal_codec import WAY_OUT

FORMAT: Final = 1
"""The format of the keys and their values; records and snapshots have a format of their own."""

PIECE_BYTES: Final = 256 << 10
"""Etcd takes requests of up to 1.5 MiB, but a large one holds up those behind it, beats too."""

T = TypeVar("T")

_CHECKSUM_BYTES = 4
_json = msgspec.json.Encoder()
_numbers: msgspec.json.Decoder[int] = msgspec.json.Decoder(Number)
_texts = msgspec.json.Decoder(str)
_msgpack = msgspec.msgpack.Encoder()


class JournalIdentity(msgspec.Struct, frozen=True):
    format: Number
    journal: JournalId


class Pieces(msgspec.Struct, frozen=True, array_like=True):
    """The place of a value that was written in pieces."""

    place: bytes
    count: Number
    size: Number


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The snapshot; without pieces it is that of a journal that has just begun."""

    lsn: Number
    pieces: Pieces | None = None


class AppendValue(msgspec.Struct, frozen=True, array_like=True):
    """The value of one append: `count` records, in `body` or, if they are large, in `pieces`."""

    leadership: Number
    count: Number
    body: bytes = b""
    pieces: Pieces | None = None


class Keys:
    """The keys under a prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix.encode()
        self.front = self.prefix + b"front/"
        self.after_front = after_prefix(self.front)
        self.identity = self.front + b"identity"
        self.leadership = self.front + b"leadership"
        self.manager = self.front + b"manager"
        self.beat = self.front + b"beat"
        self.watch_ns = self.front + b"watch_ns"
        self.head = self.front + b"head"
        self.end = self.front + b"end"
        self.records = self.prefix + b"records/"
        self.after_records = after_prefix(self.records)
        self.parts = self.prefix + b"parts/"
        self.snapshots = self.prefix + b"snapshots/"

    def record(self, lsn: int) -> bytes:
        """The key of the append whose last record has this LSN."""
        return self.records + b"%016x" % lsn

    def seat_values(self, seat: Seat) -> dict[bytes, bytes]:
        """The values of the seat's keys for this seat."""
        return {
            self.leadership: to_json(seat.leadership),
            self.manager: to_json(seat.manager),
            self.beat: to_json(seat.beat),
            self.watch_ns: to_json(seat.watch_ns),
        }

    def lsn_of(self, record: bytes) -> int:
        """The last LSN of an append, by its key. Raises JournalDamaged."""
        try:
            return int(record[len(self.records) :], 16)
        except ValueError as error:
            raise damaged(record, "it has no place in the log") from error


class Front:
    """All that is small and changes, as it was at one revision."""

    def __init__(self, keys: Keys, found: RangeAnswer, revision: int) -> None:
        self.revision = revision
        self._keys = keys
        self._values = {kv.key: kv.value for kv in found.kvs}

    @property
    def identity(self) -> bytes | None:
        """The value that says which journal this is, as it is stored."""
        return self._values.get(self._keys.identity)

    @property
    def seat(self) -> Seat:
        """The seat, which says which manager leads. Raises JournalDamaged."""
        keys = self._keys
        return Seat(
            _number_in(keys.leadership, self._values),
            _number_in(keys.beat, self._values),
            _json_in(keys.manager, self._values, _texts),
            _number_in(keys.watch_ns, self._values),
        )

    @property
    def end(self) -> int:
        """The LSN of the last record. Raises JournalDamaged."""
        return _number_in(self._keys.end, self._values)

    @property
    def raw_head(self) -> bytes:
        """The value that says where the snapshot is, as it is stored."""
        return self._values.get(self._keys.head, b"")

    @property
    def head(self) -> Head:
        """The head of the snapshot. Raises JournalDamaged."""
        return opened(self._keys.head, self.raw_head, Head)

    def leads(self, mandate: Mandate) -> bool:
        """Whether the mandate is of this journal, and has the seat."""
        seat = self.seat
        has_seat = seat.leadership == mandate.leadership and seat.manager != ""
        return self.identity == to_json(JournalIdentity(FORMAT, mandate.journal)) and has_seat


def to_json(value: object) -> bytes:
    """A value for people to read."""
    return _json.encode(value)


def identity_in(key: bytes, value: bytes) -> JournalIdentity:
    """The identity of the journal. Raises JournalDamaged, and JournalTooNew for a later format."""
    try:
        found = msgspec.json.decode(value, type=JournalIdentity)
    except MALFORMED as error:
        raise damaged(key, f"it is not a journal of tenure: {error}") from error
    if found.format > FORMAT:
        raise JournalTooNew(
            f"the journal in etcd, says {key.decode()}, is of format {found.format}, and this "
            f"tenure reads {FORMAT}: run the tenure that wrote it, or a later one; nothing "
            "was touched"
        )
    return found


def sealed(value: msgspec.Struct) -> bytes:
    """A value with its checksum."""
    body = _msgpack.encode(value)
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") + body


def opened(key: bytes, value: bytes, kind: type[T]) -> T:
    """The value that was sealed. Raises JournalDamaged."""
    body = value[_CHECKSUM_BYTES:]
    if zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") != value[:_CHECKSUM_BYTES]:
        raise damaged(key, "its checksum does not match")
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except MALFORMED as error:
        raise damaged(key, str(error)) from error


def in_pieces(data: bytes) -> list[bytes]:
    """The data, cut."""
    return [data[i : i + PIECE_BYTES] for i in range(0, len(data), PIECE_BYTES)]


def packed(records: list[bytes]) -> bytes:
    """The records of an append as one value."""
    return _msgpack.encode(records)


def unpacked(key: bytes, body: bytes, count: int) -> list[bytes]:
    """The records of an append. Raises JournalDamaged."""
    try:
        records = msgspec.msgpack.decode(body, type=list[bytes])
    except MALFORMED as error:
        raise damaged(key, str(error)) from error
    if len(records) != count:
        raise damaged(key, f"it holds {len(records)} records instead of {count}")
    return records


def damaged(key: bytes, what: str) -> JournalDamaged:
    """The error for impossible values."""
    where = key.decode("utf-8", "replace")
    return JournalDamaged(f"the journal in etcd cannot be read back: {where}: {what}. {WAY_OUT}")


def _number_in(key: bytes, values: dict[bytes, bytes]) -> int:
    return _json_in(key, values, _numbers)


def _json_in(key: bytes, values: dict[bytes, bytes], decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(values[key])
    except KeyError as error:
        raise damaged(key, "it is not there") from error
    except MALFORMED as error:
        raise damaged(key, f"it holds {values[key]!r}") from error
