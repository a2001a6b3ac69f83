"""How the state of a kind of entity, and the attachments of its sockets, become bytes.

A type that cannot be kept is refused here, when `Entities` is made, and not by the first call.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tenure.client.hand_off.state_fields import fields_of, is_pydantic, is_strict
from tenure.client.hand_off.unknown_fields import UnknownFields
from tenure.entities.state_versions import FIRST, StateVersions, Upgrade
from tenure.errors import ConfigurationError, ValueTypeError

STATE_BYTES = 1 << 20
_pack = msgspec.msgpack.Encoder().encode
_unpack: Callable[[bytes], Any] = msgspec.msgpack.Decoder().decode


class StateCodec:
    """The codec of one subclass of Entity, whose state is `new`."""

    def __init__(
        self,
        name: str,
        new: Callable[[], Any],
        attachment: Any,  # noqa: ANN401  # of any form
        version: int,
        upgrades: Mapping[str, Upgrade],
    ) -> None:
        self.name = name
        self.new = new
        self._encode: Callable[[Any], bytes] = _pack
        self._decode: Callable[[bytes], Any]
        try:
            if is_pydantic(new):
                self._encode, self._decode = pydantic_codec(new)
            else:
                self._decode = msgspec.msgpack.Decoder(new).decode
            self._decode(self._encode(new()))
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"the state of {self.name}, {_name(self.new)}, cannot be kept: {error}. Every "
                "field has a default, and a type that msgspec knows"
            ) from None
        self._versions = StateVersions(name, version, upgrades, new)
        self._is_strict = is_strict(new)
        if shared := _shared(self.new(), self.new(), _name(self.new)):
            raise ConfigurationError(
                f"the default of {shared} is one object for all keys, and a change of it in place "
                "would be one of each: write it with msgspec.field(default_factory=...)"
            )
        self.decode_attachment: Any = msgspec.msgpack.Decoder(attachment).decode

    def encode(self, key: str | int, state: object, unknown: UnknownFields | None = None) -> bytes:
        """Encode state, with the fields that its class does not know. Raises ValueTypeError if it
        cannot be kept.
        """
        try:
            data = self._encode(state)
            self._decode(data)
            if unknown is not None:
                plain = _unpack(data)
                unknown.put_back(plain, state)
                data = _pack(plain)
            data = self._versions.marked(data)
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
            return self._decode(self._versions.plain(data) if self._is_strict else data)
        except ValueError as error:
            raise ValueTypeError(
                f"the state of {self.name} {key!r:.100} was kept by another version of "
                f"{_name(self.new)}, which this one cannot read: {error}. New fields need a "
                "default, and a field keeps its type; what was kept is untouched"
            ) from None

    def opened(self, key: str | int, data: bytes) -> tuple[Any, UnknownFields | None]:
        """The decoded state for turns, and what was kept of it that its class does not know."""
        state = self.decode(key, data)
        if not data or self._versions.marked(self._encode(state)) == data:
            return state, None
        unknown = UnknownFields(_unpack(self._versions.plain(data)), state)
        return state, unknown or None

    @property
    def has_version(self) -> bool:
        """Whether what is kept says of which version it is."""
        return self._versions.version > FIRST

    def current(self, key: str | int, data: bytes) -> bytes:
        """What was kept, as this version of the class keeps it. Raises as StateVersions.current
        does.
        """
        return self._versions.current(key, data)


def _shared(one: object, other: object, path: str) -> str | None:
    """Where two new states have the same object, of a kind that can be changed."""
    if one is other:
        return path if type(one).__hash__ is None else None
    names = fields_of(type(one))
    found = (_shared(getattr(one, it), getattr(other, it), f"{path}.{it}") for it in names)
    return next(filter(None, found), None)


def pydantic_codec(model: Any) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:  # noqa: ANN401  # a class
    """How a Pydantic model becomes bytes, and comes back."""

    def decode(data: bytes) -> Any:  # noqa: ANN401  # the user's
        return model.model_validate(_unpack(data))

    def encode(state: Any) -> bytes:  # noqa: ANN401  # the user's
        if not isinstance(state, model):
            raise TypeError(f"it is of type {type(state).__name__}")
        data = _pack(state.model_dump(by_alias=True, round_trip=True))
        # A field may be left out when a model is dumped, or have another name then.
        if decode(data) != state:
            raise ValueError("the model that is read back from what it dumps is another one")
        return data

    return encode, decode


def _name(of: Any) -> str:  # noqa: ANN401  # a class
    return getattr(of, "__name__", str(of))
