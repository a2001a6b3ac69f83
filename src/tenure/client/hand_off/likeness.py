"""Whether a value is the same after it was sent and received, and the error if it would not be.

`==` is not the question: a tuple that has become a list is unequal, as it should be, but so is a
number that is not one, or an object of a class that compares by identity; and a frozen set that has
become a set is equal, as is a member of an enumeration that has become a text, an instant that is
expressed in another zone, or an object that has lost an attribute that is not a field of its class.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, time
from decimal import Decimal
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec
import msgspec.inspect

from tenure.base.keys import UserKey
from tenure.base.names import shown
from tenure.client.hand_off.state_fields import known_fields
from tenure.client.hand_off.unknown_fields import UnknownFields
from tenure.errors import ConfigurationError, ValueTypeError
from tenure.protocol.lease.limits import CHUNK_BYTES

V = TypeVar("V")
_pack = msgspec.msgpack.Encoder().encode
_unpack: Callable[[bytes], Any] = msgspec.msgpack.Decoder().decode
ENTRY_BYTES = CHUNK_BYTES - 4096
"""The most bytes of a key with its value, which are never separated; a leaf's bounds come on
top.
"""

_PLAIN = frozenset((str, int, bytes, bool, type(None)))
_FIELDS = "__struct_fields__", "__dataclass_fields__", "__attrs_attrs__"
_CLASS_STATEMENT = 1 << 9
"""The flag of a class that a class statement made, and no code in C (Py_TPFLAGS_HEAPTYPE)."""


def is_alike(one: Any, other: Any) -> bool:  # noqa: ANN401  # whatever an application keeps
    """Whether both have the same types at every level, with the same content."""
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in _PLAIN:
        return bool(one == other)
    if isinstance(one, list | tuple):
        types = [*map(type, one)]
        if _PLAIN.issuperset(types):  # all at once: most values are lists of these
            is_same = types == [*map(type, other)] and bool(one == other)
        else:
            is_same = len(one) == len(other) and all(map(is_alike, one, other))
        return is_same and getattr(one, "__dict__", None) == getattr(other, "__dict__", None)
    if isinstance(one, dict):  # which keeps its order
        return is_alike([*one], [*other]) and is_alike([*one.values()], [*other.values()])
    if isinstance(one, set | frozenset):
        there = {each: each for each in other}
        return one == other and all(is_alike(each, there[each]) for each in one)
    if isinstance(one, float | datetime | time | Decimal):  # `==` leaves some of it out
        return repr(one) == repr(other)
    if any(hasattr(kind, each) for each in _FIELDS):
        one, other = _attributes(one), _attributes(other)
        return one.keys() == other.keys() and all(is_alike(one[name], other[name]) for name in one)
    return bool(one == other)


def _attributes(one: object) -> dict[str, Any]:
    """All that it has, whether its class declares that or not; not what it would compute again."""
    state: Any = object.__getstate__(one)
    there, in_slots = state if isinstance(state, tuple) else (state, None)
    found = {**(there or {}), **(in_slots or {})}
    kind = type(one)
    return {
        name: value
        for name, value in found.items()
        if name != "__orig_class__" and not isinstance(getattr(kind, name, None), cached_property)
    }


def _classes_in(value_type: Any) -> Iterator[type]:  # noqa: ANN401
    """Those of which objects are made where such a value arrives."""
    looked_at, to_look_at = set[int](), [msgspec.inspect.type_info(value_type)]
    while to_look_at:
        each: Any = to_look_at.pop()
        if isinstance(each, type):
            yield each
        elif isinstance(each, tuple):
            to_look_at += each
        elif isinstance(each, msgspec.Struct) and id(each) not in looked_at:
            looked_at.add(id(each))
            to_look_at += [getattr(each, name) for name in each.__struct_fields__]


def _is_half_made(kind: type) -> bool:
    """Whether there is more in its objects than attributes, as in a dataclass that is a dict too.
    msgspec makes one of those without its dict, and the process ends when somebody reads it.
    """
    has_fields = hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__attrs_attrs__")
    bases = (each for each in kind.__mro__ if each is not object)
    return has_fields and not all(each.__flags__ & _CLASS_STATEMENT for each in bases)


class ValueCodec(Generic[V]):
    """The values of one kind of state, as bytes. `of` is what the state is called in errors."""

    def __init__(self, value_type: Any, of: str) -> None:  # noqa: ANN401  # such as a union
        self._name = "anything" if value_type is Any else _name_of(value_type)
        self._of = of
        try:
            decoder = msgspec.msgpack.Decoder(value_type)
            classes = list(_classes_in(value_type))
            half_made = [each for each in classes if _is_half_made(each)]
        except TypeError as error:
            raise ConfigurationError(
                f"value_type cannot be {shown(value_type)}: {error}"
            ) from error
        if half_made:
            raise ConfigurationError(
                f"value_type cannot be {shown(value_type)}: of {half_made[0].__name__} only the "
                "fields would arrive, and not what its base class, which is no class of fields, "
                "keeps"
            )
        self.decode: Any = decoder.decode
        self.has_fields = any(map(known_fields, classes))
        """Whether values have fields, of which another release may know more."""

    def opened(self, data: bytes) -> tuple[V, UnknownFields | None]:
        """The decoded value, and the fields of it that the classes here do not know."""
        value: V = self.decode(data)
        if not self.has_fields or _pack(value) == data:
            return value, None
        return value, UnknownFields(_unpack(data), value) or None

    def encode(self, user_key: UserKey, value: V, unknown: UnknownFields | None = None) -> bytes:
        """Return `value` as bytes, with the fields that its classes do not know. Raises
        ValueTypeError if it would not arrive unchanged, or is too large to be handed over with its
        key.
        """
        try:
            size = len(_pack(user_key)) + 1
            data = _pack(value)
            came = self.decode(data)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self._refusal(user_key, f"of {_kind_of(value)}: {error}") from None
        if unknown is not None:
            plain = _unpack(data)
            unknown.put_back(plain, value)
            data = _pack(plain)
        size += len(data)
        if size > ENTRY_BYTES:
            raise self._refusal(
                user_key,
                f"of {size} bytes with its key; at most {ENTRY_BYTES} are allowed: keep large "
                "values elsewhere, by reference",
            )
        if not is_alike(came, value):
            raise self._refusal(
                user_key,
                f"of {_kind_of(value)}: it would arrive as {came!r:.100}. Say what values are with "
                "value_type=, or keep what msgpack has: dicts, lists, texts and numbers. Of "
                "an object only the fields that its class declares arrive",
            )
        return data

    def _refusal(self, user_key: UserKey, why: str) -> ValueTypeError:
        state = f"{self._of} of {self._name}"
        return ValueTypeError(f"{state} cannot hand over the value of {user_key!r:.100}, {why}")


def _kind_of(value: object) -> str:
    return f"the type {type(value).__name__}"


def _name_of(value_type: object) -> str:
    return getattr(value_type, "__name__", str(value_type))
