"""Names of columns, super columns and rows as bytes whose order is that of the names.

Everything is kept sorted by bytes, so an encoding must keep the order of what it encodes: text as
UTF-8, whose order is that of its characters; integers big-endian with the sign bit flipped; floats
likewise, and with all bits flipped where they are negative.

In the key of an entry, other parts follow a row's key and a super column. So these are *escaped*:
00 becomes 00 FF, and 00 01 ends the name. Then no escaped name is a prefix of another, and `a` with
any suffix sorts before `ab` with any suffix.
"""

from collections.abc import Callable
from math import isnan
from struct import Struct
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from tenure.base.names import shown
from tenure.errors import SchemaError
from tenure.protocol.replication.row.limits import NAME_BYTES

Name: TypeAlias = bytes | str | int | float | UUID

_END = b"\0\1"
_INT = Struct(">Q")
_FLOAT = Struct(">d")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1


def escaped(name: bytes) -> bytes:
    """`name`, so that it can stand before something else."""
    return name.replace(b"\0", b"\0\xff") + _END


def unescaped(text: bytes, at: int = 0) -> tuple[bytes, int]:
    """The name that begins at `at`, and where what follows it begins."""
    end = text.index(_END, at)
    return text[at:end].replace(b"\0\xff", b"\0"), end + len(_END)


class NameType(msgspec.Struct, frozen=True):
    word: str
    """The word for it in errors, and in a store's own record of its tables."""
    python: type
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Name]

    def encoded(self, name: object, what: str) -> bytes:
        """The bytes of `name`, which is `what`. Raises SchemaError for another type or size."""
        if type(name) is not self.python:
            raise SchemaError(
                f"{what} is of type {self.word}, not {type(name).__name__}: {shown(name)}; pass "
                f"{self.word}, or declare the table with {type(name).__name__}"
            )
        try:
            encoded = self.encode(name)
        except (OverflowError, ValueError) as error:
            raise SchemaError(f"{what} cannot be {shown(name)}: {error}") from None
        if len(encoded) > NAME_BYTES:
            raise SchemaError(
                f"{what} has {len(encoded)} bytes; at most {NAME_BYTES} are allowed: {shown(name)}"
            )
        return encoded


def _same(name: bytes) -> bytes:
    return name


def _int_encoded(name: int) -> bytes:
    if not -_SIGN <= name < _SIGN:
        raise ValueError("it does not fit into 64 bits")
    return _INT.pack(name + _SIGN)


def _int_decoded(encoded: bytes) -> int:
    return int(_INT.unpack(encoded)[0]) - _SIGN


def _float_encoded(name: float) -> bytes:
    if isnan(name):
        raise ValueError("it has no place in an order")
    bits = int(_INT.unpack(_FLOAT.pack(name + 0.0))[0])  # -0.0 + 0.0 is 0.0: one name
    return _INT.pack(bits ^ _ALL if bits & _SIGN else bits | _SIGN)


def _float_decoded(encoded: bytes) -> float:
    bits = int(_INT.unpack(encoded)[0])
    return float(_FLOAT.unpack(_INT.pack(bits ^ _SIGN if bits & _SIGN else bits ^ _ALL))[0])


def _uuid_encoded(name: UUID) -> bytes:
    return name.bytes


def _uuid_decoded(encoded: bytes) -> UUID:
    return UUID(bytes=encoded)


NAME_TYPES: tuple[NameType, ...] = (
    NameType("bytes", bytes, _same, _same),
    NameType("str", str, str.encode, bytes.decode),
    NameType("int", int, _int_encoded, _int_decoded),
    NameType("float", float, _float_encoded, _float_decoded),
    NameType("UUID", UUID, _uuid_encoded, _uuid_decoded),
)


def name_type(of: object, what: str) -> NameType:
    """The type of names that `of` is. Raises SchemaError where names cannot have it."""
    for each in NAME_TYPES:
        if each.python is of or each.word == of:
            return each
    words = ", ".join(each.word for each in NAME_TYPES)
    raise SchemaError(f"{what} cannot be of type {of!r}; choose one of {words}")
