"""What is known of a subclass of Entity before an instance exists: its mistakes are found here,
when `Entities` is made, and not by the first call.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from tenure.base.names import shown
from tenure.entities.entity import Entity, Socket
from tenure.entities.methods import EntityMethod, methods_of
from tenure.errors import ConfigurationError, UsageError, ValueTypeError

STATE_BYTES = 1 << 20
HANDLERS = ("on_activate", "on_connect", "on_message", "on_disconnect", "on_alarm")
_SOCKETS = ("on_connect", "on_message", "on_disconnect")


class EntityKind:
    """One subclass of Entity."""

    def __init__(self, kind: type[Entity[Any]]) -> None:
        if not (isinstance(kind, type) and issubclass(kind, Entity)) or kind is Entity:
            raise ConfigurationError(
                f"Entities is made of a subclass of Entity, not {shown(kind)}: write "
                "`class Room(Entity[Lines])`, and pass Room"
            )
        self.type = kind
        self.name = kind.__name__
        for each in ("__init__", "__new__"):
            if getattr(kind, each) is not getattr(Entity, each):
                raise ConfigurationError(
                    f"{self.name} has an {each}, which is never called: set up its attributes in "
                    "on_activate"
                )
        _check_slots(kind)
        self.methods: dict[str, EntityMethod] = methods_of(kind, Entity)
        self.handles: dict[str, bool] = {
            each: getattr(kind, each) is not getattr(Entity, each) for each in HANDLERS
        }
        for each, is_there in self.handles.items():
            if is_there:
                _check_handler(kind, each)
        self.new: Callable[[], Any] = _state_type(kind)
        encode = msgspec.msgpack.Encoder().encode
        self._encode: Callable[[object], bytes] = encode
        try:
            self._decode = msgspec.msgpack.Decoder(self.new).decode
            blank = encode(self.new())
            self._decode(blank)
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
        self.decode_attachment: Any = msgspec.msgpack.Decoder(_attachment_type(kind)).decode

    def method(self, name: str) -> EntityMethod:
        """The method of this name. Raises UsageError if the class has no such method."""
        found = self.methods.get(name)
        if found is None:
            raise self.no_method(name)
        return found

    def no_method(self, name: str) -> UsageError:
        """The error of a call to a method that the class does not have."""
        known = ", ".join(self.methods) or "none"
        return UsageError(f"{self.name} has no method {name!r} to be called; it has {known}")

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


def _check_slots(kind: type[Entity[Any]]) -> None:
    """Raise if it has attributes outside of `__dict__`, which alone lasts from call to call."""
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__")
        if slots and each not in Entity.__mro__:
            raise ConfigurationError(
                f"{kind.__name__} has __slots__, {shown(slots)}, whose values would be gone after "
                "each call: leave out __slots__"
            )


def _check_handler(kind: type[Entity[Any]], name: str) -> None:
    """Raise if a handler cannot be awaited, or called with what handlers get."""
    ours, found = inspect.signature(getattr(Entity, name)), getattr(kind, name)
    if not inspect.iscoroutinefunction(inspect.unwrap(found)):
        raise ConfigurationError(
            f"{kind.__name__}.{name} is awaited, in threads too: write `async def {name}{ours}`"
        )
    try:
        inspect.signature(found).bind(*ours.parameters)
    except TypeError as error:
        raise ConfigurationError(
            f"{kind.__name__}.{name} cannot be called: {error}. Write `async def {name}{ours}`"
        ) from None


def _shared(one: object, other: object, path: str) -> str | None:
    """Where two new states have the same object, of a kind that can be changed."""
    if one is other:
        return path if type(one).__hash__ is None else None
    fields = getattr(one, "__struct_fields__", ()) or getattr(one, "__dataclass_fields__", ())
    found = (_shared(getattr(one, it), getattr(other, it), f"{path}.{it}") for it in fields)
    return next(filter(None, found), None)


def _state_type(kind: type[Entity[Any]]) -> Any:  # noqa: ANN401  # a class
    found = _given_to_entity(kind, ())
    if found is None or isinstance(found, TypeVar):
        raise ConfigurationError(
            f"{kind.__name__} does not say what its state is: write "
            f"`class {kind.__name__}(Entity[SomeStruct])`"
        )
    if isinstance(found, type) and issubclass(found, msgspec.Struct):
        return found
    raise ConfigurationError(
        f"the state of {kind.__name__} is {found!r}, and not a msgspec Struct: write "
        f"`class {kind.__name__}(Entity[SomeStruct])`"
    )


def _given_to_entity(kind: type, given: tuple[Any, ...]) -> Any:  # noqa: ANN401  # a class
    """What stands for the state in `Entity[...]`, where `given` are the parameters of `kind`."""
    known = dict(zip(getattr(kind, "__parameters__", ()), given, strict=False))
    for base in kind.__dict__.get("__orig_bases__", kind.__bases__):
        origin = get_origin(base) or base
        arguments = tuple(known.get(each, each) for each in get_args(base))
        if origin is Entity and arguments:
            return arguments[0]
        if isinstance(origin, type) and issubclass(origin, Entity) and origin is not Entity:
            return _given_to_entity(origin, arguments)
    return None


def _attachment_type(kind: type[Entity[Any]]) -> Any:  # noqa: ANN401  # of any form
    for name in _SOCKETS:
        if getattr(kind, name) is not getattr(Entity, name):
            for each in get_type_hints(getattr(kind, name)).values():
                if get_origin(each) is Socket and not hasattr(get_args(each)[0], "__constraints__"):
                    return get_args(each)[0]
    return Any


def _name(of: Any) -> str:  # noqa: ANN401  # a class
    return getattr(of, "__name__", str(of))
