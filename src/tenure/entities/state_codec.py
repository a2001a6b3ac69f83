"""How the state of a kind of entity, and the attachments of its sockets, become bytes.

A type that cannot be kept is refused here, when `Entities` is made, and not by the first call.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from tenure.errors import ConfigurationError, ValueTypeError

STATE_BYTES = 1 << 20


class StateCodec:
    """The codec of one subclass of Entity, whose state is `new`."""

    def __init__(self, name: str, new: Callable[[], Any], attachment: Any) -> None:  # noqa: ANN401  # of any form
        self.name = name
        self.new = new
        self._encode: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode
        self._decode: Callable[[bytes], Any]
        try:
            if is_pydantic(new):
                self._encode, self._decode = _pydantic_codec(new)
            else:
                self._decode = msgspec.msgpack.Decoder(new).decode
            self._decode(self._encode(new()))
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"the state of {self.name}, {_name(self.new)}, cannot be kept: {error}. Every "
                "field has a default, and a type that msgspec knows"
            ) from None
        if shared := _shared(self.new(), self.new(), _name(self.new)):
            raise ConfigurationError(
                f"the default of {shared} is one object for all keys, and a change of it in place "
                "would be one of each: write it with msgspec.field(default_factory=...)"
            )
        self.decode_attachment: Any = msgspec.msgpack.Decoder(attachment).decode

    def encode(self, key: str | int, state: object) -> bytes:
        """Encode state. Raises ValueTypeError if it cannot be kept."""
        try:
            data = self._encode(state)
            self._decode(data)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueTypeError(
                f"the state of {self.name} {key!r:.100} cannot be kept as {_name(self.new)}: "
                f"{error}. Nothing of this call was kept"
            ) from None
        if len(data) > STATE_BYTES:
            raise ValueTypeError(
                f"the state of {self.name} {key!r:.100} has {len(data)} bytes; at most "
                f"{STATE_BYTES} are allowed. Nothing of this call was kept: keep large values "
                "elsewhere, by reference, or divide them among several keys"
            )
        return data

    def decode(self, key: str | int, data: bytes) -> Any:  # noqa: ANN401  # the user's
        """Decode state. Raises ValueTypeError if another version of the class kept what this one
        cannot read.
        """
        if not data:
            return self.new()
        try:
            return self._decode(data)
        except ValueError as error:
            raise ValueTypeError(
                f"the state of {self.name} {key!r:.100} was kept by another version of "
                f"{_name(self.new)}, which this one cannot read: {error}. New fields need a "
                "default, and a field keeps its type; what was kept is untouched"
            ) from None


def _shared(one: object, other: object, path: str) -> str | None:
    """Where two new states have the same object, of a kind that can be changed."""
    if one is other:
        return path if type(one).__hash__ is None else None
    names = fields_of(type(one))
    found = (_shared(getattr(one, it), getattr(other, it), f"{path}.{it}") for it in names)
    return next(filter(None, found), None)


def fields_of(kind: Any) -> tuple[str, ...]:  # noqa: ANN401  # a class
    """The names of the fields of a Struct, a dataclass, an attrs class or a Pydantic model."""
    if is_pydantic(kind):
        return tuple(kind.model_fields)
    if attributes := getattr(kind, "__attrs_attrs__", ()):
        return tuple(each.name for each in attributes)
    return (*getattr(kind, "__struct_fields__", ()), *getattr(kind, "__dataclass_fields__", ()))


def is_pydantic(kind: object) -> bool:
    """Whether it is a Pydantic model, which nothing here imports."""
    return hasattr(kind, "model_validate") and hasattr(kind, "model_fields")


def _pydantic_codec(model: Any) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:  # noqa: ANN401  # a class
    """How a Pydantic model becomes bytes, and comes back."""
    pack, unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode

    def decode(data: bytes) -> Any:  # noqa: ANN401  # the user's
        return model.model_validate(unpack(data))

    def encode(state: Any) -> bytes:  # noqa: ANN401  # the user's
        if not isinstance(state, model):
            raise TypeError(f"it is of type {type(state).__name__}")
        data = pack(state.model_dump(by_alias=True, round_trip=True))
        # A field may be left out when a model is dumped, or have another name then.
        if decode(data) != state:
            raise ValueError("the model that is read back from what it dumps is another one")
        return data

    return encode, decode


def _name(of: Any) -> str:  # noqa: ANN401  # a class
    return getattr(of, "__name__", str(of))
