"""Whether a value that was sent and received is what it was, and what is said if it would not be.

`==` is not the question: a tuple that has become a list is unequal, as it should be, but so is a
number that is not one, or an object of a class that compares by identity; and a frozen set that has
become a set is equal, as is a member of an enumeration that has become a text, or an instant that
is told in another zone.
"""

from dataclasses import fields, is_dataclass
from datetime import datetime, time
from typing import Any, Generic, TypeVar

import msgspec

from tenure.base.keys import UserKey
from tenure.errors import ConfigurationError, ValueTypeError
from tenure.wire.limits import CHUNK_BYTES

V = TypeVar("V")

ENTRY_BYTES = CHUNK_BYTES - 4096
"""The most bytes of a key with its value, which are never parted; a leaf's bounds come on top."""

_PLAIN = frozenset((str, int, bytes, bool, type(None)))


def is_alike(one: Any, other: Any) -> bool:  # noqa: ANN401  # whatever an application keeps
    """Whether both are of the same types all through, with the same in them."""
    if type(one) is not type(other):
        return False
    if type(one) in _PLAIN:
        return bool(one == other)
    if isinstance(one, list | tuple):
        types = [*map(type, one)]
        if _PLAIN.issuperset(types):  # all at once: most values are lists of these
            return types == [*map(type, other)] and bool(one == other)
        return len(one) == len(other) and all(map(is_alike, one, other))
    if isinstance(one, dict):  # which keeps its order
        return is_alike([*one], [*other]) and is_alike([*one.values()], [*other.values()])
    if isinstance(one, set | frozenset):
        there = {each: each for each in other}
        return one == other and all(is_alike(each, there[each]) for each in one)
    if isinstance(one, datetime | time):
        return one == other and (one.tzinfo, one.fold) == (other.tzinfo, other.fold)
    if isinstance(one, msgspec.Struct):
        names = one.__struct_fields__
    elif is_dataclass(one):
        names = tuple(each.name for each in fields(one))
    else:
        return bool(one == other) or (one != one and other != other)  # noqa: PLR0124  # not a number
    return all(is_alike(getattr(one, name), getattr(other, name)) for name in names)


class ValueCodec(Generic[V]):
    """The values of one kind of state, as bytes. `of` is what the state is called in errors."""

    def __init__(self, value_type: Any, of: str) -> None:  # noqa: ANN401  # such as a union
        self._name = "anything" if value_type is Any else _name_of(value_type)
        self._of = of
        self._encode = msgspec.msgpack.Encoder().encode
        try:
            decoder = msgspec.msgpack.Decoder(value_type)
        except TypeError as error:
            raise ConfigurationError(f"value_type cannot be {value_type!r}: {error}") from error
        self.decode: Any = decoder.decode

    def encode(self, user_key: UserKey, value: V) -> bytes:
        """`value` as bytes. Raises ValueTypeError where it would not arrive as it is, or is too
        large to be handed over with its key.
        """
        try:
            size = len(self._encode(user_key)) + 1
            data = self._encode(value)
            came = self.decode(data)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self._refusal(user_key, f"of {_kind_of(value)}: {error}") from None
        size += len(data)
        if size > ENTRY_BYTES:
            raise self._refusal(
                user_key,
                f"of {size} bytes with its key, where {ENTRY_BYTES} are the most: keep large "
                "values elsewhere, by reference",
            )
        if not is_alike(came, value):
            raise self._refusal(
                user_key,
                f"of {_kind_of(value)}: it would arrive as {came!r:.100}. Say what values are with "
                "value_type=, or keep what msgpack has: dicts, lists, texts and numbers",
            )
        return data

    def _refusal(self, user_key: UserKey, why: str) -> ValueTypeError:
        state = f"{self._of} of {self._name}"
        return ValueTypeError(f"{state} cannot hand over the value of {user_key!r:.100}, {why}")


def _kind_of(value: object) -> str:
    return f"the type {type(value).__name__}"


def _name_of(value_type: object) -> str:
    return getattr(value_type, "__name__", str(value_type))
